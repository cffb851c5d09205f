"""EvenEdit shows whether an image editor treats every face the same.

Names are imported on first use, so that `import evenedit` and `evenedit --help` stay fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenedit.core.deprecated import stand_in
from evenedit.core.version import __version__

if TYPE_CHECKING:
    from evenedit.core.errors import CannotLoad, EvenEditError, Failed, Failure
    from evenedit.core.interfaces import Case, Editor, Judge, Refusal, Reply
    from evenedit.core.records import Estimate, Prompt, Question, Rating, Status
    from evenedit.instruments.measure import Measurement
    from evenedit.instruments.pair import measure
    from evenedit.protocol.factors import Factor
    from evenedit.results.results import Finding, Gap, Results
    from evenedit.run.summary import RunSummary
    from evenedit.study.analyze import analyze
    from evenedit.study.audit import audit
    from evenedit.study.load_results import load_results
    from evenedit.study.study import Study

__all__ = [
    "CannotLoad",
    "Case",
    "Editor",
    "Estimate",
    "EvenEditError",
    "Factor",
    "Failed",
    "Failure",
    "Finding",
    "Gap",
    "Judge",
    "Measurement",
    "Prompt",
    "Question",
    "Rating",
    "Refusal",
    "Reply",
    "Results",
    "RunSummary",
    "Status",
    "Study",
    "__version__",
    "analyze",
    "audit",
    "load_results",
    "measure",
]

_HOMES = {
    "evenedit.core.errors": ("CannotLoad", "EvenEditError", "Failed", "Failure"),
    "evenedit.core.interfaces": ("Case", "Editor", "Judge", "Refusal", "Reply"),
    "evenedit.core.records": ("Estimate", "Prompt", "Question", "Rating", "Status"),
    "evenedit.instruments.measure": ("Measurement",),
    "evenedit.instruments.pair": ("measure",),
    "evenedit.protocol.factors": ("Factor",),
    "evenedit.results.results": ("Finding", "Gap", "Results"),
    "evenedit.run.summary": ("RunSummary",),
    "evenedit.study.analyze": ("analyze",),
    "evenedit.study.audit": ("audit",),
    "evenedit.study.load_results": ("load_results",),
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
