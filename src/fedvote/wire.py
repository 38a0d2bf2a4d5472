"""What travels between server and clients: how each tensor is coded, in both directions, and what was delivered.

Rounding is lossy and belongs to a method; a codec is lossless and belongs here. Every size is that of a real frame,
whether its bytes are written (`frames`, `write`) or only counted (`weigh`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import torch

from fedvote.codecs.frame import CHECKSUM, HEAD, TENSOR, Header, check_head, check_names, pack, unpack
from fedvote.codecs.pending import wait_for
from fedvote.core import Codec, Length, Message
from fedvote.errors import UnwritableError, WireError
from fedvote.randomness import Key
from fedvote.system.threads import on_every_core

READERS = 4  # frames that are read at a time: each needs 30 bytes a weight until it has been read

Coding = Literal["entropy", "plain"]
"""Whether messages are entropy-coded, or sent in whole bits."""

Codecs = Mapping[str, Codec]
"""A codec for each tensor of a message, in the order in which they are written."""


class Wire(ABC):
    """How the messages of a method travel on a network."""

    @property
    def personal(self) -> bool:
        """Whether `up` depends on the client, so that every client has codecs of its own."""
        return False

    @property
    def keeps_broadcast(self) -> bool:
        """Whether `down` builds on the last broadcast, so that both sides keep it for a round."""
        return False

    @property
    def scales(self) -> tuple[str, ...]:
        """The tensors that scale the rest of a client's message: messages that have them cannot be combined."""
        return ()

    @abstractmethod
    def up(self, down: Message, key: Key) -> Codecs:
        """The codecs of a message from the client of this key. Both sides have the broadcast `down`, and the key."""

    @abstractmethod
    def down(self, reference: Message | None = None) -> Codecs:
        """The codecs of a broadcast; `reference`: the broadcast of the round before, if the receiver has it.

        Before round 1 every client has the reference: the shared seed makes it. Later on, only if `keeps_broadcast`.
        A receiver that has it must also be able to read a broadcast coded without it.
        """

    def unmoved(self, down: Message) -> Message:
        """What a client that learned nothing would send, on average; tensors that are not named would be zeros."""
        return {}


@dataclass(frozen=True)
class FixedWire(Wire):
    """The same codecs in every round, for every client."""

    uplink: Codecs
    downlink: Codecs

    def up(self, down: Message, key: Key) -> Codecs:
        return self.uplink

    def down(self, reference: Message | None = None) -> Codecs:
        return self.downlink


@dataclass(frozen=True, eq=False)
class Outgoing:
    """Messages that are ready to be sent, of one sender or a stack of several."""

    headers: Sequence[Header]
    stack: Message  # K in front, a row for each header
    codecs: Callable[[int], Codecs]  # of the message of a client; of the broadcast, for the server

    def row(self, k: int) -> Message:
        return {name: values[k] for name, values in self.stack.items()}


@dataclass(frozen=True, eq=False)
class Delivery:
    """One message as its receiver has it: the tensors and their size in bytes, or why they were refused."""

    stack: Message  # the messages that were delivered together, K in front
    row: int  # which of them it is
    lengths: Sequence[Length]  # bytes of its parts; some may still be being counted
    refusal: str = ""

    @property
    def nbytes(self) -> int:
        return sum(map(wait_for, self.lengths))

    @property
    def message(self) -> Message:
        return {name: values[self.row] for name, values in self.stack.items()}


Carry = Callable[[Outgoing], list[Delivery]]
"""How messages reach their receiver inside one process: `weigh` or `write`."""


def frames(outgoing: Outgoing) -> list[bytes]:
    """The messages as bytes; no bytes where training left no message that could be written."""
    return [_frame(outgoing, k) for k in range(len(outgoing.headers))]


def read(frame: bytes, header: Header, codecs: Callable[[], Codecs], device: torch.device | str) -> Delivery:
    """The message in a frame; WireError if it is not the one expected."""
    check_head(frame, header)  # first: junk must not trigger costly codec setup
    message = unpack(frame, header, codecs(), device)
    return Delivery({name: value[None] for name, value in message.items()}, 0, [len(frame)])


def write(outgoing: Outgoing) -> list[Delivery]:
    """Write the messages as bytes, and read them as their receiver would."""

    def deliver(k: int) -> Delivery:
        header, frame = outgoing.headers[k], _frame(outgoing, k)
        device = next(iter(outgoing.stack.values())).device
        try:
            return read(frame, header, lambda: outgoing.codecs(header.client), device)
        except WireError as error:
            return Delivery({}, 0, [len(frame)], str(error))

    return on_every_core(deliver, range(len(outgoing.headers)), READERS)


def weigh(outgoing: Outgoing) -> list[Delivery]:
    """Deliver the messages as they are, and count the bytes that their frames would have."""
    deliveries: list[Delivery] = []
    stack = outgoing.stack
    codecs = (outgoing.codecs(header.client) for header in outgoing.headers)
    for _, group in groupby(codecs, key=id):  # clients with the same codecs are weighed together
        (theirs, *others), at = list(group), len(deliveries)
        many = 1 + len(others)
        check_names(stack, theirs)
        weights = {name: codec.weigh(stack[name][at : at + many]) for name, codec in theirs.items()}
        around = HEAD.size + TENSOR.size * len(theirs) + CHECKSUM.size
        for k in range(many):
            refusal = ""
            lengths: list[Length] = [around]
            for name, codec in theirs.items():
                weight = weights[name][k]
                if isinstance(weight, UnwritableError):
                    lengths, refusal = [0], str(weight)
                    break
                if isinstance(weight, WireError):
                    weight, refusal = len(codec.encode(stack[name][at + k])), refusal or str(weight)
                lengths.append(weight)
            deliveries.append(Delivery(stack, at + k, lengths, refusal))
    return deliveries


def stacked(deliveries: Sequence[Delivery]) -> Message:
    """Messages as one, K in front. Messages that were delivered together, and in this order, are not copied."""
    pieces: list[Message] = []
    for _, group in groupby(deliveries, key=lambda delivery: id(delivery.stack)):
        together = list(group)
        rows = [delivery.row for delivery in together]
        in_order = rows == list(range(rows[0], rows[0] + len(rows)))
        these = slice(rows[0], rows[0] + len(rows)) if in_order else rows
        pieces.append({name: values[these] for name, values in together[0].stack.items()})
    return {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]} if pieces[1:] else pieces[0]


def _frame(outgoing: Outgoing, k: int) -> bytes:
    header = outgoing.headers[k]
    try:
        return pack(header, outgoing.row(k), outgoing.codecs(header.client))
    except UnwritableError:
        return b""
