"""How a federation is run: every knob once, with its comment, for configurations, the command line and programs."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from fedvote.attacks import ATTACKS, Attack, Nothing
from fedvote.data.partition import PARTITIONS, Dirichlet, Partition
from fedvote.errors import ConfigError
from fedvote.registry import cached
from fedvote.secure import SECRECIES, InTheClear, Secrecy
from fedvote.settings import Settings, check_at_least, meant
from fedvote.tasks.losses import LOSSES, AutoLoss, Loss
from fedvote.tasks.metrics import METRICS, AutoMetric, Metric
from fedvote.training.schedules import SCHEDULES, Constant, Schedule

Precision = Literal["auto", "float32", "bfloat16"]
Carriage = Literal["weighed", "written"]
COMMENT = re.compile(r"^    (\w+):.*?  # (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Clients(Settings):
    """Who takes part."""

    clients: int = 11  # number of clients in the federation
    cohort: int = 0  # number of clients drawn for a round; 0: all
    hostile: int = 0  # number of clients that attack; the seed draws them
    oracle: bool = False  # leave out hostile clients: the yardstick for a defence, which no server could run
    kept_broadcasts: int = 1  # broadcasts that the server keeps: a client that missed fewer rounds is sent the change

    def __post_init__(self) -> None:
        check_at_least(self, clients=1, kept_broadcasts=1)
        if not 0 <= self.cohort <= self.clients:
            raise ConfigError(
                f"cohort is {self.cohort}, expected 0 (everybody) to {self.clients}, the number of clients"
            )
        if not 0 <= self.hostile < self.clients:
            raise ConfigError(
                f"hostile is {self.hostile}, expected 0 to {self.clients - 1}: one client at least is honest"
            )


@dataclass(frozen=True)
class LocalTraining(Settings):
    """What a client does in a round."""

    steps: int = 40  # local training steps of a client in a round (tau)
    batch: int = 100  # examples in a mini-batch
    epochs: float = 0.0  # passes over the client's own examples, instead of `steps`; 0: use `steps`
    lr_schedule: Schedule = field(default=Constant(), metadata={"registry": SCHEDULES})  # factor of the learning rate
    steps_schedule: Schedule = field(default=Constant(), metadata={"registry": SCHEDULES})  # factor of `steps`
    label_smoothing: float = 0.0  # share of each training label that is spread evenly over all classes (cross-entropy)

    def __post_init__(self) -> None:
        check_at_least(self, steps=1, batch=1)
        if not 0 <= self.label_smoothing < 1:
            raise ConfigError(f"label_smoothing is {self.label_smoothing}, expected a share: 0 to less than 1")
        if not 0 <= self.epochs < math.inf:
            raise ConfigError(f"epochs is {self.epochs}, expected 0 (use `steps`) or a finite number above 0")


@dataclass(frozen=True)
class Computation(Settings):
    """How rounds are computed and evaluated."""

    stack: int = 0  # clients trained at once; 0: as many as fit the device
    precision: Precision = "auto"  # float32 or bfloat16; auto: bfloat16 on a GPU, float32 on a CPU
    compile: bool = False  # on a GPU, compile the training step: takes up to half a minute once, then rounds are faster
    wire: Carriage = "weighed"  # count the bytes of messages; or "written": also write and read them
    evaluate_every: int = 1  # evaluate the models every so many rounds, and after the last
    test_batch: int = 1000  # examples in a test batch, which batch norm normalises by its own statistics
    calibrate_on: int = 1000  # training examples that set the batch-norm statistics of the deployed network

    def __post_init__(self) -> None:
        check_at_least(self, evaluate_every=1, test_batch=1, calibrate_on=1)
        if self.stack < 0:
            raise ConfigError(f"stack is {self.stack}, expected 0 (the whole cohort) or a number of clients")


@dataclass(frozen=True)
class FlowerOptions(Settings):
    """When a round over a network closes, and how long it may take; the simulator does not look here."""

    quorum: float = 1.0  # share of the cohort whose ballots close a round at once
    deadline: float = 600.0  # seconds after which a round closes without a quorum
    minimum: float = 0.5  # share of the cohort without whose ballots no round closes
    grace: float = 20.0  # seconds to wait for clients that were away, once all others are done
    patience: float = 3600.0  # seconds that a round waits for the minimum before the run stops
    poll: float = 0.5  # seconds between two checks for new ballots
    late_rounds: int = 0  # rounds that a ballot may be late and still count, in a later round; 0: it is refused
    late_weight: float = 0.5  # weight of a late ballot, for each round of its age: 0.5, 0.25, ...

    def __post_init__(self) -> None:
        if not 0 < self.minimum <= self.quorum <= 1:
            raise ConfigError(
                f"flower.minimum is {self.minimum} and flower.quorum {self.quorum}, "
                "expected shares of the cohort: 0 < minimum <= quorum <= 1"
            )
        if not 0 <= self.grace < math.inf:
            raise ConfigError(f"flower.grace is {self.grace}, expected seconds: 0 or more")
        if self.late_rounds < 0 or not 0 < self.late_weight <= 1:
            raise ConfigError(
                f"flower.late_rounds is {self.late_rounds} and flower.late_weight {self.late_weight}, "
                "expected 0 or more rounds, and a weight above 0, up to 1"
            )
        if not 0 < self.poll <= self.deadline <= self.patience:
            raise ConfigError(
                f"flower.poll is {self.poll}, flower.deadline {self.deadline} and flower.patience {self.patience}, "
                "expected seconds: 0 < poll <= deadline <= patience"
            )


@dataclass(frozen=True)
class Plan(Settings):
    """Every setting of a run except its network, data and method."""

    seed: int = 0  # all random numbers of the run follow from it
    rounds: int = 20  # number of rounds
    partition: Partition = field(default=Dirichlet(), metadata={"registry": PARTITIONS})  # who has which examples
    federation: Clients = Clients()
    attack: Attack = field(default=Nothing(), metadata={"registry": ATTACKS})  # what hostile clients do
    local: LocalTraining = LocalTraining()
    engine: Computation = Computation()
    loss: Loss = field(default=AutoLoss(), metadata={"registry": LOSSES})  # what clients minimise; auto: by the task
    metric: Metric = field(default=AutoMetric(), metadata={"registry": METRICS})  # judges models; auto: by the task
    secure: Secrecy = field(default=InTheClear(), metadata={"registry": SECRECIES})  # whether the server sees ballots

    def __post_init__(self) -> None:
        check_at_least(self, rounds=1)

    @property
    def cohort(self) -> int:
        """How many clients take part in a round."""
        return self.federation.cohort or self.federation.clients

    def doubts(self) -> Iterator[str]:
        """A sentence for every setting that can run, but is probably a mistake."""
        hostile, attack = self.federation.hostile, type(self.attack)
        called = {kind: name for name, kind in ATTACKS.items()}.get(attack, attack.__name__)
        tests_trigger = attack.triggered is not Attack.triggered  # also of a network that nobody attacked
        if attack is not Nothing and not hostile and not tests_trigger:
            yield f"attack is {called}, but hostile is 0: nobody attacks"
        if attack is Nothing and hostile and not self.federation.oracle:
            yield f"hostile is {hostile}, but there is no attack: hostile clients vote honestly"
        harms = ("poison_examples", "poison", "tamper")
        if attack is not Nothing and hostile and all(getattr(attack, name) is getattr(Attack, name) for name in harms):
            yield f"{called} has no poison_examples, poison or tamper: hostile clients vote honestly"
        if self.federation.oracle and not hostile:
            yield "oracle is true, but hostile is 0: nobody is left out"
        if self.local.epochs and self.local.steps != LocalTraining.steps:
            yield f"epochs is {self.local.epochs:g}, so that steps = {self.local.steps} is not used"

    @classmethod
    def of(cls, **knobs: Any) -> Plan:
        """A plan by the names of its knobs alone: Plan.of(clients=5, steps=20)."""
        tables, known = _tables(), {knob.name: knob for knob in all_knobs()}
        if unknown := knobs.keys() - known.keys():
            name = min(unknown)
            raise ConfigError(f"there is no setting {name}; known: {', '.join(known)}{meant(name, known)}")
        parts = {
            table: kind(**{name: value for name, value in knobs.items() if known[name].table == table})
            for table, kind in tables.items()
        }
        return cls(**{name: value for name, value in knobs.items() if not known[name].table}, **parts)


@dataclass(frozen=True)
class Knob:
    name: str
    table: str  # of a plan, that has it; empty: the plan itself
    default: Any
    comment: str


@cached
def all_knobs() -> tuple[Knob, ...]:
    """Every knob of a plan, in the order of declaration."""
    return tuple(_knobs())


def _knobs() -> Iterator[Knob]:
    tables = _tables()
    for slot in dataclasses.fields(Plan):
        if slot.name in tables:
            remarks = comments(tables[slot.name])
            for inner in dataclasses.fields(tables[slot.name]):
                yield Knob(inner.name, slot.name, inner.default, remarks.get(inner.name, ""))
        else:
            yield Knob(slot.name, "", slot.default, comments(Plan).get(slot.name, ""))


def _tables() -> Mapping[str, type[Any]]:
    """The fields of a plan that are dataclasses of knobs."""
    return {slot.name: type(slot.default) for slot in dataclasses.fields(Plan) if is_table(slot)}


def is_table(slot: dataclasses.Field[Any]) -> bool:
    return "registry" not in slot.metadata and dataclasses.is_dataclass(slot.default)


@cached  # Python parses the whole file to find a class
def comments(kind: type[Any]) -> Mapping[str, str]:
    """The comments beside the fields of a dataclass, its own before those of the classes it extends."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if dataclasses.is_dataclass(each):
            with suppress(OSError, TypeError):  # a class without a file
                found |= COMMENT.findall(inspect.getsource(each))
    return found
