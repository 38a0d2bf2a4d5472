"""The broadcast of a round: shorter for clients of the round before, which have its reference."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from fedvote.core import Message, State
from fedvote.errors import WireError
from fedvote.rounds import Round
from fedvote.wire import Carry, Delivery


def broadcast(
    round: Round, state: State, cohort: Sequence[int], before: Collection[int], carry: Carry
) -> tuple[Message, Callable[[], int]]:
    """What the cohort reads, and a function that counts the bytes sent to all of them, which may take longer."""
    reference = round.reference(state)
    holders = set(cohort).intersection(before) if reference else set()
    sent: dict[bool, Delivery] = {}  # to clients with the reference, and to those without
    for holds in {client in holders for client in cohort}:
        (sent[holds],) = carry(round.broadcast(state, reference if holds else None))
        if sent[holds].refusal:
            raise WireError(sent[holds].refusal)
    down = next(iter(sent.values())).message if sent else {}
    return down, lambda: sum(sent[client in holders].nbytes for client in cohort)
