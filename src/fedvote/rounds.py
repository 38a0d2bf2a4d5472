"""One round, as both engines run it: the server broadcasts, clients train and answer, the server merges.

A client that has the broadcast of the round before, the reference, can be sent less. So the state after a round has
that broadcast in it, with the prefix `held/`. Before round 1 the shared seed makes the reference for everybody; a
client whose seed made another one notices, and is sent the whole broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch

from fedvote import contracts
from fedvote.attacks import Attack, Seen
from fedvote.codecs import LARGEST, Header, most_bytes
from fedvote.core import Batches, Message, State
from fedvote.errors import ConfigError
from fedvote.method import Merge, Method
from fedvote.network.network import Network
from fedvote.randomness import SERVER, Key
from fedvote.reputation import rule_of
from fedvote.wire import Codecs, Delivery, Outgoing, Wire, read, stacked

HELD = "held/"  # prefix of the state tensors that were broadcast in the last round


@dataclass(frozen=True)
class Closed:
    """A round that is over: the next state, whose messages counted, and why others did not."""

    state: State
    counted: list[int]
    refused: dict[int, str] = field(default_factory=dict)
    measured: dict[str, float] = field(default_factory=dict)  # by the method


@dataclass(frozen=True)
class Round:
    """One round of a method on a network; on the server and on every client."""

    method: Method
    network: Network
    key: Key  # of the run's seed and this round

    @cached_property
    def wire(self) -> Wire:
        wire = self.method.wire(self.network)
        contracts.instance(self.method, "wire", wire, Wire)
        return wire

    # the server's side

    def reference(self, state: State) -> Message | None:
        """The broadcast of the round before, for clients that kept it; None if nobody has to keep it."""
        if self.key.round == 1:
            return self.method.broadcast(state)  # which the seed has made
        held = {name.removeprefix(HELD): value for name, value in state.items() if name.startswith(HELD)}
        return held or None

    def broadcast(self, state: State, reference: Message | None = None) -> Outgoing:
        """The message that starts the round, to clients that have the reference, or to those that have none."""
        stack = {name: value[None] for name, value in self.method.broadcast(state).items()}
        return Outgoing([self.header(SERVER)], stack, lambda _: self.wire.down(reference))

    def read_ballot(self, state: State, frame: bytes, client: int) -> Delivery:
        """The message of a client; WireError if it may not send that."""
        key = Key(self.key.seed, self.key.round, client)
        down, device = self.method.broadcast(state), self.network.start.voted.device
        return read(frame, self.header(client), lambda: self.wire.up(down, key), device)

    def largest_ballot(self, state: State) -> int:
        """Bytes that no proper message of a client exceeds, in any round."""
        return most_bytes(self.wire.up(self.method.broadcast(state), Key(0, 1, 0)))

    def close(self, state: State, deliveries: Mapping[int, Delivery], asked: int | None = None) -> Closed:
        """Merge what clients sent, without those that were refused.

        `asked`: how many clients were to take part, where some sent nothing. A merge that fails without some of them
        counts for nothing, so that nobody can stop a run by sending noise, or nothing at all.
        """
        down = self.method.broadcast(state)
        refused = {client: f"client {client}: {d.refusal}" for client, d in sorted(deliveries.items()) if d.refusal}
        counted = [client for client in sorted(deliveries) if client not in refused]
        after = {name: value for name, value in state.items() if not name.startswith(HELD)}
        measured: dict[str, float] = {}
        if counted:
            try:
                merged, why = self._merged(after, [deliveries[client] for client in counted], counted), ""
                if not _is_sound(merged, down):
                    why = "the merged weights are not numbers that training can continue from"
            except ConfigError as error:
                if len(counted) == (asked or len(deliveries)):
                    raise  # nobody's noise: the configuration asks for the impossible
                why = str(error)
            if why:
                refused |= {client: f"client {client}: not counted, since {why}" for client in counted}
                counted = []
            else:
                found = self.method.measure(after, merged)
                measured, after = contracts.numbers(self.method, "measure", found), merged
        if self.wire.keeps_broadcast:
            after = after | {HELD + name: value for name, value in down.items()}
        return Closed(after, counted, refused, measured)

    def _merged(self, state: State, deliveries: list[Delivery], clients: list[int]) -> State:
        merge = self.method.merge(state, self.key)
        contracts.instance(self.method, "merge", merge, Merge)
        merge.add(stacked(deliveries), clients)
        return contracts.like(self.method, "merge", merge.close(), state)

    # the clients' side

    def read_broadcast(self, frame: bytes, reference: Message | None = None) -> Message:
        """What the server sent; `reference`: its broadcast of the round before, if this client kept it."""
        device = self.network.start.voted.device
        return read(frame, self.header(SERVER), lambda: self.wire.down(reference), device).message

    def train(self, down: Message, batches: Batches, memory: State, keys: Sequence[Key]) -> tuple[Outgoing, State]:
        """Local training of a stack of K clients: their messages, and their new memories, K in front."""
        sent = self.method.local(self.network, down, batches, memory, keys)
        ups, remembered = contracts.pair(self.method, "local", sent)
        stack = contracts.rows(self.method, "local", ups, len(keys))
        memory = contracts.like(self.method, "local", remembered, memory)
        return self._answer(stack, down, [key.client for key in keys]), memory

    def tamper(
        self, attack: Attack, down: Message, deliveries: Mapping[int, Delivery], hostile: Container[int]
    ) -> Outgoing | None:
        """The messages that hostile clients send instead of theirs, if they send others. Nothing after this knows who.

        They went through the method's own codecs before, and will again: an attacker can only send proper messages.
        """
        readable = {client: deliveries[client] for client in sorted(deliveries) if not deliveries[client].refusal}
        mine = [client for client in readable if client in hostile]  # a refused message is refused as it is
        if not mine or type(attack).tamper is Attack.tamper:
            return None
        others = [client for client in readable if client not in hostile]
        own = stacked([readable[client] for client in mine])
        # where nobody is honest, their own messages are the best guess
        honest = stacked([readable[client] for client in others or mine]) if attack.omniscient else {}
        keys = [Key(self.key.seed, self.key.round, client) for client in mine]
        seen = Seen(own, honest, keys, len(deliveries), self.wire.unmoved(down), self.wire.scales, rule_of(self.method))
        forged = contracts.like(attack, "tamper", attack.tamper(seen), own)
        return self._answer(forged, down, mine)

    def _answer(self, stack: Message, down: Message, clients: Sequence[int]) -> Outgoing:
        return Outgoing([self.header(client) for client in clients], stack, self._codecs(down))

    # both sides

    def header(self, client: int) -> Header:
        return Header(self.key.round, client, self.network.fingerprint, type(self.method).__name__)

    def _codecs(self, down: Message) -> Callable[[int], Codecs]:
        """The codecs of each client's message: the same object for all, unless they differ by client."""
        if self.wire.personal:
            return lambda client: self.wire.up(down, Key(self.key.seed, self.key.round, client))
        common = self.wire.up(down, self.key)
        contracts.codecs(self.wire, "up", common)
        return lambda _: common


def _is_sound(state: State, down: Message) -> bool:
    """Whether all numbers of a state are finite, and the broadcast ones within what clients accept."""
    floats = {name: value for name, value in state.items() if value.is_floating_point() and value.numel()}
    ends = torch.stack([torch.stack(value.aminmax()).float() for value in floats.values()]).tolist() if floats else []
    limits = [LARGEST if name in down else torch.finfo(torch.float32).max for name in floats]
    return all(abs(end) <= limit for both, limit in zip(ends, limits, strict=True) for end in both)
