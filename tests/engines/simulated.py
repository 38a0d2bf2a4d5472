"""Simulations of toy federations, and their snapshots compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fedvote import FedAvg, Simulation
from fedvote.core import Batches, Message, State
from fedvote.engines.simulate import simulate
from fedvote.method import Method
from fedvote.network.network import Network
from fedvote.randomness import Key
from fedvote.rounds.snapshot import Snapshot
from tests.toy import assert_same, dataset, module


def simulated(method: Method | None = None, **options: Any) -> Simulation:
    chosen: dict[str, Any] = {"clients": 5, "rounds": 3, "steps": 4, "batch": 8, "device": "cpu"}
    return simulate(module(), dataset(), method, **chosen | {"start": "seed"} | options)


def timeless(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if not name.startswith("seconds")}


def assert_equal(a: Snapshot, b: Snapshot) -> None:
    assert a.round == b.round
    assert_same(a.state, b.state)
    assert_same(a.memory, b.memory)
    assert timeless(a.record) == timeless(b.record)


@dataclass(frozen=True)
class Counting(FedAvg):
    """FedAvg whose clients remember how often they took part, and in which round last."""

    def memory(self, network: Network) -> State:
        return {"times": torch.zeros(1, dtype=torch.int64), "last": torch.tensor(-1)}

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        up, _ = super().local(network, down, batches, memory, keys)
        return up, {"times": memory["times"] + 1, "last": torch.tensor([key.round for key in keys])}
