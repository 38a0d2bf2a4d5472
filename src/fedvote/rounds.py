"""One round, as both engines run it: the server opens it, clients take their turn, the server closes it.

All that passes between server and clients is bytes; or, in one process, parcels that weigh as many. A client that has
the broadcast of the round before can be told less: the state after a round has what was broadcast in it, as `held/`.
Before round 1 everybody has what the shared seed makes; who makes something else of it notices, and is sent the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from typing_extensions import TypeVar

from fedvote import contracts
from fedvote.attacks import ATTACKS, Attack, Seen
from fedvote.codecs import LARGEST, Header, Parcel, check_head, most_bytes, pack_stack, stack_messages, unpack
from fedvote.core import Batches, Codec, Examples, Message, State
from fedvote.errors import ConfigError, DataError, WireError
from fedvote.method import Method
from fedvote.network.network import Network
from fedvote.randomness import SERVER, Key
from fedvote.system.threads import on_every_core

Frame = TypeVar("Frame", bytes, Parcel, default=bytes)
Post = Callable[[Sequence[Header], Message, Iterable[dict[str, Codec]]], list[Frame]]
"""How a stack of messages is sent: as bytes, by `pack_stack`, or as parcels, by `weigh_stack`."""

READERS = 4  # that read frames at a time: each needs 30 bytes a weight, until it has read its own
HELD = "held/"  # in front of the names of what was broadcast in the last round


@dataclass(frozen=True)
class Closed:
    """A round that is over: the next state, and why whom was not counted."""

    state: State
    counted: list[int]
    refused: dict[int, str] = field(default_factory=dict)
    measured: dict[str, float] = field(default_factory=dict)  # by the method


def open_round(
    method: Method,
    network: Network,
    state: State,
    round: int,
    post: Post[Frame] = pack_stack,  # type: ignore[assignment]
    held: Message | None = None,
) -> Frame:
    """The broadcast that starts a round; `held`: for those who have that of the round before, which is this."""
    header = _header(method, network, round, SERVER)
    stack = {name: value[None] for name, value in method.broadcast(state).items()}
    return post([header], stack, [method.downlink(network, held)])[0]


def held_before(method: Method, state: State, round: int) -> Message | None:
    """What those hold who were sent the broadcast before a round's; None, where nobody has to keep it."""
    if round == 1:
        return method.broadcast(state)  # which the seed has made
    held = {name.removeprefix(HELD): value for name, value in state.items() if name.startswith(HELD)}
    return held or None


def read_broadcast(
    method: Method, network: Network, broadcast: bytes | Parcel, round: int, held: Message | None = None
) -> Message:
    """What the server says; `held`: what it said in the round before, if the client was sent that and kept it."""
    read = _read(method, network, broadcast, round, SERVER, lambda _: method.downlink(network, held))
    return read.message if isinstance(read, Parcel) else read


def draw_order(rows: torch.Tensor, count: int, key: Key) -> torch.Tensor:
    """A client's examples in the order in which it takes `count` of them: all in random order, again and again."""
    generator, n = key.torch("batches"), rows.shape[0]  # which is found faster than its len, for thousands of clients
    if not n:
        raise DataError(f"client {key.client} has no examples to train on; leave it out, or give it some")
    passes = [rows[torch.randperm(n, generator=generator)] for _ in range(max(1, -(-count // n)))]
    return (torch.cat(passes) if len(passes) > 1 else passes[0])[:count]


def draw_batches(
    examples: Examples,
    owned: Sequence[torch.Tensor],
    steps: int | Sequence[int],
    batch: int,
    keys: Sequence[Key],
    orders: Sequence[torch.Tensor] | None = None,
) -> Batches:
    """Every client's mini-batches: its examples in random order, again and again, cut into batches.

    Where clients take different numbers of steps, there are as many batches as the longest turn has; the others'
    first ones are the same as if they were alone. `orders`: what `draw_order` made for at least as many examples.
    """
    device = examples.y.device
    steps_K = (steps,) * len(keys) if isinstance(steps, int) else tuple(steps)
    count = max(steps_K) * batch
    orders = orders or [draw_order(rows, count, key) for rows, key in zip(owned, keys, strict=True)]
    index_KSB = torch.stack([order[:count] for order in orders]).view(len(keys), max(steps_K), batch)
    samples_K = torch.tensor([rows.shape[0] for rows in owned], device=device)
    return Batches(examples, index_KSB.to(device), samples_K, steps_K=None if isinstance(steps, int) else steps_K)


def clients_turn(
    method: Method,
    network: Network,
    down: Message,
    batches: Batches,
    memory: State,
    keys: Sequence[Key],
    post: Post[Frame] = pack_stack,  # type: ignore[assignment]
) -> tuple[list[Frame], State]:
    """What a stack of K clients makes of the broadcast: a frame each, and their new memories (K in front)."""
    sent, remembered = contracts.pair(method, "local", method.local(network, down, batches, memory, keys))
    ups = contracts.rows(method, "local", sent, len(keys))
    memory = contracts.like(method, "local", remembered, memory)
    headers = [_header(method, network, key.round, key.client) for key in keys]
    codecs = uplink_by_client(method, network, down, keys[0])
    return post(headers, ups, (codecs(key.client) for key in keys)), memory


def uplink_by_client(method: Method, network: Network, down: Message, key: Key) -> Callable[[int], dict[str, Codec]]:
    """The codecs of each client in a round: one and the same for all, unless the method tells them apart."""
    if method.uplinks_differ:
        return lambda client: method.uplink(network, down, Key(key.seed, key.round, client))
    common = method.uplink(network, down, key)
    contracts.codecs(method, "uplink", common)
    return lambda client: common


def check_attack(attack: Attack, method: Method) -> None:
    """Refuse, before round 1, to put messages together that cannot be compared."""
    if attack.joint and method.scales:
        alone = ", ".join(name for name, kind in ATTACKS.items() if not kind.joint)
        raise ConfigError(
            f"attack {type(attack).__name__} puts the messages of several clients together, but with "
            f"{type(method).__name__} each is in a measure of its own ({', '.join(method.scales)}); "
            f"use an attack that takes them one by one: {alone}; or another method"
        )


def hostile_turn(
    attack: Attack,
    method: Method,
    network: Network,
    down: Message,
    frames: Mapping[int, Frame],
    hostile: Container[int],
    key: Key,
    post: Post[Frame] = pack_stack,  # type: ignore[assignment]
) -> dict[int, Frame]:
    """The frames of a round after hostile clients have replaced theirs. Nothing after this knows who they are."""
    mine = [client for client in sorted(frames) if client in hostile]
    if not mine or type(attack).tamper is Attack.tamper:
        return dict(frames)
    codecs = uplink_by_client(method, network, down, key)

    seen = {client: frame for client, frame in frames.items() if attack.omniscient or client in hostile}
    messages, _ = _read_all(method, network, seen, key, codecs)
    mine = [client for client in mine if client in messages]  # what will be refused is refused as it is
    if not mine:
        return dict(frames)

    def read(clients: list[int]) -> Message:
        return stack_messages([messages[client] for client in clients])

    others = [client for client in messages if client not in hostile]
    honest = read(others or mine) if attack.omniscient else {}  # where nobody is honest, their own is the best guess
    keys = [Key(key.seed, key.round, client) for client in mine]
    own = read(mine)
    forged = attack.tamper(Seen(own, honest, keys, len(frames), method.unmoved(down), method.scales, method.rule))
    sent = contracts.like(attack, "tamper", forged, own)
    posted = post([_header(method, network, key.round, c) for c in mine], sent, map(codecs, mine))
    return {**frames, **dict(zip(mine, posted, strict=True))}


def read_ballot(method: Method, network: Network, state: State, frame: bytes, key: Key) -> Parcel:
    """What the client of this key says in the round after this state; WireError if it may not say that."""
    down = method.broadcast(state)
    said = _read(method, network, frame, key.round, key.client, lambda _: method.uplink(network, down, key))
    message = said.message if isinstance(said, Parcel) else said
    return Parcel({name: value[None] for name, value in message.items()}, 0, [len(frame)])


def largest_ballot(method: Method, network: Network, state: State) -> int:
    """Bytes that no proper message of a client exceeds, in any round."""
    return most_bytes(method.uplink(network, method.broadcast(state), Key(0, 1, 0)))


def close_round(
    method: Method,
    network: Network,
    state: State,
    frames: Mapping[int, bytes] | Mapping[int, Parcel],
    key: Key,
    asked: int | None = None,
) -> Closed:
    """Decode what clients sent, count those that sent a proper message, and go on with the others left out.

    `asked`: how many were to take part, where some have no frame here. A round that makes nothing of those who are left
    counts for nothing, so that nobody can stop a run by sending noise, or nothing at all.
    """
    down = method.broadcast(state)
    messages, errors = _read_all(method, network, frames, key, uplink_by_client(method, network, down, key))
    refused = {client: f"client {client}: {error}" for client, error in errors.items()}
    measured: dict[str, float] = {}
    if messages:
        ups = stack_messages(list(messages.values()))
        try:
            merged = method.merge(state, ups, list(messages), key)
            known = {name: value for name, value in state.items() if not name.startswith(HELD)}
            merged = contracts.like(method, "merge", merged, known)
            why = "" if _is_sound(merged, down) else "what all of them make together is beyond any number to train from"
        except ConfigError as error:
            if len(messages) == (asked or len(frames)):
                raise  # nobody's noise: the configuration asks for what cannot be
            why = str(error)
        if why:
            refused |= {client: f"client {client}: not counted, since {why}" for client in messages}
            messages = {}
        else:
            measured = contracts.numbers(method, "measure", method.measure(state, ups, merged))
            state = merged
    if method.keeps_broadcast:
        state = state | {HELD + name: value for name, value in down.items()}
    return Closed(state, list(messages), refused, measured)


def _header(method: Method, network: Network, round: int, client: int) -> Header:
    return Header(round, client, network.fingerprint, type(method).__name__)


def _is_sound(state: State, down: Message) -> bool:
    """Whether all numbers of a state are finite, and those that are broadcast such that clients take them."""
    floats = {name: value for name, value in state.items() if value.is_floating_point() and value.numel()}
    ends = torch.stack([torch.stack(value.aminmax()).float() for value in floats.values()]).tolist() if floats else []
    limits = [LARGEST if name in down else torch.finfo(torch.float32).max for name in floats]
    return all(abs(end) <= limit for both, limit in zip(ends, limits, strict=True) for end in both)


def _read_all(
    method: Method,
    network: Network,
    frames: Mapping[int, bytes] | Mapping[int, Parcel],
    key: Key,
    codecs: Callable[[int], dict[str, Codec]],
) -> tuple[dict[int, Message | Parcel], dict[int, WireError]]:
    """By client, what frames say, and what is wrong with those that say nothing."""

    def read(client: int) -> Message | Parcel | WireError:
        try:
            return _read(method, network, frames[client], key.round, client, codecs)
        except WireError as error:
            return error

    clients = sorted(frames)
    in_bytes = any(isinstance(frame, bytes) for frame in frames.values())  # which takes its time
    found = dict(zip(clients, on_every_core(read, clients, READERS if in_bytes else 1), strict=True))
    messages = {client: message for client, message in found.items() if not isinstance(message, WireError)}
    return messages, {client: error for client, error in found.items() if isinstance(error, WireError)}


def _read(
    method: Method,
    network: Network,
    frame: bytes | Parcel,
    round: int,
    client: int,
    codecs: Callable[[int], dict[str, Codec]],
) -> Message | Parcel:
    """What a frame says, or WireError; a parcel, which may be one of many that are read together, stays one."""
    if isinstance(frame, Parcel):
        if frame.refusal:
            raise WireError(frame.refusal)
        return frame
    header = _header(method, network, round, client)
    check_head(frame, header)  # before codecs are made, which is work that nobody shall cause with noise
    return unpack(frame, header, codecs(client), network.start.voted.device)
