"""The memory that an editor on this machine needs, beside the GPU that is there or that is planned for."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evenedit.core import plugins
from evenedit.editors.local.memory import GB, in_words, main_memory, visible_memory
from evenedit.run.executors.processes import visible_gpus


def gpu_here() -> float | None:
    """Gigabytes of the smallest GPU that the driver shows; None where there is none."""
    return min(visible_memory(), default=None)


@dataclass(frozen=True, slots=True)
class Machine:
    """The memory of a machine, in gigabytes."""

    gpu: float | None
    """Of its smallest GPU; None where there is none."""
    main: float = math.inf
    """Of main memory; infinite where it is not known."""
    gpus: int = 1
    """GPUs, each with a process of its own."""
    processes: int = 1
    """Processes that share the main memory; `main` is the part of each."""

    @classmethod
    def current(cls) -> Machine:
        """Describe this machine."""
        return cls(gpu_here(), main_memory(), max(1, len(visible_gpus())))

    def shared_by(self, processes: int) -> Machine:
        """Return the part of the machine that each of several processes has."""
        return replace(self, main=self.main / max(1, processes), processes=max(1, processes))

    def __str__(self) -> str:
        each = f" for each of {self.processes} processes" if self.processes > 1 else ""
        main = "" if self.main == math.inf else f" and {self.main:.0f} GB of main memory{each}"
        return f"{self.gpu:.0f} GB{main}"


def memory_note(
    kind: str, settings: Mapping[str, Any], machine: Machine, instructions: int = 0
) -> tuple[bool, str] | None:
    """Return whether an editor fits a machine and why; None if it states no memory needs.

    Where it reads the study's `instructions` before it edits, each of the two phases must fit by itself.
    """
    try:
        editor = plugins.build("editors", kind, settings)
    except Exception as error:
        return False, f"cannot be created, so its memory is unknown ({type(error).__name__}: {error})"
    if not hasattr(editor, "needs"):
        stated = getattr(editor, "vram_gb", None)
        gpu = machine.gpu
        return (
            (gpu is None or stated <= gpu, f"needs {stated} GB of GPU memory, by its own statement") if stated else None
        )
    weights, needed = editor.weights, editor.needs()
    if weights is None or needed is None:
        return True, "needs an unknown amount of memory: its weights are neither on this machine nor in the table"
    phases = editor.phases(instructions) if hasattr(editor, "phases") else {"edit": ()}
    bytes_each = {"float32": 4.0}.get(getattr(editor, "dtype", "bfloat16"), 2.0)
    parts = ", ".join(f"{name} {count * bytes_each / GB:.1f}" for name, count in weights.parts.items() if count > 1e6)
    detail = f"(weights in GB: {parts or 'tiny'}; by {weights.origin})"
    if len(phases) == 1:
        return _fitting(editor, machine, f"needs {in_words(needed)} {detail}")
    each = ", then ".join(f"{in_words(editor.needs(left_out))} to {name}" for name, left_out in phases.items())
    return _fitting_by_phase(editor, machine, phases, f"needs {each}; both at once need {needed.gpu:.0f} GB {detail}")


def _fitting(editor: Any, machine: Machine, size: str) -> tuple[bool, str]:
    if machine.gpu is None:
        return True, size
    offload = editor.fits(machine.gpu, machine.main)
    if offload is None:
        return False, f"{size}; it does not fit {machine}. {editor.advice(machine.gpu, machine.main)}"
    if offload != editor.offload:
        return (
            True,
            f"{size}; on {machine} it runs with offload = {offload}: {in_words(editor.needs(offload=offload))}",
        )
    return True, f"{size}; it fits {machine}"


def _fitting_by_phase(
    editor: Any, machine: Machine, phases: Mapping[str, Container[str]], size: str
) -> tuple[bool, str]:
    if machine.gpu is None:
        return True, size
    ways = {name: editor.fits(machine.gpu, machine.main, left_out) for name, left_out in phases.items()}
    if any(way is None for way in ways.values()):
        short = " and to ".join(name for name, way in ways.items() if way is None)
        return False, f"{size}; it does not fit {machine} to {short}. {editor.advice(machine.gpu, machine.main)}"
    changed = [f"offload = {way} to {name}" for name, way in ways.items() if way != editor.offload]
    if changed:
        return True, f"{size}; on {machine} it runs with {', '.join(changed)}"
    return True, f"{size}; it fits {machine}"
