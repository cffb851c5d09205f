"""Name the failures of torch, and measure the size of weights."""

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
    """Call; turn errors into named failures."""
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
    """Return the package that a pipeline uses and that is not installed: diffusers leaves its name undefined."""
    named = re.fullmatch(r"name '(\w+)' is not defined", str(error)) if isinstance(error, NameError) else None
    return named[1] if named and named[1] in OPTIONAL and find_spec(named[1]) is None else None


def out_of_memory(torch: Any, error: BaseException) -> bool:
    """Return whether memory ran out; CUDA and Python have types for it, CPU, MPS and mmap only messages."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or bool(
        re.search(r"out of memory|(can't|cannot) allocate memory", str(error), re.IGNORECASE)
    )


def gigabytes(pipeline: Any) -> float:
    """Return the size of a pipeline's weights."""
    parts = (part for part in pipeline.components.values() if hasattr(part, "parameters"))
    return float(sum(p.numel() * p.element_size() for part in parts for p in part.parameters()) / GB)
