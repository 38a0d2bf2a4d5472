"""Levels of the broadcast soft vote: how many, how rounded, how spaced; and whether rules stay safe with few."""

from __future__ import annotations

from collections.abc import Mapping

from fedvote.studies.experiments.both_ways import both_ways
from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.comparison import Comparison
from fedvote.studies.experiments.hostile_clients import CLIENTS, settings_of_run
from fedvote.studies.experiments.hostile_digits import DIGITS
from fedvote.studies.experiments.views import grid

RANDOM, CARRY = "method.level_rounding=random", "method.level_rounding=carry"
CHANGES = "method.counts=changes"
EVEN = "method.level_spacing=even"
LEVELS: dict[str, tuple[str, ...]] = {
    "all": (),
    **{f"{number} nearest": (f"method.levels={number}",) for number in (17, 9, 6, 5, 4, 3)},
    **{f"{number} nearest, even": (f"method.levels={number}", EVEN) for number in (9, 5, 4)},
    **{f"{number} random": (f"method.levels={number}", RANDOM) for number in (17, 9, 5, 4, 3, 2)},
    **{f"{number} carried": (f"method.levels={number}", CARRY) for number in (17, 9, 6, 5, 4, 3)},
    **{f"{number} random, even": (f"method.levels={number}", RANDOM, EVEN) for number in (9, 5, 4)},
    "all, changes": (CHANGES,),
    **{f"{number} carried, changes": (f"method.levels={number}", CARRY, CHANGES) for number in (17, 9, 6, 5, 4, 3)},
}
"""Three and two levels have one spacing."""

KEPT = {
    f"{name}, {number} kept": (*LEVELS[name], f"federation.kept_broadcasts={number}")
    for name in ("all", "3 carried, changes")
    for number in (10, 50)
}
"""For rounds that most clients miss: the server keeps earlier broadcasts."""

CANDIDATES = ("all", "9 nearest", "5 carried", "3 carried", "3 random", "all, changes", "5 carried, changes")
VOTES = {"equal": (), "weighted": ("method.reputation=proportional",), "ternary": ("method.votes=ternary",)}
ATTACKED = ("all", "3 carried", "all, changes", "5 carried, changes")
HOSTILE = 15
ATTACKS = {
    "inverse": ("attack=inverse",),
    "copycat 10 %": ("attack=copycat", "attack.share=0.1"),
    "insider": ("attack=insider",),
    "sleeper": ("attack=sleeper",),
}


def ablation(
    data: str, preset: str, settings: tuple[str, ...], *targets: float, more: Mapping[str, tuple[str, ...]] = {}
) -> Comparison:
    levels = {**LEVELS, **more}
    cells = [
        Cell(name, preset, (*settings, *VOTES[votes], *levels[name]), votes)
        for votes in VOTES
        for name in (levels if votes == "equal" else CANDIDATES)
    ]
    return Comparison(f"Levels of the broadcast soft vote, {data}", tuple(cells), both_ways(*targets))


LEVELS_DIGITS = ablation(f"digits among {CLIENTS} clients", "quickstart", DIGITS, 0.9, 0.94)
LEVELS_FASHION = ablation("Fashion-MNIST among 31 clients", "fashion-mnist", (), 0.85, 0.88)
LEVELS_CIFAR10 = ablation("CIFAR-10 among 31 clients", "cifar10-silo", (), 0.75, 0.78)
LEVELS_FEMNIST = ablation("FEMNIST among 300 writers, 20 of them a round", "femnist-device", (), 0.7, 0.8, more=KEPT)


def hostile(data: str, preset: str, settings: tuple[str, ...]) -> Comparison:
    cells = [
        Cell(
            f"{attack}, {HOSTILE}",
            preset,
            (*settings, *settings_of_run(rule, known, HOSTILE), *LEVELS[name]),
            column,
        )
        for attack, known in ATTACKS.items()
        for name in ATTACKED
        for rule, column in (("camps", name), ("oracle", f"{name}, honest alone"))
    ]
    about = f"The rule `camps` against hostile clients, by levels of the broadcast soft vote, {data}"
    return Comparison(about, tuple(cells), grid({"accuracy": ""}, "Attack, hostile clients"))


LEVELS_HOSTILE_DIGITS = hostile(f"digits among {CLIENTS} clients", "quickstart", DIGITS)
LEVELS_HOSTILE = hostile("CIFAR-10 among 31 clients", "cifar10-silo", ("rounds=30",))
