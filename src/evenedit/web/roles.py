"""Roles of staff, and which pages each role may open. A page that is not listed is for owners alone."""

from __future__ import annotations

from collections.abc import Container, Mapping
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
    "/admin/home": frozenset(Role),
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
IDLE = "/admin/home"
"""Where those begin whose pages a study does not have."""


def may_open(role: Role, path: str) -> bool:
    """Return whether a role may open a page."""
    above = [known for known in PAGES if path == known or path.startswith(known + "/")]
    return role in PAGES[max(above, key=len)] if above else role is Role.OWNER


def home_of(role: Role | None, pages: Container[str]) -> str:
    """Return the first page of a role in an app with these pages."""
    return HOME[role] if role and HOME[role] in pages else IDLE
