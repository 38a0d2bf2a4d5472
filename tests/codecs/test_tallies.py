"""Levels by their own histogram are lossless, near the entropy, and never longer than bit planes and a byte."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from fedvote.codecs import Integers, Tallies, ans
from fedvote.codecs.pending import wait_for
from fedvote.codecs.tallies import AGAINST, CODED, MOST_VALUES, PLANES
from fedvote.errors import NoReferenceError, WireError
from fedvote.randomness import Key


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


def counted_votes(K: int, count: int, seed: int = 0) -> Tensor:
    """How many of K clients voted +1, for weights with any inclination."""
    generator = Key(seed).torch("tallies")
    inclination = torch.rand(count, generator=generator)
    return numbers((torch.rand(K, count, generator=generator) < inclination).sum(0))


@given(st.lists(st.integers(0, 3), max_size=80) | st.lists(st.integers(0, 32767), max_size=40))
@example([])
@example([0])
@example([1])
@example([32767])
@example([0] * 67)
@example([4096] * 67)
@settings(deadline=None)
def test_any_numbers_survive(values: list[int]) -> None:
    assert_round_trip(numbers(values))


@pytest.mark.parametrize("count", [*range(18), 1003])
@pytest.mark.parametrize("highest", [0, 1, 2, 5, 255])
def test_every_length_survives(count: int, highest: int) -> None:
    generator = Key(0).torch("tallies")
    assert_round_trip(torch.randint(highest + 1, (count,), generator=generator, dtype=torch.int16))
    assert_round_trip(numbers([highest] * count))


@pytest.mark.parametrize("K", [1, 2, 5, 31, 100])
@pytest.mark.parametrize("count", [10, 1003, 20_000])
def test_counts_of_equal_votes_survive(K: int, count: int) -> None:
    assert_round_trip(counted_votes(K, count))


@pytest.mark.parametrize("K", [5, 31, 100])
def test_counts_of_equal_votes_cost_their_entropy(K: int) -> None:
    """Most weights are decided, so that most levels are the lowest or the highest."""
    generator = Key(0).torch("tallies")
    inclination = torch.rand(200_000, generator=generator).round(decimals=1)
    x = numbers((torch.rand(K, 200_000, generator=generator) < inclination**2).sum(0))
    share = torch.bincount(x.long()).double() / len(x)
    entropy = float(-torch.special.xlogy(share, share).sum()) / np.log(2)
    bits = 8 * len(assert_round_trip(x)) / len(x)
    assert entropy <= bits <= 1.02 * entropy and bits < (K + 1).bit_length()


def test_the_shorter_of_planes_and_coded_is_sent() -> None:
    even, skewed = numbers(torch.arange(4000) % 8), numbers([0] * 3900 + [7] * 100)
    assert assert_round_trip(even)[:1] == PLANES  # three bits either way, and no table
    assert assert_round_trip(skewed)[:1] == CODED
    assert assert_round_trip(skewed[3895:3905])[:1] == PLANES  # ten numbers are shorter than any table


def test_planes_are_those_of_integers() -> None:
    x = numbers([0, 5, 3])
    assert Tallies(3).encode(x) == PLANES + Integers(3).encode(x)


def test_the_coded_bytes_are_as_documented() -> None:
    """Three values: a quarter are 2, none 1, the others 0. A share is a unit and its part of the 65533 others."""
    payload = assert_round_trip(numbers([0, 0, 0, 2] * 1000))
    shares = struct.pack("<HH", 1, 65536 - 1 - 49151)
    assert payload[:7] == CODED + struct.pack("<H", 3) + shares
    assert len(payload) % 4 == 3 and 8 * (len(payload) - 7) == pytest.approx(4000 * 0.8113, abs=64)


@pytest.mark.parametrize("lowest", [500, 1500, 3000])
def test_levels_far_from_zero_survive(lowest: int) -> None:
    """Values below the lowest do not occur, and yet have a share each, which the others have to leave them."""
    generator = Key(0).torch("tallies")
    x = torch.randint(lowest, lowest + 1001, (60_000,), generator=generator, dtype=torch.int16)
    assert assert_round_trip(x)[:1] == CODED


@pytest.mark.parametrize("spread", [1, 30, 400])
def test_the_whole_grid_survives(spread: int) -> None:
    generator = Key(0).torch("tallies")
    x = numbers((2048 + spread * torch.randn(60_000, generator=generator)).clamp(0, 4096))
    assert assert_round_trip(x)[:1] == CODED
    assert_round_trip(numbers([0, 4096] * 10_000))


def test_more_values_than_the_grid_has_are_sent_as_planes() -> None:
    assert assert_round_trip(numbers([0] * 50_000 + [MOST_VALUES]))[:1] == PLANES
    assert assert_round_trip(numbers([0] * 50_000 + [MOST_VALUES - 1]))[:1] == CODED


@pytest.mark.parametrize("values", [[-1, 4, 0], [32768, 4, 0], [2**31, 0, 0], [-(2**40), 0, 0]])
def test_numbers_beyond_the_ends_are_not_encoded(values: list[int]) -> None:
    with pytest.raises(WireError, match="is not 3 integers from 0 to 32767"):
        Tallies(3).encode(torch.tensor(values))


@pytest.mark.parametrize("values", [[0.5, 0.0, 0.0], [1.0, 2.0, 3.0], [float("inf"), 0.0, 0.0]])
def test_floats_are_not_encoded(values: list[float]) -> None:
    with pytest.raises(WireError, match="is not 3 integers from 0 to 32767"):
        Tallies(3).encode(torch.tensor(values))


@pytest.mark.parametrize("shape", [(2,), (4,), (1, 3), (), (0,)])
def test_what_has_another_shape_is_not_encoded(shape: tuple[int, ...]) -> None:
    with pytest.raises(WireError, match=r"a tensor of shape .* is not 3 integers"):
        Tallies(3).encode(torch.ones(shape, dtype=torch.int16))


def test_cut_and_longer_payloads_are_refused() -> None:
    for x in (numbers([0] * 900 + [3] * 100), numbers(torch.arange(1000) % 8)):
        payload = assert_round_trip(x)
        for wrong in [payload[:size] for size in range(len(payload))] + [payload + b"\0", payload + b"\1\0\0\0"]:
            with pytest.raises(WireError):
                Tallies(1000).decode(wrong)


@pytest.mark.parametrize("how", [4, 5, 128, 255])
def test_other_ways_of_writing_than_planes_and_coded_are_refused(how: int) -> None:
    with pytest.raises(WireError, match="4 bytes are neither bit planes nor coded numbers"):
        Tallies(3).decode(bytes([how, 0, 0, 0]))


@pytest.mark.parametrize("values", [0, 1, MOST_VALUES + 1, 65535])
def test_too_few_and_too_many_values_are_refused(values: int) -> None:
    with pytest.raises(WireError, match=f"numbers of {values} values, expected 2 to 4097"):
        Tallies(3).decode(CODED + struct.pack("<H", values) + bytes([1] * 20_000))


def test_a_table_of_other_numbers_is_refused() -> None:
    """What makes a frame that is cut another one, if the words alone are looked at: fewer words are other numbers."""
    x = np.array([0, 0, 0, 2] * 250, np.int32)
    for shares in ([30000, 1, 35535], [49151, 2, 16383], [49150, 1, 16384, 1]):
        words = ans.encode([(x, np.array(shares) / 65536)])
        table = struct.pack(f"<{len(shares)}H", len(shares), *shares[1:])
        with pytest.raises(WireError, match="the shares do not match the numbers"):
            Tallies(1000).decode(CODED + table + words)
    table, words = struct.pack("<HHH", 3, 1, 16384), ans.encode([(x, np.array([49151, 1, 16384]) / 65536)])
    assert Tallies(1000).decode(CODED + table + words).tolist() == x.tolist()


def test_a_table_that_is_none_is_refused() -> None:
    for others in ([0, 1], [65535, 1]):
        with pytest.raises(WireError, match="not positive numbers that add up to 65536"):
            Tallies(3).decode(CODED + struct.pack("<HHH", 3, *others))


@given(
    st.integers(0, 40), st.sampled_from([b"", PLANES, CODED, CODED + b"\2\0", CODED + b"\3\0"]), st.binary(max_size=60)
)
@example(0, CODED + b"\2\0", b"\1\0")
@example(3, CODED + b"\2\0", b"\0\x80\1\0\0\0")
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_numbers_or_refused(count: int, start: bytes, rest: bytes) -> None:
    assert_numbers_or_refused(count, start + rest)


def test_a_payload_with_any_bit_flipped_is_numbers_or_refused() -> None:
    payload = assert_round_trip(numbers([0] * 900 + [3] * 100))
    for bit in range(8 * len(payload)):
        flipped = bytearray(payload)
        flipped[bit // 8] ^= 1 << bit % 8
        assert_numbers_or_refused(1000, bytes(flipped))


# Against numbers that the receiver holds.


def two_rounds(K: int, count: int, drift: float = 0.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Counts of +1 in two rounds, of clients that vote by the soft vote of the first in the second."""
    generator = Key(seed).torch("tallies")
    inclination = torch.rand(count, generator=generator)
    first = (torch.rand(K, count, generator=generator) < inclination).sum(0)
    second = (torch.rand(K, count, generator=generator) < first / K + drift).sum(0)
    return numbers(first), numbers(second)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=90)
    | st.lists(st.tuples(st.integers(0, 32767), st.integers(0, 4)), max_size=40)
)
@example([])
@example([(0, 4)])
@settings(deadline=None)
def test_any_numbers_survive_against_any_others(pairs: list[tuple[int, int]]) -> None:
    x, held = numbers([x for x, _ in pairs]), numbers([held for _, held in pairs])
    assert_round_trip(x, held, 5)


@pytest.mark.parametrize("count", [*range(18), 1003, 30_000])
@pytest.mark.parametrize("K", [1, 2, 31])
def test_the_next_count_survives(K: int, count: int) -> None:
    held, x = two_rounds(K, count)
    assert_round_trip(x, held, K + 1)


@pytest.mark.parametrize(("K", "drift"), [(5, 0.0), (31, 0.0), (31, 0.1), (60, 0.0)])
def test_the_next_count_costs_what_the_last_does_not_tell(K: int, drift: float) -> None:
    """The entropy of one number if the other is known."""
    held, x = two_rounds(K, 400_000, drift)
    joint = torch.bincount(held.long() * (K + 1) + x.long(), minlength=(K + 1) ** 2).double().view(K + 1, K + 1)
    alone, both = (float(-torch.special.xlogy(n / len(x), n / len(x)).sum()) / np.log(2) for n in (joint.sum(1), joint))
    bits = 8 * len(assert_round_trip(x, held, K + 1)) / len(x)
    table = 16 * K * (K + 1) / len(x)
    assert both - alone <= bits <= 1.01 * (both - alone) + table
    assert bits < 0.8 * 8 * len(Tallies(len(x)).encode(x)) / len(x)


@pytest.mark.parametrize("levels", [4097, 32767])
def test_held_numbers_of_many_levels_are_taken_in_ranges(levels: int) -> None:
    generator = Key(0).torch("tallies")
    held = torch.randint(levels, (60_000,), generator=generator, dtype=torch.int16)
    x = numbers((31 * held.double() / levels + torch.rand(60_000, generator=generator)).int())
    payload = assert_round_trip(x, held, levels)
    assert payload[:1] == AGAINST and len(payload) < 0.7 * len(Tallies(len(x)).encode(x))


def test_held_numbers_that_tell_nothing_cost_nothing() -> None:
    held, x = two_rounds(31, 20_000)[0], two_rounds(31, 20_000, seed=1)[1]
    assert assert_round_trip(x, held, 32) == Tallies(len(x)).encode(x)


def test_who_holds_numbers_can_be_told_without_them() -> None:
    held, x = two_rounds(31, 20_000)
    assert torch.equal(Tallies(len(x), held, 32).decode(Tallies(len(x)).encode(x)), x)


def test_who_holds_none_refuses_what_is_told_against_them() -> None:
    held, x = two_rounds(31, 20_000)
    payload = Tallies(len(x), held, 32).encode(x)
    assert payload[:1] == AGAINST
    with pytest.raises(NoReferenceError, match="does not have"):
        Tallies(len(x)).decode(payload)


def test_who_holds_others_refuses_what_is_told_against_them() -> None:
    held, x = two_rounds(31, 20_000)
    other = held.clone()
    other[7] ^= 1
    with pytest.raises(NoReferenceError, match="another broadcast"):
        Tallies(len(x), other, 32).decode(Tallies(len(x), held, 32).encode(x))


def test_what_is_told_against_others_is_refused_if_it_is_damaged() -> None:
    held, x = two_rounds(5, 2000)
    payload = assert_round_trip(x, held, 6)
    assert payload[:1] == AGAINST
    for size in range(len(payload)):
        with pytest.raises(WireError):
            Tallies(2000, held, 6).decode(payload[:size])
    for bit in range(0, 8 * len(payload), 7):
        flipped = bytearray(payload)
        flipped[bit // 8] ^= 1 << bit % 8
        assert_numbers_or_refused(2000, bytes(flipped), held, 6)


def assert_numbers_or_refused(count: int, payload: bytes, held: Tensor | None = None, levels: int = 1) -> None:
    try:
        x = Tallies(count, held, levels).decode(payload)
    except WireError:
        return
    assert x.shape == (count,) and x.dtype == torch.int16 and bool((x >= 0).all())
    assert torch.equal(Tallies(count).decode(Tallies(count).encode(x)), x)


def test_numbers_without_a_reference_have_one_encoding() -> None:
    same, spread = torch.zeros(300, dtype=torch.int16), torch.arange(4, dtype=torch.int16)
    with pytest.raises(WireError, match="bit planes where coded numbers take no more bytes"):
        Tallies(3000).decode(b"\0" + Integers(3000).encode(torch.arange(3000, dtype=torch.int16) % 7 // 6))
    assert torch.equal(Tallies(300).decode(Tallies(300).encode(same)), same)
    assert torch.equal(Tallies(4).decode(Tallies(4).encode(spread)), spread)
