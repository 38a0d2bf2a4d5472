"""One round, as both engines run it: the server broadcasts, clients train and answer, the server merges.

The reference of a client is the last broadcast that it received (held.py). Clients that keep it receive shorter
messages. Before round 1 every client makes the reference from the shared seed. A client whose seed gives another
reference notices, and receives the whole broadcast. If some of the initial weights are given, nobody can make them:
there is no reference in round 1, and every client receives them whole. A later broadcast to a client without a
reference is coded against what the seed makes, the start of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch

from fedvote import contracts
from fedvote.attacks import Attack, Seen
from fedvote.codecs import LARGEST, TAGS, Header, most_bytes
from fedvote.core import Batches, Message, State
from fedvote.errors import ConfigError
from fedvote.method import Merge, Method
from fedvote.network.network import Network
from fedvote.randomness import SERVER, Key
from fedvote.reputation import rule_of
from fedvote.rounds import held
from fedvote.wire import Codecs, Delivery, Outgoing, Wire, read, stacked


@dataclass(frozen=True, eq=False)
class Closed:
    """The outcome of a round: the next state, the clients that counted, and why others did not."""

    state: State
    counted: list[int]
    refused: dict[int, str] = field(default_factory=dict)
    measured: dict[str, float] = field(default_factory=dict)  # the method's own metrics


@dataclass(frozen=True)
class Round:
    """One round of a method on a network; the server and every client have one."""

    method: Method
    network: Network
    key: Key  # the server's key of this round, or on a client's machine the client's own
    sums_alone: bool = False  # whether the server learns no message, but the sums of all: no coding, whole numbers
    kept: int = 1  # broadcasts that the server keeps

    @cached_property
    def wire(self) -> Wire:
        wire = self.method.wire(self.network)
        contracts.instance(self.method, "wire", wire, Wire)
        return wire

    # on the server

    def reference(self, state: State, round: int | None = None) -> Message | None:
        """The broadcast of `round`, which some client has; not given: the last one. None if it is not kept."""
        if self.key.round == 1:
            return None if self.network.given else self.method.broadcast(state)  # made from the seed
        previous = self.key.round - 1
        return (held.last(state) if round in (None, previous) else held.earlier(state, round)) or None

    def broadcast(self, state: State, reference: Message | None = None, same_start: bool = True) -> Outgoing:
        """The message that starts the round, for clients that have this reference, or for those that have none.

        `same_start`: whether these clients make the same start of the seed as the server.
        """
        stack = {name: value[None] for name, value in self.method.broadcast(state).items()}
        wire = self.wire if same_start else self.wire.without_start()
        return Outgoing([self.header(SERVER)], stack, lambda _: wire.down(reference, self.key))

    def read_ballot(self, state: State, frame: bytes, client: int) -> Delivery:
        """Decode the message of a client; WireError if it is invalid."""
        key = self.key.of(client)
        down, device = self.method.broadcast(state), self.network.start.voted.device
        return read(frame, self.header(client), lambda: self.wire.up(down, key), device)

    def largest_ballot(self, state: State) -> int:
        """Upper bound, in bytes, on a valid message of any client in any round."""
        return most_bytes(self.wire.up(self.method.broadcast(state), Key(0, 1, 0)))

    def close(self, state: State, deliveries: Mapping[int, Delivery]) -> Closed:
        """Merge the deliveries that were not refused, all at once."""
        box, refused = BallotBox(self, state, len(deliveries)), refusals(deliveries)
        if counted := [client for client in sorted(deliveries) if client not in refused]:
            box.put(stacked([deliveries[client] for client in counted]), counted)
        closed = box.close()
        return replace(closed, refused={**refused, **closed.refused})

    # on clients

    def read_broadcast(self, frame: bytes, reference: Message | None = None) -> Message:
        """Decode the server's message; `reference`: the previous round's broadcast, if this client kept it."""
        device = self.network.start.voted.device
        message = read(frame, self.header(SERVER), lambda: self.wire.down(reference, self.key), device).message
        self.wire.unmoved(message)  # refuses a broadcast that no client can start from
        return message

    def train(self, down: Message, batches: Batches, memory: State, keys: Sequence[Key]) -> tuple[Outgoing, State]:
        """Train K clients: their messages and their new memories, each tensor with K rows."""
        with contracts.pure(self.method, "local", down):
            result = self.method.local(self.network, down, batches, memory, keys)
        ups, new_memory = contracts.pair(self.method, "local", result)
        stack = contracts.rows(self.method, "local", ups, len(keys))
        memory = contracts.like(self.method, "local", new_memory, memory)
        return self._answer(stack, down, [key.client for key in keys]), memory

    def tamper(
        self, attack: Attack, down: Message, deliveries: Mapping[int, Delivery], hostile: Container[int]
    ) -> Outgoing | None:
        """The messages that hostile clients send instead of their own; None if they send their own.

        Forged messages pass the method's codecs, so attackers send only valid ones. No later step knows who is hostile.
        """
        readable = {client: deliveries[client] for client in sorted(deliveries) if not deliveries[client].refusal}
        attackers = [client for client in readable if client in hostile]  # refused messages stay refused
        if not attackers or type(attack).tamper is Attack.tamper:
            return None
        others = [client for client in readable if client not in hostile]
        own = stacked([readable[client] for client in attackers])
        # without honest clients, the attackers' own messages are the best guess
        honest = stacked([readable[client] for client in others or attackers]) if attack.omniscient else {}
        keys = [self.key.of(client) for client in attackers]  # with their own secrets alone
        seen = Seen(
            own, honest, keys, len(deliveries), self.wire.unmoved(down), self.wire.scales, rule_of(self.method),
            unsigned=[name for name, codec in self.wire.up(down, keys[0]).items() if not codec.signed],
            layers={slot.name: slice(slot.start, slot.stop) for slot in self.network.voted},
            honest_keys=[self.key.of(client) for client in others or attackers] if attack.draws else (),
        )  # fmt: skip
        if not seen.bulk:
            raise ConfigError(
                f"attack {type(attack).__name__} forges votes or floats, but {type(self.method).__name__} sends "
                f"{', '.join(own)}, none of which has an opposite; choose an attack that poisons labels"
            )
        forged = contracts.like(attack, "tamper", attack.tamper(seen), own)
        return self._answer(forged, down, attackers)

    def _answer(self, stack: Message, down: Message, clients: Sequence[int]) -> Outgoing:
        return Outgoing([self.header(client) for client in clients], stack, self._codecs(down))

    # on both

    def header(self, client: int) -> Header:
        return Header(self.key.round, client, self.network.fingerprint, type(self.method).__name__)

    def _codecs(self, down: Message) -> Callable[[int], Codecs]:
        """client -> the codecs of its message; one object for all clients, unless codecs differ by client."""
        if self.wire.personal and not self.sums_alone:
            return lambda client: self.wire.up(down, self.key.of(client))
        common = self.wire.summed if self.sums_alone else self.wire.up(down, self.key)
        contracts.codecs(self.wire, "up", common, TAGS)
        return lambda _: common


def refusals(deliveries: Mapping[int, Delivery]) -> dict[int, str]:
    """Client -> why its message does not count, of those that were refused."""
    return {client: f"client {client}: {d.refusal}" for client, d in sorted(deliveries.items()) if d.refusal}


class BallotBox:
    """The messages of an open round on the server: each is merged as it arrives, and kept only if the method must."""

    def __init__(self, round: Round, state: State, asked: int):
        """`asked`: the number of clients of the round.

        If a merge without some of the clients fails, the round counts nobody and the run goes on: no client can stop it
        by sending noise, or nothing.
        """
        self.round, self.asked, self.clients = round, asked, list[int]()
        self.down = round.method.broadcast(state)
        self._state, self.before = state, held.without_held(state)
        self._merge: Merge | None = None

    def put(self, messages: Message, clients: Sequence[int]) -> None:
        """Add messages, each tensor with a row for each of these clients."""
        self._opened().add(messages, clients)
        self.clients += clients

    def put_sums(self, sums: Message, clients: Sequence[int]) -> None:
        """Add the sums over the messages of these clients, in place of the messages."""
        self._opened().add_sums(sums, clients)
        self.clients += clients

    def put_late(self, messages: Message, clients: Sequence[int], weight: float, round: Round, state: State) -> None:
        """Add messages of an earlier round, which began with `state`, with this weight. They are not `counted`."""
        self._opened().add_late(messages, clients, weight, state, round.key)

    def takes_late(self) -> bool:
        """Whether the method can count messages of earlier rounds."""
        return type(self._opened()).add_late is not Merge.add_late

    def _opened(self) -> Merge:
        if self._merge is None:
            self._merge = self.round.method.merge(self.before, self.round.key)
            contracts.instance(self.round.method, "merge", self._merge, Merge)
        return self._merge

    def close(self) -> Closed:
        """The outcome of the round with the messages so far. More may be added, and the round closed again."""
        method, counted, after = self.round.method, sorted(self.clients), self.before
        measured: dict[str, float] = {}
        refused: dict[int, str] = {}
        if self._merge is not None and counted:
            with contracts.pure(method, "merge", self.before):
                merged, failure = self._merged(self._merge, len(counted))
            if failure:
                refused = {client: f"client {client}: not counted, since {failure}" for client in counted}
                counted = []
            else:
                metrics = method.measure(self.before, merged)
                measured, after = contracts.numbers(method, "measure", metrics), merged
        if self.round.wire.keeps_broadcast:
            after = after | held.after(self._state, self.down, self.round.key.round, counted, self.round.kept)
        return Closed(after, counted, refused, measured)

    def _merged(self, merge: Merge, counted: int) -> tuple[State, str]:
        """The merged state, and why training cannot continue from it, if so."""
        try:
            merged = contracts.like(self.round.method, "merge", merge.close(), self.before)
        except ConfigError as error:
            if counted == self.asked:
                raise  # no client's fault: the configuration asks for the impossible
            return self.before, str(error)
        sound = _is_sound(merged, self.down)
        return merged, "" if sound else "the merged weights are not numbers that training can continue from"


def _is_sound(state: State, down: Message) -> bool:
    """Whether all numbers of a state are finite, and the broadcast ones small enough for clients to accept."""
    floats = {name: value for name, value in state.items() if value.is_floating_point() and value.numel()}
    ranges = torch.stack([torch.stack(value.aminmax()).float() for value in floats.values()]).tolist() if floats else []
    limits = [LARGEST if name in down else torch.finfo(torch.float32).max for name in floats]
    return all(abs(end) <= limit for ends, limit in zip(ranges, limits, strict=True) for end in ends)
