"""Algorithm 1, option 2: votes weighed by reputation, pluralities of heads, rules that count some or nobody."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from fedvote import FedVote
from fedvote.core import State
from fedvote.methods.fedvote import Votes
from fedvote.randomness import Key
from fedvote.reputation import Ballots, Proportional, Reputation, Uniform, Verdict
from tests.methods.ballots import merged, share, wide
from tests.toy import assert_same, merge, three_weights


def test_option_2_by_hand_over_two_rounds_of_partial_participation() -> None:
    method = FedVote(reputation=Proportional())

    # nu = 1/2 each, so all weights are equal; the plurality is + + -, so CR = 2/3, 1, 2/3
    first = merged(method, [[1, 1, 1], [1, 1, -1], [1, -1, -1]], [0, 1, 2])
    assert share(first).tolist() == pytest.approx([1, 2 / 3, 1 / 3], abs=1e-9)
    assert first["plurality"].tolist() == [1, 1, -1]
    assert first["reputation/reputation"].tolist() == pytest.approx([7 / 12, 3 / 4, 7 / 12, 1 / 2])
    assert first["vote_weight"].tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])

    # clients 0, 1, 3 with nu = 7/12, 9/12, 6/12 before the round: lambda = 7/22, 9/22, 6/22; CR = 2/3, 2/3, 1
    second = merged(method, [[1, -1, -1], [-1, 1, -1], [1, 1, -1]], [0, 1, 3], first)
    assert second["levels"].tolist() == [4096]
    assert share(second).tolist() == pytest.approx([13 / 22, 15 / 22, 0], abs=1 / 8192)
    assert second["plurality"].tolist() == [1, 1, -1]
    assert second["reputation/reputation"].tolist() == pytest.approx([15 / 24, 17 / 24, 7 / 12, 3 / 4])
    assert second["vote_weight"].tolist() == pytest.approx([7 / 22, 9 / 22, 0, 6 / 22])
    assert float(second["vote_weight"].sum()) == pytest.approx(1)


def test_option_2_deploys_the_plurality_of_heads_whatever_the_weights() -> None:
    method = FedVote(reputation=Proportional())
    state = method.init(three_weights(), 3) | {"reputation/reputation": torch.tensor([0.9, 0.1, 0.1])}
    state = merged(method, [[1, 1, 1], [-1, -1, -1], [-1, -1, 1]], [0, 1, 2], state)
    assert share(state).tolist() == pytest.approx([9 / 11, 9 / 11, 10 / 11], abs=1 / 8192)
    assert state["plurality"].tolist() == [-1, -1, 1]
    # CR against the heads: 1/3, 2/3, 1
    assert state["reputation/reputation"].tolist() == pytest.approx([0.45 + 1 / 6, 0.05 + 1 / 3, 0.55])


def test_option_2_holds_credibility_against_the_plurality_that_is_deployed_ties_too() -> None:
    method, network = FedVote(reputation=Proportional(beta=0.5)), wide(1001)
    votes = torch.ones(2, 1001, dtype=torch.int8)
    votes[1] = -1  # a tie everywhere
    state = merge(method, method.init(network, 2), {"votes": votes}, [0, 1], Key(0, 1))
    credibility = [float((ballot == state["plurality"]).float().mean()) for ballot in votes]
    assert state["reputation/reputation"].tolist() == pytest.approx([0.25 + 0.5 * c for c in credibility])


@pytest.mark.parametrize("grid", [3, 11, 4097, 32768])
def test_weighted_soft_votes_are_within_half_a_step_of_the_grid(grid: int) -> None:
    method, network = FedVote(reputation=Proportional(), grid=grid), wide(200)
    generator = Key(0).torch("test")
    nu = torch.rand(7, generator=generator) + 0.1
    votes = torch.randint(0, 2, (7, 200), generator=generator).to(torch.int8) * 2 - 1
    state = method.init(network, 7) | {"reputation/reputation": nu}
    state = merge(method, state, {"votes": votes}, range(7), Key(0, 1))
    exact = (nu.double() / nu.double().sum()) @ (votes == 1).double()
    assert int(state["levels"]) == grid - 1
    assert float((share(state) - exact).abs().max()) <= 0.5 / (grid - 1) + 1e-6


def test_under_a_rule_no_minority_moves_float_weights_beyond_the_others() -> None:
    up = {"votes": torch.ones(3, 3, dtype=torch.int8), "float": torch.tensor([[1.0, 4.0], [2.0, 3.0], [1e9, -1e9]])}
    for reputation, expected in ((Proportional(), [2.0, 3.0]), (Uniform(), [1e9 / 3, -1e9 / 3])):
        method = FedVote(reputation=reputation, train_float=True)
        state = method.init(three_weights(), 3)
        assert merge(method, state, up, [0, 1, 2], Key(0, 1))["float"].tolist() == pytest.approx(expected)


@dataclass(frozen=True)
class Only(Reputation):
    """Some clients have a vote, the same for all of them; the others have none."""

    chosen: tuple[int, ...] = ()
    weight: float = 0.3

    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        weights_K = torch.tensor([self.weight if int(c) in self.chosen else 0.0 for c in ballots.clients_K])
        return Verdict(weights_K, weights_K, {})


@pytest.mark.parametrize("votes", ["binary", "ternary"])
def test_ballots_of_no_weight_leave_the_count_of_the_others_exact(votes: Votes) -> None:
    random = Key(0).numpy("ballots")
    values = [-1, 1] if votes == "binary" else [-1, 0, 1]
    ballots = random.choice(values, (6, 3)).tolist()
    chosen = (0, 2, 3)
    told = merged(FedVote(votes=votes, reputation=Only(chosen)), ballots, range(6), N=6)
    alone = merged(FedVote(votes=votes), [ballots[c] for c in chosen], chosen, N=6)
    for name in ("level", "levels", "plurality", "vote_weight"):
        assert torch.equal(told[name], alone[name]), name


@dataclass(frozen=True)
class Nobody(Reputation):
    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        return Verdict(torch.zeros(len(ballots.votes_KD)), torch.zeros(len(ballots.votes_KD)), memory)


def test_if_a_rule_counts_nobody_everything_stays_as_it_was() -> None:
    method = FedVote(reputation=Nobody())
    state = method.init(three_weights(), 2)
    after = merge(method, state, {"votes": torch.ones(2, 3, dtype=torch.int8)}, range(2), Key(0, 1))
    assert_same(after, state)
