"""Floats most of which are zero: the places of the others, and their values, four bytes each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.codecs.float32 import Float32
from fedvote.codecs.places import read_places, write_places
from fedvote.core import Codec, WireError


@dataclass(frozen=True)
class Sparse(Codec):
    tag: ClassVar[int] = 7
    count: int

    def encode(self, x: Tensor) -> bytes:
        if x.shape != (self.count,):
            raise WireError(f"a tensor of shape {tuple(x.shape)} is not {self.count} floats")
        index = x.nonzero()[:, 0]
        return write_places(index) + Float32(len(index)).encode(x[index])

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        index, rest = read_places(payload, self.count)
        values = Float32(len(index)).decode(rest)
        if not bool(values.all()):
            raise WireError("a zero among the values that are not zero")
        return torch.zeros(self.count).index_copy(0, index, values).to(device)
