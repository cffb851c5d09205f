"""A small writer of ONNX files: enough for OpenCV to run a plain chain of layers.

An ONNX file is a protocol buffer. Only what a chain of layers needs is written: nodes with numbers as attributes,
weights, one input and some outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

IR_VERSION = 8
OPERATORS = 13
"""The version of the operator set that the nodes are written in."""
_FLOAT, _INT, _INTS = 1, 2, 7
_FLOAT_TENSOR = 1


@dataclass(slots=True)
class OnnxChain:
    """Layers one after another; each takes the last one's output unless told another."""

    input_name: str
    shape: Sequence[int]
    nodes: list[bytes] = field(default_factory=list)
    weights: list[bytes] = field(default_factory=list)
    last: str = ""

    def add(
        self,
        operator: str,
        name: str,
        *weights: NDArray[np.float32],
        after: str | None = None,
        **attributes: int | float | Sequence[int],
    ) -> str:
        """Append a layer; returns the name of its output, which is `name`."""
        inputs = [after or self.last or self.input_name]
        for number, values in enumerate(weights):
            inputs.append(f"{name}.{number}")
            self.weights.append(_tensor(inputs[-1], values))
        parts = [_text(1, one) for one in inputs] + [_text(2, name), _text(3, name), _text(4, operator)]
        parts += [_message(5, _attribute(key, value)) for key, value in attributes.items()]
        self.nodes.append(b"".join(parts))
        self.last = name
        return name

    def to_bytes(self, outputs: Mapping[str, Sequence[int]]) -> bytes:
        """Serialise the file; `outputs` are the layers to read and their shapes."""
        graph = [_message(1, node) for node in self.nodes]
        graph += [_text(2, "chain")]
        graph += [_message(5, tensor) for tensor in self.weights]
        graph += [_message(11, _value(self.input_name, self.shape))]
        graph += [_message(12, _value(name, shape)) for name, shape in outputs.items()]
        operators = _message(8, _number(2, OPERATORS))
        return _number(1, IR_VERSION) + _message(7, b"".join(graph)) + operators


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append((value & 0x7F) | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _number(place: int, value: int) -> bytes:
    return _varint(place << 3) + _varint(value)


def _message(place: int, content: bytes) -> bytes:
    return _varint(place << 3 | 2) + _varint(len(content)) + content


def _text(place: int, value: str) -> bytes:
    return _message(place, value.encode())


def _packed(place: int, values: Iterable[int]) -> bytes:
    return b"".join(_number(place, value) for value in values)


def _attribute(name: str, value: int | float | Sequence[int]) -> bytes:
    if isinstance(value, float):
        content, kind = _varint(2 << 3 | 5) + np.float32(value).tobytes(), _FLOAT
    elif isinstance(value, int):
        content, kind = _number(3, value), _INT
    else:
        content, kind = _packed(8, value), _INTS
    return _text(1, name) + content + _number(20, kind)


def _tensor(name: str, values: NDArray[np.float32]) -> bytes:
    raw = np.ascontiguousarray(values, dtype="<f4").tobytes()
    return _packed(1, values.shape) + _number(2, _FLOAT_TENSOR) + _text(8, name) + _message(9, raw)


def _value(name: str, shape: Sequence[int]) -> bytes:
    sizes = b"".join(_message(1, _number(1, size)) for size in shape)
    kind = _number(1, _FLOAT_TENSOR) + _message(2, sizes)
    return _text(1, name) + _message(2, _message(1, kind))
