"""The simulator: rounds of a federation in one process, the cohort as one stack of clients."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex

import torch
from torch import Tensor, nn

from fedvote import contracts
from fedvote.attacks import ATTACKS, Attack, Nothing
from fedvote.codecs import pack_stack, weigh_stack
from fedvote.core import Dataset, Examples
from fedvote.data.partition import PARTITIONS, Dirichlet, Partition, divide
from fedvote.engines.simulate.broadcast import broadcast
from fedvote.engines.simulate.chunks import Chunks
from fedvote.engines.simulate.draw_ahead import Ahead
from fedvote.errors import ConfigError
from fedvote.federation import Federation, Snapshot, check_numbers, traffic
from fedvote.method import Method
from fedvote.methods import FedVote
from fedvote.network.network import Network
from fedvote.randomness import Key
from fedvote.registry import named
from fedvote.rounds import check_attack, clients_turn, close_round, hostile_turn
from fedvote.system.device import find_device, half_precision, repeatable, synchronise
from fedvote.training.descent import is_small

FILL = 64  # clients that keep a GPU busy, where each has kernels of its own
WIRES = ("weighed", "written")  # messages that never leave the process: only their bytes counted, or written and read


@dataclass(frozen=True, eq=False)
class Simulation(Federation):
    """A federation and how it is run here. Running it changes nothing here: `run` yields a snapshot a round."""

    stack: int = 0  # clients trained at once; 0: the whole cohort, or as many as fit the device
    wire: str = WIRES[0]

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
        partition: Partition | str | None = None,
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
        attack: Attack | str | None = None,
        hostile: int = 0,
        oracle: bool = False,
    ) -> Simulation:
        """Divide the data among the clients (unless `owned` says who has what), and check that all parts fit."""
        whole = {"rounds": rounds, "clients": clients, "steps": steps, "batch": batch}
        judging = {"evaluate_every": evaluate_every, "test_batch": test_batch, "calibrate_on": calibrate_on}
        for name, value in (whole | judging).items():
            if not isinstance(value, SupportsIndex) or value < 1:
                raise ConfigError(f"{name} is {value!r}, expected a whole number above 0")
        check_numbers(clients, cohort, hostile)
        if not 0 <= epochs < math.inf:
            raise ConfigError(f"epochs is {epochs}, expected 0 (`steps` says how long a turn is) or a number above it")
        if stack < 0:
            raise ConfigError(f"stack is {stack}, expected 0 (the whole cohort) or a number of clients")
        if wire not in WIRES:
            raise ConfigError(f"wire is {wire!r}, expected one of: {', '.join(WIRES)}")
        method = FedVote() if method is None else method
        for part, kind, example in (
            (module, nn.Module, "torch.nn.Sequential(...)"),
            (method, Method, "fedvote.FedAvg()"),
            (data, Dataset, "fedvote.from_arrays(...)"),
        ):
            if not isinstance(part, kind):
                raise ConfigError(f"got {contracts.kind(part)}, expected a {kind.__name__}, such as {example}")
        chosen_attack: Attack = named(ATTACKS, attack or Nothing(), "attack")
        chosen_partition: Partition = named(PARTITIONS, partition or Dirichlet(), "partition")
        check_attack(chosen_attack, method)
        method.check(cohort or clients)
        network = Network(module, seed, keep_float)
        network.check(data.shape, len(data.classes))
        for name in ("batch", "test_batch", "calibrate_on") if network.norms else ():
            if (whole | judging)[name] < 2:
                raise ConfigError(f"{name} is 1, expected 2 or more: the network has batch norm, which compares inputs")
        if owned is None:
            parts = divide(chosen_partition, data, clients, Key(seed).numpy("partition"), batch)
            owned = [torch.from_numpy(part) for part in parts]
        elif len(owned) != clients:
            raise ConfigError(f"owned divides the data among {len(owned)} clients, expected {clients}")
        else:
            for client, rows in enumerate(owned):
                if len(rows) and not (int(rows.min()) >= 0 and int(rows.max()) < len(data.train)):
                    raise ConfigError(
                        f"owned gives client {client} examples {int(rows.min())} to {int(rows.max())}, expected 0 to "
                        f"{len(data.train) - 1}"
                    )
        place = find_device(device)
        half_precision(place, precision)
        return cls(
            network=network,
            data=data,
            owned=owned,
            method=method,
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
            attack=chosen_attack,
            hostile=tuple(sorted(Key(seed).numpy("hostile").choice(clients, hostile, replace=False).tolist())),
            oracle=oracle,
        )

    def run(self, since: Snapshot | None = None, network: Network | None = None) -> Iterator[Snapshot]:
        """A snapshot after every round, from the one after `since` to the last.

        `network`: what `placed` gave to a run of the same seed; steps that were recorded for it need no recording here.
        """
        if network is not None and not network.starts_as(self.network):
            raise ConfigError("the network starts from other weights than this run, expected one of the same seed")
        network, train = network or self.placed(), self.data.train.to(self.device)
        test, calibration = self.test(), self.calibration(train)
        chunks, ahead = Chunks(self.stack or self.fitting(network, train)), Ahead(self.orders, self.rounds)
        start = self.start()
        snapshot = since or start
        if not snapshot.memory:  # as after rounds over a network, where clients keep their own
            snapshot = replace(snapshot, memory=start.memory)
        snapshot = snapshot.to(self.device)
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

    def fitting(self, network: Network, train: Examples) -> int:
        """How many clients to train at once where nobody says: more than fill a device would only take memory."""
        if self.device.type == "cpu" or is_small(network, train.take(slice(0, self.batch))[0]):
            return self.cohort
        return min(self.cohort, FILL)

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
            **({"measured": closed.measured} if closed.measured else {}),
            **({"refused": closed.refused} if closed.refused else {}),
        }
        return Snapshot(key.round, closed.state, memory, record), posted

    def idle(self, cohort: Sequence[int]) -> list[int]:
        """The attackers that make their message of others' messages, and need not train."""
        hostile = [client for client in cohort if client in self.hostile]
        return hostile if not self.attack.trains and len(hostile) < len(cohort) else []
