"""The broadcast of a round. It is shorter for clients of the previous round: they have its reference."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from fedvote.core import Message, State
from fedvote.errors import WireError
from fedvote.rounds import Round
from fedvote.wire import Carry, Delivery


def broadcast(
    round: Round, state: State, cohort: Sequence[int], before: Collection[int], carry: Carry
) -> tuple[Message, Callable[[], int]]:
    """The broadcast as clients read it, and a function that counts the bytes sent to all; counting may take longer."""
    reference = round.reference(state)
    holders = set(cohort).intersection(before) if reference else set()
    sent: dict[bool, Delivery] = {}  # whether a client holds the reference -> its broadcast
    for holds in {client in holders for client in cohort}:
        (sent[holds],) = carry(round.broadcast(state, reference if holds else None))
        if sent[holds].refusal:
            raise WireError(sent[holds].refusal)
    down = next(iter(sent.values())).message if sent else {}
    return down, lambda: sum(sent[client in holders].nbytes for client in cohort)


def answered(record: Mapping[str, Any]) -> list[int]:
    """The clients that have the broadcast of a round, by its record. A client whose message was refused has not.

    Over a network, the server sends such a client the whole broadcast: a turn that failed keeps nothing.
    """
    if "counted" in record:  # of a round over a network
        return list(record["counted"])
    refused = {int(client) for client in record.get("refused", ())}  # numbers in a process, texts in a file
    return [client for client in record.get("clients", ()) if client not in refused]
