"""Detects copied votes: a copied vote agrees with the shared random numbers of the client that it was copied from."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from fedvote.quantize import BINARY, ROUNDING, Alphabet
from fedvote.randomness import Key, as_uniform, shared_random_at
from fedvote.reputation.reputation import Ballots

COPIED = 5.0  # standard deviations above chance that mark a copy; chance reaches them once in 3.5 million
BLOCK = 2**20  # votes that are floats at the same time
SAMPLE, LARGEST = 2**19, 2**24  # weights in the sample at most, and votes in it of all clients together


def copied_votes(ballots: Ballots, alike_KK: Tensor, key: Key) -> Tensor:
    """(K, K) agreement of each ballot with each client's random numbers, in standard deviations above chance.

    A copied vote was rounded by its sender's random numbers. Honest ballots are independent of other clients' numbers,
    so the scores off the diagonal are normally distributed. A sample of the weights is enough if nobody can predict it:
    a hash of all ballots seeds it.
    """
    device, alphabet, K, D = ballots.device, ballots.alphabet, len(ballots), ballots.weights
    places_n = sample(alike_KK, D, min(SAMPLE, LARGEST // K)).to(device)
    votes_Kn, soft_n = ballots.at(places_n), ballots.soft_D[places_n]
    keys = [Key(key.seed, key.round, client) for client in ballots.clients_K.tolist()]
    random_Kn = (shared_random_at(each, places_n.to(torch.int32, copy=True)) for each in keys)
    rounded_Kn = torch.stack([ROUNDING[alphabet](soft_n, as_uniform(random_n)) for random_n in random_Kn])
    agree_KK = torch.zeros((K, K), dtype=torch.float64, device=device)
    for value in alphabet:  # counts of so few votes are exact in float32, so blocks change no bit
        for votes_Kb, rounded_Kb in zip(*(x.split(max(1, BLOCK // K), 1) for x in (votes_Kn, rounded_Kn)), strict=True):
            agree_KK += (votes_Kb == value).float() @ (rounded_Kb == value).float().T

    # independent numbers agree with vote i with probability P_i: sum P_i times, with variance sum P_i (1 - P_i)
    sums = []
    for votes_kn in votes_Kn.split(max(1, BLOCK // max(1, len(places_n)))):
        chance_kn = chance(votes_kn, soft_n, alphabet).double()
        sums.append(torch.stack([chance_kn.sum(1), (chance_kn * (1 - chance_kn)).sum(1)]))
    expected_K, variance_K = torch.cat(sums, 1).unbind()
    return ((agree_KK - expected_K[:, None]) / variance_K.clamp_min(1).sqrt()[:, None]).cpu()


def sample(alike_KK: Tensor, D: int, count: int) -> Tensor:
    """Indices of `count` weights that nobody can predict before all ballots have arrived; all D if that is fewer."""
    if count >= D:
        return torch.arange(D)
    seed = int.from_bytes(hashlib.blake2b(alike_KK.numpy().tobytes(), digest_size=6).digest(), "big")
    return torch.randint(D, (count,), generator=torch.Generator().manual_seed(seed))


def chance(votes: Tensor, soft: Tensor, alphabet: Alphabet) -> Tensor:
    """The probability that each normalised weight is rounded to its vote."""
    if alphabet == BINARY:
        return (1 + votes * soft) / 2
    return torch.where(votes == 0, 1 - soft.abs(), (votes * soft).clamp_min(0))
