"""A federation: its clients, their data, the method, and all random draws. Engines run it; nothing here does.

All draws are functions of the seed, the round and the client: every engine draws the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fedvote import contracts
from fedvote.attacks.poisoned_data import poisoned_data, with_poisoned_labels
from fedvote.core import Batches, Dataset, Examples, State, Weights
from fedvote.data import load
from fedvote.data.augment import AUGMENTATIONS, Augmentation, augmented, check_all
from fedvote.data.batches import draw_batches, draw_order
from fedvote.data.partition import divide
from fedvote.errors import ConfigError
from fedvote.fitting_parts import (
    check_finite,
    check_fit,
    check_kinds,
    check_owned,
    check_start,
    warn_of,
    warn_of_few_examples,
)
from fedvote.method import Method
from fedvote.methods import method_of
from fedvote.network.cost import BITS
from fedvote.network.deployed import Deployed, bare, count_votes, packing_of
from fedvote.network.dropout import noise_of
from fedvote.network.network import Network
from fedvote.network.round_metrics import judge, success
from fedvote.network.start import Start, with_weights
from fedvote.network.summary import Summary, summarise
from fedvote.network.trial import try_values
from fedvote.plan import Plan
from fedvote.randomness import Key, run_secret
from fedvote.randomness.attackers import draw_attackers
from fedvote.registry import parts_of
from fedvote.reputation import rule_of, trusted_by
from fedvote.reputation.reputation import memory_in
from fedvote.rounds import held
from fedvote.rounds.snapshot import Snapshot
from fedvote.system.device import find_device, half_precision, repeatable
from fedvote.tasks.goal import CLASSES, Goal
from fedvote.tasks.losses import smoothed

CPU = torch.device("cpu")

Orders = Mapping[int, Tensor]
"""Client -> its training examples, in the order of its batches; for the clients of one round."""


@dataclass(frozen=True, eq=False)
class Federation:
    """The definition of a federation that both engines share."""

    network: Network = field(repr=False)
    data: Dataset
    owned: Sequence[Tensor] = field(repr=False)  # indices of each client's training examples
    method: Method
    plan: Plan
    device: torch.device = CPU
    hostile: tuple[int, ...] = ()  # clients that attack; the server never uses this
    secret: bytes = field(default=b"", repr=False)  # of the run: all numbers by which clients round follow from it
    augment: tuple[Augmentation, ...] = ()  # random changes of training inputs
    goal: Goal = CLASSES

    @classmethod
    def of(
        cls,
        network: nn.Module,
        data: Dataset | str,
        method: Method | str | None = None,
        plan: Plan | None = None,
        *,
        owned: Sequence[Tensor] | None = None,
        keep_float: Sequence[str] | None = None,
        vote: Sequence[str] = (),
        start: str | Path | nn.Module | Mapping[str, Tensor] = "given",
        augment: Sequence[str | Augmentation] = (),
        device: str = "auto",
    ) -> Federation:
        """Divide the data among the clients, and check that all parts fit together.

        owned: indices of each client's training examples, if they are divided already
        keep_float: names of layers (with * and ?) that are not voted on; not given: the last layer
        vote: names of further weights to vote on, such as attention.in_proj_weight
        start: "given", the module's own weights; "seed", those that the seed draws; or a file, state dict or module
        augment: random changes of the training inputs, by name or as objects
        """
        method, plan = method_of(method), plan or Plan()
        data = load(data) if isinstance(data, str) else data
        check_kinds(network, method, data)
        network = bare(network)
        warn_of(plan, method, data)
        contracts.signatures(type(method), Method)
        method.check(plan.cohort)
        goal = Goal.of(plan.loss, plan.metric, data)
        loss = smoothed(goal.loss, plan.local.label_smoothing)
        if not isinstance(start, str) or start not in ("seed", "given"):
            network, start = with_weights(network, check_start(start)), "given"
        begin: Start = "seed" if start == "seed" else "given"
        functional = Network(
            network, plan.seed, keep_float, loss, vote=vote, start=begin, shape=data.shape, votes=not method.float_only
        )
        check_finite(functional)
        functional.check(data.shape, len(data.classes), data.task)
        try_values(functional, data)
        goal.try_on(partial(functional, functional.start.voted, functional.start.floats), data, plan.local.batch)
        check_fit(plan, method, functional, data)
        changes = parts_of(AUGMENTATIONS, Augmentation, augment, "augment")
        check_all(changes, data.shape)
        place, key, clients = find_device(device), Key(plan.seed), plan.federation.clients
        half_precision(place, plan.engine.precision)  # refuses a precision that the device lacks
        if divided := owned is None:
            parts = divide(plan.partition, data, clients, key.numpy("partition"))
            owned = [torch.from_numpy(part) for part in parts]
        else:
            owned = check_owned(owned, clients, len(data.train))
        warn_of_few_examples(owned, plan, divided)
        hostile = draw_attackers(key, clients, plan.federation.hostile, trusted_by(method))
        return cls(functional, data, owned, method, plan, place, hostile, run_secret(plan.seed), changes, goal)

    @property
    def data_elsewhere(self) -> bool:
        """Whether no client's data are on this machine."""
        return not any(len(part) for part in self.owned)

    @cached_property
    def _poisoned(self) -> tuple[Examples, Sequence[Tensor]]:
        keys = [self.key(0, client) for client in self.hostile]
        return poisoned_data(self.data.train, self.owned, self.plan.attack, len(self.data.classes), keys)

    @property
    def training(self) -> Examples:
        """All examples that clients train on. Hostile clients may have changed theirs."""
        return self._poisoned[0]

    @property
    def rows(self) -> Sequence[Tensor]:
        """The rows of each client in `training`."""
        return self._poisoned[1]

    def key(self, round: int, client: int | None = None) -> Key:
        """The server's key of a round, or a client's."""
        servers = Key(self.plan.seed, round, secret=self.secret)
        return servers if client is None else servers.of(client)

    def start(self) -> Snapshot:
        """The snapshot before round 1."""
        with repeatable():
            fresh = contracts.tensors(self.method, "memory", self.method.memory(self.network.to(self.device)))
            memory = {name: value.expand(len(self.owned), *value.shape).clone() for name, value in fresh.items()}
        return Snapshot(0, self.start_state(), memory)

    def start_state(self) -> State:
        """The server's state before round 1."""
        with repeatable():
            network = self.network.to(self.device)
            state = contracts.tensors(self.method, "init", self.method.init(network, len(self.owned)))
            contracts.models(self.method, self.method.models(state), network.D, network.F)
            return state | (held.nobody(len(self.owned)) if self.keeps_earlier else {})

    @property
    def keeps_earlier(self) -> bool:
        """Whether the state has broadcasts of rounds before the last, for clients that missed some."""
        return self.plan.federation.kept_broadcasts > 1 and self.method.wire(self.network).keeps_broadcast

    def summary(self) -> Summary:
        """Every layer with its shape, what happens to it, and its bits; print it."""
        method, network = self.method, self.network
        state = self.start().state
        bits = BITS.get(packing_of(method.models(state)["deployed"].voted), 32.0)
        down = {name: value.cpu() for name, value in method.broadcast(state).items()}
        uplink = method.wire(network).up(down, self.key(1, 0))
        return summarise(network, self.plan.seed, uplink, bits, method)

    @property
    def weights_sent(self) -> int:
        """How many weights travel: the voted ones, and the float ones that train."""
        sent = self.network.trainable if self.method.keeps_frozen else self.network.D + self.network.F
        return sent if self.method.trains_float else self.network.D

    def placed(self) -> Network:
        """The network on the run's device, in its precision."""
        half = half_precision(self.device, self.plan.engine.precision)
        return self.network.to(self.device, half, self.plan.engine.compile)

    def test(self) -> Examples:
        """The test examples on the run's device, shuffled once for evaluation in batches."""
        shuffled = torch.randperm(len(self.data.test), generator=Key(self.plan.seed).torch("test"))
        return self.data.test.rows(shuffled).to(self.device)

    def deployed(self, snapshot: Snapshot) -> Deployed:
        """The model that goes onto a device, with voted weights and calibrated batch norm, as `load_network` gives it.

        It takes inputs as the data store them, and scales them itself. Its `network` has the layers.
        """
        weights, statistics = self.calibrated(snapshot)
        module, train, votes = self.network.module(weights, statistics), self.data.train, count_votes(weights.voted)
        made = Deployed(module, train.mean, train.std, self.data.classes, self.data.shape, train.x.dtype, votes)
        return made.eval().requires_grad_(False)

    def calibrated(self, snapshot: Snapshot) -> tuple[Weights, State]:
        """The deployed weights and the batch-norm statistics that go with them, on the CPU."""
        self.check_own(snapshot)
        with torch.no_grad():
            weights = self.method.models(snapshot.to(self.device).state)["deployed"]
            x = self.calibration()
            statistics = self.network.to(self.device).calibrate(weights, x)
            on_cpu = Weights(weights.voted.to(CPU), weights.floats.to(CPU))
            return on_cpu, {name: value.to(CPU) for name, value in statistics.items()}

    def check_own(self, snapshot: Snapshot) -> None:
        """Refuse what is no snapshot, and one of a run with another network, method or number of clients."""
        if not isinstance(snapshot, Snapshot):
            raise ConfigError(f"got {contracts.kind(snapshot)}, expected a Snapshot: a run yields one every round")
        found = {name: tuple(value.shape) for name, value in snapshot.state.items()}
        expected = {name: tuple(value.shape) for name, value in self.start_state().items()}
        if differ := [name for name, shape in expected.items() if found.get(name) != shape]:
            name = differ[0]
            has = f"{name} of shape {found[name]}" if name in found else f"no {name}"
            raise ConfigError(
                f"the snapshot of round {snapshot.round} is of another run: it has {has}, expected shape "
                f"{expected[name]}; give one of this run, or of the same network, method and clients"
            )

    def calibration(self) -> Tensor:
        """The inputs on which batch-norm statistics are measured, on the run's device. No attack changes them."""
        order = torch.randperm(len(self.data.train), generator=Key(self.plan.seed).torch("calibration"))
        drawn = self.data.train.rows(order[: self.plan.engine.calibrate_on])
        return drawn.to(self.device).take(slice(None))[0]

    def cohort(self, round: int) -> list[int]:
        """The clients of a round; an oracle leaves out the hostile ones."""
        drawn = self.key(round).numpy("cohort").choice(len(self.owned), self.plan.cohort, replace=False).tolist()
        return [c for c in sorted(drawn) if not (self.plan.federation.oracle and c in self.hostile)]

    def orders(self, round: int) -> Orders:
        """Draw the order in which each client of a round takes its examples."""
        cohort = self.cohort(round)
        steps = self.steps([self.owned[client].shape[0] for client in cohort], round)
        count = (steps if isinstance(steps, int) else max(steps, default=0)) * self.plan.local.batch
        return {client: draw_order(self.rows[client], count, self.key(round, client)) for client in cohort}

    def batches(
        self, train: Examples, keys: Sequence[Key], idle: bool = False, orders: Orders | None = None
    ) -> Batches:
        """The mini-batches of these clients, from `training`; the attack may change the labels of hostile clients."""
        owned = [self.rows[key.client] for key in keys]
        round, rounds = keys[0].round, self.plan.rounds
        steps = 0 if idle else self.steps([rows.shape[0] for rows in owned], round)
        drawn = [orders[key.client] for key in keys] if orders else None
        batches = draw_batches(train, owned, steps, self.plan.local.batch, keys, drawn)
        batches = dataclasses.replace(batches, rate=self.plan.local.lr_schedule.at(round, rounds), rounds=rounds)
        batches = augmented(batches, self.augment, keys) if self.augment else batches
        if self.network.trial.dropout:
            noise = noise_of(keys, batches.steps).to(train.y.device)
            batches = dataclasses.replace(batches, noise_KS2=noise)
        hostile = {row: key for row, key in enumerate(keys) if key.client in self.hostile}
        return with_poisoned_labels(batches, self.plan.attack, len(self.data.classes), hostile)

    def steps(self, samples: Sequence[int], at: int = 1) -> int | list[int]:
        """Local steps of each client in round `at`: one number for all, or one for each by its number of examples."""
        local = self.plan.local
        factor = local.steps_schedule.at(at, self.plan.rounds)
        if local.epochs:
            return [max(1, round(factor * local.epochs * n / local.batch)) for n in samples]
        return max(1, round(factor * local.steps))

    def quality(self, snapshot: Snapshot, network: Network, test: Examples, calibration: Tensor) -> dict[str, Any]:
        """Metrics and losses of the models after a round; empty in rounds without evaluation."""
        if not self.evaluates(snapshot.round):
            return {}
        models = self.method.models(snapshot.state)
        metrics = judge(network, models, test, calibration, self.plan.engine.test_batch, self.goal)
        triggered = self.plan.attack.triggered(test, len(self.data.classes), self.key(0))
        if triggered is None:
            return metrics
        return metrics | success(network, models, triggered, calibration, self.plan.engine.test_batch)

    def evaluates(self, round: int) -> bool:
        """Whether the models are evaluated after a round."""
        return round % self.plan.engine.evaluate_every == 0 or round == self.plan.rounds

    def vote_weights(self, before: State, after: State, counted: list[int]) -> dict[str, Any]:
        """Each client's share in the tally, and why some have none; empty if all are equal and no client is hostile."""
        weights, rule = after.get("vote_weight"), rule_of(self.method)
        if weights is None or (not self.hostile and rule is None):
            return {}
        shares = dict(zip(counted, weights[counted].tolist(), strict=True))
        without = [client for client, share in shares.items() if not share]
        if rule is None or not without:
            return {"vote_weight": shares}
        reasons = contracts.reasons(rule, rule.reasons(memory_in(before), memory_in(after), without), without)
        return {"vote_weight": shares, "left_out": reasons}
