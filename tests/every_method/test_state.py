"""The state is plain named tensors that keep their form, that can be saved, and that hold the two models."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from fedvote.core import State, Weights
from fedvote.method import Method
from fedvote.randomness import Key
from fedvote.rounds import HELD
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.checkpoint import load_snapshot, save_snapshot
from tests.toy import CLIENTS, Federation, assert_same, close_round, memory

COHORTS = [range(5), (0, 3), (1, 2, 4)]


@pytest.fixture(scope="module")
def states(federation: Federation) -> list[State]:
    """Before the first round, and after each. No function changes them: test_pure.py."""
    return federation.states(COHORTS)


def test_names_shapes_and_types_stay_from_round_to_round(federation: Federation, states: list[State]) -> None:
    first, *later = states
    if federation.method.wire(federation.network).keeps_broadcast:  # of which there is none before the first round
        first = first | {HELD + name: value for name, value in federation.method.broadcast(first).items()}
    for state in later:
        assert {n: (v.shape, v.dtype) for n, v in state.items()} == {n: (v.shape, v.dtype) for n, v in first.items()}
        assert not any(value.requires_grad for value in state.values())


def test_a_state_is_saved_and_loaded_to_the_same_bits_and_goes_on(
    federation: Federation, states: list[State], tmp_path: Path
) -> None:
    *_, state = states
    remembered = memory(federation.method, federation.network, range(CLIENTS))
    save_snapshot(tmp_path / "checkpoint", Snapshot(3, state, remembered, {"round": 3, "accuracy": 0.5}))
    loaded = load_snapshot(tmp_path / "checkpoint")
    assert (loaded.round, loaded.record) == (3, {"round": 3, "accuracy": 0.5})
    assert_same(loaded.state, state)
    assert_same(loaded.memory, remembered)
    assert_same(federation.round(loaded.state, 4), federation.round(state, 4))


def test_a_round_in_which_nothing_counted_is_saved_and_gone_on_from(
    federation: Federation, states: list[State], tmp_path: Path
) -> None:
    """The state after it may be that of before, in the same memory."""
    method, network = federation.method, federation.network
    *_, before = states
    closed = close_round(method, network, before, {0: b"noise", 1: b""}, Key(0, 4))
    assert not closed.counted and closed.refused.keys() == {0, 1}
    save_snapshot(tmp_path / "checkpoint", Snapshot(4, closed.state, {}, {"round": 4}))
    loaded = load_snapshot(tmp_path / "checkpoint").state
    assert_same(loaded, closed.state)
    assert_same(federation.round(loaded, 5), federation.round(closed.state, 5))


def test_there_is_a_deployed_and_a_float_model_of_the_right_sizes(federation: Federation, states: list[State]) -> None:
    network = federation.network
    for state in states:
        models = federation.method.models(state)
        assert models.keys() == {"deployed", "float"}
        for weights in models.values():
            assert weights.voted.shape == (network.D,) and weights.floats.shape == (network.F,)
            assert weights.voted.dtype == weights.floats.dtype == torch.float32
            assert weights.voted.isfinite().all() and weights.floats.isfinite().all()


def test_vote_weights_are_shares_of_those_who_took_part(states: list[State]) -> None:
    *_, state = states
    shares = state.get("vote_weight")
    if shares is not None:
        assert shares.shape == (CLIENTS,)
        assert shares[[0, 3]].tolist() == [0, 0] and (shares[[1, 2, 4]] > 0).all()
        assert float(shares.sum()) == pytest.approx(1, abs=1e-6)


def test_three_rounds_lower_the_loss_of_both_models(method: Method) -> None:
    federation = Federation(method, steps=25)
    first, _, _, last = (method.models(state) for state in federation.states([range(5)] * 3))

    def loss(weights: Weights) -> float:
        outputs = federation.network(weights.voted, weights.floats, federation.data.x)
        return float(F.cross_entropy(outputs, federation.data.y))

    for model in ("deployed", "float"):
        assert loss(last[model]) < loss(first[model]), model
