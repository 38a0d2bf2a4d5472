"""One round, as both engines run it: the server opens it, clients take their turn, the server closes it.

All that passes between the three functions is bytes.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from fedvote.attacks import Attack, Seen
from fedvote.codecs import Header, pack, unpack
from fedvote.core import SERVER, Batches, ConfigError, Examples, Key, Message, State, WireError
from fedvote.method import Method
from fedvote.network import Network


@dataclass(frozen=True)
class Closed:
    """A round that is over: the next state, and why whom was not counted."""

    state: State
    counted: list[int]
    refused: dict[int, str] = field(default_factory=dict)


def open_round(method: Method, network: Network, state: State, round: int) -> bytes:
    """The broadcast that starts a round."""
    header = _header(method, network, round, SERVER)
    return pack(header, method.broadcast(state), method.downlink(network))


def draw_batches(
    examples: Examples, owned: Sequence[torch.Tensor], steps: int, batch: int, keys: Sequence[Key]
) -> Batches:
    """Every client's mini-batches: its examples in random order, again and again, cut into batches."""
    device = examples.y.device
    index = [_shuffled(rows, steps * batch, key) for rows, key in zip(owned, keys, strict=True)]
    index_KSB = torch.stack(index).view(len(keys), steps, batch)
    return Batches(examples, index_KSB.to(device), torch.tensor([len(rows) for rows in owned], device=device))


def clients_turn(
    method: Method, network: Network, broadcast: bytes, batches: Batches, memory: State, keys: Sequence[Key]
) -> tuple[list[bytes], State]:
    """What a stack of K clients makes of the broadcast: a frame each, and their new memories (K in front)."""
    down = _read_broadcast(method, network, broadcast, keys[0].round)
    ups, memory = method.local(network, down, batches, memory, keys)
    codecs = method.uplink(network, down)
    headers = [_header(method, network, key.round, key.client) for key in keys]
    return [pack(header, {n: up[k] for n, up in ups.items()}, codecs) for k, header in enumerate(headers)], memory


def hostile_turn(
    attack: Attack,
    method: Method,
    network: Network,
    broadcast: bytes,
    frames: Mapping[int, bytes],
    hostile: Container[int],
    key: Key,
) -> dict[int, bytes]:
    """The frames of a round after hostile clients have replaced theirs. Nothing after this knows who they are."""
    mine = [client for client in sorted(frames) if client in hostile]
    if not mine or type(attack).tamper is Attack.tamper:
        return dict(frames)
    codecs = method.uplink(network, _read_broadcast(method, network, broadcast, key.round))
    header = {client: _header(method, network, key.round, client) for client in frames}

    def read(clients: list[int]) -> Message:
        messages = [unpack(frames[c], header[c], codecs, network.start.voted.device) for c in clients]
        return {name: torch.stack([message[name] for message in messages]) for name in codecs} if messages else {}

    honest = read([client for client in sorted(frames) if client not in hostile]) if attack.omniscient else {}
    sent = attack.tamper(Seen(read(mine), honest, [Key(key.seed, key.round, client) for client in mine]))
    forged = {c: pack(header[c], {n: rows[i] for n, rows in sent.items()}, codecs) for i, c in enumerate(mine)}
    return {**frames, **forged}


def close_round(
    method: Method, network: Network, state: State, broadcast: bytes, frames: Mapping[int, bytes], key: Key
) -> Closed:
    """Decode what clients sent, count those that sent a proper message, and go on with the others left out."""
    down = _read_broadcast(method, network, broadcast, key.round)
    codecs, device = method.uplink(network, down), network.start.voted.device
    messages: dict[int, Message] = {}
    refused: dict[int, str] = {}
    for client in sorted(frames):
        try:
            messages[client] = unpack(frames[client], _header(method, network, key.round, client), codecs, device)
        except WireError as error:
            refused[client] = f"client {client}: {error}"
    if messages:
        ups = {name: torch.stack([message[name] for message in messages.values()]) for name in codecs}
        try:
            state = method.merge(state, ups, list(messages), key)
        except ConfigError as error:
            if not refused:
                raise
            # too few are left for the rule: the round counts for nothing, and nobody can stop a run by sending noise
            refused |= {client: f"client {client}: not counted, since {error}" for client in messages}
            messages = {}
    return Closed(state, list(messages), refused)


def _header(method: Method, network: Network, round: int, client: int) -> Header:
    return Header(round, client, network.fingerprint, type(method).__name__)


def _read_broadcast(method: Method, network: Network, broadcast: bytes, round: int) -> Message:
    header = _header(method, network, round, SERVER)
    return unpack(broadcast, header, method.downlink(network), network.start.voted.device)


def _shuffled(rows: torch.Tensor, count: int, key: Key) -> torch.Tensor:
    generator = key.torch("batches")
    passes = -(-count // len(rows))
    return torch.cat([rows[torch.randperm(len(rows), generator=generator)] for _ in range(passes)])[:count]
