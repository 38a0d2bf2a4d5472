"""A round's line of metrics.jsonl: results, traffic, and events of clients."""

from __future__ import annotations

from typing import Any

from fedvote.engines.flower.attendance import Attendance
from fedvote.engines.flower.poll import Poll
from fedvote.engines.flower.server_round import ServerRound
from fedvote.rounds import Closed
from fedvote.rounds.traffic import traffic


def results_and_traffic(round: ServerRound, poll: Poll, closed: Closed, quality: dict[str, Any]) -> dict[str, Any]:
    """Metrics, bytes sent, and the clients that were counted, with their weights."""
    sent, asked = sum(poll.broadcasts) + poll.request_bytes, len(poll.broadcasts)
    return {
        "round": round.number,
        **quality,
        **traffic(poll.frame_bytes, sent, poll.frames, asked, round.federation.weights_sent),
        "uplink_message_bytes": poll.reply_bytes,
        "downlink_message_bytes": poll.task_bytes,
        "clients": round.cohort,
        "counted": closed.counted,
        **round.federation.vote_weights(round.before, closed.state, closed.counted),
        **({"measured": closed.measured} if closed.measured else {}),
    }


def events(
    round: ServerRound, poll: Poll, closed: Closed, awaited: set[int], attendance: Attendance, returned: list[int]
) -> dict[str, Any]:
    """Events of clients in the round; events without clients are left out. `awaited`: clients that did not answer."""
    silent = {client: "no answer before the round closed" for client in awaited if client in poll.cohort}
    heard_of = attendance.online.keys() | poll.voted | poll.failed.keys()
    found = {
        "absent": [client for client in round.cohort if client not in heard_of],
        "failed": {**silent, **poll.failed},
        "refused": {**poll.refused, **closed.refused},
        "second": poll.second,
        "late": poll.late,
        "returned": returned,
        "turned_away": [attendance.roster.in_full(identity) for identity in attendance.strangers],
    }
    return {name: value for name, value in found.items() if value}
