"""Bounds on how far a round's votes move a weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from fedvote.errors import ConfigError
from fedvote.influence import INFLUENCES, Agreement, Capped, Influence, Trimmed, Unbounded
from fedvote.methods import FedVote
from fedvote.randomness import Key
from tests.toy import assert_same, merge, three_weights

BEFORE, MEAN = torch.tensor([0.0, 0.6, -0.6]), torch.tensor([0.5, 0.5, 0.8])


def test_without_a_bound_the_mean_vote_is_the_next_soft_vote() -> None:
    assert torch.equal(Unbounded()(BEFORE, MEAN, 4.0), MEAN)


def test_a_move_is_shortened_by_deviations_of_independent_votes() -> None:
    """Of four ballots: sqrt(1 / 4) = 0.5 and sqrt(0.64 / 4) = 0.4, of which a half is 0.25 and 0.2."""
    torch.testing.assert_close(Agreement(0.5)(BEFORE, MEAN, 4.0), torch.tensor([0.25, 0.6, 0.6]))


def test_a_minority_of_the_trimmed_share_has_no_influence() -> None:
    """Nine of ten votes, with a tenth trimmed at each end, are all; an even split stays even."""
    found = Trimmed(0.1)(BEFORE, torch.tensor([0.8, 0.0, -0.4]), 10.0)
    torch.testing.assert_close(found, torch.tensor([1.0, 0.0, -0.5]))


@pytest.mark.parametrize("settings", [{"votes": "ternary"}, {"counts": "changes"}], ids=str)
def test_a_mean_of_anything_but_binary_votes_is_not_trimmed(settings: dict[str, Any]) -> None:
    """Nine of ten ternary votes of 0 and one of +1 have the mean 0.1, which a share of 0.1 would raise to 0.125."""
    with pytest.raises(ConfigError, match="influence is Trimmed, which needs a mean of binary votes, but votes is"):
        FedVote(influence=Trimmed(0.1), **settings)
    FedVote(influence=Agreement(), **settings)


def test_no_move_is_longer_than_the_cap() -> None:
    torch.testing.assert_close(Capped(0.2)(BEFORE, MEAN, 4.0), torch.tensor([0.2, 0.5, -0.4]))


@pytest.mark.parametrize("bound", [kind() for kind in INFLUENCES.values()], ids=list(INFLUENCES))
def test_soft_votes_stay_soft_votes_and_unanimous_ones_are_not_reversed(bound: Influence) -> None:
    before = torch.rand(200, generator=Key(0).torch("before")) * 1.98 - 0.99
    mean = torch.rand(200, generator=Key(0).torch("mean")) * 2 - 1
    after = bound(before, mean, 31.0)
    assert after.abs().max() <= 1 and ((mean - before) * (after - before) >= 0)[mean.abs() > before.abs()].all()


def test_the_deployed_network_is_bounded_as_well() -> None:
    """Three votes of +1 against a broadcast near -1: the plurality is +1, but no weight may move by more than 0.1."""
    network, votes = three_weights(), {"votes": torch.ones(3, 3, dtype=torch.int8)}
    free, bound = FedVote(), FedVote(influence=Capped(0.1))
    state = free.init(network, 3)
    state["level"] = torch.full_like(state["level"], 100)
    assert merge(free, state, votes, range(3), Key(0, 1))["plurality"].tolist() == [1, 1, 1]
    assert merge(bound, state, votes, range(3), Key(0, 1))["plurality"].tolist() == [-1, -1, -1]


@dataclass(frozen=True)
class Short(Influence):
    def __call__(self, before_D: Tensor, mean_D: Tensor, ballots: float) -> Tensor:
        return mean_D[:2]


@dataclass(frozen=True)
class ByZero(Influence):
    def __call__(self, before_D: Tensor, mean_D: Tensor, ballots: float) -> Tensor:
        return mean_D / 0


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (Short(), r"Short.__call__ gives torch.float32 of shape \(2,\), expected torch.float32 of shape \(3,\)"),
        (ByZero(), "ByZero.__call__ gives soft votes that are NaN or infinite, expected finite numbers"),
    ],
)
def test_what_a_bound_of_your_own_gives_is_checked(bound: Influence, words: str) -> None:
    method, votes = FedVote(influence=bound), {"votes": torch.ones(3, 3, dtype=torch.int8)}
    state = method.init(three_weights(), 3)
    with pytest.raises(ConfigError, match=words):
        merge(method, state, votes, range(3), Key(0, 1))


def test_a_bound_that_bounds_nothing_changes_only_the_grid() -> None:
    network, votes = three_weights(), {"votes": torch.tensor([[1, -1, 1], [1, -1, -1], [1, 1, -1]], dtype=torch.int8)}
    free, wide = FedVote(), FedVote(influence=Capped(5.0))
    state = free.init(network, 3)
    one, other = (merge(method, state, votes, range(3), Key(0, 1)) for method in (free, wide))
    torch.testing.assert_close(free.soft(one), wide.soft(other), rtol=0, atol=1e-3)
    assert_same({"plurality": one["plurality"]}, {"plurality": other["plurality"]})


@pytest.mark.parametrize(("kind", "value"), [(Agreement, -1.0), (Trimmed, 0.5), (Capped, 0.0)])
def test_bounds_that_make_no_sense_are_refused(kind: type[Influence], value: float) -> None:
    with pytest.raises(ConfigError, match="expected"):
        kind(value)
