"""Roles of staff, and which pages each role may open. A page that is not listed is for owners alone."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Role(StrEnum):
    """What a member of staff may do."""

    OWNER = "owner"
    RESEARCHER = "researcher"
    REVIEWER = "reviewer"
    CURATOR = "curator"


_LEADING = frozenset({Role.OWNER, Role.RESEARCHER})
PAGES: Mapping[str, frozenset[Role]] = {
    "/admin": _LEADING,
    "/admin/accounts": frozenset({Role.OWNER}),
    "/admin/logout": frozenset(Role),
    "/gallery": _LEADING,
    "/report": _LEADING,
    "/run": _LEADING,
    "/review": _LEADING | {Role.REVIEWER},
    "/curate": _LEADING | {Role.CURATOR},
    "/pictures": frozenset(Role),
}
"""The roles that may open the pages under a path; the longest path counts."""
HOME: Mapping[Role, str] = {
    Role.OWNER: "/admin",
    Role.RESEARCHER: "/admin",
    Role.REVIEWER: "/review",
    Role.CURATOR: "/curate",
}
"""Where each role begins after signing in."""


def may_open(role: Role, path: str) -> bool:
    """Whether a role may open a page."""
    above = [known for known in PAGES if path == known or path.startswith(known + "/")]
    return role in PAGES[max(above, key=len)] if above else role is Role.OWNER
