"""The client: one task, one turn, one frame."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from flwr.app import Context, UserConfig

from fedvote.core import Examples
from fedvote.core import Message as Broadcast
from fedvote.engines.flower.client_memory import Memory
from fedvote.engines.flower.local_data import clients_site
from fedvote.engines.flower.tasks import Problem, Task
from fedvote.errors import ConfigError, DataError
from fedvote.federation import Federation
from fedvote.rounds import Round
from fedvote.runs.config import parse
from fedvote.runs.folder import digest
from fedvote.system.device import repeatable
from fedvote.wire import frames, write

NODE_KEYS = ("data", "memory", "device")
FLOWERS_KEYS = ("partition-id", "num-partitions")  # Flower's simulation gives them to every node


def take_turn(task: Task, context: Context) -> bytes:
    """Train from the broadcast on the data that are here; returns the frame for the server."""
    node = context.node_config
    _check_keys(node)
    federation, train = _site(task.problem, task.client, str(node.get("data", "")), str(node.get("device", "auto")))
    key = federation.key(task.round, task.client)
    round = Round(federation.method, federation.placed(), federation.key(task.round))
    memory = Memory(context.state, _memory_file(node, task))
    with repeatable():
        remembered = memory.before(task.round, round.method.memory(round.network))
        broadcast = round.read_broadcast(task.broadcast, _reference(federation, round, memory))
        outgoing, remembered = round.train(broadcast, federation.batches(train, [key]), remembered, [key])
        (frame,) = frames(outgoing)
        if not frame:
            raise DataError(
                f"client {task.client}'s weights became NaN or infinite in round {task.round}, so there is nothing to "
                "send: look for values in its data that are no numbers, or lower the learning rate"
            )
        memory.after(task.round, remembered, broadcast if round.wire.keeps_broadcast else {})
        if task.client not in federation.hostile:
            return frame
        mine = dict(zip([task.client], write(outgoing), strict=True))
        forged = round.tamper(federation.plan.attack, broadcast, mine, federation.hostile)
        return frames(forged)[0] if forged else frame


def _check_keys(node: UserConfig) -> None:
    if unknown := node.keys() - {*NODE_KEYS, *FLOWERS_KEYS}:
        raise ConfigError(
            f"the node's configuration has no key {', '.join(sorted(unknown))}; known: {', '.join(NODE_KEYS)}"
        )


def _memory_file(node: UserConfig, task: Task) -> Path | None:
    if "memory" not in node:
        return None
    return Path(str(node["memory"])) / f"{task.problem.run}-{task.client}.safetensors"


def _reference(federation: Federation, round: Round, memory: Memory) -> Broadcast | None:
    """The last broadcast, which the next one may build on. Before round 1 it is what the seed makes."""
    if round.key.round > 1:
        return memory.broadcast(round.key.round - 1)
    return round.reference(round.method.init(round.network, len(federation.owned)))


@lru_cache(maxsize=4)
def _site(problem: Problem, client: int, where: str, device: str) -> tuple[Federation, Examples]:
    """Made once, if one process takes many turns, as in Flower's simulation."""
    _check_files(problem.files)
    config = parse(problem.experiment, "the server's configuration")
    federation = clients_site(config, problem, client, where, device)
    return federation, federation.data.train.to(federation.device)


def _check_files(files: Sequence[tuple[str, str]]) -> None:
    """Refuse a file that differs from the server's. A file that is not here may not be needed here, as for data."""
    for file, theirs in files:
        if Path(file).is_file() and (ours := digest(Path(file))) != theirs:
            raise ConfigError(
                f"{file} is another file here than on the server (BLAKE2b {ours} here, {theirs} there): copy the "
                "server's to this machine"
            )
