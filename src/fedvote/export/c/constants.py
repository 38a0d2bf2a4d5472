"""The constants of a C program. Weights made of votes are packed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedvote.errors import ModelError
from fedvote.export.packing import pack

CHUNK = 8  # bytes of votes processed at a time, as in runtime.c
INT, POINTER = 4, 8  # bytes, on 64-bit machines


class Constants:
    """Declarations of constants, in order. Each method adds one and returns its name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.nbytes = self.votes = 0

    def array(self, kind: str, values: NDArray[Any]) -> str:
        """Add an array."""
        flat = values.reshape(-1)
        self.nbytes += flat.size * (1 if kind == "uint8_t" else 4)
        texts = map(str, flat.tolist()) if kind == "uint8_t" else map(c_float, flat.astype(np.float32))
        return self._declare(kind, "[]", "\n" + "\n".join(_wrapped(texts)))

    def weights(self, weight: NDArray[Any], bias: NDArray[Any] | None, groups: int) -> str:
        """Add a layer's fv_weights. Each of the groups of outputs has its own inputs."""
        packed, outputs = pack(weight, axis=0), len(weight) // groups
        shift = "0" if bias is None else self.array("float", bias)
        if packed is None:
            parts = ["0", "0", self.array("float", weight), "0"]
        else:
            self.votes += weight.size
            votes = packed.votes.reshape(groups, outputs, -1)
            positive = self.array("uint8_t", _by_chunk(votes > 0))
            negative = "0" if packed.votes.all() else self.array("uint8_t", _by_chunk(votes < 0))
            parts = [positive, negative, "0", self.array("float", packed.scale)]
        counts, arrays = [str(prod(weight.shape[1:])), str(outputs)], [*parts, shift]
        self.nbytes += len(counts) * INT + len(arrays) * POINTER
        return self._declare("fv_weights", "", ", ".join(counts + arrays))

    def window(self, numbers: Sequence[int]) -> str:
        """Add an fv_window."""
        self.nbytes += len(numbers) * INT
        return self._declare("fv_window", "", ", ".join(map(str, numbers)))

    def _declare(self, kind: str, brackets: str, values: str) -> str:
        name = f"c{len(self.lines)}"
        self.lines.append(f"static const {kind} {name}{brackets} = {{{values}}};")
        return name


def _by_chunk(bits: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Pack (groups, outputs, inputs) into bytes in the order of reading: by group, chunk, output and byte."""
    starts = range(0, bits.shape[2], 8 * CHUNK)
    chunks = [np.packbits(bits[:, :, start : start + 8 * CHUNK], axis=2) for start in starts]
    return np.concatenate([chunk.reshape(len(bits), -1) for chunk in chunks], axis=1)


def c_float(value: float | np.float32) -> str:
    if not np.isfinite(value):
        raise ModelError(f"the network has a weight of {value}, expected a finite number: train it again")
    text = f"{value:.9g}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def _wrapped(texts: Iterator[str], width: int = 110) -> Iterator[str]:
    line = ""
    for text in texts:
        if len(line) + len(text) > width:
            yield line
            line = ""
        line += f"{text}, "
    yield line
