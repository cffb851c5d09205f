"""The parts of every page: templates, thumbnails and atomic writes."""

from __future__ import annotations

import base64
import hashlib
import io
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from evenedit.core.images import write_whole

if TYPE_CHECKING:
    from PIL.Image import Image

TEMPLATES = Path(__file__).parents[1] / "templates"
PALETTE = TEMPLATES / "palette.css"
"""Colours and fonts, light and dark; the web app uses them too."""
ASSETS = (TEMPLATES / "report.css", TEMPLATES / "report.js")
"""The style and the script of a report's pages, which the web app serves as files."""
THUMBNAIL = 288
"""Longest side of a picture on a page, in pixels."""


def render(template: str, **context: Any) -> str:
    """Return a page made from its template; a variable that is not given is an error."""
    return _templates().get_template(template).render(**{"served": False, "link": None} | context)


@cache
def _templates() -> Environment:
    """Load the templates; each is compiled once."""
    env = Environment(
        loader=PackageLoader("evenedit.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {"data_uri": _data_uri}
    return env


def thumbnail(image: Image, seen: dict[str, str], size: int = THUMBNAIL) -> str:
    """Return a small picture as a data URI; equal pictures share one text through `seen`."""
    small = image.convert("RGB")
    small.thumbnail((size, size))
    key = hashlib.sha256(small.tobytes()).hexdigest()
    if key not in seen:
        buffer = io.BytesIO()
        small.save(buffer, "WEBP", quality=82, method=2)
        seen[key] = f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return seen[key]


def put(path: Path, content: bytes) -> None:
    """Write a file at once as a whole, and its folder where it is missing.

    It is not waited for until it is on the disk: a report can be written again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content, flush=False)


def _data_uri(text: str, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"
