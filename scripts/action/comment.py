"""Writes a summary as one comment on a pull request: a later run updates it, and none is repeated.

NUMBER=12 TOKEN=… ANSWER=pass GITHUB_REPOSITORY=owner/name GITHUB_API_URL=… python comment.py summary.md

A comment that cannot be written is a warning: the gate's answer stands without it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

PER_PAGE = 100
LONGEST = 65_000
"""Characters; a comment may have 65,536."""
UNANSWERED = "### EvenEdit gate: no answer\n\nA step before the gate failed; the log of the workflow has its words.\n"
"""Takes the place of what a former run said."""


def call(method: str, path: str, body: dict[str, str] | None = None) -> Any:
    """Ask the API."""
    request = Request(
        f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}{path}",
        None if body is None else json.dumps(body).encode(),
        {
            "Authorization": f"Bearer {os.environ['TOKEN']}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
        },
        method=method,
    )
    with urlopen(request, timeout=60) as answer:
        return json.load(answer)


def comments(number: str) -> Iterator[dict[str, Any]]:
    """Every comment on the pull request, page by page."""
    page = 1
    while True:
        found = call("GET", f"/issues/{number}/comments?per_page={PER_PAGE}&page={page}")
        yield from found
        if len(found) < PER_PAGE:
            return
        page += 1


def main() -> None:
    """Write the comment, or warn."""
    try:
        write(Path(sys.argv[1]))
    except OSError as error:  # HTTP errors are among them
        print(f"::warning::the comment could not be written ({error}); the token needs pull-requests: write")


def write(summary: Path) -> None:
    """Update the comment that carries the mark, or write the first one."""
    number, mark = os.environ["NUMBER"], f"<!-- evenedit {os.environ.get('NAME', 'gate')} -->"
    text = summary.read_text("utf-8") if os.environ.get("ANSWER") else UNANSWERED
    body = {"body": f"{mark}\n{text[:LONGEST]}"}
    known = next((one for one in comments(number) if str(one.get("body", "")).startswith(mark)), None)
    if known is None:
        call("POST", f"/issues/{number}/comments", body)
    else:
        call("PATCH", f"/issues/comments/{known['id']}", body)


if __name__ == "__main__":
    main()
