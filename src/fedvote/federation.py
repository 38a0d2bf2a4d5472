"""A federation: who takes part, with what, and what each of them draws. Engines run it; nothing here does.

All draws are functions of the seed, the round and the client, so that every engine draws the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from fedvote import contracts
from fedvote.attacks import Attack, Nothing
from fedvote.core import Batches, Dataset, Examples, State, Weights
from fedvote.errors import ConfigError
from fedvote.method import Method
from fedvote.network.evaluate import judge
from fedvote.network.network import Network
from fedvote.randomness import Key
from fedvote.rounds import draw_batches, draw_order
from fedvote.system.device import half_precision, repeatable

CPU = torch.device("cpu")

Orders = Mapping[int, Tensor]
"""The examples of each client of a round, in the order in which it takes them."""


@dataclass(frozen=True)
class Snapshot:
    """All that the next round depends on, and what was measured in the last."""

    round: int
    state: State = field(repr=False)
    memory: State = field(repr=False)  # of the clients, N in front
    record: dict[str, Any] = field(default_factory=dict)

    def to(self, device: torch.device) -> Snapshot:
        state, memory = ({n: t.to(device) for n, t in part.items()} for part in (self.state, self.memory))
        return Snapshot(self.round, state, memory, self.record)


@dataclass(frozen=True, eq=False)
class Federation:
    """What both engines have to agree on."""

    network: Network = field(repr=False)
    data: Dataset
    owned: Sequence[Tensor] = field(repr=False)  # the training examples of each client
    method: Method
    rounds: int
    cohort: int
    steps: int
    batch: int
    epochs: float = 0.0  # passes over a client's own examples, instead of a number of steps
    seed: int = 0
    device: torch.device = CPU
    precision: str = "auto"
    compile: bool = False  # on a GPU, make kernels for this network first: up to half a minute, for faster rounds
    evaluate_every: int = 1  # rounds from one evaluation to the next; the last round is judged in any case
    test_batch: int = 1000
    calibrate_on: int = 1000  # training examples that measure the batch-norm statistics
    attack: Attack = field(default_factory=Nothing)
    hostile: tuple[int, ...] = ()  # who attacks; the server is never told
    oracle: bool = False  # whether only honest clients take part: a yardstick, which no server could run

    @property
    def data_elsewhere(self) -> bool:
        """Whether clients have data of their own, of which nothing is here."""
        return not any(len(part) for part in self.owned)

    def start(self) -> Snapshot:
        """Before round 1."""
        with repeatable():
            network = self.network.to(self.device)
            fresh = contracts.tensors(self.method, "memory", self.method.memory(network))
            memory = {name: value.expand(len(self.owned), *value.shape).clone() for name, value in fresh.items()}
            state = contracts.tensors(self.method, "init", self.method.init(network, len(self.owned)))
            contracts.models(self.method, self.method.models(state), network.D, network.F)
            return Snapshot(0, state, memory)

    def placed(self) -> Network:
        """The network on the run's device, in its precision."""
        return self.network.to(self.device, half_precision(self.device, self.precision), self.compile)

    def test(self) -> Examples:
        """The test examples in the order in which batches are cut, on the run's device."""
        shuffled = torch.randperm(len(self.data.test), generator=Key(self.seed).torch("test"))
        return self.data.test.rows(shuffled).to(self.device)

    def deployed(self, snapshot: Snapshot) -> nn.Module:
        """The model that goes onto a device: an ordinary module with voted weights and calibrated batch norm.

        It takes inputs as `Examples.take` gives them, which scales; what `load_network` gives does that itself.
        """
        return self.network.module(*self.calibrated(snapshot))

    def calibrated(self, snapshot: Snapshot) -> tuple[Weights, State]:
        """The deployed weights and the batch-norm statistics that go with them, on the CPU."""
        with torch.no_grad():
            weights = self.method.models(snapshot.to(self.device).state)["deployed"]
            x = self.calibration(self.data.train).to(self.device)
            statistics = self.network.to(self.device).calibrate(weights, x)
            here = Weights(weights.voted.to(CPU), weights.floats.to(CPU))
            return here, {name: value.to(CPU) for name, value in statistics.items()}

    def calibration(self, train: Examples) -> Tensor:
        """The inputs that measure the batch-norm statistics."""
        lots = torch.randperm(len(train), generator=Key(self.seed).torch("calibration"))
        return train.take(lots[: self.calibrate_on].to(train.y.device))[0]

    def drawn(self, key: Key) -> list[int]:
        """The cohort of a round; an oracle sends the hostile ones away."""
        drawn = sorted(key.numpy("cohort").choice(len(self.owned), self.cohort, replace=False).tolist())
        return [client for client in drawn if not (self.oracle and client in self.hostile)]

    def orders(self, round: int) -> Orders:
        """In which order the clients of a round take their examples."""
        cohort = self.drawn(Key(self.seed, round))
        steps = self.turns([self.owned[client].shape[0] for client in cohort])
        count = (steps if isinstance(steps, int) else max(steps, default=0)) * self.batch
        return {client: draw_order(self.owned[client], count, Key(self.seed, round, client)) for client in cohort}

    def batches(
        self, train: Examples, keys: Sequence[Key], idle: bool = False, orders: Orders | None = None
    ) -> Batches:
        """The mini-batches of these clients, with the labels of hostile ones as the attack makes them."""
        owned = [self.owned[key.client] for key in keys]
        steps = 0 if idle else self.turns([rows.shape[0] for rows in owned])
        known = [orders[key.client] for key in keys] if orders else None
        batches = draw_batches(train, owned, steps, self.batch, keys, known)
        hostile = [row for row, key in enumerate(keys) if key.client in self.hostile]
        if not hostile or type(self.attack).poison is Attack.poison:
            return batches
        labels_KSB = batches.examples.y[batches.index_KSB]
        mine = labels_KSB[hostile]
        poisoned = self.attack.poison(mine.flatten(1), len(self.data.classes), [keys[row] for row in hostile])
        poisoned = contracts.labels(self.attack, poisoned, mine.flatten(1), len(self.data.classes))
        labels_KSB[hostile] = poisoned.view_as(mine).to(labels_KSB.dtype)
        return dataclasses.replace(batches, poisoned_KSB=labels_KSB)

    def turns(self, samples: Sequence[int]) -> int | list[int]:
        """How many steps each client takes: as many as all, or as its number of examples makes."""
        return [max(1, round(self.epochs * n / self.batch)) for n in samples] if self.epochs else self.steps

    def quality(self, snapshot: Snapshot, network: Network, test: Examples, calibration: Tensor) -> dict[str, float]:
        """How good the models after a round are, where that is to be measured."""
        if snapshot.round % self.evaluate_every and snapshot.round != self.rounds:
            return {}
        return judge(network, self.method.models(snapshot.state), test, calibration, self.test_batch)

    def weights(self, state: State, counted: list[int]) -> dict[str, dict[int, float]]:
        """Who had which share in the tally, where shares may differ or clients are hostile."""
        weights = self.method.vote_weights(state)
        if weights is None or (not self.hostile and self.method.rule is None):
            return {}
        return {"vote_weight": dict(zip(counted, weights[counted].tolist(), strict=True))}


def check_numbers(clients: int, cohort: int, hostile: int) -> None:
    """Refuse a cohort, or a number of attackers, that there are too few clients for."""
    if not 0 <= cohort <= clients:
        raise ConfigError(f"cohort is {cohort}, expected 0 (everybody) to {clients}, the number of clients")
    if not 0 <= hostile < max(clients, 1):
        raise ConfigError(f"hostile is {hostile}, expected 0 to {clients - 1}: one client at least is honest")


def traffic(up: int, down: int, sent: int, received: int, D: int) -> dict[str, float]:
    """Bytes of a round in which `received` clients got `down` bytes, and `sent` of them answered with `up`."""
    return {
        "uplink_bytes": up,
        "downlink_bytes": down,
        "uplink_bits_per_weight": 8 * up / (max(sent, 1) * D),
        "downlink_bits_per_weight": 8 * down / (max(received, 1) * D),
    }
