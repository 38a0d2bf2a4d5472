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
from fedvote.quantize import round_by_shared_random
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
