"""What goes wrong in torch, named; and what weights take."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.editors.local.memory import GB

T = TypeVar("T")


def failing_in_words(torch: Any, call: Callable[[], T]) -> T:
    """Do it; what goes wrong becomes a named failure."""
    try:
        return call()
    except (EvenEditError, Failed):
        raise
    except Exception as error:
        kind = Failure.OUT_OF_MEMORY if out_of_memory(torch, error) else Failure.CRASH
        failed = Failed(kind, f"{type(error).__name__}: {error}")
    # outside the handler: the error's frames, and with them the tensors, are gone
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    raise failed


def out_of_memory(torch: Any, error: BaseException) -> bool:
    """CUDA has a type for it, Python another; the CPU allocator, MPS and mmap have only words."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or bool(
        re.search(r"out of memory|(can't|cannot) allocate memory", str(error), re.IGNORECASE)
    )


def gigabytes(pipeline: Any) -> float:
    """The weights of a pipeline's parts."""
    parts = (part for part in pipeline.components.values() if hasattr(part, "parameters"))
    return float(sum(p.numel() * p.element_size() for part in parts for p in part.parameters()) / GB)
