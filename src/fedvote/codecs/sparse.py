"""Floats most of which are zero: the gaps between the others as bit planes, then their values.

How many there are (4 bytes), how many bits a gap takes (1 byte), the planes, and four bytes a value.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.codecs.bits import pack_bits, unpack_bits
from fedvote.codecs.float32 import Float32
from fedvote.core import Codec, WireError

HEAD = struct.Struct("<IB")


@dataclass(frozen=True)
class Sparse(Codec):
    tag: ClassVar[int] = 7
    count: int

    def encode(self, x: Tensor) -> bytes:
        if x.shape != (self.count,):
            raise WireError(f"a tensor of shape {tuple(x.shape)} is not {self.count} floats")
        index = x.nonzero()[:, 0]
        gaps = index.diff(prepend=index.new_tensor([-1])) - 1
        planes = int(gaps.max()).bit_length() if len(index) else 0
        bits = b"".join(pack_bits((gaps >> plane) & 1 == 1) for plane in range(planes))
        return HEAD.pack(len(index), planes) + bits + Float32(len(index)).encode(x[index])

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        if len(payload) < HEAD.size:
            raise WireError(f"{len(payload)} bytes are too few for sparse floats")
        many, planes = HEAD.unpack_from(payload)
        size, rest = -(-many // 8), payload[HEAD.size :]
        if many > self.count or planes > 32 or len(rest) != planes * size + 4 * many:
            raise WireError(f"{len(payload)} bytes are not {many} of {self.count} floats with gaps of {planes} bits")
        gaps = torch.zeros(many, dtype=torch.int64)
        for plane in range(planes):
            gaps |= unpack_bits(rest[plane * size : (plane + 1) * size], many).long() << plane
        if planes != (int(gaps.max()).bit_length() if many else 0):
            raise WireError(f"{planes} bits a gap where fewer would do")
        values, index = Float32(many).decode(rest[planes * size :]), (gaps + 1).cumsum(0) - 1
        if many and (int(index[-1]) >= self.count or not bool(values.all())):
            raise WireError(f"a value beyond the last of {self.count} floats, or one that is zero")
        return torch.zeros(self.count).index_copy(0, index, values).to(device)
