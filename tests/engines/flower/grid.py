"""A grid in this process: nodes that answer as a test tells them, on a clock that moves only when somebody sleeps."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from flwr.app import Context, Error, Message, RecordDict
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from fedvote.engines.flower.client_app import app as client_app
from fedvote.engines.flower.replies import Ballot, Refusal, read_reply, reply_message
from fedvote.engines.flower.roster import Roster, load_roster
from fedvote.engines.flower.server import Server
from fedvote.engines.simulate import Simulation
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.claim import claim, release
from fedvote.runs.config import Config, parse
from fedvote.runs.experiment import federation as planned
from fedvote.runs.experiment import record
from fedvote.runs.folder import RunFolder

SMALL = """
rounds = 3
[federation]
clients = 4
[partition]
name = "iid"
[model]
name = "mlp"
[local]
steps = 2
batch = 8
[engine]
stack = 1
"""

Reply = tuple[float, Message]  # seconds until it arrives, and what arrives
Behaviour = Callable[["FakeGrid", int, Message], list[Reply]]


def small(*settings: str) -> Config:
    return parse(SMALL, "a test", settings)


def honest(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
    return [(1.0, grid.turn(node, message))]


def after(seconds: float) -> Behaviour:
    return lambda grid, node, message: [(seconds, grid.turn(node, message))]


def silent(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
    return []


def faulty(code: int, seconds: float = 1.0, reason: str = "a reason") -> Behaviour:
    return lambda grid, node, message: [(seconds, Message(Error(code, reason), reply_to=message))]


def refuses(refusal: Refusal) -> Behaviour:
    return lambda grid, node, message: [(1.0, reply_message(refusal, message))]


def sends(content: RecordDict) -> Behaviour:
    """A node that replies with these records."""
    return lambda grid, node, message: [(1.0, Message(content, reply_to=message))]


def frame_of(reply: Message) -> bytes:
    """The frame of a ballot."""
    outcome = read_reply(reply)
    assert isinstance(outcome, Ballot)
    return outcome.frame


def in_round(round: int, then: Behaviour, otherwise: Behaviour = honest) -> Behaviour:
    def behave(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        chosen = then if message.metadata.group_id == str(round) else otherwise
        return chosen(grid, node, message)

    return behave


@dataclass
class FakeGrid(Grid):
    nodes: dict[int, bytes] = field(default_factory=dict)  # node id -> public key, of those online
    behave: dict[int, Behaviour] = field(default_factory=dict)  # node id -> what it does; honest, if not said
    now: float = 0.0
    dies: bool = False  # whether whoever waits for an answer is killed
    replies: list[tuple[float, Message]] = field(default_factory=list)
    contexts: dict[int, Context] = field(default_factory=dict)
    node_config: dict[str, Any] = field(default_factory=dict)  # of every node
    sent: list[Message] = field(default_factory=list)
    plans: list[tuple[float, Callable[[], Any]]] = field(default_factory=list)  # what happens, and when
    pulls: dict[int, Callable[[], Any]] = field(default_factory=dict)  # node id -> what happens as its reply is pulled

    def __post_init__(self) -> None:
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, 1

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        if self.dies:
            raise KeyboardInterrupt
        self.now += seconds
        for plan in [plan for plan in self.plans if plan[0] <= self.now]:
            self.plans.remove(plan)
            plan[1]()

    def turn(self, node: int, message: Message) -> Message:
        """What the real ClientApp answers."""
        return client_app(message, self.contexts.setdefault(node, Context(1, node, self.node_config, RecordDict(), {})))

    def get_nodes(self) -> Iterable[NodeInfo]:
        return [NodeInfo(node_id=node, public_key=key) for node, key in self.nodes.items()]

    def get_node_ids(self) -> Iterable[int]:
        return list(self.nodes)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        names = []
        for message in messages:
            name = str(uuid4())
            message.metadata.__dict__["_message_id"] = name
            names.append(name)
            self.sent.append(message)
            node = message.metadata.dst_node_id
            for seconds, reply in self.behave.get(node, honest)(self, node, message):
                in_time = seconds <= message.metadata.ttl  # else Flower drops message and reply
                late = Message(Error(3, "the message expired"), reply_to=message)
                self.replies.append((self.now + min(seconds, message.metadata.ttl), reply if in_time else late))
        return names

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        asked = set(message_ids)
        due = [r for r in self.replies if r[0] <= self.now and r[1].metadata.reply_to_message_id in asked]
        self.replies = [reply for reply in self.replies if reply not in due]
        for _, reply in due:
            self.pulls.get(reply.metadata.src_node_id, int)()
        return [message for _, message in due]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        raise NotImplementedError

    def create_message(self, *_: Any, **__: Any) -> Message:
        raise NotImplementedError

    def set_run(self, run: Run) -> None: ...

    @property
    def run(self) -> Run:
        raise NotImplementedError


def grid_of(clients: int) -> FakeGrid:
    """Nodes 100, 101, ... with keys, so that they become clients in an order that keys alone decide."""
    return FakeGrid({100 + number: bytes([number]) * 8 for number in range(clients)})


def elect(
    config: Config,
    grid: FakeGrid,
    folder: Path,
    allowed: Mapping[str, str] | None = None,
    secret: bytes | None = None,
) -> Generator[Snapshot, None, None]:
    """A run over this grid, into a folder, resumed if it is there. Its secret is the simulator's, if none is given."""
    federation, run_folder = planned(config, "cpu"), RunFolder(folder)
    since = claim(run_folder, config, resume=True)
    try:
        server = Server(federation, config, folder, grid, allowed, grid.clock, grid.sleep, secret or federation.secret)
        yield from record(federation, run_folder, since, server.run(since))
    finally:
        release(run_folder)


def repeat(
    config: Config,
    records: Iterable[Mapping[str, Any]],
    folder: Path,
    secret: bytes,
    data: Mapping[int, Path] | None = None,
) -> Snapshot:
    """The last snapshot of a run in this process, in which those vote who count in these records.

    `data`: client -> the folder with its examples, for clients with examples of their own.
    """
    voters = {str(record["round"]): set(record["counted"]) for record in records}

    def vote(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        counted = message.content.config_records["task"]["client"] in voters[message.metadata.group_id]
        return (honest if counted else silent)(grid, node, message)

    grid = grid_of(config.federation.clients)
    grid.behave = dict.fromkeys(grid.nodes, vote)
    for client, path in (data or {}).items():
        node = number(grid, client)
        grid.contexts[node] = Context(1, node, {"data": str(path)}, RecordDict(), {})
    return list(elect(config, grid, folder, secret=secret))[-1]


def node_of(grid: FakeGrid, folder: Path, client: int) -> int:
    """The node that has this number."""
    return load_roster(folder, len(grid.nodes)).present(grid.get_nodes())[client]


PATIENT = ("flower.deadline=20", "flower.patience=100", "flower.minimum=0.5")


def number(grid: FakeGrid, client: int) -> int:
    """The node that will have, or has, this number: the roster numbers newcomers in the order of their names."""
    return Roster(len(grid.nodes)).enrol(grid.get_nodes()).present(grid.get_nodes())[client]


def run(folder: Path, behave: dict[int, Behaviour], *settings: str, grid: FakeGrid | None = None) -> list[Any]:
    """The records of a run of 4 clients, of which some do as told."""
    grid = grid or grid_of(4)
    grid.behave = {number(grid, client): then for client, then in behave.items()}
    return [snapshot.record for snapshot in elect(small(*PATIENT, *settings), grid, folder)]


def alter(change: Callable[[bytes], bytes]) -> Behaviour:
    """A node whose frame is changed on the way."""

    def behave(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        frame = frame_of(grid.turn(node, message))
        return [(1.0, reply_message(Ballot(change(frame)), message))]

    return behave


def flip(frame: bytes) -> bytes:
    return frame[:-9] + bytes([frame[-9] ^ 1]) + frame[-8:]


def in_the_simulator(config: Config, secret: bytes | None = None) -> list[Snapshot]:
    federation = planned(config, "cpu")
    return list(Simulation(replace(federation, secret=secret or federation.secret)).run())


def lacks_reference(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
    """What the real client says, which has to be that it lacks the reference."""
    reply = grid.turn(node, message)
    assert read_reply(reply) == Refusal("no-reference")
    return [(1.0, reply)]
