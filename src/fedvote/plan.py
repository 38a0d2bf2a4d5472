"""How a federation is run: every knob once, with its comment, for configurations, the command line and programs."""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, SupportsIndex

from fedvote.attacks import ATTACKS, Attack, Nothing
from fedvote.contracts import check_choices
from fedvote.data.partition import PARTITIONS, Dirichlet, Partition
from fedvote.errors import ConfigError
from fedvote.registry import named

Precision = Literal["auto", "float32", "bfloat16"]
Carriage = Literal["weighed", "written"]
COMMENT = re.compile(r"^    (\w+):.*?  # (.+)$", re.MULTILINE)


def _check_above_zero(part: object, *names: str) -> None:
    for name in names:
        value = getattr(part, name)
        if not isinstance(value, SupportsIndex) or isinstance(value, bool) or value.__index__() < 1:
            raise ConfigError(f"{name} is {value!r}, expected a whole number above 0")


@dataclass(frozen=True)
class Clients:
    """Who takes part."""

    clients: int = 11  # in the federation
    cohort: int = 0  # clients of one round; 0: all of them
    hostile: int = 0  # clients that attack, drawn from the seed
    oracle: bool = False  # let only honest clients take part: a yardstick that no server could run

    def __post_init__(self) -> None:
        _check_above_zero(self, "clients")
        if not 0 <= self.cohort <= self.clients:
            raise ConfigError(
                f"cohort is {self.cohort}, expected 0 (everybody) to {self.clients}, the number of clients"
            )
        if not 0 <= self.hostile < self.clients:
            raise ConfigError(
                f"hostile is {self.hostile}, expected 0 to {self.clients - 1}: one client at least is honest"
            )


@dataclass(frozen=True)
class LocalTraining:
    """What a client does in a round."""

    steps: int = 40  # local steps of a client in a round
    batch: int = 100  # examples of a step
    epochs: float = 0.0  # passes over a client's own examples, instead of a number of steps; 0: `steps` counts

    def __post_init__(self) -> None:
        _check_above_zero(self, "steps", "batch")
        if not 0 <= self.epochs < math.inf:
            raise ConfigError(
                f"epochs is {self.epochs}, expected 0 (`steps` says how long a turn is) or a number above it"
            )


@dataclass(frozen=True)
class Computation:
    """How rounds are computed and judged."""

    stack: int = 0  # clients trained at once; 0: as many as fit the device
    precision: Precision = "auto"  # bfloat16 on a GPU and float32 on a CPU; or one of these two
    compile: bool = False  # on a GPU, make kernels for this network first: up to half a minute, for faster rounds
    wire: Carriage = "weighed"  # messages stay in memory and their bytes are counted; or "written": and are read again
    evaluate_every: int = 1  # rounds from one evaluation to the next; the last round is judged in any case
    test_batch: int = 1000  # examples that are judged at once, by their own statistics
    calibrate_on: int = 1000  # training examples that measure the batch-norm statistics of the deployed network

    def __post_init__(self) -> None:
        _check_above_zero(self, "evaluate_every", "test_batch", "calibrate_on")
        if self.stack < 0:
            raise ConfigError(f"stack is {self.stack}, expected 0 (the whole cohort) or a number of clients")
        check_choices(self)


@dataclass(frozen=True)
class FlowerOptions:
    """When a round over a network closes, and how long it may take; the simulator does not look here."""

    quorum: float = 1.0  # the share of the cohort whose ballots close a round at once
    deadline: float = 600.0  # seconds after which a round closes with fewer
    minimum: float = 0.5  # the least share of the cohort with which a round may close
    patience: float = 3600.0  # seconds that a round waits for that many before the run stops
    poll: float = 0.5  # seconds between two looks for ballots

    def __post_init__(self) -> None:
        if not 0 < self.minimum <= self.quorum <= 1:
            raise ConfigError(
                f"flower.minimum is {self.minimum} and flower.quorum {self.quorum}, "
                "expected shares of the cohort: 0 < minimum <= quorum <= 1"
            )
        if not 0 < self.poll <= self.deadline <= self.patience:
            raise ConfigError(
                f"flower.poll is {self.poll}, flower.deadline {self.deadline} and flower.patience {self.patience}, "
                "expected seconds: 0 < poll <= deadline <= patience"
            )


@dataclass(frozen=True)
class Plan:
    """All but the network, the data and the method."""

    seed: int = 0  # of all randomness
    rounds: int = 20  # of the whole run
    partition: Partition = field(default=Dirichlet(), metadata={"registry": PARTITIONS})  # who has what
    federation: Clients = Clients()
    attack: Attack = field(default=Nothing(), metadata={"registry": ATTACKS})  # what hostile clients do
    local: LocalTraining = LocalTraining()
    engine: Computation = Computation()

    def __post_init__(self) -> None:
        _check_above_zero(self, "rounds")
        for slot in dataclasses.fields(self):
            if "registry" in slot.metadata:  # so that attack="inverse" works in a program, too
                part = named(slot.metadata["registry"], getattr(self, slot.name) or slot.default, slot.name)
                object.__setattr__(self, slot.name, part)

    @property
    def cohort(self) -> int:
        """How many clients take part in a round."""
        return self.federation.cohort or self.federation.clients

    @classmethod
    def of(cls, **knobs: Any) -> Plan:
        """A plan by the names of its knobs alone: Plan.of(clients=5, steps=20)."""
        tables, known = _tables(), {knob.name: knob for knob in all_knobs()}
        if unknown := knobs.keys() - known.keys():
            raise ConfigError(f"there is no knob {', '.join(sorted(unknown))}; known: {', '.join(known)}")
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


def all_knobs() -> Iterator[Knob]:
    """Every knob of a plan, in the order of declaration."""
    tables = _tables()
    for slot in dataclasses.fields(Plan):
        if slot.name in tables:
            remarks = comments(tables[slot.name])
            for inner in dataclasses.fields(tables[slot.name]):
                yield Knob(inner.name, slot.name, inner.default, remarks[inner.name])
        else:
            yield Knob(slot.name, "", slot.default, comments(Plan)[slot.name])


def _tables() -> Mapping[str, type[Any]]:
    """The fields of a plan that are dataclasses of knobs."""
    return {slot.name: type(slot.default) for slot in dataclasses.fields(Plan) if is_table(slot)}


def is_table(slot: dataclasses.Field[Any]) -> bool:
    return "registry" not in slot.metadata and dataclasses.is_dataclass(slot.default)


def comments(kind: type[Any]) -> dict[str, str]:
    """The comments beside the fields of a dataclass, its own before those of the classes it extends."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if dataclasses.is_dataclass(each):
            with suppress(OSError, TypeError):  # a class without a file
                found |= COMMENT.findall(inspect.getsource(each))
    return found
