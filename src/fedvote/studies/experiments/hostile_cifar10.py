"""Hostile clients on CIFAR-10: the worst attacks by 15 and 10 of 31 clients, and other rules under two of them."""

from __future__ import annotations

from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.comparison import Comparison
from fedvote.studies.experiments.hostile_clients import settings_of_run
from fedvote.studies.experiments.views import grid

WORST: dict[str, tuple[str, ...]] = {
    "label-flip": ("attack=label-flip",),
    "layer": ("attack=layer",),
    "layer 25 %": ("attack=layer", "attack.share=0.25"),
    "copycat 1 %": ("attack=copycat", "attack.share=0.01"),
    "low-agreement 20 %": ("attack=low-agreement", "attack.share=0.2"),
    "ladder 30 %": ("attack=ladder", "attack.share=0.3"),
    "vulnerable-votes 20 %": ("attack=vulnerable-votes", "attack.share=0.2"),
    "disagreeing-copycat 30 %": ("attack=disagreeing-copycat", "attack.share=0.3"),
    "insider": ("attack=insider",),
    "team": ("attack=team",),
    "label-flip of few": ("attack=label-flip", "attack.swaps=2"),
    "label-flip one way": ("attack=label-flip", "attack.swaps=3", "attack.one_way=true"),
    "late-labels": ("attack=late-labels",),
    "noise": ("attack=idle", "attack.intention=label-flip", "attack.idle=5", "attack.work=1.0"),
    "reflect": ("attack=reflect",),
    "reflect, late": ("attack=part-time", "attack.intention=reflect", "attack.every=1", "attack.starts=19"),
}
LATE = "reflect, late"  # also with the votes of several rounds deployed
DEPLOYED = "method.deploy_rounds=5"
COMPARED = ("label-flip", "layer")  # attacks under which other rules run, too
RATES = ("0.001", "0.0003")
OTHERS = (
    "uniform",
    "cut",
    "proportional",
    *(f"{rule}@{rate}" for rule in ("median", "NNM + trimmed mean", "robust learning rate") for rate in RATES),
)
HOSTILE_CIFAR10 = Comparison(
    "Rules against 15 and 10 hostile clients of 31, under the worst attacks, on CIFAR-10",
    tuple(
        Cell(f"{attack}, {hostile}", "cifar10-silo", ("rounds=20", *settings_of_run(rule, settings, hostile)), rule)
        for hostile in (15, 10)
        for attack, settings in WORST.items()
        for rule in ("camps", "oracle", *(OTHERS if attack in COMPARED else ()))
    )
    + tuple(
        Cell(f"{LATE}, {hostile}", "cifar10-silo", ("rounds=20", *settings), f"{rule}, 5 rounds deployed")
        for hostile in (15, 10)
        for rule, settings in (
            ("camps", settings_of_run("camps", (*WORST[LATE], DEPLOYED), hostile)),
            ("oracle", (*settings_of_run("oracle", (), hostile), DEPLOYED)),
        )
    ),
    grid({"accuracy": ""}, "Attack, hostile clients"),
    "'oracle' counts only the honest clients of the same run: the yardstick, one run for each number of hostile "
    "clients. Float models run at two rates; compare the better one.",
)
