"""What a round's clients are told: those who were there in the round before, less than the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from fedvote.core import Message, State
from fedvote.method import Method
from fedvote.network.network import Network
from fedvote.rounds import Post, held_before, open_round, read_broadcast


def broadcast(
    method: Method,
    network: Network,
    state: State,
    round: int,
    cohort: Sequence[int],
    before: Collection[int],
    post: Post[Any],
) -> tuple[Message, Callable[[], int]]:
    """What the cohort reads, and how many bytes all of them are sent, which may take longer to find out."""
    held = held_before(method, state, round)
    holders = set(cohort).intersection(before) if held else set()
    frames: dict[bool, Any] = {}  # to those who hold the last one, and to the others
    down: Message = {}
    for holds in {client in holders for client in cohort}:
        theirs = held if holds else None
        frames[holds] = open_round(method, network, state, round, post, theirs)
        down = read_broadcast(method, network, frames[holds], round, theirs)
    return down, lambda: sum(len(frames[client in holders]) for client in cohort)
