"""The memory that an editor on this machine needs, computed from its settings before anything is loaded.

Weights are counted in the headers of the model's files where these are here, and taken from a dated table where they
are not. Where weights wait in main memory (`offload`) pictures stay the same; `quantize` changes them.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import struct
import subprocess
import tomllib
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import prod
from pathlib import Path
from typing import Any

GB = 1e9
BYTES = {"bfloat16": 2.0, "float16": 2.0, "float32": 4.0}
"""Of one parameter, by `dtype`."""
BYTES_4BIT = 0.5 + 4 / 64
"""Of one parameter as NF4: four bits, and a 32-bit scale for every 64 of them."""
QUANTIZED = frozenset({"transformer", "unet", "text_encoder", "text_encoder_2", "text_encoder_3"})
"""Parts of a pipeline that `quantize` makes smaller."""
PIXELS = 1024 * 1024
"""The output that the table's activations are for."""
OWN_GROUPS, GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
"""Where Linux says which control groups a process is in, and keeps their limits."""
AUTO = "auto"
PRESETS = ("80gb", "48gb", "24gb")
OFFLOADS = ("none", "model", "sequential")
"""What waits in main memory, from the fastest to the slowest."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The size of a model."""

    parts: Mapping[str, float]
    """Parameters by part of the pipeline."""
    layer: float
    """Parameters of the largest layer; 0 where it is not known."""
    activations: float
    """Gigabytes beside the weights at 1024 × 1024 pixels; 0 where it is not known."""
    origin: str
    """Where this was read."""

    def without(self, left_out: Container[str]) -> Weights:
        """Return the model without some of its parts."""
        return replace(self, parts={name: count for name, count in self.parts.items() if name not in left_out})


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Gigabytes that an editor needs with some settings."""

    gpu: float
    main: float
    """Of main memory."""


def weights_of(model: str, revision: str | None = None) -> Weights | None:
    """Return the size of a model, from its files or else from the table; None if not known."""
    known = _table().get(model)
    activations = float(known["activations"]) if isinstance(known, dict) else 0.0
    folder = snapshot(model, revision)
    if folder is not None:
        parts = {part.name: sum(_tensors(part).values()) for part in sorted(folder.iterdir()) if part.is_dir()}
        parts = {name: count for name, count in parts.items() if count}
        if parts:
            layer = max(n for name in parts for n in _layers(_tensors(folder / name)).values())
            return Weights(parts, layer, activations, f"the files in {folder}")
    if not isinstance(known, dict):
        return None
    counts = {name: 1e9 * billions for name, billions in known["parts"].items()}
    return Weights(counts, 1e9 * known["layer"], activations, f"the table of {_table()['date']}")


def need(
    weights: Weights,
    *,
    dtype: str,
    quantize: str | None,
    offload: str,
    gpus: int = 1,
    pixels: int = PIXELS,
    batch: int = 1,
) -> MemoryNeed:
    """Return the memory that a model needs with these settings, spread over `gpus`."""
    sizes = {name: count * _bytes(name, dtype, quantize) / GB for name, count in weights.parts.items()}
    activations = weights.activations * batch * pixels / PIXELS
    total, largest = sum(sizes.values()), max(sizes.values(), default=0.0)
    if offload == "none":
        return MemoryNeed(total / gpus + activations, largest)
    if offload == "model":
        return MemoryNeed(largest + activations, total)
    return MemoryNeed(weights.layer * BYTES[dtype] / GB + activations, total)


def fitting(needs: Callable[[str], MemoryNeed | None], gpu: float, main: float) -> str | None:
    """Return the fastest `offload` with which a model fits both memories; None if none does."""
    for one in OFFLOADS:
        memory_need = needs(one)
        if memory_need is not None and memory_need.gpu <= gpu and memory_need.main <= main:
            return one
    return None


def main_memory() -> float:
    """Return the gigabytes of main memory that a process here may use; infinite if not known."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GB
    except (AttributeError, OSError, ValueError):
        physical = math.inf
    return min([physical, *_group_limits()])


def _group_limits() -> Iterator[float]:
    """Yield the memory limits in gigabytes of our control group and those above: containers, cluster jobs."""
    try:
        lines = OWN_GROUPS.read_text("utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, group = line.split(":", 2)
        if kinds and "memory" not in kinds.split(","):
            continue
        base, name = (GROUPS / "memory", "memory.limit_in_bytes") if kinds else (GROUPS, "memory.max")
        group_folder = base / group.lstrip("/")
        for folder in (group_folder, *group_folder.parents):
            with suppress(OSError, ValueError):  # "max" is no number: no limit
                yield int((folder / name).read_text("utf-8")) / GB
            if folder == base:
                break


def preset_for(
    presets: Mapping[str, Mapping[str, str]], needs: Callable[..., MemoryNeed | None], gpu: float, main: float
) -> str:
    """Return advice: the preset with which an editor fits so many gigabytes of GPU and main memory."""
    for name in PRESETS:
        memory_need = needs(**{"offload": "none", "quantize": None, **presets[name]})
        if memory_need is not None and memory_need.gpu <= gpu and memory_need.main <= main:
            changed = " (quantised weights give different pictures)" if "quantize" in presets[name] else ""
            return f'It would fit with settings = {{ memory = "{name}" }}{changed}'
    larger = 'a larger GPU, or several with device_map = "balanced"' if main == math.inf else "a larger machine"
    return f"No preset fits; use {larger}"


def visible_memory() -> list[float]:
    """Return the gigabytes of each GPU that the driver reports; empty without a driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        output = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [int(line) * 2**20 / GB for line in output.split() if line.isdecimal()]


def in_words(need: MemoryNeed) -> str:
    """Describe both kinds of memory in gigabytes."""
    return f"{need.gpu:.0f} GB of GPU memory, {need.main:.0f} GB of main memory"


def _bytes(part: str, dtype: str, quantize: str | None) -> float:
    return BYTES_4BIT if quantize == "4bit" and part in QUANTIZED else BYTES[dtype]


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("weights.toml").read_text("utf-8"))


def snapshot(model: str, revision: str | None) -> Path | None:
    """Return the folder with a model's files: itself, or that of this revision in the hub's cache."""
    if Path(model).is_dir():
        return Path(model)
    home = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface"))
    hub = Path(os.environ.get("HF_HUB_CACHE", home / "hub")) / f"models--{model.replace('/', '--')}"
    name = revision or "main"
    try:
        commit = (hub / "refs" / name).read_text("utf-8").strip()
    except OSError:
        commit = name
    folder = hub / "snapshots" / commit
    return folder if folder.is_dir() else None


def _tensors(folder: Path) -> dict[str, int]:
    """Count parameters by tensor, from the headers of a part's safetensors files."""
    return dict(entry for file in sorted(folder.glob("*.safetensors")) for entry in _header(file))


def _header(file: Path) -> Iterator[tuple[str, int]]:
    with file.open("rb") as opened:
        (size,) = struct.unpack("<Q", opened.read(8))
        header = json.loads(opened.read(size))
    for name, tensor in header.items():
        if name != "__metadata__":
            yield name, prod(tensor["shape"])


def _layers(tensors: Mapping[str, int]) -> dict[str, int]:
    """Count parameters by layer: tensors whose names agree up to their number."""
    counts: dict[str, int] = {}
    for name, count in tensors.items():
        words = name.split(".")
        numbered = next((at for at, word in enumerate(words) if word.isdecimal()), len(words) - 1)
        layer = ".".join(words[: numbered + 1])
        counts[layer] = counts.get(layer, 0) + count
    return counts
