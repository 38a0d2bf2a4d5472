"""The broadcast of a round. It is shorter for clients that have an earlier one, their reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fedvote.core import Message, State
from fedvote.errors import WireError
from fedvote.rounds import Round, held
from fedvote.wire import Carry, Delivery


def broadcast(
    round: Round, state: State, cohort: Sequence[int], holders: Mapping[int, int], carry: Carry
) -> tuple[Message, Callable[[], int]]:
    """The broadcast as clients read it, and a function that counts the bytes sent to all; counting may take longer.

    `holders`: client -> the round whose broadcast it has.
    """
    numbers = {holders.get(client) for client in cohort} - {None}
    references = {number: round.reference(state, number) for number in numbers}
    has = {client: holders.get(client) if references.get(holders.get(client)) else None for client in cohort}
    previous = round.key.round - 1
    long_ago = any(number not in (None, previous) for number in has.values())
    sent: dict[int | None, Delivery] = {}  # the round of the reference -> the broadcast; None: without one
    for number in {*has.values(), *([None] if long_ago else [])}:
        (sent[number],) = carry(round.broadcast(state, references.get(number)))
        if sent[number].refusal:
            raise WireError(sent[number].refusal)

    def bytes_to(client: int) -> int:
        number = has[client]
        shortest = {number} if number == previous else {number, None}  # after many rounds the whole may be shorter
        return min(sent[each].nbytes for each in shortest)

    down = next(iter(sent.values())).message if sent else {}
    return down, lambda: sum(map(bytes_to, cohort))


def holders_after(round: int, state: State, record: Mapping[str, Any], cohort: Sequence[int]) -> Mapping[int, int]:
    """client -> the round whose broadcast it has, after a round. Before round 1 all know the seed's."""
    if not round:
        return dict.fromkeys(cohort, 0)
    return held.holders(state) if held.HOLDERS in state else dict.fromkeys(answered(record), round)


def answered(record: Mapping[str, Any]) -> list[int]:
    """The clients that have the broadcast of a round, by its record. A client whose message was refused has not.

    Over a network, the server sends such a client the whole broadcast: a turn that failed keeps nothing.
    """
    if "counted" in record:  # of a round over a network
        return list(record["counted"])
    refused = {int(client) for client in record.get("refused", ())}  # numbers in a process, texts in a file
    return [client for client in record.get("clients", ()) if client not in refused]
