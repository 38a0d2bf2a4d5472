"""The simulator: rounds of a federation in one process, the cohort as one stack of clients."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from fedvote.core import Dataset, Examples, Message, State
from fedvote.data.augment import Augmentation
from fedvote.engines.simulate.broadcast import broadcast, holders_after
from fedvote.engines.simulate.chunks import Chunks
from fedvote.engines.simulate.draw_ahead import DrawAhead
from fedvote.engines.simulate.secret_round import close_unseen, private
from fedvote.engines.uncounted import lost_rounds
from fedvote.errors import ConfigError, DataError, Doubt
from fedvote.federation import Federation
from fedvote.method import Method
from fedvote.methods import method_of
from fedvote.network.deployed import Deployed
from fedvote.network.network import Network
from fedvote.network.summary import Summary
from fedvote.plan import Plan, all_knobs
from fedvote.rounds import Round
from fedvote.rounds.snapshot import Snapshot
from fedvote.rounds.traffic import traffic
from fedvote.secure import SecureTally
from fedvote.settings import name_here
from fedvote.system.device import repeatable, synchronise
from fedvote.training.descent import is_small
from fedvote.wire import Carry, Delivery, Outgoing, weigh, write

FILL = 64  # clients that keep a GPU busy, if each has its own kernels
CARRIERS: dict[str, Carry] = {"weighed": weigh, "written": write}


def simulate(
    network: nn.Module,
    data: Dataset | str,
    method: Method | str | None = None,
    *,
    keep_float: Sequence[str] | None = None,
    vote: Sequence[str] = (),
    start: str | Path | nn.Module | Mapping[str, Tensor] = "given",
    owned: Sequence[Tensor] | None = None,
    augment: Sequence[str | Augmentation] = (),
    device: str = "auto",
    **knobs: Any,
) -> Simulation:
    """Train a federation in this process. Iterate over what it returns: a snapshot after every round.

    Parts such as `partition`, `attack` and `loss` are given by name, or with settings of their own as objects:
    `from fedvote.data.partition import Dirichlet`, partition=Dirichlet(alpha=0.1).

    network: any nn.Module; it is copied, never changed. FedVote votes on its convolutions and linear layers
    data: made by fedvote.from_arrays, from_torch, from_pandas or from_hugging_face; or a name: digits, hf:NAME
    method: how clients and server train, such as fedvote.FedAvg(lr=0.01), or a name; not given: FedVote()
    keep_float: names of layers (with * and ?) that stay float; not given: the last layer on the way to the output
    vote: names of further weights to vote on, such as attention.in_proj_weight or embedding
    start: "given", the network's own weights; "seed", those that the seed draws; or a file, state dict or module
    owned: the indices of each client's training examples, of as many clients; not given: `partition` divides them
    augment: random changes of training inputs, such as ["flip", "crop"]
    device: auto, cpu or cuda
    """
    method = method_of(method)
    _check_knobs(method, knobs)
    if isinstance(owned, Sized):
        knobs = {"clients": len(owned)} | knobs
    plan = Plan.of(**knobs)
    federation = Federation.of(
        network, data, method, plan,
        owned=owned, keep_float=keep_float, vote=vote, start=start, augment=augment, device=device,
    )  # fmt: skip
    for client, rows in enumerate(federation.owned):
        if not len(rows):
            raise DataError(f"client {client} has no training examples; leave it out, or give it some")
    return Simulation(federation)


def _check_knobs(method: Method, knobs: Mapping[str, Any]) -> None:
    """ConfigError for a setting of the method, such as its learning rate, that says where it belongs."""
    kind = type(method)
    settings = {field.name for field in fields(kind)} if is_dataclass(kind) else set[str]()
    of_run = {knob.name for knob in all_knobs()}
    for name in sorted(knobs.keys() - of_run):
        if (here := name_here(name)) in settings - of_run:
            raise ConfigError(f"{name} is a setting of the method, not of the run: use {kind.__name__}({here}=...)")


def _document(function: Callable[..., Any]) -> None:
    """Add every knob of a plan, with its default and comment, to a function's signature and docstring."""
    knobs, parameter = list(all_knobs()), inspect.Parameter
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind != parameter.VAR_KEYWORD]
    more = [parameter(knob.name, parameter.KEYWORD_ONLY, default=knob.default) for knob in knobs]
    function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    lines = "\n".join(f"{knob.name}: {knob.comment}; default {knob.default!r}" for knob in knobs)
    function.__doc__ = f"{inspect.getdoc(function)}\n{lines}\n"


_document(simulate)


@dataclass(frozen=True, eq=False)
class Simulation:
    """A federation to run in this process. Iterating yields a snapshot a round.

    Iterating again starts again at round 1, with the same results; `run(snapshot)` continues after a snapshot.
    """

    federation: Federation

    def __iter__(self) -> Iterator[Snapshot]:
        records = []
        for snapshot in self.run():
            records.append(snapshot.record)
            yield snapshot
        if lost := lost_rounds(records):
            warnings.warn(lost, Doubt, stacklevel=2)

    def summary(self) -> Summary:
        """Every layer with its shape, what happens to it, and its bits; print it."""
        return self.federation.summary()

    def deployed(self, snapshot: Snapshot) -> Deployed:
        """The model that goes onto a device: a module for inputs as in the data, whose votes are -1 and +1 (or 0)."""
        return self.federation.deployed(snapshot)

    def run(self, since: Snapshot | None = None, network: Network | None = None) -> Iterator[Snapshot]:
        """Yield a snapshot after every round, from the round after `since` to the last.

        `network`: the result of `placed` from another run of the same seed; steps recorded for it are reused.
        """
        federation = self.federation
        if since is not None:
            federation.check_own(since)
        if network is not None and not network.starts_as(federation.network):
            raise ConfigError("the network starts from other weights than this run, expected one of the same seed")
        network, train = network or federation.placed(), federation.training.to(federation.device)
        test, calibration = federation.test(), federation.calibration()
        chunks = Chunks(federation.plan.engine.stack or self.fitting(network, train))
        ahead, start = DrawAhead(federation.orders, federation.plan.rounds), federation.start()
        snapshot = since or start
        if not snapshot.memory:  # after rounds over a network, where clients keep their memory
            snapshot = replace(snapshot, memory=start.memory)
        snapshot = snapshot.to(federation.device)
        while snapshot.round < federation.plan.rounds:
            began = time.perf_counter()
            with repeatable():
                snapshot, count_bytes = self._round(snapshot, network, train, chunks, ahead)
                synchronise(federation.device)
                trained = time.perf_counter()
                quality = federation.quality(snapshot, network, test, calibration)
            sent = count_bytes()  # coders worked during the evaluation
            seconds = {"seconds": time.perf_counter() - began, "seconds_training": trained - began}
            record = {"round": snapshot.round, **quality, **sent, **snapshot.record, **seconds}
            snapshot = Snapshot(snapshot.round, snapshot.state, snapshot.memory, record)
            yield snapshot

    def fitting(self, network: Network, train: Examples) -> int:
        """Clients to train at once by default: enough to fill the device; more would only take memory."""
        plan = self.federation.plan
        if self.federation.device.type == "cpu" or is_small(network, train.take(slice(0, plan.local.batch))[0]):
            return plan.cohort
        return min(plan.cohort, FILL)

    def _round(
        self, last: Snapshot, network: Network, train: Examples, chunks: Chunks, ahead: DrawAhead
    ) -> tuple[Snapshot, Callable[[], dict[str, float]]]:
        """The next snapshot, and a function that counts the round's bytes; counting may take longer."""
        federation, plan = self.federation, self.federation.plan
        key = federation.key(last.round + 1)
        round = Round(federation.method, network, key, plan.secure.sums_alone, plan.federation.kept_broadcasts)
        cohort = list(ahead.of(key.round))
        holders = holders_after(last.round, last.state, last.record, cohort)
        down, downlink_bytes = broadcast(round, last.state, cohort, holders, CARRIERS[plan.engine.wire])
        deliveries, memory = self._answers(round, down, last.memory, train, chunks, ahead)
        if isinstance(plan.secure, SecureTally):
            closed, sent = close_unseen(federation, plan.secure, round, last.state, deliveries)
        else:
            closed, sent = round.close(last.state, deliveries), None

        def count_bytes() -> dict[str, float]:
            lengths = [delivery.nbytes for delivery in deliveries.values()]
            up, senders = (sent.up, len(cohort)) if sent else (sum(lengths), sum(map(bool, lengths)))
            down = downlink_bytes() + (sent.down if sent else 0)
            return traffic(up, down, senders, len(cohort), federation.weights_sent)

        record = {
            "clients": cohort,
            **federation.vote_weights(last.state, closed.state, closed.counted),
            **({"measured": closed.measured} if closed.measured else {}),
            **({"refused": closed.refused} if closed.refused else {}),
        }
        return Snapshot(key.round, closed.state, memory, record), count_bytes

    def _answers(
        self, round: Round, down: Message, memory: State, train: Examples, chunks: Chunks, ahead: DrawAhead
    ) -> tuple[dict[int, Delivery], State]:
        """Train the cohort; the message of each client, forged ones included, and the clients' new memories."""
        federation, carry = self.federation, CARRIERS[self.federation.plan.engine.wire]
        orders, memory = ahead.of(round.key.round), {name: values.clone() for name, values in memory.items()}
        deliveries: dict[int, Delivery] = {}

        def send(outgoing: Outgoing) -> None:
            clients = [header.client for header in outgoing.headers]
            deliveries.update(zip(clients, carry(outgoing), strict=True))

        def turn(clients: Sequence[int], idle: bool = False) -> None:
            keys = [round.key.of(client) for client in clients]
            if federation.plan.secure.rounds_privately(between_machines=False):
                keys = [private(key) for key in keys]
            own = {name: values[clients] for name, values in memory.items()}
            outgoing, own = round.train(down, federation.batches(train, keys, idle, orders), own, keys)
            ahead.prepare(round.key.round + 1)  # a GPU may still be busy with the training
            send(outgoing)
            for name, values in own.items():
                memory[name][clients] = values

        idle = self.idle(list(orders))
        chunks.each([client for client in orders if client not in idle], round.network, turn)
        chunks.each(idle, round.network, partial(turn, idle=True))
        if forged := round.tamper(federation.plan.attack, down, deliveries, federation.hostile):
            send(forged)
        return deliveries, memory

    def idle(self, cohort: Sequence[int]) -> list[int]:
        """Attackers that need not train: they make their messages from the messages of others."""
        hostile = [client for client in cohort if client in self.federation.hostile]
        return hostile if not self.federation.plan.attack.trains and len(hostile) < len(cohort) else []
