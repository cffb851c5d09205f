"""A network that reads an apparent age and gender presentation off a face; its files are fetched by a command.

What it says is a model's reading, wrong by a decade for many people and differently so by group. Only the
difference between two pictures of one person is ever reported (`evenedit.instruments.presentation`).
"""

from __future__ import annotations

import json
import os
import threading
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from evenedit.core.errors import EvenEditError
from evenedit.instruments.onnx_file import OnnxChain

SIDE = 224
"""The network's input is a square of this many pixels."""
MEAN = (123.68, 116.779, 103.939)
"""What its authors subtract from red, green and blue; it takes them in the order blue, green, red."""
BLOCKS = 13
"""A MobileNet: a first layer, then so many pairs of a filter per channel and a mix of channels."""
HALVING = (2, 4, 6, 12)
"""Blocks that halve the picture."""
AGES, FEATURES = 100, 256
COMMAND = "evenedit plugins age --setup"
MISSING = f"the model that reads age is not set up; its terms are in docs/instruments.md. Try: {COMMAND}"
DIGESTS = {
    "faceres.json": "5b83d49c0385d2e68a05122441b94226313677cae9fcc40b9587ad50079eb4df",
    "faceres.bin": "2c7d2d62b76c97528b736527aa09d310ea71743c9e3e79fb6c62d4b2d73af79b",
}
"""The model's files, and the sha256 they were validated with."""
NAME = "faceres-" + DIGESTS["faceres.bin"][:8]
_thread = threading.local()


def model_folder() -> Path:
    """Return the folder of the model's files."""
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cached / "evenedit" / "faceres"


def ready() -> bool:
    """Return whether the model's files are installed."""
    return all((model_folder() / name).is_file() for name in DIGESTS)


def read_squares(squares: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the apparent age in years and the gender logit (higher: read as more masculine) of face crops.

    Crops are RGB, 0 to 255, of shape (n, SIDE, SIDE, 3).
    """
    network = _network()
    batch = squares.astype(np.float32) - np.array(MEAN, dtype=np.float32)
    ages, logits = [], []
    for square in batch:
        network.setInput(np.ascontiguousarray(square[..., ::-1].transpose(2, 0, 1))[None])
        age, gender = network.forward(["age", "gender"])
        ages.append(float(np.asarray(age, dtype=np.float64).reshape(-1) @ np.arange(1, AGES + 1)))
        logits.append(float(np.asarray(gender).reshape(-1)[0]))
    return np.array(ages), np.array(logits)


def _network() -> Any:
    """Return this thread's network: OpenCV's are not safe to share."""
    if not hasattr(_thread, "network"):
        if not ready():
            raise EvenEditError(MISSING)
        _thread.network = cv2.dnn.readNetFromONNX(np.frombuffer(_onnx(str(model_folder())), dtype=np.uint8))
    return _thread.network


@cache
def _onnx(folder: str) -> bytes:
    try:
        return to_onnx(read_weights(Path(folder)))
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise EvenEditError(f"the age model in {folder} cannot be read ({error}). Delete it, then: {COMMAND}") from None


def read_weights(folder: Path) -> dict[str, NDArray[np.float32]]:
    """Read the weights by name from the two files of a TensorFlow.js model stored in half precision."""
    described = json.loads((folder / "faceres.json").read_text("utf-8"))["weightsManifest"][0]["weights"]
    content, start = (folder / "faceres.bin").read_bytes(), 0
    weights: dict[str, NDArray[np.float32]] = {}
    for one in described:
        kind = np.dtype("<f2" if "quantization" in one else "<i4")
        count = int(np.prod(one["shape"]))
        values = np.frombuffer(content, kind, count, start)
        weights[one["name"]] = values.astype(np.float32).reshape(one["shape"])
        start += count * kind.itemsize
    return weights


def to_onnx(weights: dict[str, NDArray[np.float32]]) -> bytes:
    """Build an ONNX file that OpenCV runs, ending in the layers `age` and `gender`."""
    chain = OnnxChain("face", (1, 3, SIDE, SIDE))
    _convolve(chain, "conv1", weights, weights["conv1/convolution/merged_input"], 2)
    for block in range(1, BLOCKS + 1):
        name = f"conv_dw_{block}"
        scaled = weights[f"{name}/depthwise_kernel"] * weights[f"{name}_bn/batchnorm_1/mul"].reshape(1, 1, -1, 1)
        _convolve(chain, name, weights, scaled.transpose(0, 1, 3, 2), 2 if block in HALVING else 1)
        name = f"conv_pw_{block}"
        _convolve(chain, name, weights, weights[f"{name}/convolution/merged_input"], 1)
    chain.add("GlobalAveragePool", "pooled")
    chain.add("Flatten", "flat", axis=1)
    chain.add("Gemm", "feats.linear", weights["feats/kernel"], weights["feats/bias"])
    features = chain.add("Relu", "feats")
    chain.add("Gemm", "gender", weights["gender_pred/kernel"], weights["gender_pred/bias"], after=features)
    chain.add("Gemm", "age.linear", weights["age_pred/kernel"], weights["age_pred/bias"], after=features)
    chain.add("Softmax", "age", axis=1)
    return chain.to_bytes({"age": (1, AGES), "gender": (1, 1)})


def _convolve(
    chain: OnnxChain, name: str, weights: dict[str, NDArray[np.float32]], kernel: NDArray[np.float32], step: int
) -> None:
    """Add one convolution with its bias and the clip to 0…6; kernels come as height, width, inputs, outputs."""
    size, channels = kernel.shape[0], kernel.shape[3]
    end = (size - 1) // 2
    start = end if step == 1 else 0  # TensorFlow pads an even picture at its end only, where it is halved
    chain.add(
        "Conv",
        name,
        np.ascontiguousarray(kernel.transpose(3, 2, 0, 1)),
        weights[f"{name}_bn/batchnorm_1/sub"].reshape(-1),
        kernel_shape=(size, size),
        strides=(step, step),
        pads=(start, start, end, end),
        group=channels if kernel.shape[2] == 1 else 1,
    )
    chain.add("Clip", f"{name}_relu", np.array(0, dtype=np.float32), np.array(6, dtype=np.float32))
