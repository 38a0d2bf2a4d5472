"""Few levels cost the entropy of their changes, less where shared random numbers tell them, and survive."""

from __future__ import annotations

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from fedvote.codecs import Levels, Tallies
from fedvote.codecs.levels import AGAINST, ALL, ONE, contexts, parts
from fedvote.codecs.pending import wait_for
from fedvote.errors import NoReferenceError, WireError
from fedvote.randomness import Key, as_uniform, shared_random


def numbers(values: list[int]) -> Tensor:
    return torch.tensor(values, dtype=torch.int16)


def assert_round_trip(codec: Levels, x: Tensor) -> bytes:
    payload = codec.encode(x)
    assert payload[:1] == (ALL if codec.reference is None else AGAINST)
    assert wait_for(codec.weigh_one(x)) == len(payload)
    back = codec.decode(payload)
    assert back.dtype == torch.int16 and torch.equal(back, x)
    return payload


def moved(count: int, levels: int, spread: float, key: Key) -> tuple[Tensor, Tensor, Tensor]:
    """Levels, shared random numbers, and what these round the levels to after each has moved a little."""
    generator = key.torch("levels")
    held = torch.randint(levels, (count,), generator=generator)
    t = (held + spread * torch.randn(count, generator=generator)).clamp(0, levels - 1)
    u = shared_random(key, count)
    return held.to(torch.int16), u, (t - as_uniform(u)).ceil().clamp(0, levels - 1).to(torch.int16)


def entropy(context: Tensor, x: Tensor) -> float:
    """Bits a number, if the context is known."""
    joint = torch.stack([context.long(), x.long()])
    both, alone = (torch.bincount(number).double().clamp_min(1) for number in (256 * joint[0] + joint[1], joint[0]))
    return float((alone * alone.log2()).sum() - (both * both.log2()).sum()) / len(x)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 7), st.integers(0, ONE - 1)), max_size=90), st.booleans())
@example([], True)
@example([(4, 0, 0)], True)
@settings(deadline=None)
def test_any_levels_survive_against_any_others(rows: list[tuple[int, int, int]], at_random: bool) -> None:
    x, held = numbers([x for x, _, _ in rows]), numbers([held for _, held, _ in rows])
    u = torch.tensor([u for _, _, u in rows], dtype=torch.int32)
    assert_round_trip(Levels(len(x), held, 8, u if at_random else None), x)
    assert_round_trip(Levels(len(x)), x)


@pytest.mark.parametrize("levels", [2, 3, 5, 17, 256])
@pytest.mark.parametrize("count", [1, 31, 1003, 20_000])
def test_every_number_of_levels_survives(levels: int, count: int) -> None:
    held, u, x = moved(count, levels, 0.2, Key(levels, count))
    assert_round_trip(Levels(count, held, levels, u), x)
    assert_round_trip(Levels(count), x)


def test_a_reference_of_many_levels_predicts_a_few() -> None:
    held = torch.randint(4097, (20_000,), generator=Key(0).torch("held"), dtype=torch.int16)
    x = (held.float() / 1024).round().to(torch.int16)
    payload = assert_round_trip(Levels(20_000, held, 4097), x)
    assert len(payload) < 0.3 * len(Levels(20_000).encode(x))


@pytest.mark.parametrize("levels", [3, 5, 9])
def test_levels_cost_what_the_last_and_the_random_numbers_do_not_tell(levels: int) -> None:
    """Far less than the entropy of the changes: without u, nobody knows which weights are in doubt."""
    held, u, x = moved(100_000, levels, 0.1, Key(levels))
    bits = 8 * len(assert_round_trip(Levels(len(x), held, levels, u), x)) / len(x)
    known = entropy(contexts(held, levels, u, levels - 1), x)
    assert known <= bits + 1e-3 and bits < 1.05 * known + 0.005
    assert bits < 0.6 * entropy(held, x)


def test_levels_that_stay_cost_next_to_nothing() -> None:
    held = numbers([0, 1, 2, 1] * 5000)
    changed = held.clone()
    changed[::2000] = 1
    assert len(assert_round_trip(Levels(20_000, held, 3), changed)) < 60


def test_the_context_says_the_prediction_and_how_close_it_is() -> None:
    """t - u for t = 2 of 0 to 4: just above lies 2; the closer u is to 0, the sooner it becomes 3."""
    u = torch.tensor([0, ONE // 8, ONE // 2 - 1, ONE // 2, ONE - 1], dtype=torch.int32)
    assert (contexts(numbers([2] * 5), 5, u, 4) - 2 * 12).tolist() == [0, 3, 5, 6, 11]

    # 1 of 0 to 2 is t = 1/2 of 0 to 1: up to 1 where u is below a half
    assert (contexts(numbers([1] * 5), 3, u, 1) // 12).tolist() == [1, 1, 1, 0, 0]


def test_pieces_grow_by_half() -> None:
    cut = [(part.start, part.stop) for part in parts(200)]
    assert cut == [(0, 32), (32, 64), (64, 96), (96, 144), (144, 200)]


def test_another_reference_and_none_are_noticed() -> None:
    held, u, x = moved(1000, 3, 0.2, Key(0))
    payload = Levels(1000, held, 3, u).encode(x)
    for other in (None, held.flip(0)):
        with pytest.raises(NoReferenceError):
            Levels(1000, other, 3, u).decode(payload)
    whole = Levels(1000).encode(x)
    assert torch.equal(Levels(1000, held, 3, u).decode(whole), x)


@pytest.mark.parametrize("values", [[-1, 0, 0], [0.5, 0.0, 0.0], [0, 0]])
def test_what_is_no_level_is_not_encoded(values: list[float]) -> None:
    with pytest.raises(WireError, match="is not 3 levels from 0 on"):
        Levels(3, numbers([0, 1, 2]), 3).encode(torch.tensor(values))


def test_without_a_reference_or_with_many_levels_they_are_tallies() -> None:
    """As before round 1, whose levels are of the grid: whoever made others from the seed gets these."""
    x = numbers([4096, 0, 17])
    for codec in (Levels(3), Levels(3, numbers([1, 2, 0]), 3)):
        assert codec.encode(x) == ALL + Tallies(3).encode(x)
        assert torch.equal(codec.decode(codec.encode(x)), x)


def test_cut_altered_and_longer_payloads_are_refused_or_other_levels() -> None:
    held, u, x = moved(1000, 3, 0.2, Key(0))
    codec = Levels(1000, held, 3, u)
    payload = codec.encode(x)
    wrong = [payload[:size] for size in range(len(payload))] + [payload + b"\0", payload + b"\1\0\0\0"]
    wrong += [payload[:5] + bytes([top]) + payload[6:] for top in (0, 1, 3, 255)]
    for each in wrong:
        with pytest.raises(WireError):
            codec.decode(each)
    for byte in range(6, len(payload)):
        flipped = payload[:byte] + bytes([payload[byte] ^ 64]) + payload[byte + 1 :]
        try:
            other = codec.decode(flipped)
        except WireError:
            continue
        assert not torch.equal(other, x) and codec.encode(other) == flipped


def test_a_level_that_never_occurred_has_a_share() -> None:
    x = torch.zeros(5000, dtype=torch.int16)
    x[4999] = 255
    assert len(assert_round_trip(Levels(5000, x.flip(0), 256), x)) < 80
