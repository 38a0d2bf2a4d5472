"""Hearing clients: each reply goes to the poll, and clients that may still vote are asked again."""

from __future__ import annotations

from fedvote.engines.flower.asking import Asker
from fedvote.engines.flower.attendance import Attendance
from fedvote.engines.flower.decoders import Reader
from fedvote.engines.flower.mailbox import Mailbox, Reply
from fedvote.engines.flower.poll import Poll
from fedvote.engines.flower.replies import Ballot, Failure, Refusal


def hear(mailbox: Mailbox, poll: Poll, reader: Reader, asker: Asker, attendance: Attendance) -> bool:
    """Give all new replies to the poll; True if one of them is a ballot that counts."""
    counts, replies = False, mailbox.collect()
    ballots = [(reply.request.client, reply.outcome) for reply in replies if poll.may_count(reply)]
    reader.ahead([(ballot.frame, client) for client, ballot in ballots if isinstance(ballot, Ballot)])
    for reply in replies:
        retry = not reply.repeated and reply.request.round == poll.round and _is_worth_a_retry(reply, asker)
        if retry:
            attendance.look_again()  # the client's node may be gone
        if reply.request.round < poll.round and isinstance(reply.outcome, Ballot):
            asker.note_late_ballot(reply.request.client, reply.request.round)
        counts |= poll.take(reply, retry)
    return counts


def _is_worth_a_retry(reply: Reply, asker: Asker) -> bool:
    """Whether asking the client again may help: it was cut off, or it lacks what its task left out."""
    match reply.outcome:
        case Failure(retry=retry):
            return retry
        case Refusal(code="no-reference"):
            return asker.lacks_reference(reply.request.client)
        case Refusal(code="no-problem"):
            asker.holders.pop(reply.request.client, None)  # both lie in one state, so it has lost both
            return not reply.request.whole
    return False
