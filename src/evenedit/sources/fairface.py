"""FairFace as a study's portraits: images folder and label CSV, or the parquet shards of the hub dataset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from PIL import ImageOps
from PIL.Image import Image, Resampling

from evenedit.core.errors import EvenEditError
from evenedit.core.log import log
from evenedit.protocol import FACTORS, cells
from evenedit.sources.dataset import open_dataset, picture
from evenedit.sources.sampling import draw


class FairFace:
    """`faces_per_cell` faces of each cell drawn by seed; for hand-picked ones, curate pools instead."""

    labelled_by = FACTORS

    def __init__(
        self,
        *,
        path: str,
        padding: str | None = None,
        labels: str | None = None,
        faces_per_cell: int = 1,
        seed: int = 42,
        size: int = 1024,
    ) -> None:
        if faces_per_cell < 1:
            raise EvenEditError(f"faces_per_cell is {faces_per_cell}; it must be at least 1")
        self.path = Path(path)
        self.padding = padding
        self.labels = labels
        self.faces_per_cell = faces_per_cell
        self.seed = seed
        self.size = size

    def portraits(self) -> Iterator[tuple[str, dict[str, str], str, Image]]:
        """Yield the portraits: id, labels, origin, picture."""
        dataset = open_dataset(self.path, self.padding, self.labels)
        names = ["_".join(cell.values()) for cell in cells()]
        drawing = draw(dataset, range(self.seed, self.seed + self.faces_per_cell), names)
        short = [
            f"{cell} ({sum((n, cell) in drawing.drawn for n in range(self.faces_per_cell))})"
            for cell in names
            if (self.faces_per_cell - 1, cell) not in drawing.drawn
        ]
        if short:
            raise EvenEditError(
                f"{self.path} has fewer than {self.faces_per_cell} readable images in {len(short)} cells: "
                f"{', '.join(short)}. Lower faces_per_cell or add images"
            )
        if drawing.unreadable:
            log.info(f"{len(drawing.unreadable)} unreadable images were skipped: {', '.join(drawing.unreadable)}")
        for (number, cell), face in drawing.drawn.items():
            image = picture(drawing.content[face.at])
            assert image is not None
            ident = cell if number == 0 else f"{cell}_{number + 1}"
            yield ident, dict(face.attributes), face.origin, fitted(image, self.size)


def fitted(image: Image, size: int) -> Image:
    """Crop a picture to its central square and resize it to this side, by Lanczos."""
    return ImageOps.fit(image, (size, size), Resampling.LANCZOS)
