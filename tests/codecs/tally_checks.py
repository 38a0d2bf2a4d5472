"""Tallies that survive their codec, or are refused."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedvote.codecs import Integers, Tallies
from fedvote.codecs.pending import wait_for
from fedvote.codecs.tallies import AGAINST, CODED, PLANES
from fedvote.errors import WireError


def numbers(values: Sequence[int] | Tensor) -> Tensor:
    return torch.as_tensor(values, dtype=torch.int16)


def assert_round_trip(x: Tensor, held: Tensor | None = None, levels: int = 1) -> bytes:
    codec = Tallies(len(x), held, levels)
    payload = codec.encode(x)
    assert isinstance(payload, bytes) and payload[:1] in ((PLANES, CODED) if held is None else (PLANES, CODED, AGAINST))
    assert wait_for(codec.weigh_one(x)) == len(payload)
    assert len(payload) <= 1 + len(Integers(len(x)).encode(x))
    back = codec.decode(payload)
    assert back.dtype == torch.int16 and torch.equal(back, x.to(torch.int16))
    back += 1  # what comes back is the receiver's to change
    return payload


def assert_numbers_or_refused(count: int, payload: bytes, held: Tensor | None = None, levels: int = 1) -> None:
    try:
        x = Tallies(count, held, levels).decode(payload)
    except WireError:
        return
    assert x.shape == (count,) and x.dtype == torch.int16 and bool((x >= 0).all())
    assert torch.equal(Tallies(count).decode(Tallies(count).encode(x)), x)
