"""EvenEdit shows whether an image editor treats every face the same.

Names are imported on first use, so that `import evenedit` and `evenedit --help` stay fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenedit.core.version import __version__

if TYPE_CHECKING:
    from evenedit.api.analyze import analyze
    from evenedit.api.audit import audit
    from evenedit.api.load_results import load_results
    from evenedit.api.results import Results
    from evenedit.api.study import Study
    from evenedit.core.errors import EvenEditError, Failed, Failure, LoadError
    from evenedit.core.interfaces import Case, Editor, Judge, NoImage, Refusal, Reply
    from evenedit.core.records import Estimate, Prompt, Question, Rating, Status
    from evenedit.instruments.face import Face, NoFace
    from evenedit.instruments.interface import Instrument, PairContext, Read
    from evenedit.instruments.measurement import Measurement
    from evenedit.instruments.pair import measure
    from evenedit.instruments.picture import Picture
    from evenedit.protocol.factors import Factor
    from evenedit.results.results import Finding, Gap
    from evenedit.run.summary import RunSummary

__all__ = [
    "Case",
    "Editor",
    "Estimate",
    "EvenEditError",
    "Face",
    "Factor",
    "Failed",
    "Failure",
    "Finding",
    "Gap",
    "Instrument",
    "Judge",
    "LoadError",
    "Measurement",
    "NoFace",
    "NoImage",
    "PairContext",
    "Picture",
    "Prompt",
    "Question",
    "Rating",
    "Read",
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
    "evenedit.core.errors": ("LoadError", "EvenEditError", "Failed", "Failure"),
    "evenedit.core.interfaces": ("Case", "Editor", "Judge", "NoImage", "Refusal", "Reply"),
    "evenedit.core.records": ("Estimate", "Prompt", "Question", "Rating", "Status"),
    "evenedit.instruments.face": ("Face", "NoFace"),
    "evenedit.instruments.interface": ("Instrument", "PairContext", "Read"),
    "evenedit.instruments.measurement": ("Measurement",),
    "evenedit.instruments.pair": ("measure",),
    "evenedit.instruments.picture": ("Picture",),
    "evenedit.protocol.factors": ("Factor",),
    "evenedit.results.results": ("Finding", "Gap"),
    "evenedit.run.summary": ("RunSummary",),
    "evenedit.api.analyze": ("analyze",),
    "evenedit.api.audit": ("audit",),
    "evenedit.api.load_results": ("load_results",),
    "evenedit.api.results": ("Results",),
    "evenedit.api.study": ("Study",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'evenedit' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
