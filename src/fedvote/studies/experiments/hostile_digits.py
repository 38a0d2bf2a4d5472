"""Hostile clients on digits: the worst of every attack, few clients, other rules, and the cost to honest clients."""

from __future__ import annotations

from fedvote.studies.experiments.attack_catalogue import CATALOGUE
from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.comparison import Comparison
from fedvote.studies.experiments.hostile_clients import CLIENTS, RULES, settings_of_run
from fedvote.studies.experiments.searched import Chosen, Searched, best, worst
from fedvote.studies.experiments.views import grid

SIZES = {7: ("federation.clients=7",), 11: ("federation.clients=11", "local.batch=8"),
         31: ("federation.clients=31", "local.batch=8"), 101: ("federation.clients=101", "local.batch=4")}  # fmt: skip
DIGITS = (*SIZES[CLIENTS], "rounds=20")
NUMBERS = (5, 10, 15)
MOST = 15  # hostile clients in the search of settings
ORACLE = "'oracle' counts only the honest clients of the same run: the yardstick. "


def against_worst(chosen: Chosen) -> Comparison:
    """Every attack at the setting that was worst for `camps`."""
    cells = [
        Cell(f"{attack}: {name}, {hostile}", "quickstart", (*DIGITS, *settings_of_run(rule, settings, hostile)), rule)
        for hostile in NUMBERS
        for attack, name in chosen.items()
        for settings in [CATALOGUE[attack][name]]
        for rule in ("camps", "oracle")
    ]
    about = "Every attack by 5, 10 and 15 hostile clients of 31 against `camps`, on digits"
    note = f"{ORACLE}Each attack has the setting that harmed most with 15 hostile clients and seed 0, not shown."
    return Comparison(about, tuple(cells), grid({"accuracy": ""}, "Attack, hostile clients"), note)


HOSTILE_DIGITS = Searched(
    "Every attack, at its worst setting, by 5, 10 and 15 hostile clients of 31 against `camps`, on digits",
    tuple(
        Cell(attack, "quickstart", (*DIGITS, *settings_of_run("camps", settings, MOST)), name)
        for attack, by_name in CATALOGUE.items()
        for name, settings in by_name.items()
    ),
    worst,
    against_worst,
)

FEW = {11: 5, 7: 3}  # clients -> of which hostile
FEW_ATTACKS = {
    "inverse": ("attack=inverse",),
    "random": ("attack=random",),
    "omniscient": ("attack=omniscient",),
    "label-flip": ("attack=label-flip",),
    "layer": ("attack=layer",),
    "layer 25 %": ("attack=layer", "attack.share=0.25"),
    "copycat": ("attack=copycat",),
    "copycat 3 %": ("attack=copycat", "attack.share=0.03"),
    "low-agreement": ("attack=low-agreement",),
    "ladder": ("attack=ladder",),
    "insider": ("attack=insider",),
    "reflect": ("attack=reflect",),
    "team": ("attack=team",),
}
FEW_DIGITS = Comparison(
    "Few clients: 5 hostile of 11 and 3 of 7 against `camps`, on digits",
    tuple(
        Cell(
            f"{attack}, {hostile} of {clients}",
            "quickstart",
            ("rounds=20", *SIZES[clients], *settings_of_run(rule, settings, hostile, clients)),
            rule,
        )
        for clients, hostile in FEW.items()
        for attack, settings in FEW_ATTACKS.items()
        for rule in ("camps", "uniform", "oracle")
    ),
    grid({"accuracy": ""}, "Attack, hostile clients"),
    f"{ORACLE}'uniform' has no defence.",
    first_seed=1,
)

COHORTS = ("rounds=30", "federation.clients=40", "federation.cohort=10", "local.batch=8")
COHORT_ATTACKS = {
    "sleeper": ("attack=sleeper", "attack.wakes=8"),
    "inverse": ("attack=inverse",),
    "omniscient": ("attack=omniscient",),
    "layer": ("attack=layer",),
    "label-flip": ("attack=label-flip",),
}
COHORTS_DIGITS = Comparison(
    "Sampled cohorts: 16 hostile clients of 40, 10 in a round, on digits",
    tuple(
        Cell(attack, "quickstart", (*COHORTS, *settings_of_run(rule, settings, 16, 40)), rule)
        for attack, settings in COHORT_ATTACKS.items()
        for rule in ("camps", "uniform", "oracle")
    ),
    grid({"accuracy": ""}, "Attack"),
    f"{ORACLE}In some rounds most clients are hostile. The file has the share of their votes: hostile_weight.",
    first_seed=1,
)

FLOATS = ("median", "NNM + trimmed mean", "robust learning rate")
RATES = ("0.01", "0.003", "0.001")
RATED_BY = ("inverse", "label-flip", "omniscient")  # attacks under which the rates of float models are chosen


def other_rules(chosen: Chosen) -> Comparison:
    """Every attack at its first setting against rules other than `camps`, float models at their chosen rates."""
    rules = ("camps", "uniform", "cut", "proportional", *(f"{rule}@{rate}" for rule, rate in chosen.items()))
    cells = [
        Cell(f"{attack}, {hostile}", "quickstart", (*DIGITS, *settings_of_run(rule, settings, hostile)), rule)
        for hostile in (MOST,)
        for attack, by_name in CATALOGUE.items()
        for settings in [next(iter(by_name.values()))]
        for rule in (*rules, "oracle")
    ]
    note = (
        f"{ORACLE}Attacks have their first setting. The rates of float models (@) were best under attack with seed 0."
    )
    view = grid({"accuracy": ""}, "Attack, hostile clients")
    return Comparison("Rules other than `camps` against every attack, on digits", tuple(cells), view, note)


RULES_DIGITS = Searched(
    "Rules other than `camps` against 15 hostile clients of 31, under every attack, on digits",
    tuple(
        Cell(rule, "quickstart", (*DIGITS, *settings_of_run(f"{rule}@{rate}", (f"attack={attack}",), MOST)), rate)
        for rule in FLOATS
        for rate in RATES
        for attack in RATED_BY
    ),
    best,
    other_rules,
)

SPLITS = {
    "Dirichlet 0.5": ("partition.alpha=0.5",),
    "Dirichlet 0.1": ("partition.alpha=0.1",),
    "two classes": ("partition=shards",),
}
UNEVEN_DIGITS = Comparison(
    "Wrong labels among clients with more or less the same classes, on digits among 31 clients",
    tuple(
        Cell(
            f"{name}, {hostile}",
            "quickstart",
            (*DIGITS, *split, *settings_of_run(rule, ("attack=label-flip",), hostile)),
            rule,
        )
        for name, split in SPLITS.items()
        for hostile in NUMBERS
        for rule in ("camps", "uniform", "oracle")
    ),
    grid({"accuracy": ""}, "Data of clients, hostile clients"),
    f"{ORACLE}'uniform' has no defence.",
    first_seed=1,
)

LABELS = {"mirrored": (), "one pair": ("attack.swaps=1",), "one way": ("attack.swaps=3", "attack.one_way=true")}
COUNTS = {"": (), ", changes counted": ("method.counts=changes",)}
LABELS_DIGITS = Comparison(
    "Wrong labels where the server counts votes and where it counts changes, on digits among 31 clients",
    tuple(
        Cell(
            f"{name}, {hostile}",
            "quickstart",
            (*DIGITS, *settings_of_run(rule, ("attack=label-flip", *labels), hostile), *counts),
            f"{rule}{suffix}",
        )
        for name, labels in LABELS.items()
        for hostile in (10, 15)
        for suffix, counts in COUNTS.items()
        for rule in ("camps", "oracle")
    ),
    grid({"accuracy": ""}, "Labels, hostile clients"),
    f"{ORACLE}'mirrored' swaps all classes in pairs, 'one way' calls three classes by others' names.",
    first_seed=1,
)

DEFENCES = {"camps": RULES["camps"], "uniform": ()}
ROTATED = ("attack=rotated", "federation.hostile=6")
HONEST_DIGITS = Comparison(
    "Nobody hostile: honest clients under `camps` and under `uniform`, on digits",
    tuple(
        Cell(f"{name}, {clients} clients", "quickstart", ("rounds=20", *split, *size, *rule), column)
        for name, split in SPLITS.items()
        for clients, size in SIZES.items()
        for column, rule in DEFENCES.items()
    )
    + tuple(
        Cell(f"{name}, 6 of 31 clients with rotated images", "quickstart", (*DIGITS, *split, *ROTATED, *rule), column)
        for name, split in SPLITS.items()
        for column, rule in DEFENCES.items()
    ),
    grid({"accuracy": ""}, "Data of clients"),
    "The numbers of honest clients without a vote are in the file, round by round: honest_without; hostile_weight is "
    "the share of the votes of clients with rotated images.",
    first_seed=1,
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
        for column, rule in DEFENCES.items()
    ),
    grid({"accuracy": ""}, "Bound"),
    "Nobody is hostile, unless settings were changed.",
)
