"""Texts made from the fields of a provider's reply."""

from __future__ import annotations


def join_messages(*parts: object) -> str:
    """Join the parts that have text with colons; at most 1,000 characters."""
    texts = (str(part).strip() for part in parts if part)
    return ": ".join(text for text in texts if text)[:1000]


def one_line(text: str, limit: int) -> str:
    """Return a text in one line of at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit]} …"
