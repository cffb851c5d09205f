"""A hook of MkDocs that fills in the parts of pages that the code itself can tell.

A page marks such a part with `<!-- generated: NAME -->` and `<!-- end -->`. What stands between them is for readers of
the file itself, says where the facts are kept, and is replaced when the site is built.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import api
import commands
import results_file
import study_file

PARTS: Mapping[str, Callable[[], str]] = {
    "api": api.names,
    "commands": commands.reference,
    "results": results_file.reference,
    "settings": study_file.settings,
    "study-file": study_file.reference,
    "template": study_file.template,
}


def filled(markdown: str) -> str:
    """A page with its generated parts."""
    return re.sub(
        r"<!-- generated: ([\w-]+) -->.*?<!-- end -->", lambda part: PARTS[part[1]](), markdown, flags=re.DOTALL
    )


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs for every page."""
    return filled(markdown)
