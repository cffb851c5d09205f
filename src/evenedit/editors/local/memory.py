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
        """The model without some of its parts."""
        return replace(self, parts={name: count for name, count in self.parts.items() if name not in left_out})


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Gigabytes that an editor needs with some settings."""

    gpu: float
    main: float
    """Of main memory."""


def weights_of(model: str, revision: str | None = None) -> Weights | None:
    """The size of a model, from its files if they are here, else from the table; None where neither has it."""
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
    """What a model needs with these settings; spread over `gpus` where there are several."""
    sizes = {name: count * _bytes(name, dtype, quantize) / GB for name, count in weights.parts.items()}
    beside = weights.activations * batch * pixels / PIXELS
    total, largest = sum(sizes.values()), max(sizes.values(), default=0.0)
    if offload == "none":
        return MemoryNeed(total / gpus + beside, largest)
    if offload == "model":
        return MemoryNeed(largest + beside, total)
    return MemoryNeed(weights.layer * BYTES[dtype] / GB + beside, total)


def fitting(needs: Callable[[str], MemoryNeed | None], gpu: float, main: float) -> str | None:
    """The fastest `offload` with which a model fits both memories; None where none does."""
    for one in OFFLOADS:
        asked = needs(one)
        if asked is not None and asked.gpu <= gpu and asked.main <= main:
            return one
    return None


def main_memory() -> float:
    """Gigabytes of main memory that a process here may use; infinite where it is not known."""
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GB
    except (AttributeError, OSError, ValueError):
        there = math.inf
    return min([there, *_group_limits()])


def _group_limits() -> Iterator[float]:
    """Gigabytes that a container or a cluster's job leaves us: the limits of our control group and of those above."""
    try:
        lines = OWN_GROUPS.read_text("utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, group = line.split(":", 2)
        if kinds and "memory" not in kinds.split(","):
            continue
        base, name = (GROUPS / "memory", "memory.limit_in_bytes") if kinds else (GROUPS, "memory.max")
        own = base / group.lstrip("/")
        for folder in (own, *own.parents):
            with suppress(OSError, ValueError):  # "max" is no number: no limit
                yield int((folder / name).read_text("utf-8")) / GB
            if folder == base:
                break


def preset_for(
    presets: Mapping[str, Mapping[str, str]], needs: Callable[..., MemoryNeed | None], gpu: float, main: float
) -> str:
    """The preset with which an editor would fit a GPU and main memory of so many gigabytes, in words."""
    for name in PRESETS:
        asked = needs(**{"offload": "none", "quantize": None, **presets[name]})
        if asked is not None and asked.gpu <= gpu and asked.main <= main:
            changed = " (quantised weights draw other pictures)" if "quantize" in presets[name] else ""
            return f'It would fit with settings = {{ memory = "{name}" }}{changed}'
    larger = 'a larger GPU, or several with device_map = "balanced"' if main == math.inf else "a larger machine"
    return f"No preset fits; use {larger}"


def visible_memory() -> list[float]:
    """Gigabytes of every GPU that the driver shows; none where there is no driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        shown = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [int(line) * 2**20 / GB for line in shown.split() if line.isdecimal()]


def in_words(need: MemoryNeed) -> str:
    """Gigabytes of both kinds of memory."""
    return f"{need.gpu:.0f} GB of GPU memory, {need.main:.0f} GB of main memory"


def _bytes(part: str, dtype: str, quantize: str | None) -> float:
    return BYTES_4BIT if quantize == "4bit" and part in QUANTIZED else BYTES[dtype]


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("weights.toml").read_text("utf-8"))


def snapshot(model: str, revision: str | None) -> Path | None:
    """The folder with a model's files: itself, or the one of this revision in the hub's cache."""
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
    """Parameters by tensor, from the headers of a part's safetensors files."""
    return dict(entry for file in sorted(folder.glob("*.safetensors")) for entry in _header(file))


def _header(file: Path) -> Iterator[tuple[str, int]]:
    with file.open("rb") as opened:
        (size,) = struct.unpack("<Q", opened.read(8))
        header = json.loads(opened.read(size))
    for name, tensor in header.items():
        if name != "__metadata__":
            yield name, prod(tensor["shape"])


def _layers(tensors: Mapping[str, int]) -> dict[str, int]:
    """Parameters by layer: tensors whose names share everything up to their number."""
    counts: dict[str, int] = {}
    for name, count in tensors.items():
        words = name.split(".")
        numbered = next((at for at, word in enumerate(words) if word.isdecimal()), len(words) - 1)
        layer = ".".join(words[: numbered + 1])
        counts[layer] = counts.get(layer, 0) + count
    return counts
