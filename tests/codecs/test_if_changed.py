"""What both sides hold takes five bytes, and everything else a byte more than it would."""

from __future__ import annotations

import zlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor

from fedvote.codecs import Float32, IfChanged, Integers
from fedvote.codecs.pending import wait_for
from fedvote.errors import NoReferenceError, WireError

START = torch.tensor([3, 1, 4, 1, 5], dtype=torch.int16)
CODEC = IfChanged(Integers(5), START)


def test_what_the_receiver_holds_takes_five_bytes() -> None:
    payload = CODEC.encode(START.clone())
    assert payload == b"\0" + zlib.crc32(bytes([3, 0, 1, 0, 4, 0, 1, 0, 5, 0])).to_bytes(4, "little")
    assert CODEC.weigh(START[None]) == [5]
    back = CODEC.decode(payload)
    assert torch.equal(back, START)
    back += 1
    assert torch.equal(CODEC.decode(payload), START), "what comes back is the receiver's to change"


@given(hnp.arrays("int16", 5, elements=st.integers(0, 9)).map(torch.from_numpy))
def test_other_values_take_one_byte_more_than_by_their_own_codec(x: Tensor) -> None:
    payload = CODEC.encode(x)
    assert torch.equal(CODEC.decode(payload), x)
    known = torch.equal(x, START)
    assert len(payload) == (5 if known else 1 + len(Integers(5).encode(x))) == wait_for(CODEC.weigh_one(x))


@pytest.mark.parametrize("held", [None, START + 1], ids=["nothing", "something else"])
def test_who_holds_nothing_or_something_else_has_to_be_sent_the_whole(held: Tensor | None) -> None:
    other = IfChanged(Integers(5), held)
    with pytest.raises(NoReferenceError):
        other.decode(CODEC.encode(START))
    assert torch.equal(other.decode(IfChanged(Integers(5)).encode(START)), START)


def test_who_holds_the_values_can_be_sent_the_whole() -> None:
    payload = IfChanged(Integers(5)).encode(START)
    assert payload[:1] == b"\1" and torch.equal(CODEC.decode(payload), START)


@pytest.mark.parametrize("payload", [b"", b"\2", b"\0\0", b"\0\0\0\0\0", CODEC.encode(START) + b"\0", b"\1"], ids=repr)
def test_what_no_encoder_writes_is_refused(payload: bytes) -> None:
    with pytest.raises(WireError):
        CODEC.decode(payload)


def test_minus_zero_is_not_zero() -> None:
    codec, x = IfChanged(Float32(2), torch.tensor([0.0, 1.0])), torch.tensor([-0.0, 1.0])
    back = codec.decode(codec.encode(x))
    assert torch.equal(back.view(torch.int32), x.view(torch.int32))
    assert codec.weigh_one(x) == len(codec.encode(x))


def test_floats_that_are_not_finite_are_refused_whether_written_or_weighed() -> None:
    codec = IfChanged(Float32(2), torch.zeros(2))
    bad = torch.tensor([1.0, float("nan")])
    with pytest.raises(WireError, match="1 of 2 floats"):
        codec.decode(codec.encode(bad))
    assert [str(weight) for weight in codec.weigh(bad[None])] == ["1 of 2 floats are not numbers of at most 1.07e+09"]
