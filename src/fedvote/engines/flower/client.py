"""The client's side: one turn for one message. What it remembers between rounds stays in its own state."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import torch
from flwr.app import Array, ArrayRecord, Context

from fedvote.config import parse
from fedvote.core import Examples, Key, State
from fedvote.engines.flower.messages import Problem, Task
from fedvote.engines.flower.site import clients_site
from fedvote.engines.simulate import Simulation
from fedvote.engines.simulate.device import repeatable
from fedvote.rounds import clients_turn, hostile_turn

MEMORY = "memory"


def take_turn(task: Task, context: Context) -> bytes:
    """Train on the data that are here, from what was broadcast, and return the frame for the server."""
    node = context.node_config
    made, train = _site(task.problem, task.client, str(node.get("data", "")), str(node.get("device", "auto")))
    network, key = made.placed(), Key(made.seed, task.round, task.client)
    with repeatable():
        memory = recall(context, made.method.memory(network))
        batches = made.batches(train, [key])
        sent, memory = clients_turn(made.method, network, task.broadcast, batches, memory, [key])
        remember(context, memory)
        frames = {task.client: sent[0]}
        frames = hostile_turn(made.attack, made.method, network, task.broadcast, frames, made.hostile, key)
    return frames[task.client]


def recall(context: Context, fresh: Mapping[str, torch.Tensor]) -> State:
    """What this client remembers, with a stack's leading axis of one; what a method starts with, if it does not."""
    kept = context.state.array_records.get(MEMORY)
    if kept is None or kept.keys() != fresh.keys():
        return {name: value[None].clone() for name, value in fresh.items()}
    return {name: torch.from_numpy(kept[name].numpy()).to(value.device) for name, value in fresh.items()}


def remember(context: Context, memory: State) -> None:
    if memory:
        arrays = {name: Array(value.cpu().numpy()) for name, value in memory.items()}
        context.state[MEMORY] = ArrayRecord(arrays)


@lru_cache(maxsize=4)
def _site(problem: Problem, client: int, where: str, device: str) -> tuple[Simulation, Examples]:
    """Made once where one process takes many turns, as in Flower's simulation."""
    made = clients_site(parse(problem.experiment, "the server's configuration"), problem, client, where, device)
    return made, made.data.train.to(made.device)
