"""Counting changes: votes move the soft vote by how far they depart from an untrained client's ballot."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from fedvote import FedVote
from fedvote.core import State
from fedvote.errors import ConfigError
from fedvote.influence import Capped
from fedvote.quantize import BINARY, round_by_shared_random
from fedvote.randomness import Key
from fedvote.reputation import Proportional
from tests.methods.ballots import wide
from tests.toy import merge

K, D = 9, 4000
CHANGES: list[dict[str, Any]] = [
    {},
    {"votes": "ternary"},
    {"reputation": Proportional()},
    {"levels": 5, "level_rounding": "carry"},
    {"influence": Capped()},
]


def ballots(method: FedVote, weights_D: Tensor, round: int) -> Tensor:
    """(K, D) the votes of clients that all have these normalised weights."""
    return round_by_shared_random(weights_D.expand(K, D), method.alphabet, [Key(0, round, m) for m in range(K)])


def counted(method: FedVote, state: State, weights_D: Tensor, round: int) -> State:
    return merge(method, state, {"votes": ballots(method, weights_D, round)}, range(K), Key(0, round))


def on_its_levels(method: FedVote) -> State:
    """A state whose soft vote has the levels that K clients count in."""
    state = method.init(wide(D), K)
    return counted(method, state, method.soft(state), 1)


@pytest.mark.parametrize("settings", CHANGES, ids=str)
def test_clients_that_learned_nothing_move_nothing(settings: dict[str, Any]) -> None:
    method = FedVote(counts="changes", **settings)
    before = on_its_levels(method)
    soft_D = method.soft(before)
    moved_D = method.soft(counted(method, before, soft_D, 2)) - soft_D
    assert float(moved_D.abs().max()) < 1 / method.grid, "weighted votes round to the grid"
    noisy = FedVote(**settings)
    assert float((noisy.soft(counted(noisy, before, soft_D, 2)) - soft_D).abs().max()) > 0.1


def test_each_changed_vote_is_one_level() -> None:
    method = FedVote(counts="changes")
    before = on_its_levels(method)
    votes_KD = ballots(method, method.soft(before), 2)
    middle = int((before["level"] - K // 2).abs().argmin())
    level, up, down = int(before["level"][middle]), votes_KD[:, middle] < 0, votes_KD[:, middle] > 0
    assert int(up.sum()) >= 2 and int(down.sum()) >= 1, "the case has votes of both signs"

    for turned, moved in ((up.nonzero()[:2], 2), (down.nonzero()[:1], -1)):
        changed_KD = votes_KD.clone()
        changed_KD[turned, middle] *= -1
        after = merge(method, before, {"votes": changed_KD}, range(K), Key(0, 2))
        difference_D = after["level"] - before["level"]
        assert int(after["level"][middle]) == level + moved
        assert int(difference_D.count_nonzero()) == 1


@pytest.mark.parametrize("votes", ["binary", "ternary"])
def test_the_mean_is_that_of_votes_with_less_noise(votes: Any) -> None:
    counts = {name: FedVote(votes=votes, counts=name) for name in ("votes", "changes")}
    before = on_its_levels(counts["changes"])
    start_D = counts["changes"].soft(before)
    moved_D = (start_D + 0.05).clamp(max=0.99)
    errors = {name: counts[name].soft(counted(counts[name], before, moved_D, 2)) - moved_D for name in counts}
    for error_D in errors.values():
        assert abs(float(error_D.mean())) < 4 * float(error_D.std()) / D**0.5
    assert float(errors["changes"].var()) < float(errors["votes"].var()) / 3


@pytest.mark.parametrize("p_min", [0.001, 0.05])
def test_broadcast_and_rest_stay_if_nobody_learns(p_min: float) -> None:
    """Also at the outermost level, whose value is clipped."""
    method = FedVote(counts="changes", levels=3, level_rounding="carry", p_min=p_min)
    state = on_its_levels(method)
    total_D = method.soft(state) + state["carried"]
    assert bool(((state["level"] != 1) & (state["carried"].abs() > 0.1)).any()), "the case has such rests"
    for round in range(2, 6):
        state = counted(method, state, method.soft(state), round)
    torch.testing.assert_close(method.soft(state) + state["carried"], total_D, rtol=0, atol=1e-5)


def test_a_rest_is_added_before_changes_are_clipped() -> None:
    """0.4 is level 0.7 and a rest of -0.3; 0.5 more are 0.9, though 0.7 + 0.5 is more than 1."""
    method = FedVote(counts="changes", levels=5, level_rounding="carry")
    state = method.init(wide(D), K)
    level_D, rest = torch.full((D,), 3, dtype=torch.int16), -0.3
    state |= {"level": level_D, "levels": torch.tensor([4], dtype=torch.int16), "carried": torch.full((D,), rest)}
    votes_KD = torch.ones(K, D, dtype=torch.int8)
    untrained_KD = ballots(method, method.soft(state), 2).float()
    after = merge(method, state, {"votes": votes_KD}, range(K), Key(0, 2))
    expected_D = (method.soft(state) + rest + 1 - untrained_KD.mean(0)).clamp(-0.998, 0.998)
    assert bool((method.soft(state) + 1 - untrained_KD.mean(0) > 1.2).any())
    torch.testing.assert_close(method.soft(after) + after["carried"], expected_D, rtol=0, atol=1e-5)


@pytest.mark.parametrize("voters", [1, 2, 4])
@pytest.mark.parametrize("levels", [{}, {"levels": 5, "level_rounding": "random"}], ids=str)
def test_fewer_voters_than_before_leave_the_mean(voters: int, levels: dict[str, Any]) -> None:
    """One client alone has votes of two values; the soft vote of all rounds does not become their sign."""
    method = FedVote(counts="changes", **levels)
    before = on_its_levels(method)
    soft_D = method.soft(before)
    votes_KD = ballots(method, soft_D, 2)[:voters]
    after_D = method.soft(merge(method, before, {"votes": votes_KD}, range(voters), Key(0, 2)))
    for soft in soft_D.unique():
        here = soft_D == soft
        assert abs(float(after_D[here].mean() - soft)) < 4 / float(here.sum()) ** 0.5


@pytest.mark.parametrize("hostile", ["all +1", "opposite of its random numbers"])
def test_a_hostile_ballot_moves_weights_as_far_as_where_votes_are_counted(hostile: str) -> None:
    """On average: 1/K of the way from the soft vote to its own mean vote."""
    counts = {name: FedVote(counts=name) for name in ("votes", "changes")}
    before = on_its_levels(counts["changes"])
    soft_D = counts["changes"].soft(before)
    votes_KD = ballots(counts["changes"], soft_D, 2)
    votes_KD[0] = 1 if hostile == "all +1" else -votes_KD[0]
    inside_D = soft_D.abs() < 0.8
    towards_D = 1 - soft_D if hostile == "all +1" else -2 * soft_D
    for method in counts.values():
        after_D = method.soft(merge(method, before, {"votes": votes_KD}, range(K), Key(0, 2)))
        error_D = (after_D - soft_D - towards_D / K)[inside_D]
        assert abs(float(error_D.mean())) < 4 * float(error_D.std()) / len(error_D) ** 0.5


def test_ties_are_broken_at_random() -> None:
    """Ten voters of whom nobody learned anything: five of each are a tie, whatever the last bits of sums."""
    method, voters = FedVote(counts="changes"), range(10)
    before = method.init(wide(D), 10) | {
        "level": torch.full((D,), 4, dtype=torch.int16), "levels": torch.tensor([10], dtype=torch.int16),
    }  # fmt: skip
    untrained_KD = round_by_shared_random(method.soft(before).expand(10, D), BINARY, [Key(0, 2, m) for m in voters])
    first = untrained_KD.argmin(0)
    votes_KD = untrained_KD.scatter(0, first[None], 1)  # one more +1, where there was a -1
    after = merge(method, before, {"votes": votes_KD}, voters, Key(0, 2))
    tied_D = after["level"] == 5
    assert int(tied_D.sum()) > 0.99 * D
    assert abs(float(after["plurality"][tied_D].float().mean())) < 4 / D**0.5


def test_the_deployed_network_is_the_sign_of_all_changes_so_far() -> None:
    method = FedVote(counts="changes", levels=3, level_rounding="carry")
    state = on_its_levels(method)
    for round in range(2, 5):
        state = counted(method, state, (method.soft(state) - 0.1).clamp(-0.99), round)
    total_D = method.soft(state) + state["carried"]
    assert torch.equal(state["plurality"] > 0, total_D >= 0)


def test_changes_of_all_rounds_are_not_added_up_twice() -> None:
    with pytest.raises(ConfigError, match="deploy_rounds is 3 and counts 'changes'"):
        FedVote(counts="changes", deploy_rounds=3)
