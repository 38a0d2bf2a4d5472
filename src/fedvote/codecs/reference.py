"""A checksum of what a message builds on, so that whoever has something else notices, and asks for the whole."""

from __future__ import annotations

import struct
import zlib

import torch
from torch import Tensor

from fedvote.errors import NoReferenceError, WireError

CHECKSUM = struct.Struct("<I")


def checksum(x: Tensor) -> bytes:
    """CRC-32 of the values, in little-endian order."""
    numbers = x.cpu().numpy()
    return CHECKSUM.pack(zlib.crc32(numbers.astype(numbers.dtype.newbyteorder("<")).tobytes()))


def bits_of(x: Tensor) -> Tensor:
    """Numbers as whole ones that are equal only if all bits are: floats, of which 0 is not -0, by their bits."""
    return x.float().view(torch.int32) if x.is_floating_point() else x


def read_reference(
    payload: bytes, reference: Tensor | None, device: torch.device | str = "cpu"
) -> tuple[Tensor, bytes]:
    """What the receiver holds, if it is what the payload builds on, and what comes after the checksum."""
    if reference is None:
        raise NoReferenceError("a message that builds on the last broadcast, which is not here")
    if len(payload) < CHECKSUM.size:
        raise WireError(f"{len(payload)} bytes are too few for a checksum")
    if payload[: CHECKSUM.size] != checksum(reference):
        raise NoReferenceError("a message that builds on a broadcast which is not the one that is here")
    return reference.to(device), payload[CHECKSUM.size :]
