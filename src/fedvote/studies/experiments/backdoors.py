"""Backdoors: accuracy, and the share of triggered inputs that become the attackers' class, by rule and attackers."""

from __future__ import annotations

from collections.abc import Sequence

from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.comparison import Comparison
from fedvote.studies.experiments.hostile_clients import CLIENTS, settings_of
from fedvote.studies.experiments.hostile_digits import BOUNDS
from fedvote.studies.experiments.hostile_digits import DIGITS as SMALL
from fedvote.studies.experiments.views import grid

NUMBERS = (0, 3, 5, 10)
TRIGGERS = ("patch", "blended", "distributed")
BOUNDED = ("agreement 0.5", "agreement 1.0", "trimmed 0.1", "trimmed 0.2")
RULES = ("uniform", "camps", *BOUNDED, "median@{rate}", "robust learning rate@{rate}", "oracle")


def settings_of_column(name: str, hostile: int) -> Sequence[str]:
    """The settings of a rule; or of a bound on influence, on top of `camps`."""
    rule = "camps" if name in BOUNDS else name
    return (*settings_of(rule, hostile, CLIENTS), *BOUNDS.get(name, ()))


def planted(about: str, preset: str, settings: tuple[str, ...], rate: str) -> Comparison:
    """Every trigger and rule. With 0 attackers: the answer of a network that nobody attacked to the same trigger."""
    cells = (
        Cell(f"{trigger}, {hostile} of {CLIENTS}", preset, (
            *settings, "attack=backdoor", "attack.target=7", f"attack.trigger={trigger}",
            f"federation.hostile={hostile}", *settings_of_column(rule.format(rate=rate), hostile),
        ), rule.format(rate=rate))
        for trigger in TRIGGERS for hostile in NUMBERS for rule in RULES if hostile or rule != "oracle"
    )  # fmt: skip
    note = (
        "Half of each attacker's examples have the trigger and the label 7. Success is the share of triggered test "
        "inputs of other classes that become 7; compare it with the row of 0 "
        "attackers: a network that nobody attacked, of the same rule and seed. Bounds are on top of `camps`. 'oracle' "
        "counts only the honest clients of the same run."
    )
    metrics = {"accuracy": "accuracy", "backdoor_success": "success"}
    return Comparison(about, tuple(cells), grid(metrics, "Trigger, hostile clients", "After the last round"), note)


BACKDOOR_DIGITS = planted("Backdoors among 31 clients, on digits", "quickstart", SMALL, "0.003")
BACKDOOR_CIFAR10 = planted("Backdoors among 31 clients, on CIFAR-10", "cifar10-silo", ("rounds=30",), "0.001")
