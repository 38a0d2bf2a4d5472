"""A soft vote of few levels: clients decode exactly what the server continues from, and the deployed vote is exact."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from fedvote import FedVote
from fedvote.core import State
from fedvote.engines.simulate import simulate
from fedvote.errors import ConfigError
from fedvote.methods.fedvote import Votes
from fedvote.methods.fedvote.soft_levels import Rounding, SoftLevels, Spacing
from fedvote.quantize import round_by_shared_random
from fedvote.randomness import Key
from fedvote.reputation import Proportional
from tests.methods.ballots import wide
from tests.toy import Federation, dataset, merge, open_round, read_broadcast, three_weights
from tests.toy import module as toy_module

FEW: list[dict[str, Any]] = [
    {"levels": 3, "level_rounding": "random"},
    {"levels": 5, "votes": "ternary"},
    {"levels": 3, "level_rounding": "carry"},
    {"levels": 4, "level_rounding": "carry", "votes": "ternary", "reputation": Proportional()},
    {"levels": 4, "level_spacing": "even", "reputation": Proportional()},
    {"levels": 2, "level_rounding": "random", "votes": "ternary", "reputation": Proportional()},
    {"levels": 5, "coding": "plain", "train_float": True},
]


def after(method: FedVote, counts: list[int], K: int) -> State:
    """The state after K ballots of three weights, with so many votes of +1."""
    votes_KD = torch.where(torch.arange(K)[:, None] < torch.tensor(counts), 1, -1).to(torch.int8)
    return merge(method, method.init(three_weights(), K), {"votes": votes_KD}, range(K), Key(0, 1))


@pytest.mark.parametrize(("spacing", "value"), [("even", 0.5), ("arcsine", math.sqrt(0.5))])
def test_a_tally_becomes_the_nearest_of_few_levels(spacing: Spacing, value: float) -> None:
    method = FedVote(levels=5, level_spacing=spacing)
    state = after(method, [0, 24, 31], 31)
    assert state["level"].tolist() == [0, 3, 4] and state["levels"].tolist() == [4]
    assert method.soft(state).tolist() == pytest.approx([-0.998, value, 0.998], abs=1e-6)


def test_the_plurality_is_of_the_exact_tally() -> None:
    """16 of 31 are a majority, and in the middle of three levels."""
    state = after(FedVote(levels=3), [15, 16, 16], 31)
    assert state["level"].tolist() == [1, 1, 1] and state["plurality"].tolist() == [-1, 1, 1]


def test_moves_of_less_than_half_a_step_add_up_if_the_rest_is_carried() -> None:
    """Five of 31 more votes of +1 than of -1 are 0.16, and half of a step 0.5: the fourth time they cross it."""
    method, network = FedVote(levels=3, level_rounding="carry"), three_weights()
    votes_KD = torch.where(torch.arange(31)[:, None] < torch.tensor([13, 18, 31]), 1, -1).to(torch.int8)
    state, levels, rests = method.init(network, 31), [], []
    for round in range(1, 5):
        state = merge(method, state, {"votes": votes_KD}, range(31), Key(0, round))
        levels.append(state["level"].tolist())
        rests.append(state["carried"].tolist())
    assert levels == [[1, 1, 2]] * 3 + [[0, 2, 2]]
    assert rests[0] == pytest.approx([-5 / 31, 5 / 31, 0]) and rests[3] == pytest.approx(
        [0.998 - 20 / 31, 20 / 31 - 0.998, 0]
    )


def test_broadcast_and_rest_are_the_sum_of_the_soft_vote_and_the_last_rest() -> None:
    method, generator = FedVote(levels=5, level_rounding="carry"), Key(3).torch("votes")
    state = method.init(three_weights(), 31)
    for round in range(1, 6):
        before = state["carried"]
        votes_KD = torch.randint(2, (31, 3), generator=generator, dtype=torch.int8) * 2 - 1
        state = merge(method, state, {"votes": votes_KD}, range(31), Key(0, round))
        expected = (votes_KD.float().mean(0) + before).clamp(-0.998, 0.998)
        assert (method.soft(state) + state["carried"]).tolist() == pytest.approx(expected.tolist(), abs=1e-6)


def test_fewer_votes_than_levels_are_counted_exactly() -> None:
    state = after(FedVote(levels=9), [0, 1, 3], 3)
    assert state["level"].tolist() == [0, 1, 3] and state["levels"].tolist() == [3]
    assert FedVote(levels=9).soft(state).tolist() == pytest.approx([-0.998, -1 / 3, 0.998], abs=1e-6)


@pytest.mark.parametrize("spacing", ["even", "arcsine"])
@pytest.mark.parametrize("number", [2, 3, 4, 9])
def test_at_random_the_mean_is_the_clipped_soft_vote(number: int, spacing: Spacing) -> None:
    levels, n = SoftLevels(number, "random", spacing, 0.02), 40_000
    for soft in (-1.0, -0.97, -0.3, 0.0, 0.55, 0.95):
        rounded = levels.round(torch.full((n,), soft), Key(0, 3))
        mean = float(levels.value(rounded, number).clamp(-0.96, 0.96).mean())
        assert mean == pytest.approx(max(-0.96, min(0.96, soft)), abs=4 / math.sqrt(n))


@pytest.mark.parametrize("spacing", ["even", "arcsine"])
@pytest.mark.parametrize("rounding", ["nearest", "random"])
def test_a_soft_vote_that_is_a_level_stays(rounding: Rounding, spacing: Spacing) -> None:
    levels = SoftLevels(9, rounding, spacing, 0.001)
    assert levels.round(levels.values(), Key(0, 1)).tolist() == list(range(9))


@pytest.mark.parametrize("spacing", ["even", "arcsine"])
def test_the_nearest_level_is_symmetric(spacing: Spacing) -> None:
    levels, soft_D = SoftLevels(5, "nearest", spacing, 0.001), torch.linspace(-1, 1, 63)
    level_D = levels.round(soft_D, Key(0, 1))
    assert torch.equal(level_D + level_D.flip(0), torch.full_like(level_D, 4))
    assert bool((level_D.diff() >= 0).all())


@pytest.mark.parametrize("options", FEW, ids=str)
def test_clients_decode_what_the_server_continues_from(options: dict[str, Any]) -> None:
    """In rounds 2 and 3: from the reference that the seed made, and from few levels; with a reference and without."""
    method = FedVote(**options)
    federation = Federation(method)
    first, second, third = federation.states([range(5), range(5)])
    for round, held, state in ((2, first, second), (3, second, third)):
        for reference in (method.broadcast(held), None):
            frame = open_round(method, federation.network, state, round, reference)
            down = read_broadcast(method, federation.network, frame, round, reference)
            assert torch.equal(method.soft(down), method.models(state)["float"].voted)
            assert int(down["levels"]) <= options["levels"] - 1


@pytest.mark.parametrize("options", FEW[:3], ids=str)
def test_bytes_counted_are_bytes_written(options: dict[str, Any]) -> None:
    def records(wire: str) -> list[dict[str, Any]]:
        run = simulate(toy_module(), dataset(), FedVote(**options), clients=5, cohort=4, rounds=3, batch=8, wire=wire)
        return [{k: v for k, v in snapshot.record.items() if "seconds" not in k} for snapshot in run]

    assert records("weighed") == records("written")


@pytest.mark.parametrize("votes", ["binary", "ternary"])
def test_votes_are_predicted_from_the_values_of_uneven_levels(votes: Votes) -> None:
    """A client that learns nothing votes as its random numbers and the broadcast say."""
    method = FedVote(votes=votes, levels=5)
    network = wide(4000)
    level = torch.arange(4000, dtype=torch.int16) % 5
    down = {"level": level, "levels": torch.tensor([4], dtype=torch.int16)}
    (cast,) = round_by_shared_random(method.soft(down)[None], method.alphabet, [Key(0, 2, 1)])
    assert 8 * len(method.wire(network).up(down, Key(0, 2, 1))["votes"].encode(cast)) < 0.2 * 4000


def test_random_levels_differ_by_round_and_seed_alone() -> None:
    levels, soft_D = SoftLevels(3, "random", "even", 0.001), torch.full((1000,), 0.3)

    def drawn(key: Key) -> Tensor:
        return levels.round(soft_D, key)

    assert torch.equal(drawn(Key(0, 1)), drawn(Key(0, 1, 5)))
    assert not torch.equal(drawn(Key(0, 1)), drawn(Key(0, 2))) and not torch.equal(drawn(Key(0, 1)), drawn(Key(1, 1)))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"levels": 1}, "levels is 1, expected 0 .all. or 2 to 256"),
        ({"levels": 257}, "levels is 257, expected 0 .all. or 2 to 256"),
        ({"levels": 9, "grid": 9}, "levels is 9, expected fewer than the 9 levels of the grid"),
        ({"levels": 5, "p_min": 0.25, "level_spacing": "even"}, "levels is 5 and p_min 0.25, which makes the two"),
        ({"levels": 51}, "choose fewer levels, a smaller p_min, or level_spacing = even"),
        ({"level_rounding": "up"}, "level_rounding is 'up', expected one of: nearest, random"),
        ({"level_spacing": "odd"}, "level_spacing is 'odd', expected one of: even, arcsine"),
    ],
)
def test_levels_that_cannot_be_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        FedVote(**options)
