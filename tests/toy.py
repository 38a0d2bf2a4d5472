"""A federation that trains in milliseconds: points of three classes, a network of 72 voted weights, five clients."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from fedvote.attacks import Attack
from fedvote.codecs.reference import bits_of
from fedvote.core import Batches, Dataset, Examples, Message, State
from fedvote.data.batches import draw_batches
from fedvote.errors import WireError
from fedvote.method import Method
from fedvote.network.network import Network
from fedvote.randomness import Key
from fedvote.rounds import Closed, Round
from fedvote.wire import Delivery
from fedvote.wire import frames as written

CLIENTS, FEATURES, CLASSES, EXAMPLES = 5, 6, 3, 40  # examples of one client


def module() -> nn.Module:
    """The same weights every time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Linear(FEATURES, 12, bias=False),
            nn.BatchNorm1d(12, affine=False, track_running_stats=False),
            nn.ReLU(),
            nn.Linear(12, CLASSES),
        )


def three_weights() -> Network:
    """D = 3 and F = 2."""
    return Network(nn.Sequential(nn.Linear(3, 1, bias=False), nn.Linear(1, 2, bias=False)))


def examples() -> Examples:
    """Client m has rows m * EXAMPLES and on."""
    generator = Key(0).torch("toy")
    y = torch.arange(CLIENTS * EXAMPLES) % CLASSES
    centres = 1.5 * torch.randn(CLASSES, FEATURES, generator=generator)
    return Examples(centres[y] + torch.randn(len(y), FEATURES, generator=generator), y)


def scaled() -> Examples:
    """The inputs of client m times 10^m: whoever is normalised by another's statistics learns something else."""
    plain = examples()
    scale = 10.0 ** torch.arange(CLIENTS).repeat_interleave(EXAMPLES)
    return Examples(plain.x * scale[:, None], plain.y)


def dataset() -> Dataset:
    return Dataset("toy", examples(), examples(), tuple("abc"))


def owned(clients: Sequence[int]) -> list[Tensor]:
    return [torch.arange(client * EXAMPLES, (client + 1) * EXAMPLES) for client in clients]


def keys(clients: Sequence[int], round: int = 1, seed: int = 0) -> list[Key]:
    return [Key(seed, round, client) for client in clients]


def batches(data: Examples, clients: Sequence[int], round: int = 1, steps: int = 4, batch: int = 8) -> Batches:
    return draw_batches(data, owned(clients), steps, batch, keys(clients, round))


def memory(method: Method, network: Network, clients: Sequence[int]) -> State:
    """What clients remember before their first round."""
    return {name: value.expand(len(clients), *value.shape).clone() for name, value in method.memory(network).items()}


def open_round(method: Method, network: Network, state: State, round: int, reference: Message | None = None) -> bytes:
    """The broadcast of a round as bytes, as between processes."""
    (frame,) = written(Round(method, network, Key(0, round)).broadcast(state, reference))
    return frame


def read_broadcast(
    method: Method, network: Network, frame: bytes, round: int, reference: Message | None = None
) -> Message:
    return Round(method, network, Key(0, round)).read_broadcast(frame, reference)


def clients_turn(
    method: Method, network: Network, down: Message, turn: Batches, memory: State, keys: Sequence[Key]
) -> tuple[list[bytes], State]:
    """The frames of a stack of clients, and their new memories."""
    outgoing, new = Round(method, network, Key(keys[0].seed, keys[0].round)).train(down, turn, memory, keys)
    return written(outgoing), new


def delivered(round: Round, state: State, frames: Mapping[int, bytes]) -> dict[int, Delivery]:
    """What the server reads of the frames; of those that it refuses, why."""

    def read(client: int, frame: bytes) -> Delivery:
        try:
            return round.read_ballot(state, frame, client)
        except WireError as error:
            return Delivery({}, 0, [len(frame)], str(error))

    return {client: read(client, frame) for client, frame in frames.items()}


def close_round(
    method: Method,
    network: Network,
    state: State,
    frames: Mapping[int, bytes],
    key: Key,
) -> Closed:
    round = Round(method, network, key)
    return round.close(state, delivered(round, state, frames))


def hostile_turn(
    attack: Attack, method: Method, network: Network, state: State, frames: Mapping[int, bytes],
    hostile: Container[int], key: Key,
) -> dict[int, bytes]:  # fmt: skip
    """The frames of a round after hostile clients have replaced theirs."""
    round = Round(method, network, key)
    forged = round.tamper(attack, method.broadcast(state), delivered(round, state, frames), hostile)
    mine = {h.client: frame for h, frame in zip(forged.headers, written(forged), strict=True)} if forged else {}
    return {**frames, **mine}


def merge(method: Method, state: State, ups: Message, clients: Sequence[int], key: Key) -> State:
    """The next state, from all messages at once."""
    fold = method.merge(state, key)
    fold.add(ups, list(clients))
    return fold.close()


@dataclass(frozen=True)
class Federation:
    """Rounds of a method, by the functions that both engines call."""

    method: Method
    network: Network = field(default_factory=lambda: Network(module()))
    data: Examples = field(default_factory=examples)
    steps: int = 4
    seed: int = 0

    def start(self) -> State:
        return self.method.init(self.network, CLIENTS)

    def frames(self, state: State, round: int, clients: Sequence[int]) -> tuple[Message, dict[int, bytes]]:
        """What was broadcast, and what each client answers."""
        down = read_broadcast(self.method, self.network, open_round(self.method, self.network, state, round), round)
        turn = batches(self.data, clients, round, self.steps)
        remembered = memory(self.method, self.network, clients)
        sent, _ = clients_turn(self.method, self.network, down, turn, remembered, keys(clients, round, self.seed))
        return down, dict(zip(clients, sent, strict=True))

    def round(self, state: State, round: int, clients: Sequence[int] = range(CLIENTS)) -> State:
        _, frames = self.frames(state, round, clients)
        closed = close_round(self.method, self.network, state, frames, Key(self.seed, round))
        assert closed.counted == sorted(clients) and not closed.refused
        return closed.state

    def states(self, cohorts: Sequence[Sequence[int]]) -> list[State]:
        """The state before the first round and after each."""
        states = [self.start()]
        for index, cohort in enumerate(cohorts):
            states.append(self.round(states[-1], index + 1, cohort))
        return states


def copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in tensors.items()}


def assert_same(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> None:
    """The same names, types and bits."""
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype, name
        assert torch.equal(bits_of(a[name]), bits_of(b[name])), f"{name}: {a[name]} is not {b[name]}"


def assert_close(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> None:
    """The same names, types and whole numbers; floats to rounding error."""
    assert a.keys() == b.keys()
    for name in a:
        exact = not a[name].is_floating_point()
        torch.testing.assert_close(a[name], b[name], rtol=0 if exact else 1e-3, atol=0 if exact else 1e-4)
