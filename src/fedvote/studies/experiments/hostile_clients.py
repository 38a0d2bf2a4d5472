"""Rules against hostile clients, by their number (Figures 6 and 7); and all rules and attacks on digits."""

from __future__ import annotations

from collections.abc import Sequence

from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.comparison import Comparison
from fedvote.studies.experiments.views import by_number, grid

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
SIMPLE = ("inverse", "label-flip", "random", "omniscient", "sleeper", "colluders", "min-max", "a-little-is-enough",
          "inner-product", "copycat", "insider", "layer", "team")  # fmt: skip
ATTACKS: dict[str, tuple[str, ...]] = {name: (f"attack={name}",) for name in SIMPLE} | {
    "partial 30 %": ("attack=partial", "attack.share=0.3"),
    "partial 5 %": ("attack=partial", "attack.share=0.05"),
    "copycat 30 %": ("attack=copycat", "attack.share=0.3"),
    "copycat 10 %": ("attack=copycat", "attack.share=0.1"),
    "copycat 3 %": ("attack=copycat", "attack.share=0.03"),
    "copycat 1 %": ("attack=copycat", "attack.share=0.01"),
    "copycat 0.5 %": ("attack=copycat", "attack.share=0.005"),
    "copycat of 6": ("attack=copycat", "attack.victims=6"),
    "disagreeing copycat": ("attack=disagreeing-copycat",),
    "disagreeing copycat 30 %": ("attack=disagreeing-copycat", "attack.share=0.3"),
    "disagreeing copycat 10 %": ("attack=disagreeing-copycat", "attack.share=0.1"),
    "layer 25 %": ("attack=layer", "attack.share=0.25"),
    "layer 10 %": ("attack=layer", "attack.share=0.1"),
    "low agreement 20 %": ("attack=low-agreement", "attack.share=0.2"),
    "low agreement 5 %": ("attack=low-agreement", "attack.share=0.05"),
    "low agreement 2 %": ("attack=low-agreement", "attack.share=0.02"),
    "ladder 30 %": ("attack=ladder", "attack.share=0.3"),
    "ladder 10 %": ("attack=ladder", "attack.share=0.1"),
    "vulnerable votes": ("attack=vulnerable-votes",),
    "vulnerable votes 20 %": ("attack=vulnerable-votes", "attack.share=0.2"),
    "vulnerable votes 5 %": ("attack=vulnerable-votes", "attack.share=0.05"),
    "part-time, every 2nd round": ("attack=part-time", "attack.every=2"),
    "part-time layer, every 3rd round": ("attack=part-time", "attack.every=3", "attack.intention=layer"),
    "late, from round 10": ("attack=part-time", "attack.every=1", "attack.starts=10", "attack.intention=low-agreement"),
}
SPLITS = {
    "Dirichlet 0.5": ("partition.alpha=0.5",),
    "Dirichlet 0.1": ("partition.alpha=0.1",),
    "two classes": ("partition=shards",),
}
SEVEN, ELEVEN = ("federation.clients=7", "local.batch=32"), ("federation.clients=11", "local.batch=8")
MANY = ("federation.clients=101", "local.batch=4")
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


def settings_of_run(rule: str, attack: str, hostile: int) -> tuple[str, ...]:
    """The settings of one run. The oracle, and runs without hostile clients, have no attack: all attacks share them."""
    attacked = () if rule == "oracle" or not hostile else ATTACKS[attack]
    counted = (f"federation.hostile={hostile}", *attacked) if hostile else ()
    return (*counted, *([] if rule == "oracle" and not hostile else settings_of(rule, hostile, CLIENTS)))


def compared(about: str, attack: str, rules: Sequence[str] = COMPARED) -> Comparison:
    cells = (
        Cell(rule, "cifar10-silo", ("rounds=30", *settings_of_run(rule, attack, hostile)), str(hostile))
        for hostile in NUMBERS
        for rule in rules
    )
    note = (
        "The server counts every message and does not know which are hostile. The paper's own runs judge clients by "
        "the plurality of the honest clients alone, which no server knows. 'oracle' counts only honest clients, "
        "'uniform' is FedVote without a defence, 'proportional' the paper's defence as printed, 'cut' as in the "
        "authors' code, 'camps' ours. The paper does not give the number of rounds; here it is 30, unless another was "
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

DIGITS = (f"federation.clients={CLIENTS}", "local.batch=8", "rounds=20")
ON_DIGITS = ("camps", "uniform", "cut", "proportional", "median@0.003", "NNM + trimmed mean@0.003",
             "robust learning rate@0.003", "Krum@0.003", "geometric median@0.003", "oracle cut", "oracle")  # fmt: skip
HOSTILE_DIGITS = Comparison(
    "Rules against 5, 10 and 15 hostile clients of 31, under every attack, on digits",
    tuple(
        Cell(f"{attack}, {hostile}", "quickstart", (*DIGITS, *settings_of_run(rule, attack, hostile)), rule)
        for hostile in (5, 10, 15)
        for attack in ATTACKS
        for rule in ON_DIGITS
    ),
    grid({"accuracy": ""}, "Attack, hostile clients"),
    "'oracle' counts only honest clients: the yardstick. Attacks are named by their settings. Copycats copy for three "
    "rounds, and then vote against the honest plurality.",
)

WORST = ("layer", "copycat 1 %", "disagreeing copycat 30 %", "low agreement 20 %", "ladder 30 %", "vulnerable votes",
         "label-flip", "layer 10 %")  # fmt: skip
ON_CIFAR10 = ("camps", "uniform", "oracle")
FLOATS = ("median@0.0003", "NNM + trimmed mean@0.0003", "robust learning rate@0.0003", "cut", "proportional")
HOSTILE_CIFAR10 = Comparison(
    "Rules against 10 and 15 hostile clients of 31, under the worst attacks, on CIFAR-10",
    tuple(
        Cell(f"{attack}, {hostile}", "cifar10-silo", ("rounds=20", *settings_of_run(rule, attack, hostile)), rule)
        for hostile in (15, 10)
        for attack in WORST
        for rule in (*ON_CIFAR10, *(FLOATS if attack in WORST[:2] else ()))
    ),
    grid({"accuracy": ""}, "Attack, hostile clients"),
    "'oracle' counts only honest clients: the yardstick. Float models, 'cut' and 'proportional' run under two attacks.",
)

HONEST_DIGITS = Comparison(
    "Nobody hostile: honest clients under `camps` and under `uniform`, on digits",
    tuple(
        Cell(f"{name}, {clients} clients", "quickstart", ("rounds=20", *settings, *number, *rule), column)
        for name, settings in SPLITS.items()
        for clients, number in {7: SEVEN, 11: ELEVEN, 31: DIGITS[:2], 101: MANY}.items()
        for column, rule in {"camps": RULES["camps"], "uniform": ()}.items()
    ),
    grid({"accuracy": ""}, "Data of clients"),
    "The numbers of honest clients without a vote are in the file, round by round: honest_without.",
)

BOUNDS: dict[str, tuple[str, ...]] = {"unbounded": ()} | {
    f"{name} {value}": (f"method.influence={name}", f"method.influence.{knob}={value}")
    for name, knob, values in (
        ("agreement", "deviations", (0.25, 0.5, 1.0)),
        ("trimmed", "share", (0.05, 0.1, 0.2)),
        ("capped", "most", (0.1, 0.2, 0.4)),
    )
    for value in values
}
INFLUENCE_DIGITS = Comparison(
    "Bounds on influence: their cost in accuracy, on digits among 31 clients",
    tuple(
        Cell(name, "quickstart", (*DIGITS, *bound, *rule), column)
        for name, bound in BOUNDS.items()
        for column, rule in {"uniform": (), "camps": RULES["camps"]}.items()
    ),
    grid({"accuracy": ""}, "Bound"),
    "Nobody is hostile, unless settings were changed.",
)
