"""What goes wrong in torch, named; and what weights take."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.editors.local.memory import GB

T = TypeVar("T")
OPTIONAL = ("ftfy", "bs4", "sentencepiece", "torchvision", "cv2", "qwen_vl_utils")
"""Packages that pipelines of diffusers use where they are installed."""


def failing_in_words(torch: Any, call: Callable[[], T]) -> T:
    """Do it; what goes wrong becomes a named failure."""
    try:
        return call()
    except (EvenEditError, Failed):
        raise
    except Exception as error:
        if package := _absent_package(error):
            raise EvenEditError(
                f"the pipeline needs the package '{package}', which is not installed. Try: pip install {package}"
            ) from None
        kind = Failure.OUT_OF_MEMORY if out_of_memory(torch, error) else Failure.CRASH
        failed = Failed(kind, f"{type(error).__name__}: {error}")
    # outside the handler: the error's frames, and with them the tensors, are gone
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    raise failed


def _absent_package(error: Exception) -> str | None:
    """The package that a pipeline uses and did not import because it is not there: diffusers leaves its name open."""
    named = re.fullmatch(r"name '(\w+)' is not defined", str(error)) if isinstance(error, NameError) else None
    return named[1] if named and named[1] in OPTIONAL and find_spec(named[1]) is None else None


def out_of_memory(torch: Any, error: BaseException) -> bool:
    """CUDA has a type for it, Python another; the CPU allocator, MPS and mmap have only words."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or bool(
        re.search(r"out of memory|(can't|cannot) allocate memory", str(error), re.IGNORECASE)
    )


def gigabytes(pipeline: Any) -> float:
    """The weights of a pipeline's parts."""
    parts = (part for part in pipeline.components.values() if hasattr(part, "parameters"))
    return float(sum(p.numel() * p.element_size() for part in parts for p in part.parameters()) / GB)
