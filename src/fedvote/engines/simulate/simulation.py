"""The simulator: rounds of a federation in one process, the cohort as one stack of clients."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from fedvote.attacks import Attack, Nothing
from fedvote.codecs import pack_stack, weigh_stack
from fedvote.core import Batches, ConfigError, Dataset, Examples, Key, State, Weights
from fedvote.data.partition import Dirichlet, Partition, divide
from fedvote.descent import is_small
from fedvote.engines.simulate.ahead import Ahead, Orders
from fedvote.engines.simulate.broadcast import broadcast
from fedvote.engines.simulate.chunks import Chunks
from fedvote.engines.simulate.device import find_device, half_precision, repeatable, synchronise
from fedvote.engines.simulate.evaluate import judge
from fedvote.method import Method
from fedvote.methods import FedVote
from fedvote.network import Network
from fedvote.rounds import check_attack, clients_turn, close_round, draw_batches, draw_order, hostile_turn

CPU = torch.device("cpu")
FILL = 64  # clients that keep a GPU busy, where each has kernels of its own
WIRES = ("weighed", "written")  # messages that never leave the process: only their bytes counted, or written and read


@dataclass(frozen=True)
class Snapshot:
    """All that the next round depends on, and what was measured in the last."""

    round: int
    state: State
    memory: State  # of the clients, N in front
    record: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Simulation:
    """A federation and how it is run. Running it changes nothing here: `run` yields a snapshot a round."""

    network: Network
    data: Dataset
    owned: Sequence[Tensor]  # the training examples of each client
    method: Method
    rounds: int
    cohort: int
    steps: int
    batch: int
    epochs: float = 0.0  # passes over a client's own examples, instead of a number of steps
    seed: int = 0
    device: torch.device = CPU
    precision: str = "auto"
    stack: int = 0  # clients trained at once; 0: the whole cohort, or as many as fit the device
    compile: bool = False  # on a GPU, make kernels for this network first: half a minute, for faster rounds
    wire: str = WIRES[0]
    evaluate_every: int = 1  # rounds from one evaluation to the next; the last round is judged in any case
    test_batch: int = 1000
    calibrate_on: int = 1000  # training examples that measure the batch-norm statistics
    attack: Attack = field(default_factory=Nothing)
    hostile: tuple[int, ...] = ()  # who attacks; the server is never told
    oracle: bool = False  # whether only honest clients take part: a yardstick, which no server could run

    @classmethod
    def of(
        cls,
        module: nn.Module,
        data: Dataset,
        method: Method | None = None,
        *,
        clients: int,
        rounds: int,
        cohort: int = 0,
        steps: int = 40,
        batch: int = 100,
        epochs: float = 0.0,
        partition: Partition | None = None,
        owned: Sequence[Tensor] | None = None,
        keep_float: Sequence[str] | None = None,
        seed: int = 0,
        device: str = "auto",
        precision: str = "auto",
        stack: int = 0,
        compile: bool = False,
        wire: str = WIRES[0],
        evaluate_every: int = 1,
        test_batch: int = 1000,
        calibrate_on: int = 1000,
        attack: Attack | None = None,
        hostile: int = 0,
        oracle: bool = False,
    ) -> Simulation:
        """Divide the data among the clients (unless `owned` says who has what), and check that all parts fit."""
        whole = {"rounds": rounds, "clients": clients, "steps": steps, "batch": batch}
        judging = {"evaluate_every": evaluate_every, "test_batch": test_batch, "calibrate_on": calibrate_on}
        for name, value in (whole | judging).items():
            if value < 1:
                raise ConfigError(f"{name} is {value}, expected a whole number above 0")
        if not 0 <= cohort <= clients:
            raise ConfigError(f"cohort is {cohort}, expected 0 (everybody) to {clients}, the number of clients")
        if not 0 <= hostile < clients:
            raise ConfigError(f"hostile is {hostile}, expected 0 to {clients - 1}: one client at least is honest")
        if not 0 <= epochs < math.inf:
            raise ConfigError(f"epochs is {epochs}, expected 0 (`steps` says how long a turn is) or a number above it")
        if stack < 0:
            raise ConfigError(f"stack is {stack}, expected 0 (the whole cohort) or a number of clients")
        if wire not in WIRES:
            raise ConfigError(f"wire is {wire!r}, expected one of: {', '.join(WIRES)}")
        check_attack(attack or Nothing(), method or FedVote())
        network = Network(module, seed, keep_float)
        network.check(data.shape, len(data.classes))
        if owned is None:
            parts = divide(partition or Dirichlet(), data, clients, Key(seed).numpy("partition"), batch)
            owned = [torch.from_numpy(part) for part in parts]
        elif len(owned) != clients:
            raise ConfigError(f"owned divides the data among {len(owned)} clients, expected {clients}")
        place = find_device(device)
        half_precision(place, precision)
        return cls(
            network=network,
            data=data,
            owned=owned,
            method=method or FedVote(),
            rounds=rounds,
            cohort=cohort or clients,
            steps=steps,
            batch=batch,
            epochs=epochs,
            seed=seed,
            device=place,
            precision=precision,
            stack=stack,
            compile=compile,
            wire=wire,
            evaluate_every=evaluate_every,
            test_batch=test_batch,
            calibrate_on=calibrate_on,
            attack=attack or Nothing(),
            hostile=tuple(sorted(Key(seed).numpy("hostile").choice(clients, hostile, replace=False).tolist())),
            oracle=oracle,
        )

    def start(self) -> Snapshot:
        """Before round 1."""
        with repeatable():
            network = self.network.to(self.device)
            memory = {n: m.expand(len(self.owned), *m.shape).clone() for n, m in self.method.memory(network).items()}
            return Snapshot(0, self.method.init(network, len(self.owned)), memory)

    def run(self, since: Snapshot | None = None, network: Network | None = None) -> Iterator[Snapshot]:
        """A snapshot after every round, from the one after `since` to the last.

        `network`: what `placed` gave to a run like this one; steps that were recorded for it need no recording here.
        """
        network, train = network or self.placed(), self.data.train.to(self.device)
        test, calibration = self.test(), self.calibration(train)
        chunks, ahead = Chunks(self.stack or self.fitting(network, train)), Ahead(self.orders, self.rounds)
        snapshot = _to(since or self.start(), self.device)
        while snapshot.round < self.rounds:
            began = time.perf_counter()
            with repeatable():
                snapshot, posted = self._round(snapshot, network, train, chunks, ahead)
                synchronise(self.device)
                trained = time.perf_counter()
                quality = self.quality(snapshot, network, test, calibration)
            sent = posted()  # what coders found in the meantime
            seconds = {"seconds": time.perf_counter() - began, "seconds_training": trained - began}
            record = {"round": snapshot.round, **quality, **sent, **snapshot.record, **seconds}
            snapshot = Snapshot(snapshot.round, snapshot.state, snapshot.memory, record)
            yield snapshot

    def quality(self, snapshot: Snapshot, network: Network, test: Examples, calibration: Tensor) -> dict[str, float]:
        """How good the models after a round are, where that is to be measured."""
        if snapshot.round % self.evaluate_every and snapshot.round != self.rounds:
            return {}
        return judge(network, self.method.models(snapshot.state), test, calibration, self.test_batch)

    def fitting(self, network: Network, train: Examples) -> int:
        """How many clients to train at once where nobody says: more than fill a device would only take memory."""
        if self.device.type == "cpu" or is_small(network, train.take(slice(0, self.batch))[0]):
            return self.cohort
        return min(self.cohort, FILL)

    def placed(self) -> Network:
        """The network on the run's device, in its precision."""
        return self.network.to(self.device, half_precision(self.device, self.precision), self.compile)

    def test(self) -> Examples:
        """The test examples in the order in which batches are cut, on the run's device."""
        shuffled = torch.randperm(len(self.data.test), generator=Key(self.seed).torch("test"))
        return self.data.test.rows(shuffled).to(self.device)

    def deployed(self, snapshot: Snapshot) -> nn.Module:
        """The model that goes onto a device: an ordinary module with voted weights and calibrated batch norm."""
        return self.network.module(*self.calibrated(snapshot))

    def calibrated(self, snapshot: Snapshot) -> tuple[Weights, State]:
        """The deployed weights and the batch-norm statistics that go with them, on the CPU."""
        with torch.no_grad():
            weights = self.method.models(_to(snapshot, self.device).state)["deployed"]
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

    def _round(
        self, last: Snapshot, network: Network, train: Examples, chunks: Chunks, ahead: Ahead
    ) -> tuple[Snapshot, Callable[[], dict[str, float]]]:
        """The next snapshot, and a way to find out what was sent, which may take longer."""
        key = Key(self.seed, last.round + 1)
        orders = ahead.of(key.round)
        cohort = list(orders)
        post: Any = pack_stack if self.wire == "written" else weigh_stack
        before = last.record.get("clients", ()) if last.round else cohort  # the first, all make of the seed
        down, told = broadcast(self.method, network, last.state, key.round, cohort, before, post)
        memory = {name: values.clone() for name, values in last.memory.items()}
        frames: dict[int, Any] = {}

        def post_trained(*arguments: Any) -> Any:
            ahead.prepare(key.round + 1)  # a GPU may still be busy with what is to be posted
            return post(*arguments)

        def turn(clients: Sequence[int], idle: bool = False) -> None:
            keys = [Key(self.seed, key.round, client) for client in clients]
            mine = {name: values[clients] for name, values in memory.items()}
            batches = self.batches(train, keys, idle, orders)
            sent, mine = clients_turn(self.method, network, down, batches, mine, keys, post_trained)
            frames.update(zip(clients, sent, strict=True))
            for name, values in mine.items():
                memory[name][clients] = values

        idle = self.idle(cohort)
        chunks.each([client for client in cohort if client not in idle], network, turn)
        if idle:
            turn(idle, idle=True)
        frames = hostile_turn(self.attack, self.method, network, down, frames, self.hostile, key, post)
        closed = close_round(self.method, network, last.state, frames, key)

        def posted() -> dict[str, float]:
            return traffic(sum(map(len, frames.values())), told(), len(cohort), len(cohort), network.D)

        record = {
            "clients": cohort,
            **self.weights(closed.state, closed.counted),
            **({"refused": closed.refused} if closed.refused else {}),
        }
        return Snapshot(key.round, closed.state, memory, record), posted

    def idle(self, cohort: Sequence[int]) -> list[int]:
        """The attackers that make their message of others' messages, and need not train."""
        hostile = [client for client in cohort if client in self.hostile]
        return hostile if not self.attack.trains and len(hostile) < len(cohort) else []

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
        labels_KSB[hostile] = poisoned.view_as(mine)
        return dataclasses.replace(batches, poisoned_KSB=labels_KSB)

    def turns(self, samples: Sequence[int]) -> int | list[int]:
        """How many steps each client takes: as many as all, or as its number of examples makes."""
        return [max(1, round(self.epochs * n / self.batch)) for n in samples] if self.epochs else self.steps

    def weights(self, state: State, counted: list[int]) -> dict[str, dict[int, float]]:
        """Who had which share in the tally, where shares differ or clients are hostile."""
        weights = self.method.vote_weights(state)
        if weights is None or not (self.hostile or len(weights[counted].unique()) > 1):
            return {}
        return {"vote_weight": dict(zip(counted, weights[counted].tolist(), strict=True))}


def traffic(up: int, down: int, sent: int, received: int, D: int) -> dict[str, float]:
    """Bytes of a round in which `received` clients got `down` bytes, and `sent` of them answered with `up`."""
    return {
        "uplink_bytes": up,
        "downlink_bytes": down,
        "uplink_bits_per_weight": 8 * up / (max(sent, 1) * D),
        "downlink_bits_per_weight": 8 * down / (max(received, 1) * D),
    }


def _to(snapshot: Snapshot, device: torch.device) -> Snapshot:
    state, memory = ({n: t.to(device) for n, t in part.items()} for part in (snapshot.state, snapshot.memory))
    return Snapshot(snapshot.round, state, memory, snapshot.record)
