"""A measurement as HTML for a notebook: the two pictures, swatches of the skin, and the numbers."""

from __future__ import annotations

import base64
import io
from html import escape

from PIL import Image

from evenedit.core import color
from evenedit.core.color import Lab
from evenedit.instruments.measure import MeasuredPair, Measurement
from evenedit.instruments.picture import Pixels

SIZE = 224
"""Longest side of a picture, in pixels."""
NUMBERS = (
    ("skin_delta_L", "Skin ΔL*"),
    ("skin_uncertainty_L", "± (standard error)"),
    ("changed_share", "Share of pixels changed"),
    ("identity_distance", "Distance between the faces"),
)


def page(measured: Measurement) -> str:
    """Return what a notebook shows of a measurement."""
    rows = "".join(_row(title, getattr(measured, name), measured.reasons.get(name, "")) for name, title in NUMBERS)
    pictures = _pictures(measured.evidence) if measured.evidence else ""
    return (
        f"<div>{pictures}<table><tr><th>Verdict</th><td>{escape(measured.verdict)}</td></tr>"
        f"<tr><th>Light</th><td>{escape(measured.light)}</td></tr>{rows}</table></div>"
    )


def _row(title: str, value: float | None, reason: str) -> str:
    shown = f"{value:.2f}" if value is not None else f"– {escape(reason)}"
    return f"<tr><th>{escape(title)}</th><td>{shown}</td></tr>"


def _pictures(pair: MeasuredPair) -> str:
    tones = (pair.skin.before, pair.skin.corrected) if pair.skin else (None, None)
    figures = (("source", pair.source, tones[0]), ("edited", pair.edited, tones[1]))
    return (
        '<div style="display:flex;gap:8px">'
        + "".join(
            f'<figure style="margin:0"><img alt="{name}" src="{_inline(pixels)}">'
            f"<figcaption>{name} {_swatch(tone)}</figcaption></figure>"
            for name, pixels, tone in figures
        )
        + "</div>"
    )


def _swatch(tone: Lab | None) -> str:
    if tone is None:
        return "(skin not measured)"
    code = "#" + "".join(f"{round(float(value)):02x}" for value in color.lab_to_rgb(tone))
    return (
        f'<span title="mean skin tone {code}" style="display:inline-block;width:2.5em;height:1em;vertical-align:middle;'
        f'border:1px solid #888;background:{code}"></span> {code}'
    )


def _inline(pixels: Pixels) -> str:
    image = Image.fromarray(pixels)
    image.thumbnail((SIZE, SIZE))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
