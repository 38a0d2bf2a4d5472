"""The reference: the last broadcast that a receiver has; and the start, which a receiver makes from the seed.

A checksum in each message that builds on one of them detects a different one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from fedvote.errors import NoReferenceError, WireError

CHECKSUM = struct.Struct("<I")


@dataclass(frozen=True, eq=False)
class Start:
    """The whole numbers of the broadcast before round 1. They are made when they are first needed."""

    make: Callable[[], Tensor]
    levels: int  # the numbers are below this

    @cached_property
    def numbers(self) -> Tensor:
        return self.make()


def checksum(x: Tensor) -> bytes:
    """CRC-32 of the values, in little-endian order."""
    numbers = x.cpu().numpy()
    return CHECKSUM.pack(zlib.crc32(numbers.astype(numbers.dtype.newbyteorder("<")).tobytes()))


def bits_of(x: Tensor) -> Tensor:
    """Numbers that are equal only if all bits are: floats as int32, so that 0.0 differs from -0.0."""
    return x.float().view(torch.int32) if x.is_floating_point() else x


def read_reference(
    payload: bytes, reference: Tensor | None, device: torch.device | str = "cpu", what: str = "broadcast"
) -> tuple[Tensor, bytes]:
    """The reference, if the payload builds on it, and the bytes after its checksum. `what`: a word for errors."""
    if reference is None:
        raise NoReferenceError(f"a message that builds on a {what} that the receiver does not have")
    if len(payload) < CHECKSUM.size:
        raise WireError(f"{len(payload)} bytes are too few for a checksum")
    if payload[: CHECKSUM.size] != checksum(reference):
        raise NoReferenceError(f"a message that builds on another {what} than the receiver has")
    return reference.to(device), payload[CHECKSUM.size :]
