"""Run validations and write their pages: `python -m validation [NAME ...]`; all but `mutation` unless named."""

import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from validation.page import PAGES, commit, page

VALIDATIONS = (
    "age",
    "change",
    "direction",
    "engine",
    "evidence",
    "findings",
    "fuzz",
    "identity",
    "instruments",
    "kills",
    "lease_kills",
    "load",
    "power",
    "primary",
    "questions",
    "readings",
    "reading_spread",
    "recolouring",
    "sampling",
    "sealed",
    "services",
    "submission_kills",
    "survey_kills",
    "twins",
)
NAMED = ("mutation",)
"""Those that run only when named: they need another Python, and write no page themselves."""


def validate(name: str) -> bool:
    """Run one validation and write its page; whether it holds."""
    made_at, started = commit(), time.monotonic()
    print(f"-- {name}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        validation = import_module(f"validation.{name}").run(Path(folder))
    if validation is None:
        return True
    text = page(name, validation, made_at, time.monotonic() - started)
    PAGES.mkdir(parents=True, exist_ok=True)
    (PAGES / f"{name}.md").write_text(text, "utf-8")
    print(text, flush=True)
    return not validation.wrong


if __name__ == "__main__":
    names = sys.argv[1:] or VALIDATIONS
    unknown = [name for name in names if name not in VALIDATIONS + NAMED]
    if unknown:
        sys.exit(f"no validation is called {', '.join(unknown)}; there are: {', '.join(VALIDATIONS + NAMED)}")
    held = [validate(name) for name in names]
    sys.exit(0 if all(held) else 1)
