"""A figure as a part of a page: its colours follow light and dark mode, and its marks lead to the edits behind them."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, fromstring, register_namespace, tostring

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
HREF = f"{{{XLINK}}}href"
TIP = "tip:"
"""The prefix of an id that holds the text of a tooltip."""
CASES = "¦"
"""Separates the text of a tooltip from the query of the cases behind the mark."""

register_namespace("", SVG)
register_namespace("xlink", XLINK)


def tip(text: str, query: str = "") -> str:
    """Return the id that makes a mark show a text, and lead to the cases of a query."""
    return f"{TIP}{text}{CASES}{query}"


def add_tooltips(svg: str) -> str:
    """Return an SVG whose marks have a title, which a browser shows on hover, and the query of their cases."""
    pattern = rf'<g id="{TIP}([^"{CASES}]*){CASES}([^"]*)">'
    return re.sub(pattern, r'<g class="tip" data-cases="\2"><title>\1</title>', svg)


def inline_svg(svg: str, id: str, alt: str, colours: dict[str, str], before: str) -> str:
    """Return an SVG for a page: unique ids, no style attributes, `colours` replaced, and links that begin `before`."""
    root = fromstring(svg[svg.index("<svg") :])
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(child)
        _link_marks(parent, before)
    for element in root.iter():
        _in_attributes(element, colours)
        _make_unique(element, id)
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.attrib |= {"role": "group" if before else "img", "aria-labelledby": f"{id}-alt", "stroke-linejoin": "round"}
    title = Element(f"{{{SVG}}}title", {"id": f"{id}-alt"})
    title.text = alt
    root.insert(0, title)
    return tostring(root, encoding="unicode")


def _in_attributes(element: Element, colours: dict[str, str]) -> None:
    """Write each style as an attribute of its own: a page that forbids inline styles shows it as well."""
    for rule in filter(None, element.attrib.pop("style", "").split(";")):
        name, _, value = rule.partition(":")
        element.set(name.strip(), colours.get(value.strip(), value.strip()))


def _make_unique(element: Element, id: str) -> None:
    if "id" in element.attrib:
        element.set("id", f"{id}-{element.get('id')}")
    for name, value in element.attrib.items():
        if name == HREF and value.startswith("#"):
            element.set(name, f"#{id}-{value[1:]}")
        elif "url(#" in value:
            element.set(name, value.replace("url(#", f"url(#{id}-"))


def _link_marks(parent: Element, before: str) -> None:
    """Put marks into links; neighbours of the same text, as an interval and its dot, share one."""
    if not before or parent.tag == f"{{{SVG}}}a":
        return
    last = None
    for child in list(parent):
        query = child.attrib.pop("data-cases", "") if child.get("class") == "tip" else ""
        if not query:
            last = None
            continue
        child.attrib.pop("class")
        title = child[0]
        if last is not None and last[0].text == title.text:
            child.remove(title)
            parent.remove(child)
            last.append(child)
            continue
        child.remove(title)
        last = Element(f"{{{SVG}}}a", {"href": before + query, "class": "tip", "aria-label": title.text or ""})
        last.extend((title, child))
        parent[list(parent).index(child)] = last
