"""Who is at the door of a room that is not for everybody."""

from __future__ import annotations

from fastapi import Request


def staff(request: Request) -> str:
    """The name of the signed-in member of staff (reviewer, curator, administrator); for use with `Depends`."""
    raise NotImplementedError
