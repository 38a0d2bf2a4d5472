"""Votes of attackers who move the broadcast in a direction, as far as a number of innovations allows.

Each attacker rounds by its own random numbers, as a client would that had learned this move. So its votes differ from
those of an untrained client only where the move crosses a random number.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedvote.attacks.collusion import alphabet_of
from fedvote.quantize import round_by_shared_random
from fedvote.randomness import Key

HALVINGS = 14  # steps of the search for the length of the move
LONGEST = 20.0  # move of 2 p - 1, for directions of size 1: everything that moves is decided then


def untrained(own_HN: Tensor, start_N: Tensor, keys: Sequence[Key]) -> Tensor:
    """(H, N) the votes of clients that learned nothing."""
    return after_move(own_HN, start_N, torch.zeros_like(start_N), keys)


def after_move(own_HN: Tensor, start_N: Tensor, move_N: Tensor, keys: Sequence[Key]) -> Tensor:
    """(H, N) the votes of clients that learned this move."""
    moved_N = (start_N + move_N).clamp(-1, 1)
    return round_by_shared_random(moved_N.expand(own_HN.shape), alphabet_of(own_HN), keys)


def longest_move(
    own_HN: Tensor,
    start_N: Tensor,
    direction_N: Tensor,
    allowed: float,
    keys: Sequence[Key],
    most: float = LONGEST,
    halvings: int = HALVINGS,
) -> Tensor:
    """(H, N) the votes after the longest move with at most so many innovations of all clients together."""
    nothing_HN, least = untrained(own_HN, start_N, keys), 0.0
    for _ in range(halvings):
        length = (least + most) / 2
        votes_HN = after_move(own_HN, start_N, length * direction_N, keys)
        fits = int((votes_HN != nothing_HN).sum()) <= allowed
        least, most = (length, most) if fits else (least, length)
    return after_move(own_HN, start_N, least * direction_N, keys)
