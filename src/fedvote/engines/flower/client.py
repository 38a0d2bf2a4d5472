"""The client's side: one turn for one message."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from flwr.app import Context

from fedvote.core import Examples
from fedvote.engines.flower.client_memory import Memory
from fedvote.engines.flower.local_data import clients_site
from fedvote.engines.flower.messages import Problem, Task
from fedvote.errors import ConfigError, DataError
from fedvote.federation import Federation
from fedvote.randomness import Key
from fedvote.rounds import clients_turn, held_before, hostile_turn, read_broadcast
from fedvote.runs.config import parse
from fedvote.runs.folder import digest
from fedvote.system.device import repeatable

NODE_KEYS = ("data", "memory", "device")
FLOWERS_KEYS = ("partition-id", "num-partitions")  # which its simulation gives to every node


def take_turn(task: Task, context: Context) -> bytes:
    """Train on the data that are here, from what was broadcast, and return the frame for the server."""
    node = context.node_config
    if unknown := node.keys() - {*NODE_KEYS, *FLOWERS_KEYS}:
        raise ConfigError(
            f"the node's configuration has no key {', '.join(sorted(unknown))}; known: {', '.join(NODE_KEYS)}"
        )
    made, train = _site(task.problem, task.client, str(node.get("data", "")), str(node.get("device", "auto")))
    network, key = made.placed(), Key(made.seed, task.round, task.client)
    kept = Path(str(node["memory"])) / f"{task.problem.run}-{task.client}.safetensors" if "memory" in node else None
    remembered = Memory(context.state, kept)
    with repeatable():
        memory = remembered.before(task.round, made.method.memory(network))
        if task.round == 1:
            held = held_before(made.method, made.method.init(network, len(made.owned)), task.round)
        else:
            held = remembered.held(task.round - 1)
        down = read_broadcast(made.method, network, task.broadcast, task.round, held)
        batches = made.batches(train, [key])
        sent, memory = clients_turn(made.method, network, down, batches, memory, [key])
        if not sent[0]:
            raise DataError(
                f"training client {task.client} in round {task.round} made no numbers of its weights, so there is "
                "nothing to send: look for values in its data that are no numbers, or lower the learning rate"
            )
        remembered.after(task.round, memory, down if made.method.keeps_broadcast else {})
        frames = {task.client: sent[0]}
        frames = hostile_turn(made.attack, made.method, network, down, frames, made.hostile, key)
    return frames[task.client]


@lru_cache(maxsize=4)
def _site(problem: Problem, client: int, where: str, device: str) -> tuple[Federation, Examples]:
    """Made once where one process takes many turns, as in Flower's simulation."""
    _check_files(problem.files)
    made = clients_site(parse(problem.experiment, "the server's configuration"), problem, client, where, device)
    return made, made.data.train.to(made.device)


def _check_files(files: Sequence[tuple[str, str]]) -> None:
    """Refuse to work with another file than the server. One that is not here may not be needed here, as for data."""
    for file, theirs in files:
        if Path(file).is_file() and (ours := digest(Path(file))) != theirs:
            raise ConfigError(
                f"{file} is another file here than on the server (BLAKE2b {ours} here, {theirs} there): copy the "
                "server's to this machine"
            )
