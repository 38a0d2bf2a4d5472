"""Algorithm 1 as printed, on ballots of three weights: soft votes, pluralities, clipping, ties."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from fedvote import FedVote
from fedvote.codecs import Header, unpack
from fedvote.engines.simulate import simulate
from fedvote.errors import ConfigError
from fedvote.influence import Capped
from fedvote.methods.fedvote import Votes
from fedvote.methods.fedvote.vote_result import Counted, levels_of
from fedvote.randomness import Key
from tests.methods.ballots import SOFT, merged, share, wide
from tests.toy import Federation, close_round, dataset, merge, three_weights
from tests.toy import module as toy_module


def test_no_weight_is_certain_before_the_first_round() -> None:
    method = FedVote(p_min=1e-6)
    level = method.init(wide(4000), 4)["level"]
    assert int(level.min()) > 0 and int(level.max()) < method.grid - 1


@pytest.mark.parametrize(
    ("votes", "clients", "levels"), [("binary", 5, 6), ("ternary", 5, 11), ("binary", 2**15, 4097)]
)
def test_equal_votes_are_counted_exactly_as_long_as_that_can_be_told(votes: Votes, clients: int, levels: int) -> None:
    tally_VD = torch.zeros(2, 1)
    assert levels_of(FedVote(votes=votes), Counted(tally_VD, tally_VD, torch.ones(clients), range(clients))) == levels


def test_option_1_the_soft_vote_is_the_share_of_plus_one() -> None:
    state = merged(FedVote(), [[1, 1, -1], [1, -1, -1], [1, 1, -1]], [0, 1, 3])
    assert state["level"].tolist() == [3, 2, 0] and state["levels"].tolist() == [3]  # p = 3/3, 2/3, 0/3
    assert state["plurality"].tolist() == [1, 1, -1]
    assert state["vote_weight"].tolist() == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3])


@pytest.mark.parametrize("K", [1, 2, 3, 31, 100])
def test_option_1_has_one_level_for_each_number_of_votes_and_they_are_exact(K: int) -> None:
    method, network = FedVote(), wide(K + 1)
    votes_KD = torch.where(torch.arange(K)[:, None] < torch.arange(K + 1), 1, -1).to(torch.int8)  # weight j: j times +1
    state = merge(method, method.init(network, K), {"votes": votes_KD}, range(K), Key(0, 1))
    assert state["level"].tolist() == list(range(K + 1)) and state["levels"].tolist() == [K]
    for count, winner in enumerate(state["plurality"].tolist()):
        assert 2 * count == K or winner == (1 if 2 * count > K else -1)


def test_p_min_clips_as_told_and_what_is_broadcast_stays_exact() -> None:
    method = FedVote(p_min=0.25)
    state = merged(method, [[1, 1, -1]] * 4 + [[1, -1, -1]], [0, 1, 2, 3, 4], N=5)
    assert method.soft(state).tolist() == pytest.approx([0.5, 0.5, -0.5], abs=1e-6)
    assert method.broadcast(state)["level"].tolist() == [5, 4, 0]


def test_ternary_votes_are_averaged_and_the_most_frequent_value_wins() -> None:
    method = FedVote(votes="ternary")
    state = merged(method, [[0, 1, -1], [0, 1, -1], [1, -1, -1]], [0, 1, 2])
    # the mean votes 1/3, 1/3 and -1 are levels 4, 4 and 0 of 0 to 6
    assert state["level"].tolist() == [4, 4, 0] and state["levels"].tolist() == [6]
    assert state["plurality"].tolist() == [0, 1, -1]
    assert method.soft(state).tolist() == pytest.approx([1 / 3, 1 / 3, -SOFT], abs=1e-6)


@pytest.mark.parametrize(("votes", "ballots"), [("binary", (-1, 1)), ("ternary", (-1, 0, 1))])
def test_ties_are_broken_at_random_and_by_the_key_alone(votes: Votes, ballots: Sequence[int]) -> None:
    method, network = FedVote(votes=votes), wide(3000)
    tied = torch.tensor(ballots, dtype=torch.int8)[:, None].expand(-1, 3000)
    state = method.init(network, len(ballots))

    def winners(round: int) -> Tensor:
        return merge(method, state, {"votes": tied}, range(len(ballots)), Key(0, round))["plurality"]

    assert torch.equal(winners(1), winners(1)) and not torch.equal(winners(1), winners(2))
    for value in ballots:
        assert float((winners(1) == value).float().mean()) == pytest.approx(1 / len(ballots), abs=0.04)


def test_one_shot_deploys_the_hard_plurality_of_the_votes_sent() -> None:
    federation = Federation(FedVote(), steps=20)
    network, method, state = federation.network, federation.method, federation.start()
    _, frames = federation.frames(state, 1, range(5))

    def read(client: int) -> Tensor:
        codecs = method.wire(network).up(method.broadcast(state), Key(0, 1, client))
        return unpack(frames[client], Header(1, client, network.fingerprint, "FedVote"), codecs)["votes"]

    ballots = [read(client) for client in range(5)]
    closed = close_round(method, network, state, frames, Key(0, 1))
    assert torch.equal(method.models(closed.state)["deployed"].voted, torch.stack(ballots).float().sum(0).sign())


@pytest.mark.parametrize("votes", ["binary", "ternary"])
@pytest.mark.parametrize("clients", [4, 5])
def test_deployed_weights_are_votes_from_the_start(votes: Votes, clients: int) -> None:
    method = FedVote(votes=votes)
    simulation = simulate(toy_module(), dataset(), method, clients=clients, rounds=2, steps=2, batch=8)
    for snapshot in [simulation.federation.start(), *simulation.run()]:
        assert set(method.models(snapshot.state)["deployed"].voted.tolist()) <= set(method.alphabet)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"votes": "quaternary"}, "votes is 'quaternary', expected one of: binary, ternary"),
        ({"p_min": 0.0}, "p_min is 0.0, expected a number between 0 and 0.5"),
        ({"p_min": 0.5}, "p_min is 0.5, expected a number between 0 and 0.5"),
        ({"p_min": float("nan")}, "p_min is nan, expected a number between 0 and 0.5"),
        ({"grid": 2}, "grid is 2, expected 3 to 32768"),
        ({"grid": 32769}, "grid is 32769, expected 3 to 32768"),
        ({"lr": 0.0}, "lr is 0.0, expected a"),
        ({"lr": float("inf")}, "lr is inf, expected a"),
        ({"lr": float("nan")}, "lr is nan, expected a"),
    ],
    ids=str,
)
def test_values_that_make_no_sense_are_refused_with_those_that_do(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        FedVote(**options)


def test_what_flipped_and_how_decided_votes_are_is_on_record() -> None:
    method, network = FedVote(), three_weights()
    before = method.init(network, 4)
    votes = torch.tensor([[1, 1, -1], [1, 1, -1], [1, -1, -1], [1, 1, -1]], dtype=torch.int8)
    after = merge(method, before, {"votes": votes}, range(4), Key(0, 1))
    found = method.measure(before | {"plurality": torch.tensor([1, -1, -1], dtype=torch.int8)}, after)
    assert found == pytest.approx({"weights_flipped": 1 / 3, "votes_decided": (1 + 0.5 + 1) / 3})


def test_what_a_method_measures_is_written_down_of_every_round() -> None:
    made = simulate(toy_module(), dataset(), FedVote(), clients=3, rounds=2, steps=1, batch=8, device="cpu")
    for snapshot in made.run():
        assert snapshot.record["measured"].keys() == {"weights_flipped", "votes_decided"}


def test_the_deployed_network_counts_recent_rounds_together_and_training_goes_on_from_the_last() -> None:
    method = FedVote(deploy_rounds=2)
    once = merged(method, [[1, 1, -1], [1, 1, -1], [1, 1, -1]], [0, 1, 2])
    twice = merged(method, [[-1, -1, -1], [-1, -1, -1], [1, -1, -1]], [0, 1, 2], once)
    assert once["plurality"].tolist() == [1, 1, -1]
    # t = 1/2 (0, 1) + (2/3, 1/3) for the first weight, 1/2 (0, 1) + (1, 0) for the second
    assert twice["plurality"].tolist() == [1, -1, -1]
    torch.testing.assert_close(twice["recent"], torch.tensor([[2 / 3, 1.0, 1.5], [5 / 6, 0.5, 0.0]]))
    assert share(twice).tolist() == [pytest.approx(1 / 3), 0, 0], "the soft vote is the last round's"
    with pytest.raises(ConfigError, match="deploy_rounds is 0"):
        FedVote(deploy_rounds=0)


@pytest.mark.parametrize("votes", ["binary", "ternary"])
def test_recent_rounds_count_together_where_the_soft_vote_is_deployed_as_under_a_bound(votes: Votes) -> None:
    method = FedVote(votes=votes, deploy_rounds=4, influence=Capped(most=2.0))  # a bound that no move reaches
    once = merged(method, [[1, 1, -1], [1, 1, -1], [1, 1, -1]], [0, 1, 2])
    twice = merged(method, [[-1, -1, -1], [-1, -1, -1], [1, -1, -1]], [0, 1, 2], once)
    alone = merged(replace(method, deploy_rounds=1), [[-1, -1, -1], [-1, -1, -1], [1, -1, -1]], [0, 1, 2], once)

    # 3/4 of the first round's +1 outweighs the chances of votes with the mean -1/3, but not those of -1
    assert twice["plurality"].tolist() == [1, -1, -1]
    assert alone["plurality"].tolist() == [-1 if votes == "binary" else 0, -1, -1]
