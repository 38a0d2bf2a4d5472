"""Rules against hostile clients, by their number (Figures 6 and 7)."""

from __future__ import annotations

from collections.abc import Sequence

from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.comparison import Comparison
from fedvote.studies.experiments.views import by_number

FEDAVG = ("method=fedavg", "method.lr={rate}")
RULES: dict[str, tuple[str, ...]] = {
    "oracle": ("federation.oracle=true",),
    "camps": ("method.reputation=camps",),
    "uniform": (),
    "proportional": ("method.reputation=proportional",),
    "cut": ("method.reputation=cut",),
    "oracle cut": ("method.reputation=oracle-cut", "method.reputation.attackers={hostile}"),
    "FedAvg mean": FEDAVG,
    "median": (*FEDAVG, "method.aggregate=median"),
    "trimmed mean": (*FEDAVG, "method.aggregate=trimmed-mean", "method.aggregate.trim={hostile}"),
    "Krum": (*FEDAVG, "method.aggregate=krum", "method.aggregate.byzantine={tolerated}"),
    "geometric median": (*FEDAVG, "method.aggregate=geometric-median"),
    "NNM + trimmed mean": (
        *FEDAVG,
        "method.aggregate=nearest-neighbour-mixing",
        "method.aggregate.byzantine={hostile}",
    ),
    "robust learning rate": (
        *FEDAVG,
        "method.aggregate=robust-learning-rate",
        "method.aggregate.threshold={more}",
    ),
    "signSGD": ("method=signsgd", "method.server_lr={rate}"),
}
"""Rules that need the number of hostile clients get the true number, or the largest that they accept."""
RATES = {"signSGD": "0.0003"}
USUAL = "0.001"
"""Learning rates of float models, unless a rule's name has another: the best rates without hostile clients."""

CLIENTS = 31
NUMBERS = (0, 5, 10, 15)
COMPARED = ("uniform", "proportional", "cut", "camps", "median@0.0003", "Krum", "signSGD", "oracle")


def settings_of(rule: str, hostile: int, clients: int) -> list[str]:
    """The settings of a rule; its name may include a learning rate, as RULE@RATE."""
    name, _, rate = rule.partition("@")
    values = {
        "hostile": hostile,
        "more": hostile + 1,
        "tolerated": min(hostile, (clients - 3) // 2),
        "rate": rate or RATES.get(name, USUAL),
    }
    return [setting.format(**values) for setting in RULES[name]]


def settings_of_run(rule: str, attack: Sequence[str], hostile: int, clients: int = CLIENTS) -> tuple[str, ...]:
    """The settings of one run. The oracle, and runs without hostile clients, have no attack: all attacks share them."""
    attacked = () if rule == "oracle" or not hostile else attack
    counted = (f"federation.hostile={hostile}", *attacked) if hostile else ()
    return (*counted, *([] if rule == "oracle" and not hostile else settings_of(rule, hostile, clients)))


def compared(about: str, attack: str, rules: Sequence[str] = COMPARED) -> Comparison:
    cells = (
        Cell(rule, "cifar10-silo", ("rounds=20", *settings_of_run(rule, [f"attack={attack}"], hostile)), str(hostile))
        for hostile in NUMBERS
        for rule in rules
    )
    note = (
        "The server counts every message and does not know which are hostile. The paper's own runs judge clients by "
        "the plurality of the honest clients alone, which no server knows. 'oracle' counts only honest clients, "
        "'uniform' is FedVote without a defence, 'proportional' the paper's defence as printed, 'cut' as in the "
        "authors' code, 'camps' ours. The paper does not give the number of rounds; here it is 20, unless another was "
        "asked for. Median, Krum and signSGD always have the learning rate that was best with 15 hostile clients. Krum "
        "is given the number of hostile clients, or 14, the largest number that it accepts."
    )
    return Comparison(about, tuple(cells), by_number, note)


FIGURE_6A = compared("Figure 6 (a): attackers that invert their signs, CIFAR-10 among 31 clients", "inverse")
FIGURE_6B = compared("Figure 6 (b): attackers that flip their labels, CIFAR-10 among 31 clients", "label-flip")
FIGURE_6C = compared("Figure 6 (c): attackers that send noise, CIFAR-10 among 31 clients", "random")
FIGURE_7 = compared(
    "Figure 7: attackers that send the opposite of the result, CIFAR-10 among 31 clients",
    "omniscient",
    ("uniform", "proportional", "cut", "camps", "signSGD", "oracle"),
)
