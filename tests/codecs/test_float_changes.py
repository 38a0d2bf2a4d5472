"""Floats told against those that the receiver holds: every bit arrives, by the shortest way that tells it."""

from __future__ import annotations

import struct

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from fedvote.codecs import LARGEST, Float32, FloatChanges
from fedvote.codecs.float_changes import ALL, SIGNS, SIGNS_OR_NONE, SOME
from fedvote.codecs.pending import wait_for
from fedvote.codecs.reference import checksum
from fedvote.errors import NoReferenceError, WireError
from fedvote.randomness import Key

ONES = checksum(torch.ones(5))
finite = st.floats(-LARGEST, LARGEST, width=32)


def floats(count: int, purpose: str = "floats") -> Tensor:
    return torch.randn(count, generator=Key(0).torch(purpose))


def assert_round_trip(x: Tensor, held: Tensor | None, step: float = 0.0) -> bytes:
    codec = FloatChanges(len(x), held, step)
    payload = codec.encode(x)
    assert len(payload) <= 1 + 4 * len(x) and wait_for(codec.weigh_one(x)) == len(payload)
    back = codec.decode(payload)
    assert back.dtype == torch.float32 and torch.equal(back.view(torch.int32), x.view(torch.int32))
    back += 1  # what comes back is the receiver's to change
    assert held is None or torch.equal(codec.decode(payload).view(torch.int32), x.view(torch.int32))
    return payload


@given(st.lists(st.tuples(finite, finite), max_size=20), st.sampled_from([0.0, 0.5, 1e-3]))
@example([(0.0, -0.0)], 0.0)
@example([(-0.0, 0.0)], 0.5)
@example([(LARGEST, -LARGEST)], 0.5)
def test_any_floats_survive_against_any_others(pairs: list[tuple[float, float]], step: float) -> None:
    x, held = (torch.tensor(column, dtype=torch.float32) for column in (list(zip(*pairs, strict=True)) or [(), ()]))
    assert_round_trip(x, held, step)
    assert_round_trip(x, x.clone(), step)


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 1003])
@pytest.mark.parametrize("step", [0.01, 3e-4, 1.0])
def test_a_step_of_known_size_takes_a_bit_a_weight(count: int, step: float) -> None:
    held, signs = floats(count), floats(count, "signs").sign().to(torch.int32)
    payload = assert_round_trip(held - step * signs, held, step)
    assert (payload[:1] == SIGNS and len(payload) == 5 + -(-count // 8)) or count < 2  # floats are shorter, then


def test_where_some_stay_it_takes_a_fifth_of_a_byte() -> None:
    held, signs = floats(1000), floats(1000, "signs").sign()
    signs[::2] = 0
    payload = assert_round_trip(held - 0.01 * signs, held, 0.01)
    assert payload[:1] == SIGNS_OR_NONE and len(payload) == 5 + 200


def test_few_changes_take_their_places_and_values() -> None:
    held = floats(10_000)
    x = held.clone()
    x[::1000] = 0.0
    payload = assert_round_trip(x, held)
    assert payload[:1] == SOME and len(payload) == 5 + 5 + 10 * 2 + 10 * 4


def test_nothing_that_changed_takes_a_few_bytes() -> None:
    x = floats(10_000)
    assert assert_round_trip(x, x.clone()) == SOME + checksum(x) + struct.pack("<IB", 0, 0)


def test_a_step_of_another_size_is_not_taken_for_one() -> None:
    held, signs = floats(1000), floats(1000, "signs").sign()
    assert assert_round_trip(held - 0.02 * signs, held, 0.01)[:1] == ALL
    x = held - 0.01 * signs
    x[500] += 1e-6
    assert assert_round_trip(x, held, 0.01)[:1] == ALL


def test_floats_that_all_changed_take_a_byte_more_than_floats() -> None:
    x = floats(100)
    assert assert_round_trip(x, floats(100, "others")) == assert_round_trip(x, None) == ALL + Float32(100).encode(x)


def test_who_holds_floats_can_be_told_without_them() -> None:
    x = floats(100)
    assert torch.equal(FloatChanges(100, floats(100, "others"), 0.1).decode(FloatChanges(100).encode(x)), x)


@pytest.mark.parametrize("how", [SOME, SIGNS, SIGNS_OR_NONE])
def test_who_holds_none_refuses_what_is_told_against_them(how: bytes) -> None:
    with pytest.raises(NoReferenceError, match="does not have"):
        FloatChanges(3).decode(how + b"\0")
    with pytest.raises(NoReferenceError, match="another broadcast"):
        FloatChanges(3, torch.zeros(3)).decode(how + checksum(torch.ones(3)) + b"\0")


@pytest.mark.parametrize("how", [SOME, SIGNS])
def test_what_is_cut_or_longer_is_refused(how: bytes) -> None:
    held = floats(80)
    x = held - 0.1 if how == SIGNS else torch.where(torch.arange(80) < 3, 1.0, held)
    payload = assert_round_trip(x, held, 0.1)
    assert payload[:1] == how
    for wrong in [payload[:size] for size in range(len(payload))] + [payload + b"\0"]:
        with pytest.raises(WireError):
            FloatChanges(80, held, 0.1).decode(wrong)


@pytest.mark.parametrize(
    ("payload", "saying"),
    [
        (b"\4abc", "neither floats nor changes"),
        (SOME + ONES + struct.pack("<IBf", 1, 0, 1.0), "equals the reference"),
        (SIGNS_OR_NONE + ONES + bytes([242]), "ternary signs where binary signs are enough"),
        (SOME + ONES + struct.pack("<IBf", 1, 0, float("inf")), "are not numbers"),
        (ALL + struct.pack("<5f", 1, 2, 3, 4, float("nan")), r"are not numbers of at most 1\.07e\+09"),
    ],
    ids=["unknown", "unchanged", "three ways", "infinite", "no number"],
)
def test_what_no_encoder_writes_is_refused(payload: bytes, saying: str) -> None:
    with pytest.raises(WireError, match=saying):
        FloatChanges(5, torch.ones(5), 0.5).decode(payload)


def test_a_step_beyond_the_largest_float_is_refused() -> None:
    with pytest.raises(WireError, match="a step to a float beyond ±1"):
        held = torch.full((8,), -1e9)
        FloatChanges(8, held, 1e9).decode(SIGNS + checksum(held) + b"\xff")


def test_floats_that_are_not_finite_are_refused_whether_written_or_weighed() -> None:
    codec, bad = FloatChanges(2, torch.zeros(2)), torch.tensor([1.0, float("nan")])
    with pytest.raises(WireError, match="1 of 2 floats"):
        codec.decode(codec.encode(bad))
    assert [str(weight) for weight in codec.weigh(bad[None])] == ["1 of 2 floats are not numbers of at most 1.07e+09"]


@pytest.mark.parametrize("shape", [(2,), (4,), (1, 3), ()])
def test_what_has_another_shape_is_not_encoded(shape: tuple[int, ...]) -> None:
    for codec in (FloatChanges(3), FloatChanges(3, torch.zeros(3))):
        with pytest.raises(WireError, match=r"a tensor of shape .* is not 3 floats"):
            codec.encode(torch.ones(shape))
