"""Rounds of honest clients of many kinds; `python -m tests.reputation.honest_rounds 200` counts the votes they lose."""

from __future__ import annotations

import sys

import torch
from torch import Tensor

from fedvote.quantize import BINARY, TERNARY, round_by_shared_random
from fedvote.randomness import Key
from fedvote.reputation import Ballots, Camps

D, CLASSES = 20_000, 10
LAYERS = [(), (200, 4800, 15000), (500, 1500, 3000, 5000, 10000)]
MIXTURES = ["same", "skewed", "dirichlet 0.5", "dirichlet 0.1", "two classes"]
CLIENTS = [7, 11, 31, 101]


def mixtures(kind: str, clients: int, key: Key) -> Tensor:
    """(K, CLASSES) how much each client has of each class."""
    draws = torch.rand(clients, CLASSES, generator=key.torch("mixtures"))
    if kind.startswith("dirichlet"):
        alpha = float(kind.removeprefix("dirichlet"))
        return torch.from_numpy(key.numpy("mixtures").dirichlet([alpha] * CLASSES, clients)).float()
    if kind == "two classes":
        return (draws.argsort(1) < 2) / 2
    weights = draws.log().neg() ** 2 if kind == "skewed" else torch.ones_like(draws)
    return weights / weights.sum(1, keepdim=True)


def honest_round(kind: str, clients: int, seed: int) -> Ballots:
    """Ballots of clients that learn something in common and something of each class, some a little more than others."""
    key = Key(seed)
    lots = key.torch("round")
    pick = [int(lot) for lot in torch.randint(6, (5,), generator=lots)]
    alphabet, layers = (BINARY, TERNARY)[pick[0] % 2], LAYERS[pick[1] % 3]
    drift, common = (0.1, 0.3, 1.0)[pick[2] % 3], (0.25, 0.5, 1.0)[pick[3] % 3]
    early, late = torch.rand(D, generator=lots) * 1.8 - 0.9, torch.tanh(1.5 * torch.randn(D, generator=lots))
    soft = (early, late)[pick[4] % 2]
    learnt_KD = mixtures(kind, clients, key) @ torch.randn(CLASSES, D, generator=lots)
    learnt_KD += common * torch.randn(D, generator=lots) + 0.1 * torch.randn(clients, D, generator=lots)
    effort_K1 = 0.9 + 0.2 * torch.rand(clients, 1, generator=lots)
    moved_KD = (soft + drift * effort_K1 * learnt_KD).clamp(-1, 1)
    votes_KD = round_by_shared_random(moved_KD, alphabet, [Key(seed, 1, client) for client in range(clients)])
    return Ballots(votes_KD, torch.arange(clients), soft, alphabet, layers)


def lost_votes(kind: str, clients: int, seed: int) -> int:
    rule = Camps()
    return int((rule.judge(rule.init(clients), honest_round(kind, clients, seed), Key(seed, 1)).soft_K == 0).sum())


if __name__ == "__main__":
    rounds = int(sys.argv[1])
    for kind in MIXTURES:
        for clients in CLIENTS:
            lost = [lost_votes(kind, clients, seed) for seed in range(rounds)]
            share = 100 * sum(lost) / (clients * rounds)
            print(
                f"{kind:14} {clients:4} clients {share:6.2f} % lost, in {sum(n > 0 for n in lost)} rounds", flush=True
            )
