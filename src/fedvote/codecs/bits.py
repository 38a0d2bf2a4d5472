"""Bits packed eight per byte, first bit highest, on any device."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from fedvote.errors import WireError


def pack_bits(bits: Tensor) -> bytes:
    """Booleans as bytes; the last byte is padded with zeros."""
    if bits.device.type == "cpu":
        return np.packbits(bits.numpy()).tobytes()
    padded = torch.nn.functional.pad(bits.to(torch.uint8), (0, -len(bits) % 8)).view(-1, 8)
    return (
        (padded << torch.arange(7, -1, -1, dtype=torch.uint8, device=bits.device))
        .sum(1, dtype=torch.uint8)
        .cpu()
        .numpy()
        .tobytes()
    )


def unpack_bits(payload: bytes, count: int, device: torch.device | str = "cpu") -> Tensor:
    """`count` booleans; WireError for a payload that `pack_bits` never writes."""
    if len(payload) != -(-count // 8):
        raise WireError(f"{len(payload)} bytes where {count} bits take {-(-count // 8)}")
    if count % 8 and payload[-1] & (0xFF >> count % 8):
        raise WireError("the last byte has bits set beyond the end")
    data = np.frombuffer(payload, np.uint8)
    if torch.device(device).type == "cpu":
        return torch.from_numpy(np.unpackbits(data, count=count)).bool()
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=device)
    return ((torch.from_numpy(data.copy()).to(device)[:, None] >> shifts) & 1).flatten()[:count].bool()
