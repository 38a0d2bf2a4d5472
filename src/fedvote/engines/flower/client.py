"""The client: it answers one task with one turn of training and one frame."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from flwr.app import Context

from fedvote.core import Examples
from fedvote.core import Message as Broadcast
from fedvote.engines.flower.client_memory import Memory
from fedvote.engines.flower.client_options import check_keys
from fedvote.engines.flower.local_data import clients_site
from fedvote.engines.flower.memory_place import memory_file
from fedvote.engines.flower.problem import Problem
from fedvote.engines.flower.tasks import Task
from fedvote.engines.flower.voter import Voter, check_demand, rounding_secret
from fedvote.errors import ConfigError, DataError, NoReferenceError
from fedvote.federation import Federation
from fedvote.randomness import Key
from fedvote.rounds import Round
from fedvote.runs.config import parse
from fedvote.runs.own_files import digest
from fedvote.secure import SecureTally
from fedvote.system.device import repeatable
from fedvote.wire import Codecs, frames, write


def take_turn(task: Task, context: Context) -> bytes:
    """Train from the broadcast on this machine's data; returns the frame for the server."""
    node = context.node_config
    check_keys(node)
    federation, train = site(task.problem, task.client, str(node.get("data", "")), str(node.get("device", "auto")))
    secure = federation.plan.secure
    check_demand(node, secure)
    key = Key(federation.plan.seed, task.round, task.client, rounding_secret(secure, task.secret))
    round = Round(federation.method, federation.placed(), key, secure.sums_alone)
    memory = Memory(context.state, memory_file(node, task))
    with repeatable():
        remembered = memory.before(task.round, round.method.memory(round.network))
        broadcast = _read_broadcast(task.broadcast, round, _references(federation, round, memory))
        outgoing, remembered = round.train(broadcast, federation.batches(train, [key]), remembered, [key])
        (frame,) = frames(outgoing)
        if not frame:
            raise DataError(
                f"client {task.client}'s weights became NaN or infinite in round {task.round}, so there is nothing to "
                "send: look for NaN or infinite values in its data, or lower the learning rate"
            )
        memory.after(task.round, remembered, broadcast if round.wire.keeps_broadcast else {})
        if task.client in federation.hostile:
            honest = dict(zip([task.client], write(outgoing), strict=True))
            outgoing = round.tamper(federation.plan.attack, broadcast, honest, federation.hostile) or outgoing
            (frame,) = frames(outgoing)
        if isinstance(secure, SecureTally):
            return Voter(task, context, secure, round.wire.summed).ballot(outgoing.row(0), broadcast)
        return frame


def answer_query(task: Task, context: Context) -> bytes:
    """The answer to a message of a secure tally that is not a task: this client's key, or shares."""
    node = context.node_config
    check_keys(node)
    secure, codecs = _tallied(task.problem, task.client, str(node.get("data", "")))
    check_demand(node, secure)
    return Voter(task, context, secure, codecs).answer()


@lru_cache(maxsize=64)
def _tallied(problem: Problem, client: int, where: str) -> tuple[SecureTally, Codecs]:
    """The secure tally, and the codecs of its ballots, which are small: cached for many clients."""
    federation, _ = site(problem, client, where, "cpu")
    secure = federation.plan.secure
    if not isinstance(secure, SecureTally):
        raise ConfigError("the server asks for a secure tally, but its configuration has none: ask its operator")
    return secure, federation.method.wire(federation.network).summed


def _references(federation: Federation, round: Round, memory: Memory) -> Sequence[Broadcast]:
    """The broadcasts that this client has, which the next may build on. Before round 1 one follows from the seed."""
    if round.key.round > 1:
        return memory.broadcasts_before(round.key.round)
    seeds = round.reference(round.method.init(round.network, len(federation.owned)))
    return [seeds] if seeds else []


def _read_broadcast(frame: bytes, round: Round, references: Sequence[Broadcast]) -> Broadcast:
    """The broadcast in a frame that builds on one of these, or on none; NoReferenceError if on another."""
    for reference in references:
        try:
            return round.read_broadcast(frame, reference)
        except NoReferenceError:
            pass
    return round.read_broadcast(frame)


@lru_cache(maxsize=4)
def site(problem: Problem, client: int, where: str, device: str) -> tuple[Federation, Examples]:
    """The federation on this machine, and its training data. Cached: one process may take many turns."""
    _check_files(problem.files)
    config = parse(problem.experiment, "the server's configuration")
    federation = clients_site(config, problem, client, where, device)
    return federation, federation.training.to(federation.device)


def _check_files(files: Sequence[tuple[str, str]]) -> None:
    """Refuse a file that differs from the server's. A missing file may not be needed, such as one that loads data."""
    for file, expected in files:
        if Path(file).is_file() and (found := digest(Path(file))) != expected:
            raise ConfigError(
                f"{file} differs from the server's (BLAKE2b {found} here, {expected} there): copy the server's file "
                "to this machine"
            )
