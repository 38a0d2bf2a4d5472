"""Whose lots a ballot was rounded by: the server can draw everybody's, and a vote that is copied shows whose it is."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor

from fedvote.quantize import BINARY, ROUNDING, Alphabet
from fedvote.randomness import Key, as_uniform, shared_random_at
from fedvote.reputation.reputation import Ballots

COPIED = 5.0  # deviations beyond chance by which a ballot may agree with another's lots: once in 3.5 million
SAMPLE, LARGEST = 2**19, 2**24  # weights that are looked at for that, and votes of all clients together


def copied_votes(ballots: Ballots, alike_KK: Tensor, key: Key) -> Tensor:
    """(K, K) how far each ballot agrees more with the lots of each client than chance would have it, in deviations.

    Whoever copies a vote copies what its sender's lots made of it. Honest ballots know nothing of others' lots, so that
    off the diagonal these are normal numbers. A sample of weights will do, if nobody knows it beforehand: all ballots
    together choose it.
    """
    device, alphabet = ballots.votes_KD.device, ballots.alphabet
    K, D = ballots.votes_KD.shape
    places_n = sample(alike_KK, D, min(SAMPLE, LARGEST // K)).to(device)
    votes_Kn, soft_n = ballots.votes_KD[:, places_n], ballots.soft_D[places_n]
    keys = [Key(key.seed, key.round, client) for client in ballots.clients_K.tolist()]
    lots_Kn = (shared_random_at(each, places_n.to(torch.int32, copy=True)) for each in keys)
    rounded_Kn = torch.stack([ROUNDING[alphabet](soft_n, as_uniform(lots_n)) for lots_n in lots_Kn])
    agree_KK = torch.zeros((K, K), dtype=torch.float64, device=device)
    for value in alphabet:
        agree_KK += (votes_Kn == value).float() @ (rounded_Kn == value).float().T

    # with any other lots, vote i is agreed with by chance P_i: sum P_i times, with variance sum P_i (1 - P_i)
    chance_Kn = chance(votes_Kn, soft_n, alphabet).double()
    expected_K, variance_K = chance_Kn.sum(1), (chance_Kn * (1 - chance_Kn)).sum(1)
    return ((agree_KK - expected_K[:, None]) / variance_K.clamp_min(1).sqrt()[:, None]).cpu()


def sample(alike_KK: Tensor, D: int, count: int) -> Tensor:
    """Places of weights that nobody knows before all ballots are there; all, if these are not many."""
    if count >= D:
        return torch.arange(D)
    seed = int.from_bytes(hashlib.blake2b(alike_KK.numpy().tobytes(), digest_size=6).digest(), "big")
    return torch.randint(D, (count,), generator=torch.Generator().manual_seed(seed))


def chance(votes: Tensor, soft: Tensor, alphabet: Alphabet) -> Tensor:
    """The probability with which each normalised weight is rounded to this vote."""
    if alphabet == BINARY:
        return (1 + votes * soft) / 2
    return torch.where(votes == 0, 1 - soft.abs(), (votes * soft).clamp_min(0))
