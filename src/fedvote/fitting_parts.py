"""Checks that the parts of a federation fit together, before any training. A failure is one sentence."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fedvote import contracts
from fedvote.attacks import ATTACKS, Attack
from fedvote.codecs import LARGEST
from fedvote.core import Dataset
from fedvote.data.partition import Uneven
from fedvote.errors import ConfigError, Doubt, some
from fedvote.method import Merge, Method
from fedvote.methods import METHODS
from fedvote.network.deployed import bare
from fedvote.network.network import Network
from fedvote.plan import Plan
from fedvote.randomness import Key
from fedvote.reputation import rule_of
from fedvote.secure import Secrecy, SecureTally
from fedvote.secure.planes import bits_for
from fedvote.secure.session import MOST_BITS
from fedvote.secure.whole_numbers import largest_of
from fedvote.wire import Wire

MOST_OF_ALL = 2 / 3  # share of one class in the training examples, from which on a frozen last layer is a doubt


def check_kinds(network: object, method: object, data: object) -> None:
    for part, kind, example in (
        (network, nn.Module, "torch.nn.Sequential(...)"),
        (method, Method, "fedvote.FedAvg()"),
        (data, Dataset, "fedvote.from_arrays(...)"),
    ):
        if not isinstance(part, kind):
            raise ConfigError(f"got {contracts.kind(part)}, expected a {kind.__name__}, such as {example}")
    if (default := torch.get_default_dtype()) != torch.float32:
        raise ConfigError(
            f"the default dtype of torch is {default}, expected torch.float32, in which runs train: call "
            "torch.set_default_dtype(torch.float32) before the run, and before its network is made"
        )


def check_start(start: object) -> Path | str | Mapping[str, Tensor]:
    """A file or a state dict to start from; a module gives its own, and arrays become tensors."""
    if isinstance(start, str | Path):
        return start
    weights = bare(start).state_dict() if isinstance(start, nn.Module) else start
    if not isinstance(weights, Mapping) or not weights:
        found = repr(start) if start is None or weights == {} else contracts.kind(start)
        raise ConfigError(f'start is {found}, expected "given", "seed", a file of weights, or module.state_dict()')
    for name, value in weights.items():
        if not isinstance(value, Tensor | np.ndarray | np.generic):
            raise ConfigError(
                f"start has {contracts.kind(value)} as {name!r}, expected tensors by name: give module.state_dict()"
            )
    return {str(name): torch.as_tensor(value) for name, value in weights.items()}


def check_fit(plan: Plan, method: Method, network: Network, data: Dataset) -> None:
    """Refuse, or warn of, parts that do not fit the network."""
    check_attack(plan.attack, method, network)
    check_secrecy(plan, method, network)
    check_frozen(method, network)
    check_gradients(method, network)
    check_poison(plan.attack, data)
    plan.attack.triggered(data.test.rows(slice(1)), len(data.classes), Key(plan.seed))  # or refuses the data
    check_batches(plan, network, data)
    check_head(method, network, data)


def check_attack(attack: Attack, method: Method, network: Network) -> None:
    """Refuse an attack that combines messages with different scales."""
    wire = method.wire(network)
    contracts.instance(method, "wire", wire, Wire)
    if attack.joint and (scales := wire.scales):
        alone = ", ".join(name for name, kind in ATTACKS.items() if not kind().joint)
        raise ConfigError(
            f"attack {type(attack).__name__} combines the messages of several clients, but with "
            f"{type(method).__name__} each message has its own scale ({', '.join(scales)}); "
            f"use an attack that works on single messages: {alone}; or another method"
        )


def check_secrecy(plan: Plan, method: Method, network: Network, between_machines: bool = False) -> None:
    """Refuse a secure tally of a method, a rule, an attack or a cohort that needs more than a tally."""
    secure, attack = plan.secure, type(plan.attack).__name__
    if method.is_private:
        _check_privacy(secure, between_machines)
    if not isinstance(secure, SecureTally):
        return
    name, why, private = type(method).__name__, "", secure.rounds_privately(between_machines)
    if (rule := rule_of(method)) is not None:
        why = f"rule {type(rule).__name__} compares ballots: set method.reputation = uniform"
    elif not method.wire(network).summed:
        why = (
            f"{name} with these settings sends more than whole numbers to add up: use fedvote with "
            "method.train_float = false, signsgd, or fedavg with method.clip"
        )
    elif type(merge := method.merge(method.init(network, plan.federation.clients), Key(plan.seed, 1))).add_sums is (
        Merge.add_sums
    ):
        why = f"{name} needs each message: its merge has no add_sums"
    elif merge.setting_without_draws and private:
        why = (
            f"{name} with these settings draws the numbers by which clients round, which stay with them: "
            f"set {merge.setting_without_draws}, or secure.rounding = seed"
        )
    elif plan.attack.draws and private:
        why = f"attack {attack} needs the numbers by which others round: set secure.rounding = seed"
    elif plan.cohort < secure.minimum:
        why = f"a round has {plan.cohort} clients, expected secure.minimum = {secure.minimum} or more"
    elif (bits := bits_for(plan.cohort * largest_of(method.wire(network).summed))) > MOST_BITS:
        why = f"a round has {plan.cohort} clients, so that sums need {bits} bits, expected {MOST_BITS} at most"
    elif secure.count_only and between_machines:
        why = "secure.count_only makes no masks, which is for the simulator alone: set it to false"
    elif secure.count_only and plan.engine.wire == "written":
        why = "secure.count_only writes no message, but engine.wire = written writes all: choose one"
    if why:
        raise ConfigError(f"secure.name is tally, so the server learns only sums, but {why}")


def _check_privacy(secure: Secrecy, between_machines: bool) -> None:
    """Refuse an account of tallies where the server sees more."""
    if not secure.sums_alone:
        raise ConfigError(
            "method.privacy accounts for tallies, but the server sees each ballot: set secure.name = tally as well"
        )
    if between_machines and not secure.rounds_privately(between_machines):
        raise ConfigError(
            "method.privacy is void if the server knows the clients' random numbers: set secure.rounding = private"
        )


def check_poison(attack: Attack, data: Dataset) -> None:
    """Refuse an attack on labels where labels are no classes."""
    if (attack.poisons or attack.poisons_examples) and data.task != "classification":
        raise ConfigError(
            f"attack {type(attack).__name__} changes classes, but the task of {data.name} is {data.task}: use an "
            "attack that changes messages, such as inverse"
        )


def check_finite(network: Network) -> None:
    """Refuse initial weights that are no numbers, or that no message can carry: no round would mend them."""
    bad = [
        slot.name
        for slots, flat in ((network.voted, network.start.voted), (network.floats, network.start.floats))
        for slot in slots
        if not (flat[slot.start : slot.stop].abs() <= LARGEST).all()
    ]
    bad += [name for name, value in network.kept_statistics.items() if not value.isfinite().all()]
    if bad:
        raise ConfigError(
            f"the initial weights of {some(bad)} have NaN or infinite numbers, or some beyond ±{LARGEST:.3g}, which no "
            'message carries: give weights from before they diverged, or use start="seed" to draw weights anew'
        )


def check_gradients(method: Method, network: Network) -> None:
    """Warn of voted weights that cannot train: votes would move them at random."""
    voted = [] if method.float_only else [slot.name for slot in network.voted]
    if unused := [name for name in voted if name in network.trial.unused]:
        warnings.warn(
            f"{some(unused)}: voted on, but without a gradient in a trial run, so votes move it at random: use it "
            "in forward, outside of torch.no_grad, or call requires_grad_(False) on it to keep it",
            Doubt,
            stacklevel=5,
        )
    # a float weight behind them is zero
    if (idle := [name for name in voted if name in network.trial.idle]) and not method.trains_float:
        warnings.warn(
            f"{some(idle)} got a gradient of zero in a trial run: {some(network.zero_floats)} starts at zero and does "
            "not train, so nothing before it can learn; set train_float=True, or start from other weights",
            Doubt,
            stacklevel=5,
        )


def check_head(method: Method, network: Network, data: Dataset) -> None:
    """Warn of a frozen last layer in regression, and, behind a batch norm, if most examples have one class."""
    frozen = not method.float_only and not method.trains_float and any(len(slot.shape) > 1 for slot in network.floats)
    if not frozen or not len(data.train):
        return
    if data.task == "regression":
        warnings.warn(
            f"the task of {data.name} is regression, but the last layer does not train, so it leaves size and mean of "
            "the predictions to chance: set train_float=True",
            Doubt,
            stacklevel=5,
        )
    if not network.norms or data.task != "classification":
        return
    share, largest = (torch.bincount(data.train.y) / len(data.train)).max(0)
    if float(share) > MOST_OF_ALL:
        warnings.warn(
            f"{float(share):.0%} of the training examples have class {data.classes[int(largest)]}, but the last "
            "layer does not train, and behind a batch norm it cannot favour a class: set train_float=True, or "
            "keep_float=[] to vote on it, and compare the accuracy of each class",
            Doubt,
            stacklevel=5,
        )


def warn_of_few_examples(owned: Sequence[Tensor], plan: Plan, divided: bool) -> None:
    """Warn of clients with less than a batch. `divided`: the plan's partition gave them their examples."""
    batch, sizes = plan.local.batch, list(map(len, owned))
    short = [client for client, size in enumerate(sizes) if 0 < size < batch]  # a client of another machine has none
    if not short:
        return
    fewest, who = min(sizes[client] for client in short), some(list(map(str, short)))
    have = f"clients {who} have {fewest} examples or more" if short[1:] else f"client {who} has {fewest} examples"
    fixes = [f"batch = {fewest}", *(["fewer clients"] if divided else [])]
    if divided and isinstance(plan.partition, Uneven):
        fixes += [f"partition.min_samples = {batch} (in a program Uneven(min_samples={batch}))"]
    warnings.warn(
        f"{have}, fewer than a batch of {batch}, so that their batches have examples more than once; for batches "
        f"without repetition: {' or '.join(fixes)}",
        Doubt,
        stacklevel=4,
    )


def warn_of(plan: Plan, method: Method, data: Dataset) -> None:
    """Warn of settings that can run, but are probably a mistake."""
    for doubt in (*plan.doubts(), *doubts_about_rule(plan, method, data)):
        warnings.warn(doubt, Doubt, stacklevel=4)


def doubts_about_rule(plan: Plan, method: Method, data: Dataset) -> Iterator[str]:
    """Why a reputation rule cannot do its work: too few ballots in a round, no honest majority, or its own reasons."""
    if (rule := rule_of(method)) is None:
        return
    name, hostile, clients = type(rule).__name__, plan.federation.hostile, plan.federation.clients
    finds = {"a forged ballot": rule.fewest, "wrong labels": rule.fewest_for_labels}
    if missed := [f"{least} or more to find {what}" for what, least in finds.items() if plan.cohort < least]:
        clients_of_round = "one client" if plan.cohort == 1 else f"{plan.cohort} clients"
        needs = f"{name} needs {' and '.join(missed)}, so such votes count"
        yield f"a round has {clients_of_round}: {needs}; take more clients, or a larger cohort"
    trusted = len(rule.trusted_clients)
    if 2 * hostile >= clients and not plan.federation.oracle and not trusted:
        yield f"hostile is {hostile} of {clients} clients: {name} trusts the majority, expected fewer than half"
    if 0 < trusted < rule.fewest - 1:
        yield f"{name} trusts {trusted} of {clients} clients: expected {rule.fewest - 1} or more, or none"
    yield from rule.doubts(hostile, len(data.classes) if data.task == "classification" else 0)


def check_frozen(method: Method, network: Network) -> None:
    """Warn if weights that the user froze will move."""
    if network.frozen and not method.keeps_frozen:
        keep = ", ".join(name for name, kind in METHODS.items() if kind.keeps_frozen)
        warnings.warn(
            f"{some(sorted(network.frozen))}: requires_grad is False, but {type(method).__name__} moves every "
            f"weight; methods that keep them: {keep}, and subclasses of FloatMethod",
            Doubt,
            stacklevel=5,
        )


def check_batches(plan: Plan, network: Network, data: Dataset) -> None:
    sizes = {"batch": plan.local.batch, "test_batch": plan.engine.test_batch, "calibrate_on": plan.engine.calibrate_on}
    for name, size in sizes.items() if network.norms else ():
        if size < 2:
            raise ConfigError(f"{name} is 1, expected 2 or more: the network's batch norm needs several inputs")
    if network.norms and len(data.train) == 1:
        raise ConfigError(
            f"{data.name} has one training example, expected 2 or more: the network's batch norm needs several inputs"
        )


def check_owned(given: Sequence[Any], clients: int, examples: int) -> list[Tensor]:
    """The indices of each client's training examples; ConfigError for anything else."""
    if isinstance(given, Mapping) or not hasattr(given, "__len__"):
        fix = "its values as a list" if isinstance(given, Mapping) else "a list of these"
        raise ConfigError(
            f"owned is {contracts.kind(given)}, expected the examples of each client in order: give {fix}"
        )
    if len(given) != clients:
        raise ConfigError(
            f"owned divides the data among {len(given)} clients, but clients is {clients}: expected as many; give "
            f"clients={len(given)}, or the examples of {clients} clients"
        )
    owned = []
    for client, rows in enumerate(map(np.asarray, given)):
        if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
            raise ConfigError(
                f"owned gives client {client} {rows.dtype} of shape {rows.shape}, expected whole numbers (n,), the "
                "indices of its training examples; of a mask, give np.flatnonzero(mask)"
            )
        if rows.size and not (int(rows.min()) >= 0 and int(rows.max()) < examples):
            raise ConfigError(
                f"owned gives client {client} examples {int(rows.min())} to {int(rows.max())}, expected 0 to "
                f"{examples - 1}"
            )
        owned.append(torch.from_numpy(rows.astype(np.int64)))
    if repeated := len(everything := torch.cat(owned)) - len(everything.unique()):
        warnings.warn(
            f"owned has {repeated} indices more than once: the same examples count several times", Doubt, stacklevel=4
        )
    return owned
