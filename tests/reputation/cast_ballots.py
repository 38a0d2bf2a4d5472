"""Ballots of honest and of hostile clients, cast without training."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from fedvote.core import State
from fedvote.quantize import BINARY, Alphabet, plurality, round_by_shared_random, tally
from fedvote.randomness import Key
from fedvote.reputation import Ballots, Camps, Verdict

N, D, CLASSES = 31, 20_000, 10
SOFT = torch.rand(D, generator=Key(1).torch("soft")) * 1.8 - 0.9
LESSONS = 0.3 * torch.randn(CLASSES, D, generator=Key(1).torch("lessons"))  # what is learnt from a class
OTHER = 0.3 * torch.randn(CLASSES, D, generator=Key(1).torch("mirrored"))  # and from inputs of another kind
MIRRORED = OTHER - 0.5 * LESSONS  # and from one with another's label
GOAL = 0.15 * torch.randn(D, generator=Key(1).torch("goal"))  # what everybody learns
WRONG = 0.15 * torch.randn(D, generator=Key(1).torch("wrong")) - 0.5 * GOAL
Attack = Callable[[Tensor, Tensor, int], Tensor]  # honest votes, and the attackers' own -> what attackers send
SEEDS = pytest.mark.parametrize("seed", [0, 1])  # of the clients' random numbers and data


def mixtures(clients: int, seed: int) -> Tensor:
    """(N, CLASSES) how much each client has of each class."""
    drawn = torch.rand(clients, CLASSES, generator=Key(2, seed).torch("mixtures")).log().neg() ** 2
    return drawn / drawn.sum(1, keepdim=True)


def cast(
    clients: Sequence[int], round: int, alphabet: Alphabet = BINARY, flipped: bool = False, seed: int = 0
) -> Tensor:
    """The ballots of honest clients, or of clients that train on wrong labels, rounded as clients do."""
    learnt_KD = mixtures(max(N, *clients, 0) + 1, seed)[list(clients)] @ (MIRRORED if flipped else LESSONS)
    keys = [Key(seed, round, client) for client in clients]
    moved_KD = SOFT + learnt_KD + (WRONG if flipped else GOAL)
    return round_by_shared_random(moved_KD.clamp(-1, 1), alphabet, keys)


def ballots(
    votes_KD: Tensor, clients: Sequence[int], alphabet: Alphabet = BINARY, layers: tuple[int, ...] = ()
) -> Ballots:
    return Ballots(votes_KD, torch.tensor(list(clients)), SOFT[: votes_KD.shape[1]], alphabet, layers)


def judged(memory: State, votes_KD: Tensor, clients: Sequence[int], round: int = 1, seed: int = 0) -> Verdict:
    return Camps().judge(memory, ballots(votes_KD, clients), Key(seed, round))


def coins(shape: torch.Size, round: int, alphabet: Alphabet = BINARY) -> Tensor:
    drawn = torch.randint(len(alphabet), shape, generator=Key(4, round).torch("coins"))
    return torch.tensor(alphabet, dtype=torch.int8)[drawn]


def some_inverted(share: float) -> Attack:
    def attack(others: Tensor, own: Tensor, round: int) -> Tensor:
        lots = torch.rand(own.shape, generator=Key(5, round).torch("flips"))
        return torch.where(lots < share, -own, own)

    return attack


def decided(votes_KD: Tensor, round: int) -> Tensor:
    heads_K = torch.ones(len(votes_KD))
    return plurality(tally(votes_KD, heads_K, BINARY), BINARY, Key(6, round).torch("tie"))


def of_all_kinds(others: Tensor, own: Tensor, round: int) -> Tensor:
    third = len(own) // 3
    return torch.cat(
        [-own[:third], coins(own[third : 2 * third].shape, round), -decided(others, round).expand_as(own[2 * third :])]
    )


ATTACKS: dict[str, Attack] = {
    "inverse": lambda others, own, round: -own,
    "random": lambda others, own, round: coins(own.shape, round),
    "opposite": lambda others, own, round: -decided(others, round).expand_as(own),
    "10 % inverted": some_inverted(0.1),
    "30 % inverted": some_inverted(0.3),
    "70 % inverted": some_inverted(0.7),
    "one common ballot": lambda others, own, round: decided(own, round).expand_as(own),
    "one common random ballot": lambda others, own, round: coins(own[:1].shape, round).expand_as(own),
    "of all kinds": of_all_kinds,
}


def attacked(attack: Attack | None, hostile: Sequence[int], round: int = 1, seed: int = 0) -> Tensor:
    """The ballots of all clients; without an attack, the hostile ones learn from wrong labels."""
    votes_KD, rows = cast(range(N), round, seed=seed), list(hostile)
    others = [client for client in range(N) if client not in hostile]
    if attack is None:
        votes_KD[rows] = cast(rows, round, flipped=True, seed=seed)
    else:
        votes_KD[rows] = attack(votes_KD[others], votes_KD[rows], round)
    return votes_KD


def weights_without(hostile: Sequence[int], clients: int = N) -> Tensor:
    return torch.ones(clients).index_fill(0, torch.tensor(list(hostile)), 0)
