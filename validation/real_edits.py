"""177 outputs of a real editor beside the photographs, and what a person looking at both pictures found in them.

The lists were written down by one of the authors before thresholds were chosen; others may see some cases otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from PIL import Image

from evenedit.instruments import picture
from evenedit.instruments.picture import Pixels
from validation.variants import DATA

REPLACED = frozenset(
    [
        "B02_Black_Female_20s",
        "B02_Black_Female_40s",
        "B01_Black_Female_50s",
        "B02_Black_Female_50s",
        "B02_Black_Female_70plus",
        "B02_Black_Male_30s",
        "B05_Black_Male_30s",
        "B05_Black_Male_40s",
        "B08_Black_Male_40s",
        "B09_Black_Male_40s",
        "B02_Black_Male_50s",
        "B04_Black_Male_50s",
        "B05_Black_Male_50s",
        "B08_Black_Male_50s",
        "B02_Black_Male_70plus",
        "B02_EastAsian_Male_20s",
        "B05_EastAsian_Male_20s",
    ]
)
"""Evidently another person: of another gender or decades apart, and with other features."""
PERHAPS_REPLACED = frozenset(
    [
        "B01_Black_Female_20s",
        "B08_Black_Female_50s",
        "B04_Black_Female_70plus",
        "B08_Black_Female_70plus",
        "B01_Black_Male_30s",
        "B08_Black_Male_30s",
        "B09_Black_Male_30s",
        "B01_Black_Male_40s",
        "B02_Black_Male_40s",
        "B06_Black_Male_40s",
        "B01_Black_Male_50s",
        "B09_Black_Male_50s",
        "A04_Black_Male_50s",
    ]
)
"""Doubtful, so counted neither way. The last was moved here after its distance was seen: a smile was asked for, and
a visibly younger man with other features came."""
COVERED = frozenset({"B03_Black_Male_40s"})
"""A surgical mask hides the lower face."""
NOTHING_NEW = frozenset(
    [
        "B01_Black_Female_40s",
        "B04_Black_Female_40s",
        "B07_Black_Female_40s",
        "B09_Black_Female_40s",
        "B09_Black_Female_20s",
        "B09_Black_Female_70plus",
        "B04_Black_Male_70plus",
        "B09_Black_Male_70plus",
        "B03_EastAsian_Male_20s",
        "B04_Black_Male_40s",
    ]
)
"""Another occupation was asked for; the same person came back in the same clothes and place."""
PERHAPS_NOTHING_NEW = frozenset(
    [
        "B04_Black_Female_20s",
        "B08_Black_Female_20s",
        "B09_Black_Female_50s",
        "B01_Black_Female_70plus",
        "B07_Black_Female_70plus",
        "B01_Black_Male_40s",
        "B07_Black_Male_40s",
        "B09_Black_Male_50s",
        "B04_EastAsian_Male_20s",
        "B07_EastAsian_Male_20s",
    ]
)
"""Doubtful: a shirt under the blouse, a head turned, a smile."""
OLDER = frozenset(
    [
        "B01_Black_Female_20s",
        "B02_Black_Female_20s",
        "B02_Black_Female_40s",
        "B01_Black_Female_50s",
        "B02_Black_Female_50s",
        "B02_Black_Male_30s",
        "B02_EastAsian_Male_20s",
    ]
)
"""Visibly decades older."""
YOUNGER = frozenset(
    [
        "B08_Black_Female_50s",
        "B04_Black_Female_70plus",
        "B08_Black_Female_70plus",
        "B08_Black_Male_40s",
        "B09_Black_Male_40s",
        "B04_Black_Male_50s",
        "B05_Black_Male_50s",
        "B08_Black_Male_50s",
    ]
)
"""Visibly decades younger."""
NEUTRAL = ("A03", "A06", "A09")
"""Prompts that ask for nothing about the person: less noise, another backdrop, clarity."""


def real_edits(names: Collection[str] | None = None) -> Iterator[tuple[str, str, Pixels]]:
    """The outputs, or some of them, as name, name of the source and pixels."""
    for path in sorted((DATA / "step1x_edits").glob("*.jpg")):
        if names is None or path.stem in names:
            yield path.stem, path.stem.split("_", 1)[1], picture.pixels(Image.open(path))
