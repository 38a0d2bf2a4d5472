"""Floats that are steps away from the reference survive to the last bit, and cost the entropy of their levels."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fedvote.codecs import FloatSteps
from fedvote.codecs.float_steps import ALL, BLOCK, STEPS, each, exponents, moved
from fedvote.codecs.pending import wait_for
from fedvote.codecs.reference import bits_of
from fedvote.errors import NoReferenceError, WireError
from fedvote.methods.rounded_broadcast import rounded_change
from fedvote.randomness import Key


def assert_round_trip(codec: FloatSteps, x: Tensor) -> bytes:
    payload = codec.encode(x)
    assert wait_for(codec.weigh_one(x)) == len(payload)
    assert torch.equal(bits_of(codec.decode(payload)), bits_of(x))
    return payload


def stepped(count: int, limit: int, size: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    """A reference, and floats some steps away."""
    generator = Key(seed).torch("steps")
    held, change = torch.randn(count, generator=generator), size * torch.randn(count, generator=generator)
    exponent_b = exponents(change, limit, held)
    level = (change / each(exponent_b, count)).round().clamp(-limit, limit)
    return held, moved(held, exponent_b, level)


@pytest.mark.parametrize("limit", [1, 3, 127])
@pytest.mark.parametrize("count", [1, BLOCK, 3 * BLOCK + 7])
@pytest.mark.parametrize("size", [1e-5, 0.01, 3.0])
def test_steps_survive_to_the_last_bit(count: int, limit: int, size: float) -> None:
    held, x = stepped(count, limit, size)
    assert assert_round_trip(FloatSteps(count, limit, held), x)[:1] == STEPS


def test_minus_zero_stays_minus_zero() -> None:
    """A change that rounds to nothing is level 0, whatever its sign: pruned weights are often -0.0."""
    held = torch.tensor([-0.0, -0.0, 0.0, 0.5])
    x, rest = rounded_change(held, torch.tensor([-1e-9, 1e-9, -1e-9, 0.25]), 1)
    assert torch.equal(bits_of(x), bits_of(torch.tensor([-0.0, -0.0, 0.0, 0.25])))
    assert rest.tolist() == pytest.approx([-1e-9, 1e-9, -1e-9, 0])
    assert assert_round_trip(FloatSteps(4, 1, held), x)[:1] == STEPS
    assert_round_trip(FloatSteps(4, 1, held), held.abs())


def test_levels_cost_their_entropy_and_a_byte_a_block() -> None:
    held, x = stepped(40 * BLOCK, 3, 0.01)
    payload = assert_round_trip(FloatSteps(len(x), 3, held), x)
    assert 8 * len(payload) / len(x) < 2.3


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=40))
@settings(deadline=None)
def test_any_floats_survive(values: list[float]) -> None:
    x = torch.tensor(values)
    assert_round_trip(FloatSteps(len(x), 1, x.flip(0)), x)
    assert assert_round_trip(FloatSteps(len(x), 1), x)[:1] == ALL


def test_what_did_not_move_is_no_level() -> None:
    held = torch.linspace(-1, 1, 2 * BLOCK)
    x = held.clone()
    x[3] -= 0.25
    assert len(assert_round_trip(FloatSteps(len(x), 1, held), x)) < 50


def test_another_reference_and_none_are_noticed() -> None:
    held, x = stepped(100, 3, 0.1)
    payload = FloatSteps(100, 3, held).encode(x)
    for other in (None, held.flip(0)):
        with pytest.raises(NoReferenceError):
            FloatSteps(100, 3, other).decode(payload)


def test_cut_and_altered_payloads_are_refused() -> None:
    held, x = stepped(100, 3, 0.1)
    codec = FloatSteps(100, 3, held)
    payload = codec.encode(x)
    wrong = [payload[:size] for size in range(len(payload))] + [payload + b"\1\0\0\0", b"\7" + payload[1:]]
    for each_one in [*wrong, payload[:5] + b"\x81" + payload[6:], payload[:5] + b"\x7f" + payload[6:]]:
        with pytest.raises(WireError):
            codec.decode(each_one)


def test_floats_are_refused_where_the_sender_must_have_sent_steps() -> None:
    reference = torch.linspace(-1, 1, 600)
    x = reference - 2.0**-6 * torch.arange(600).remainder(3)
    whole = FloatSteps(600, 7).encode(x)
    assert torch.equal(FloatSteps(600, 7, reference).decode(whole), x)  # a server may not know who has the reference
    with pytest.raises(WireError, match="plain floats where steps are enough"):
        FloatSteps(600, 7, reference, shared=True).decode(whole)
    other = torch.randn(600, generator=torch.Generator().manual_seed(0))
    strict = FloatSteps(600, 7, reference, shared=True)
    assert torch.equal(strict.decode(strict.encode(other)), other)  # no steps reach these
