"""A receiver that holds nothing is sent numbers coded against the start, which the seed makes: codec 6, mode 3."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from fedvote.codecs import Levels, Start, Tallies
from fedvote.codecs.levels import ALL
from fedvote.codecs.pending import wait_for
from fedvote.codecs.tallies import AGAINST, CODED, PLANES, SINCE_START
from fedvote.errors import NoReferenceError, WireError
from fedvote.randomness import Key

GRID = 4097


def numbers(values: list[int]) -> Tensor:
    return torch.tensor(values, dtype=torch.int16)


def known(start: Tensor, levels: int = GRID) -> Start:
    return Start(lambda: start, levels)


def unmade() -> Tensor:
    raise AssertionError("the start was made, and nobody needs it")


def trained(count: int, levels: int, spread: float = 0.3, seed: int = 0) -> tuple[Tensor, Tensor]:
    """The levels of a normal start on the grid, and the few levels of its weights after they have moved a little."""
    generator = Key(seed).torch("start")
    start = torch.randn(count, generator=generator).clamp(-0.999, 0.999)
    soft = (start + spread * torch.randn(count, generator=generator)).clamp(-1, 1)
    first, last = ((w + 1) / 2 * (L - 1) for w, L in ((start, GRID), (soft, levels)))
    return first.round().to(torch.int16), last.round().to(torch.int16)


def assert_round_trip(codec: Tallies | Levels, x: Tensor) -> bytes:
    payload = codec.encode(x)
    assert wait_for(codec.weigh_one(x)) == len(payload)
    back = codec.decode(payload)
    assert back.dtype == torch.int16 and torch.equal(back, x)
    return payload


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, GRID - 1)), max_size=90), st.integers(1, 40))
@example([], 1)
@example([(4, 0)], 1)
@settings(deadline=None)
def test_any_numbers_survive_any_start(pairs: list[tuple[int, int]], times: int) -> None:
    x, start = numbers([x for x, _ in pairs] * times), numbers([start for _, start in pairs] * times)
    payload = assert_round_trip(Tallies(len(x), start=known(start)), x)
    assert payload[:1] in (PLANES, CODED, SINCE_START) and len(payload) <= len(Tallies(len(x)).encode(x))
    assert assert_round_trip(Levels(len(x), start=known(start)), x) == ALL + payload


@pytest.mark.parametrize("levels", [3, 5, 21])
def test_numbers_cost_what_the_start_does_not_tell(levels: int) -> None:
    start, x = trained(200_000, levels)
    contexts = min(64, len(x) // (256 * levels))
    joint = torch.bincount(start.long() * contexts // GRID * levels + x.long(), minlength=contexts * levels).double()
    alone = joint.view(contexts, levels).sum(1)
    both, one = (float(-torch.special.xlogy(n / len(x), n / len(x)).sum()) / np.log(2) for n in (joint, alone))
    payload = assert_round_trip(Tallies(len(x), start=known(start)), x)
    bits, table = 8 * len(payload) / len(x), 16 * contexts * levels / len(x)
    assert payload[:1] == SINCE_START and both - one <= bits <= 1.01 * (both - one) + table
    assert bits < 0.75 * 8 * len(Tallies(len(x)).encode(x)) / len(x)


def test_a_start_that_tells_nothing_costs_nothing() -> None:
    start, x = trained(20_000, 5)[0], trained(20_000, 5, seed=1)[1]
    assert assert_round_trip(Tallies(len(x), start=known(start)), x) == Tallies(len(x)).encode(x)


def test_small_messages_have_few_contexts_so_that_their_table_pays() -> None:
    start, x = trained(3000, 3)
    payload = assert_round_trip(Tallies(3000, start=known(start)), x)
    assert payload[:1] == SINCE_START and len(payload) < 0.8 * len(Tallies(3000).encode(x))


@pytest.mark.parametrize("levels", [3, 21])
def test_the_start_is_made_only_for_those_who_hold_nothing_else(levels: int) -> None:
    x = trained(5000, levels)[1]
    held = trained(5000, levels, 0.1)[1]
    for kind in (Tallies, Levels):
        idle, never = kind(5000, held, levels, start=Start(unmade, GRID)), kind(5000, held, levels)
        payload = idle.encode(x)
        assert payload == never.encode(x) and torch.equal(idle.decode(payload), x)
        assert torch.equal(idle.decode(kind(5000).encode(x)), x)


def test_who_holds_the_last_numbers_also_reads_what_builds_on_the_start() -> None:
    start, x = trained(5000, 5)
    held = trained(5000, 5, 0.1)[1]
    for kind in (Tallies, Levels):
        payload = kind(5000, start=known(start)).encode(x)
        assert SINCE_START in (payload[:1], payload[1:2])
        assert torch.equal(kind(5000, held, 5, start=known(start)).decode(payload), x)


def test_another_start_and_none_are_noticed() -> None:
    start, x = trained(5000, 3)
    other = start.clone()
    other[7] ^= 1
    payload = Tallies(5000, start=known(start)).encode(x)
    with pytest.raises(NoReferenceError, match="builds on another start than the receiver has"):
        Tallies(5000, start=known(other)).decode(payload)
    for held in (None, start):  # the last broadcast is not the start, even if both are equal
        with pytest.raises(NoReferenceError, match="builds on a start that the receiver does not have"):
            Tallies(5000, held, GRID).decode(payload)


def test_damaged_payloads_are_refused_or_other_numbers() -> None:
    start, x = trained(3000, 3)
    codec = Tallies(3000, start=known(start))
    payload = codec.encode(x)
    assert payload[:1] == SINCE_START
    for wrong in [payload[:size] for size in range(len(payload))] + [payload + b"\0", AGAINST + payload[1:]]:
        with pytest.raises(WireError):
            codec.decode(wrong)
    for bit in range(0, 8 * len(payload), 5):
        flipped = bytearray(payload)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            other = codec.decode(bytes(flipped))
        except WireError:
            continue
        assert not torch.equal(other, x) and 0 <= int(other.min()) <= int(other.max()) < 3


def test_a_table_of_other_numbers_is_refused() -> None:
    start, x = trained(3000, 3)
    codec = Tallies(3000, start=known(start))
    payload = codec.encode(x)
    share = int.from_bytes(payload[7:9], "little")
    for wrong in (share + 1, share - 1):
        with pytest.raises(WireError):
            codec.decode(payload[:7] + wrong.to_bytes(2, "little") + payload[9:])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("kind", [Tallies, Levels])
def test_a_gpu_makes_and_reads_the_same_bytes(kind: type[Tallies] | type[Levels]) -> None:
    start, x = trained(5000, 3)
    there, here = kind(5000, start=known(start.cuda())), kind(5000, start=known(start))
    assert there.encode(x.cuda()) == here.encode(x)
    assert torch.equal(there.decode(here.encode(x), "cuda").cpu(), x)
