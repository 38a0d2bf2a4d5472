"""Algorithm 1 as printed, on ballots of three weights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fedvote import FedVote
from fedvote.codecs import Header, unpack
from fedvote.core import Batches, State
from fedvote.engines.simulate import simulate
from fedvote.errors import ConfigError, WireError
from fedvote.methods import fedvote as module
from fedvote.methods.fedvote import Votes
from fedvote.methods.vote_count import Counted, levels_of
from fedvote.network.network import Network
from fedvote.quantize import BINARY, NORMALISATIONS, Normalisation, round_by_shared_random
from fedvote.randomness import Key
from fedvote.reputation import Ballots, Proportional, Reputation, Uniform, Verdict
from tests.toy import Federation, assert_same, batches, close_round, dataset, examples, keys, merge, three_weights
from tests.toy import module as toy_module

SOFT = 0.998  # 2 p - 1 for p = 1 - 0.001


def merged(
    method: FedVote, ballots: Sequence[Sequence[int]], clients: Sequence[int], state: State | None = None, N: int = 4
) -> State:
    before = method.init(three_weights(), N) if state is None else state
    return merge(method, before, {"votes": torch.tensor(ballots, dtype=torch.int8)}, clients, Key(0, 1))


def share(state: State) -> Tensor:
    """p, before it is clipped."""
    return state["level"].double() / int(state["levels"])


def wide(D: int) -> Network:
    return Network(nn.Sequential(nn.Linear(D, 1, bias=False), nn.Linear(1, 2, bias=False)))


def test_a_ballot_is_coded_against_the_lots_of_its_client_and_round() -> None:
    method, network = FedVote(), wide(4000)
    down, key = method.broadcast(method.init(network, 4)), Key(0, 5, 2)
    (votes,) = round_by_shared_random(method.soft(down)[None], BINARY, [key])
    mine, *others = (
        len(method.wire(network).up(down, each)["votes"].encode(votes))
        for each in (key, Key(0, 1, 2), Key(0, 5, 1), Key(1, 5, 2))
    )
    assert mine < min(others) / 4


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


def captured(monkeypatch: pytest.MonkeyPatch, what: str) -> list[Any]:
    """Every value that `what` of the method's file is given first, as it goes on working."""
    seen, original = [], getattr(module, what)

    def spy(*arguments: Any) -> Any:
        seen.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(module, what, spy)
    return seen


# Option I


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


def test_the_next_round_starts_from_the_soft_vote_clipped(monkeypatch: pytest.MonkeyPatch) -> None:
    method, network = FedVote(), three_weights()
    state = merged(method, [[1, 1, -1], [1, -1, -1], [1, 1, -1]], [0, 1, 2])
    assert method.soft(state).tolist() == pytest.approx([SOFT, 1 / 3, -SOFT], abs=1e-6)
    assert method.models(state)["float"].voted.tolist() == pytest.approx([SOFT, 1 / 3, -SOFT], abs=1e-6)

    seen = captured(monkeypatch, "descend")
    examples_of = Batches(examples().rows(slice(0, 8)), torch.zeros(2, 1, 4, dtype=torch.int64), torch.tensor([8, 8]))
    narrow = Network(nn.Sequential(nn.Linear(6, 1, bias=False), nn.Linear(1, 3, bias=False)))
    assert network.D == 3
    level = torch.tensor([0, 1, 2, 3, 3, 0], dtype=torch.int16)
    down = {"level": level, "levels": torch.tensor([3], dtype=torch.int16)}
    method.local(narrow, down, examples_of, {}, keys([0, 1]))
    (latent_KD,) = seen[0][2]
    # h = atanh(2 p - 1) / 1.5
    expected = torch.atanh(torch.tensor([-SOFT, -1 / 3, 1 / 3, SOFT, SOFT, -SOFT])) / 1.5
    assert latent_KD.shape == (2, 6)
    torch.testing.assert_close(latent_KD, expected.expand(2, -1))


def test_p_min_clips_as_told_and_what_is_broadcast_stays_exact() -> None:
    method = FedVote(p_min=0.25)
    state = merged(method, [[1, 1, -1]] * 4 + [[1, -1, -1]], [0, 1, 2, 3, 4], N=5)
    assert method.soft(state).tolist() == pytest.approx([0.5, 0.5, -0.5], abs=1e-6)
    assert method.broadcast(state)["level"].tolist() == [5, 4, 0]


@pytest.mark.parametrize("phi", [kind() for kind in NORMALISATIONS.values()], ids=NORMALISATIONS)
def test_local_training_descends_on_latent_weights(phi: Normalisation, monkeypatch: pytest.MonkeyPatch) -> None:
    """h - eta grad_h f(phi(h)), by plain PyTorch, one client after another."""
    method = FedVote(lr=0.3, optimizer="SGD", normalisation=phi)
    federation = Federation(method)
    network, state = federation.network, federation.start()
    seen = captured(monkeypatch, "round_by_shared_random")
    turn = batches(federation.data, (0, 1, 2), steps=6)
    method.local(network, method.broadcast(state), turn, {}, keys((0, 1, 2)))
    normalised_KD = seen[0][0]

    for client in range(3):
        h = phi.inverse(method.soft(state)).requires_grad_()
        for step in range(6):
            x, y = (part[client] for part in turn.at(step))
            loss = nn.functional.cross_entropy(network(phi(h), network.start.floats, x), y)
            (gradient,) = torch.autograd.grad(loss, h)
            h = (h - 0.3 * gradient).detach().requires_grad_()
        torch.testing.assert_close(normalised_KD[client], phi(h).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("votes", ["binary", "ternary"])
def test_votes_are_rounded_at_random_without_bias(votes: Votes) -> None:
    method, K = FedVote(votes=votes, optimizer="SGD", lr=1e-9), 4000
    network = Network(nn.Sequential(nn.Linear(6, 1, bias=False), nn.Linear(1, 3, bias=False)))
    level = torch.tensor([0, 20, 45, 50, 70, 100], dtype=torch.int16)
    down = {"level": level, "levels": torch.tensor([100], dtype=torch.int16)}
    turn = Batches(examples(), torch.zeros(K, 1, 2, dtype=torch.int64), torch.full((K,), 2))
    up, _ = method.local(network, down, turn, {}, keys(range(K)))
    # the standard deviation of the mean of K votes is at most 1 / sqrt(K)
    torch.testing.assert_close(up["votes"].float().mean(0), method.soft(down), rtol=0, atol=4 / K**0.5)
    assert set(up["votes"].unique().tolist()) == set(method.alphabet)


# Option II


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


def test_float_weights_stay_as_the_seed_made_them_unless_they_are_trained() -> None:
    federation = Federation(FedVote())
    state = federation.states([range(5)] * 2)[-1]
    assert torch.equal(state["float"], federation.network.start.floats)
    trained = Federation(FedVote(train_float=True)).states([range(5)])[-1]
    assert not torch.equal(trained["float"], federation.network.start.floats)


# Ternary votes, ties, one shot


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


def test_ballots_travel_at_one_bit_or_a_fifth_of_a_byte_each() -> None:
    network = Network(toy_module())  # 72 voted weights
    assert network.D == 72
    header = 39 + 9 + 4  # the frame, what the tensor is, the checksum
    sizes: dict[Votes, int] = {"binary": 9, "ternary": 15}
    for votes, nbytes in sizes.items():
        federation = Federation(FedVote(votes=votes, coding="plain"), network)
        _, frames = federation.frames(federation.start(), 1, range(5))
        assert {len(frame) for frame in frames.values()} == {header + nbytes}


# What is refused


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


@pytest.mark.parametrize(("level", "levels"), [([0, 3, 1], 2), ([0, 0, 0], 0)])
def test_a_broadcast_beyond_its_own_levels_is_refused(level: list[int], levels: int) -> None:
    down = {"level": torch.tensor(level, dtype=torch.int16), "levels": torch.tensor([levels], dtype=torch.int16)}
    with pytest.raises(WireError, match=f"levels 0 to {max(level)}, expected 0 to {levels}"):
        FedVote().soft(down)


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
def test_clients_can_train_through_random_votes(votes: Votes) -> None:
    plain, random = (
        Federation(FedVote(votes=votes, sign_share=1.0, sign_rounding=rounding)).states([[0, 1, 2]] * 2)[-1]
        for rounding in ("likeliest", "random")
    )
    assert not torch.equal(plain["level"], random["level"])


@dataclass(frozen=True)
class Nobody(Reputation):
    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        return Verdict(torch.zeros(len(ballots.votes_KD)), torch.zeros(len(ballots.votes_KD)), memory)


def test_if_a_rule_counts_nobody_everything_stays_as_it_was() -> None:
    method = FedVote(reputation=Nobody())
    state = method.init(three_weights(), 2)
    after = merge(method, state, {"votes": torch.ones(2, 3, dtype=torch.int8)}, range(2), Key(0, 1))
    assert_same(after, state)
