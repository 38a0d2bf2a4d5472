"""Cases for the fuzzer: one header, eleven votes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote.codecs import (
    Binary,
    Header,
)
from fedvote.core import Codec
from tests.codecs.fuzz_messages import Case

HEADER = Header(3, 12, b"\x01\x02ABCDEF", "FedVote")
VOTES = torch.tensor([1, -1, 1, 1, -1, -1, 1, -1, 1, 1, -1], dtype=torch.int8)


def case_of(codec: Codec, x: Tensor = VOTES) -> list[Case]:
    return [Case("planted", HEADER, {"votes": codec}, {"votes": x})]


@dataclass(frozen=True)
class Raises(Binary):
    error: type[BaseException] = ValueError

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        if payload[:1] > b"\xf0":
            raise self.error("planted")
        return super().decode(payload, device)
