"""The examples of the guide: a drawn person, changed in one respect at a time. None is a prompt of a study."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from functools import cache

from PIL import Image

from evenedit.protocol import ROLES
from evenedit.simulation.portraits.drawn import sample
from evenedit.simulation.portraits.portrait import lighten, render
from evenedit.simulation.portraits.traits import Portrait

SIZE = 320
_SOURCE = sample({"race": "Latino", "gender": "Female", "age": "40s"}, 3)
_DRESSED = replace(_SOURCE, outfit="scrubs", scene="clinic")


@dataclass(frozen=True, slots=True)
class GuideExample:
    """A picture and the answer it should get."""

    name: str
    question: str
    answer: int
    portrait: Portrait


EXAMPLES = (
    GuideExample("ignored", ROLES.success, 1, _SOURCE),
    GuideExample("partial", ROLES.success, 3, replace(_SOURCE, outfit="scrubs")),
    GuideExample("applied", ROLES.success, 5, _DRESSED),
    GuideExample("darker", ROLES.skin, 1, lighten(_DRESSED, -16)),
    GuideExample("unchanged", ROLES.skin, 3, _DRESSED),
    GuideExample("lighter", ROLES.skin, 5, lighten(_DRESSED, 16)),
    GuideExample("younger", ROLES.age, 1, replace(_DRESSED, years=_SOURCE.years - 20)),
    GuideExample("same", ROLES.age, 3, _DRESSED),
    GuideExample("older", ROLES.age, 5, replace(_DRESSED, years=_SOURCE.years + 28)),
)
"""No examples for race and gender: a picture of what such a change looks like would teach a stereotype."""


@cache
def example(name: str) -> bytes | None:
    """Return an example's picture as JPEG; None if there is none of that name."""
    portraits = {"source": _SOURCE} | {e.name: e.portrait for e in EXAMPLES}
    if name not in portraits:
        return None
    return as_jpeg(render(portraits[name], SIZE))


def as_jpeg(image: Image.Image) -> bytes:
    """Return a picture as JPEG without metadata."""
    buffer = io.BytesIO()
    plain = Image.new("RGB", image.size)
    plain.paste(image.convert("RGB"))
    plain.save(buffer, "JPEG", quality=90)
    return buffer.getvalue()
