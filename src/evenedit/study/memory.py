"""The memory of a study's local editors beside the GPU that is there, or that is planned for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenedit.core import plugins
from evenedit.editors.local.memory import GB, in_words, visible_memory


def gpu_here() -> float | None:
    """Gigabytes of the smallest GPU that the driver shows; None where there is none."""
    return min(visible_memory(), default=None)


def memory_note(kind: str, settings: Mapping[str, Any], gpu: float | None) -> tuple[bool, str] | None:
    """Whether an editor fits a GPU, and why, in words; None for one that says nothing about its memory."""
    editor = plugins.build("editors", kind, settings)
    if not hasattr(editor, "needs"):
        stated = getattr(editor, "vram_gb", None)
        return (gpu is None or stated <= gpu, f"needs {stated} GB of GPU memory, as it states") if stated else None
    weights, asked = editor.weights, editor.needs()
    if weights is None or asked is None:
        return True, "needs memory that is not known: its weights are not here, and not in our table"
    bytes_each = {"float32": 4.0}.get(getattr(editor, "dtype", "bfloat16"), 2.0)
    parts = ", ".join(f"{name} {count * bytes_each / GB:.1f}" for name, count in weights.parts.items() if count > 1e6)
    size = f"needs {in_words(asked)} (weights in GB: {parts or 'tiny'}; by {weights.origin})"
    if gpu is None:
        return True, size
    offload = editor.fits(gpu)
    if offload is None:
        return False, f"{size}; it does not fit {gpu:.0f} GB. {editor.advice(gpu)}"
    if offload != editor.offload:
        return (
            True,
            f"{size}; on {gpu:.0f} GB it runs with offload = {offload}: {in_words(editor.needs(offload=offload))}",
        )
    return True, f"{size}; it fits {gpu:.0f} GB"
