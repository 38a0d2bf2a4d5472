"""Checks that the parts of a federation fit together, before any training. A failure is one sentence."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from torch import Tensor, nn

from fedvote import contracts
from fedvote.attacks import ATTACKS, Attack
from fedvote.core import Dataset
from fedvote.errors import ConfigError, Doubt
from fedvote.method import Method
from fedvote.methods import METHODS
from fedvote.network.network import Network
from fedvote.plan import Plan
from fedvote.wire import Wire


def check_kinds(network: object, method: object, data: object) -> None:
    for part, kind, example in (
        (network, nn.Module, "torch.nn.Sequential(...)"),
        (method, Method, "fedvote.FedAvg()"),
        (data, Dataset, "fedvote.from_arrays(...)"),
    ):
        if not isinstance(part, kind):
            raise ConfigError(f"got {contracts.kind(part)}, expected a {kind.__name__}, such as {example}")


def check_attack(attack: Attack, method: Method, network: Network) -> None:
    """Refuse an attack that combines messages with different scales."""
    wire = method.wire(network)
    contracts.instance(method, "wire", wire, Wire)
    if attack.joint and (scales := wire.scales):
        alone = ", ".join(name for name, kind in ATTACKS.items() if not kind.joint)
        raise ConfigError(
            f"attack {type(attack).__name__} combines the messages of several clients, but with "
            f"{type(method).__name__} each message has its own scale ({', '.join(scales)}); "
            f"use an attack that works on single messages: {alone}; or another method"
        )


def check_poison(attack: Attack, data: Dataset) -> None:
    """Refuse an attack on labels where labels are no classes."""
    kind = type(attack)
    poisons = kind.poison is not Attack.poison or kind.poison_examples is not Attack.poison_examples
    if poisons and data.task != "classification":
        raise ConfigError(
            f"attack {kind.__name__} changes classes, but the task of {data.name} is {data.task}: use an "
            "attack that changes messages, such as inverse"
        )


def check_frozen(method: Method, network: Network) -> None:
    """Warn if weights that the user froze will move."""
    if network.frozen and not method.keeps_frozen:
        keep = ", ".join(name for name, kind in METHODS.items() if kind.keeps_frozen)
        warnings.warn(
            f"{', '.join(sorted(network.frozen)[:4])}: requires_grad is False, but {type(method).__name__} moves every "
            f"weight; methods that keep them: {keep}",
            Doubt,
            stacklevel=4,
        )


def check_batches(plan: Plan, network: Network) -> None:
    sizes = {"batch": plan.local.batch, "test_batch": plan.engine.test_batch, "calibrate_on": plan.engine.calibrate_on}
    for name, size in sizes.items() if network.norms else ():
        if size < 2:
            raise ConfigError(f"{name} is 1, expected 2 or more: the network's batch norm needs several inputs")


def check_owned(owned: Sequence[Tensor], clients: int, examples: int) -> None:
    if len(owned) != clients:
        raise ConfigError(f"owned divides the data among {len(owned)} clients, expected {clients}")
    for client, rows in enumerate(owned):
        if len(rows) and not (int(rows.min()) >= 0 and int(rows.max()) < examples):
            raise ConfigError(
                f"owned gives client {client} examples {int(rows.min())} to {int(rows.max())}, expected 0 to "
                f"{examples - 1}"
            )
