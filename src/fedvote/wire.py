"""Messages between server and clients: the codec of each tensor, in both directions, and the deliveries.

Rounding is lossy and belongs to a method; a codec is lossless and belongs here. Every size is the size of a real frame,
whether its bytes are written (`frames`, `write`) or only counted (`weigh`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import torch

from fedvote.codecs.frame import Header, check_head, check_names, frame_bytes, pack, unpack
from fedvote.codecs.pending import wait_for
from fedvote.core import Codec, Length, Message
from fedvote.errors import ConfigError, UnwritableError, WireError
from fedvote.randomness import Key
from fedvote.system.threads import on_every_core

READERS = 4  # frames read at a time: reading one takes 30 bytes per weight

Coding = Literal["entropy", "plain"]
"""Messages are entropy-coded, or sent as plain bits."""

Codecs = Mapping[str, Codec]
"""A codec for each tensor of a message, in the order of the frame."""


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

    @property
    def summed(self) -> Codecs:
        """The codecs of a client's message, if the server needs only the sums of its whole numbers.

        The merge then has `add_sums`. Empty: the server needs each message.
        """
        return {}

    @abstractmethod
    def up(self, down: Message, key: Key) -> Codecs:
        """The codecs of a message from the client of this key. Both sides know the broadcast `down` and the key."""

    @abstractmethod
    def down(self, reference: Message | None = None, key: Key | None = None) -> Codecs:
        """The codecs of a broadcast; `reference`: the last broadcast, if the receiver has it; `key`: of the round.

        In round 1 every client has a reference: the shared seed makes it. Later, clients have one if `keeps_broadcast`.
        A receiver with a reference can also read a broadcast that is coded without one. A broadcast without a reference
        may build on the start of the run, which receivers make from the seed.
        """

    def without_start(self) -> Wire:
        """The wire for broadcasts to a receiver that computes another start from the seed than the server."""
        return self

    def unmoved(self, down: Message) -> Message:
        """The average message of a client that learned nothing. Tensors that are missing here count as zeros."""
        return {}


@dataclass(frozen=True)
class FixedWire(Wire):
    """A wire with the same codecs in every round, for every client."""

    uplink: Codecs
    downlink: Codecs

    def up(self, down: Message, key: Key) -> Codecs:
        return self.uplink

    def down(self, reference: Message | None = None, key: Key | None = None) -> Codecs:
        return self.downlink

    def unmoved(self, down: Message) -> Message:
        """The tensors that travel both ways under one name, and with one length: clients send models, not updates."""
        both = self.uplink.keys() & self.downlink.keys()
        return {name: down[name] for name in both if self.uplink[name].count == self.downlink[name].count}


@dataclass(frozen=True, eq=False)
class Outgoing:
    """Messages ready to be sent, from one sender or a stack of several."""

    headers: Sequence[Header]
    stack: Message  # leading axis K: a row for each header
    codecs: Callable[[int], Codecs]  # by the sender's number: a client, or the server

    def row(self, k: int) -> Message:
        return {name: values[k] for name, values in self.stack.items()}


@dataclass(frozen=True, eq=False)
class Delivery:
    """A message at its receiver: the tensors and their size in bytes, or the reason for refusing them."""

    stack: Message  # all messages of the same delivery, leading axis K
    row: int  # of this message in the stack
    lengths: Sequence[Length]  # of its parts, in bytes; a coder process may still be counting some
    refusal: str = ""

    @property
    def nbytes(self) -> int:
        return sum(map(wait_for, self.lengths))

    @property
    def message(self) -> Message:
        return {name: values[self.row] for name, values in self.stack.items()}


Carry = Callable[[Outgoing], list[Delivery]]
"""A way to deliver messages within one process: `weigh` or `write`."""


def frames(outgoing: Outgoing) -> list[bytes]:
    """The messages as bytes; empty for a message that cannot be written, because weights became NaN."""
    return [_frame(outgoing, k) for k in range(len(outgoing.headers))]


def read(frame: bytes, header: Header, codecs: Callable[[], Codecs], device: torch.device | str) -> Delivery:
    """Read the message in a frame; WireError if it is not the expected one."""
    check_head(frame, header)  # first: junk must not trigger costly codec setup
    message = unpack(frame, header, codecs(), device)
    return Delivery({name: value[None] for name, value in message.items()}, 0, [len(frame)])


def write(outgoing: Outgoing) -> list[Delivery]:
    """Write the messages as bytes, and read them as their receiver does."""

    def deliver(k: int) -> Delivery:
        header, frame = outgoing.headers[k], _frame(outgoing, k)
        device = next(iter(outgoing.stack.values())).device
        try:
            delivery = read(frame, header, lambda: outgoing.codecs(header.client), device)
        except WireError as error:
            return Delivery({}, 0, [len(frame)], str(error))
        for name, sent in outgoing.row(k).items():
            if not bool((delivery.message[name] == sent).all()):
                codec = type(outgoing.codecs(header.client)[name]).__name__
                raise ConfigError(f"{codec}.decode gives other {name} than encode was given, expected the same numbers")
        return delivery

    return on_every_core(deliver, range(len(outgoing.headers)), READERS)


def weigh(outgoing: Outgoing) -> list[Delivery]:
    """Deliver the messages as they are, and count the bytes of their frames without writing them."""
    deliveries: list[Delivery] = []
    stack = outgoing.stack
    each = (outgoing.codecs(header.client) for header in outgoing.headers)
    for _, group in groupby(each, key=id):  # clients with the same codecs are weighed together
        (codecs, *others), start = list(group), len(deliveries)
        stop = start + 1 + len(others)
        check_names(stack, codecs)
        weights = {name: codec.weigh(stack[name][start:stop]) for name, codec in codecs.items()}
        overhead = frame_bytes(len(codecs))
        for row in range(start, stop):
            refusal = ""
            lengths: list[Length] = [overhead]
            for name, codec in codecs.items():
                weight = weights[name][row - start]
                if isinstance(weight, UnwritableError):
                    lengths, refusal = [0], str(weight)
                    break
                if isinstance(weight, WireError):
                    weight, refusal = len(codec.encode(stack[name][row])), refusal or str(weight)
                lengths.append(weight)
            deliveries.append(Delivery(stack, row, lengths, refusal))
    return deliveries


def stacked(deliveries: Sequence[Delivery]) -> Message:
    """Messages as one, with leading axis K. Messages that are already stacked in this order are not copied."""
    pieces: list[Message] = []
    for _, group in groupby(deliveries, key=lambda delivery: id(delivery.stack)):
        together = list(group)
        rows = [delivery.row for delivery in together]
        in_order = rows == list(range(rows[0], rows[0] + len(rows)))
        index = slice(rows[0], rows[0] + len(rows)) if in_order else rows
        pieces.append({name: values[index] for name, values in together[0].stack.items()})
    return {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]} if pieces[1:] else pieces[0]


def _frame(outgoing: Outgoing, k: int) -> bytes:
    header = outgoing.headers[k]
    try:
        return pack(header, outgoing.row(k), outgoing.codecs(header.client))
    except UnwritableError:
        return b""
