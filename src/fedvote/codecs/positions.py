"""Ascending positions in a vector: their number (4 bytes), bits per gap (1 byte), the gaps as bit planes."""

from __future__ import annotations

import struct

import torch
from torch import Tensor

from fedvote.codecs.bits import pack_bits, unpack_bits
from fedvote.errors import WireError

HEAD = struct.Struct("<IB")


def write_positions(index: Tensor) -> bytes:
    gaps, planes = _gaps(index)
    return HEAD.pack(len(index), planes) + b"".join(pack_bits((gaps >> plane) & 1 == 1) for plane in range(planes))


def weigh_positions(index: Tensor) -> int:
    """The length in bytes of `write_positions(index)`."""
    return HEAD.size + _gaps(index)[1] * -(-len(index) // 8)


def read_positions(payload: bytes, count: int) -> tuple[Tensor, bytes]:
    """The positions at the front of a payload, in a vector of `count` values, and the bytes after them."""
    if len(payload) < HEAD.size:
        raise WireError(f"{len(payload)} bytes are too few for positions")
    number, planes = HEAD.unpack_from(payload)
    size, rest = -(-number // 8), payload[HEAD.size :]
    if number > count or planes > 32 or len(rest) < planes * size:
        raise WireError(f"{len(payload)} bytes are not {number} of {count} positions with gaps of {planes} bits")
    gaps = torch.zeros(number, dtype=torch.int64)
    for plane in range(planes):
        gaps |= unpack_bits(rest[plane * size : (plane + 1) * size], number).long() << plane
    if planes != (int(gaps.max()).bit_length() if number else 0):
        raise WireError(f"{planes} bits per gap where fewer are enough")
    index = (gaps + 1).cumsum(0) - 1
    if number and int(index[-1]) >= count:
        raise WireError(f"a position beyond the last of {count}")
    return index, rest[planes * size :]


def _gaps(index: Tensor) -> tuple[Tensor, int]:
    """The number of positions skipped before each one, and the bits of the largest such gap."""
    gaps = index.diff(prepend=index.new_tensor([-1])) - 1
    return gaps, int(gaps.max()).bit_length() if len(index) else 0
