"""EvenEdit shows whether an image editor treats every face the same.

Names are imported on first use, so that `import evenedit` and `evenedit --help` stay fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenedit.core.deprecated import stand_in
from evenedit.core.version import __version__

if TYPE_CHECKING:
    from evenedit.core.errors import EvenEditError, Failed, Failure
    from evenedit.core.interfaces import Case, Editor, Judge, Refusal, Reply
    from evenedit.core.records import Estimate, Prompt, Question, Rating, Status
    from evenedit.protocol.factors import Factor
    from evenedit.results.results import Results
    from evenedit.study.study import Study

__all__ = [
    "Case",
    "Editor",
    "Estimate",
    "EvenEditError",
    "Factor",
    "Failed",
    "Failure",
    "Judge",
    "Prompt",
    "Question",
    "Rating",
    "Refusal",
    "Reply",
    "Results",
    "Status",
    "Study",
    "__version__",
]

_HOMES = {
    "evenedit.core.errors": ("EvenEditError", "Failed", "Failure"),
    "evenedit.core.interfaces": ("Case", "Editor", "Judge", "Refusal", "Reply"),
    "evenedit.core.records": ("Estimate", "Prompt", "Question", "Rating", "Status"),
    "evenedit.protocol.factors": ("Factor",),
    "evenedit.results.results": ("Results",),
    "evenedit.study.study": ("Study",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

_PUBLIC = (
    "Case",
    "Editor",
    "Estimate",
    "Failed",
    "Failure",
    "Judge",
    "Prompt",
    "Question",
    "Rating",
    "Refusal",
    "Reply",
)
stand_in(
    "evenedit.records",
    {name: ("evenedit", name) for name in (*_PUBLIC, "Status")}
    | {"UserError": ("evenedit", "EvenEditError")}
    | {n: ("evenedit.core.records", n) for n in ("Edit", "Experiment", "Kind", "Outcome", "Request", "Source")}
    | {n: ("evenedit.core.records", n) for n in ("SIMULATED", "is_simulated")}
    | {"digest": ("evenedit.core.hashing", "digest")},
)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'evenedit' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
