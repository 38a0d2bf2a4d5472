"""What the receiver holds already takes five bytes: the broadcast of the first round, which the shared seed makes.

A byte says how the rest is written. 0: a checksum of the values, which are those that the receiver holds. 1: by another
codec.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.codecs.pending import then
from fedvote.codecs.reference import CHECKSUM, bits_of, checksum, read_reference
from fedvote.core import Codec, Length
from fedvote.errors import WireError

KNOWN, SENT = b"\0", b"\1"


@dataclass(frozen=True, eq=False)
class IfChanged(Codec):
    tag: ClassVar[int] = 10
    sent: Codec  # how other values travel
    reference: Tensor | None = None  # what the receiver has
    count: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", self.sent.count)

    def encode(self, x: Tensor) -> bytes:
        if self.reference is not None and self._is_reference(x):
            return KNOWN + checksum(self.reference)
        return SENT + self.sent.encode(x)

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        how, rest = payload[:1], payload[1:]
        if how == SENT:
            return self.sent.decode(rest, device)
        if how != KNOWN:
            raise WireError(f"{len(payload)} bytes are neither values nor the word that they are known")
        reference, rest = read_reference(rest, self.reference, device)
        if rest:
            raise WireError(f"{len(rest)} bytes after the word that the values are known")
        return reference.clone()

    def weigh_one(self, x: Tensor) -> Length:
        if self._is_reference(x):
            return len(KNOWN) + CHECKSUM.size
        return then(self.sent.weigh_one(x), lambda length: len(SENT) + length)

    def _is_reference(self, x: Tensor) -> bool:
        if self.reference is None or x.dtype != self.reference.dtype:
            return False
        return torch.equal(bits_of(x), bits_of(self.reference.to(x.device)))
