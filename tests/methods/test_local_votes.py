"""A client of FedVote descends on latent weights from the clipped soft vote, and rounds without bias."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from fedvote import FedVote
from fedvote.core import Batches
from fedvote.errors import WireError
from fedvote.methods import fedvote as module
from fedvote.methods.fedvote import Votes
from fedvote.network.network import Network
from fedvote.quantize import BINARY, NORMALISATIONS, Normalisation, round_by_shared_random
from fedvote.randomness import Key
from tests.methods.ballots import SOFT, merged, wide
from tests.toy import Federation, batches, examples, keys, three_weights
from tests.toy import module as toy_module


def test_a_ballot_is_coded_against_the_lots_of_its_client_and_round() -> None:
    method, network = FedVote(), wide(4000)
    down, key = method.broadcast(method.init(network, 4)), Key(0, 5, 2)
    (votes,) = round_by_shared_random(method.soft(down)[None], BINARY, [key])
    mine, *others = (
        len(method.wire(network).up(down, each)["votes"].encode(votes))
        for each in (key, Key(0, 1, 2), Key(0, 5, 1), Key(1, 5, 2))
    )
    assert mine < min(others) / 4


def captured(monkeypatch: pytest.MonkeyPatch, what: str) -> list[Any]:
    """Every value that `what` of the method's file is given first, as it goes on working."""
    seen, original = [], getattr(module, what)

    def spy(*arguments: Any) -> Any:
        seen.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(module, what, spy)
    return seen


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


def test_float_weights_stay_as_the_seed_made_them_unless_they_are_trained() -> None:
    federation = Federation(FedVote())
    state = federation.states([range(5)] * 2)[-1]
    assert torch.equal(state["float"], federation.network.start.floats)
    trained = Federation(FedVote(train_float=True)).states([range(5)])[-1]
    assert not torch.equal(trained["float"], federation.network.start.floats)


def test_ballots_travel_at_one_bit_or_a_fifth_of_a_byte_each() -> None:
    network = Network(toy_module())  # 72 voted weights
    assert network.D == 72
    header = 39 + 9 + 4  # the frame, what the tensor is, the checksum
    sizes: dict[Votes, int] = {"binary": 9, "ternary": 15}
    for votes, nbytes in sizes.items():
        federation = Federation(FedVote(votes=votes, coding="plain"), network)
        _, frames = federation.frames(federation.start(), 1, range(5))
        assert {len(frame) for frame in frames.values()} == {header + nbytes}


@pytest.mark.parametrize(("level", "levels"), [([0, 3, 1], 2), ([0, 0, 0], 0)])
def test_a_broadcast_beyond_its_own_levels_is_refused(level: list[int], levels: int) -> None:
    down = {"level": torch.tensor(level, dtype=torch.int16), "levels": torch.tensor([levels], dtype=torch.int16)}
    with pytest.raises(WireError, match=f"levels 0 to {max(level)}, expected 0 to {levels}"):
        FedVote().soft(down)


@pytest.mark.parametrize("votes", ["binary", "ternary"])
def test_clients_can_train_through_random_votes(votes: Votes) -> None:
    plain, random = (
        Federation(FedVote(votes=votes, sign_share=1.0, sign_rounding=rounding)).states([[0, 1, 2]] * 2)[-1]
        for rounding in ("likeliest", "random")
    )
    assert not torch.equal(plain["level"], random["level"])
