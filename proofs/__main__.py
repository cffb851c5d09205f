"""Run proofs and write their pages: `python -m proofs [NAME ...]`; all but `mutation` unless named."""

import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from proofs.page import PAGES, commit, page

PROOFS = (
    "age",
    "change",
    "compare",
    "coverage",
    "few_prompts",
    "findings",
    "fuzz",
    "hard_worlds",
    "identity",
    "instruments",
    "kills",
    "lease_kills",
    "load",
    "multilevel",
    "power",
    "rater_groups",
    "sealed",
    "services",
    "survey_kills",
    "texts",
)
NAMED = ("mutation",)
"""Those that run only when named: they need another Python, and write no page themselves."""


def prove(name: str) -> bool:
    """Run one proof and write its page; whether it holds."""
    made_at, started = commit(), time.monotonic()
    print(f"-- {name}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        proof = import_module(f"proofs.{name}").run(Path(folder))
    if proof is None:
        return True
    text = page(name, proof, made_at, time.monotonic() - started)
    PAGES.mkdir(parents=True, exist_ok=True)
    (PAGES / f"{name}.md").write_text(text, "utf-8")
    print(text, flush=True)
    return not proof.wrong


if __name__ == "__main__":
    names = sys.argv[1:] or PROOFS
    unknown = [name for name in names if name not in PROOFS + NAMED]
    if unknown:
        sys.exit(f"no proof is called {', '.join(unknown)}; there are: {', '.join(PROOFS + NAMED)}")
    held = [prove(name) for name in names]
    sys.exit(0 if all(held) else 1)
