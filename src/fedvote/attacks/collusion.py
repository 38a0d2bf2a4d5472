"""Combining the messages of several clients: their consensus, votes with a given mean, the order of flips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from fedvote.attacks.attack import Seen
from fedvote.quantize import BINARY, TERNARY, Alphabet, plurality, round_stack, tally, threshold_binary
from fedvote.randomness import Key

Flip = Literal["weakest", "strongest"]


def alphabet_of(votes: Tensor) -> Alphabet:
    """Ternary if any vote is 0."""
    return TERNARY if bool((votes == 0).any()) else BINARY


def consensus(rows_KN: Tensor, key: Key) -> Tensor:
    """The plurality of votes, ties broken at random; the mean of floats."""
    if rows_KN.is_floating_point():
        return rows_KN.mean(0)
    alphabet, heads_K = alphabet_of(rows_KN), torch.ones(len(rows_KN), device=rows_KN.device)
    return plurality(tally(rows_KN, heads_K, alphabet), alphabet, key.torch("attack tie", rows_KN.device))


def spread(rows_KN: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each number over the clients; for one client the deviation is 0."""
    deviation_N, mean_N = torch.std_mean(rows_KN.float(), 0, correction=0)
    return mean_N, deviation_N


def sent_about(mean_N: Tensor, like_HN: Tensor, keys: Sequence[Key], purpose: str) -> Tensor:
    """Messages with this mean: floats equal it; each client draws votes with the mean clipped to [-1, 1]."""
    if like_HN.is_floating_point():
        return mean_N.expand_as(like_HN)
    generators = [key.torch(f"attack {purpose}", like_HN.device) for key in keys]
    return round_stack(mean_N.clamp(-1, 1).expand_as(like_HN), alphabet_of(like_HN), generators)


def flips(honest_GN: Tensor, key: Key, flip: Flip) -> tuple[Tensor, Tensor, Tensor]:
    """The honest plurality, the votes against it, and the order of flips: smallest lead first, or largest."""
    winner_N = consensus(honest_GN, key)

    # 0 is flipped to the rarer sign
    loser_N = torch.where(winner_N != 0, -winner_N, threshold_binary(-honest_GN.sum(0, dtype=torch.int32)))
    lead_N = (honest_GN == winner_N).sum(0, dtype=torch.int32) - (honest_GN == loser_N).sum(0, dtype=torch.int32)
    random_N = torch.randperm(len(lead_N), generator=key.torch("attack flips", lead_N.device), device=lead_N.device)
    return winner_N, loser_N, random_N[lead_N[random_N].argsort(stable=True, descending=flip == "strongest")]


def against(seen: Seen, name: str) -> tuple[Tensor, Tensor]:
    """(N,) the message against the honest clients' joint one, and the order of weights: least agreement first."""
    honest_GN = seen.honest[name]
    if not honest_GN.is_floating_point():
        return flips(honest_GN, seen.shared, "weakest")[1:]
    mean_N, deviation_N = spread(honest_GN)

    # |mean - start| / sigma: the smaller, the less do honest clients agree on the direction
    clear_N = (mean_N - seen.start(name)).abs() / deviation_N.clamp_min(1e-12)
    return seen.opposite(name, mean_N).flatten(), clear_N.flatten().argsort()


def partly(own_N: Tensor, forged_N: Tensor, index_n: Tensor) -> Tensor:
    """An honest message with forged values at these weights."""
    return own_N.flatten().index_copy(0, index_n, forged_N[index_n]).view_as(own_N)
