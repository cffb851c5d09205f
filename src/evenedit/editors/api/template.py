"""Requests as a study file writes them, with places for what differs from edit to edit, and paths into answers."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any

PLACE = re.compile(r"\{([a-z_]+\d?)\}")
LEFT_OUT = object()
"""The value of a field that is not sent: the place of a second image where there is one."""


def places(
    pictures: Sequence[bytes], instruction: str, seed: int, names: Sequence[str] = (), **more: Any
) -> dict[str, Any]:
    """Return the value of each place for one edit.

    {instruction}, {seed}; {image}, {image2} as base64, {image_url}, {image2_url} as data URLs; {images}, {image_urls}
    as lists of these; {image_name}, {image2_name} as the service named what was sent to it before.
    """
    coded = [base64.b64encode(picture).decode() for picture in pictures]
    urls = [f"data:image/png;base64,{each}" for each in coded]
    values: dict[str, Any] = {"instruction": instruction, "seed": seed, "images": coded, "image_urls": urls, **more}
    for number in (1, 2):
        mark = "" if number == 1 else str(number)
        is_present = len(pictures) >= number
        values[f"image{mark}"] = coded[number - 1] if is_present else LEFT_OUT
        values[f"image{mark}_url"] = urls[number - 1] if is_present else LEFT_OUT
        values[f"image{mark}_name"] = names[number - 1] if len(names) >= number else LEFT_OUT
    return values


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Fill the places of a template; a text that is one place gets the value itself, a number or a list."""
    if isinstance(template, Mapping):
        entries = {key: filled(value, values) for key, value in template.items()}
        return {key: value for key, value in entries.items() if value is not LEFT_OUT}
    if isinstance(template, list):
        return [value for value in (filled(each, values) for each in template) if value is not LEFT_OUT]
    if not isinstance(template, str):
        return template
    match = PLACE.fullmatch(template)
    if match and match[1] in values:
        return values[match[1]]
    return PLACE.sub(lambda place: str(values[place[1]]) if place[1] in values else place[0], template)


def used(template: Any) -> set[str]:
    """Return the places in a template."""
    if isinstance(template, Mapping):
        return {name for value in template.values() for name in used(value)}
    if isinstance(template, list):
        return {name for value in template for name in used(value)}
    return set(PLACE.findall(template)) if isinstance(template, str) else set()


def at(answer: Any, path: str) -> Any:
    """Return the value at a path such as `images.0.url`; `*` is the first entry that has the rest."""
    return _at(answer, path.split(".") if path else [])


def _at(value: Any, steps: Sequence[str]) -> Any:
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if step == "*":
        entries = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
        return next((match for entry in entries if (match := _at(entry, rest)) is not None), None)
    if isinstance(value, Mapping):
        return _at(value.get(step), rest)
    if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        return _at(value[int(step)], rest)
    return None
