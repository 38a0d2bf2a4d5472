"""The outcome of a client's turn: a ballot, a refusal, a failure reported by Flower, or a malformed reply.

Client and server decide by the records and numbers in a reply, never by the text of an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flwr.app import ConfigRecord, Error, Message, RecordDict

from fedvote.engines.flower.flower_internals import ErrorCode
from fedvote.engines.flower.frame_record import frame_record, read_frame
from fedvote.errors import WireError

BALLOT, REFUSAL = "ballot", "refusal"  # a reply has one of these records, and no other
LONGEST_TEXT = 200  # characters that the server keeps of a client's text

Code = Literal["no-reference", "no-problem", "failed"]
FAILURES = {  # Flower's error code -> its meaning, and whether to ask the client again
    ErrorCode.LOAD_CLIENT_APP_EXCEPTION: ("its app cannot be loaded", False),
    ErrorCode.CLIENT_APP_RAISED_EXCEPTION: ("its code raised", False),
    ErrorCode.MESSAGE_UNAVAILABLE: ("it did not answer in time", True),
    ErrorCode.REPLY_MESSAGE_UNAVAILABLE: ("its answer was lost", True),
    ErrorCode.NODE_UNAVAILABLE: ("its node went away", True),
    ErrorCode.INVALID_FAB: ("it does not trust the app", False),
    ErrorCode.CLIENT_APP_CRASHED: ("its process died", True),
}


@dataclass(frozen=True)
class Ballot:
    """A client's vote, as a frame."""

    frame: bytes


@dataclass(frozen=True)
class Refusal:
    """A client's message that it sends no ballot.

    no-reference: the broadcast builds on an earlier one that the client does not have.
    no-problem: the task has only the digest of a configuration that the client does not have.
    failed: the turn raised an error. Only the error's class is sent: its text may contain data, which stay here.
    """

    code: Code
    error: str = ""  # the class of the error, where the code is "failed"

    @property
    def why(self) -> str:
        if self.code == "no-reference":
            return "it does not have the broadcast that its task builds on"
        if self.code == "no-problem":
            return "it does not have the configuration that its task refers to"
        return f"its code raised ({self.error}, see the log on the client's machine)"


@dataclass(frozen=True)
class Failure:
    """Flower's message that no answer will come."""

    why: str
    retry: bool  # whether to ask the client again


@dataclass(frozen=True)
class Malformed:
    """A reply that is neither a ballot nor a refusal. It uses up the client's vote."""

    why: str


Outcome = Ballot | Refusal | Failure | Malformed


def reply_message(outcome: Ballot | Refusal, task: Message) -> Message:
    """A client's answer to the message with its task."""
    if isinstance(outcome, Ballot):
        return Message(RecordDict({BALLOT: frame_record(outcome.frame)}), reply_to=task)
    refusal = ConfigRecord({"code": outcome.code})
    if outcome.code == "failed":
        refusal["error"] = outcome.error
    return Message(RecordDict({REFUSAL: refusal}), reply_to=task)


def read_reply(message: Message) -> Ballot | Refusal:
    """The ballot or refusal in a message; WireError unless it holds exactly one."""
    names = list(message.content)
    if names == [BALLOT]:
        return Ballot(read_frame(message.content, BALLOT))
    if names == [REFUSAL]:
        return _read_refusal(message.content[REFUSAL])
    raise WireError(f"a reply that holds {sorted(names)}, expected one {BALLOT} or one {REFUSAL}")


def read_outcome(message: Message) -> Outcome:
    """The outcome that a message from Flower reports."""
    if message.has_error():
        return _read_error(message.error)
    try:
        return read_reply(message)
    except WireError as error:
        return Malformed(printable(str(error)))


def printable(text: str) -> str:
    """A client's text, shortened, and without characters that control a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:LONGEST_TEXT])


def _read_refusal(record: object) -> Refusal:
    fields = dict(record) if isinstance(record, ConfigRecord) else {}
    match fields:
        case {"code": "no-reference" | "no-problem" as code, **rest} if not rest:
            return Refusal(code)
        case {"code": "failed", "error": str(name), **rest} if not rest and name.isidentifier():
            return Refusal("failed", printable(name))
    raise WireError(
        f"a {REFUSAL} with code {fields.get('code')!r} and fields {sorted(fields)}, expected the code no-reference "
        "or no-problem alone, or failed with the name of an error"
    )


def _read_error(error: Error) -> Failure:
    why, retry = FAILURES.get(error.code, (f"Flower's error {error.code}", False))
    if error.reason and error.code == ErrorCode.CLIENT_APP_RAISED_EXCEPTION:
        why = f"{why} ({printable(error.reason)})"
    return Failure(why, retry)
