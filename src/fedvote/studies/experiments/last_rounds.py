"""Attacks in the last rounds alone, where the deployed network has the votes of one round or of several, on digits."""

from __future__ import annotations

from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.comparison import Comparison
from fedvote.studies.experiments.hostile_clients import settings_of_run
from fedvote.studies.experiments.hostile_digits import DIGITS
from fedvote.studies.experiments.views import grid

NUMBERS = (10, 15)
ATTACKS = {
    **{
        f"reflect, from round {starts}": (
            "attack=part-time",
            "attack.intention=reflect",
            "attack.every=1",
            f"attack.starts={starts}",
        )
        for starts in (20, 19, 18, 16)
    },
    **{
        f"late-labels, from round {starts}": ("attack=late-labels", "attack.work=1.1", f"attack.starts={starts}")
        for starts in (20, 19, 18)
    },
}
DEPLOYED = {"": (), ", 5 rounds deployed": ("method.deploy_rounds=5",)}
LAST_ROUNDS_DIGITS = Comparison(
    "Attacks in the last of 20 rounds, where the deployed network counts the votes of one round or of five, on digits",
    tuple(
        Cell(
            f"{attack}, {hostile}",
            "quickstart",
            (*DIGITS, *settings_of_run(rule, settings, hostile), *deployed),
            f"{rule}{suffix}",
        )
        for hostile in NUMBERS
        for attack, settings in ATTACKS.items()
        for suffix, deployed in DEPLOYED.items()
        for rule in ("camps", "oracle")
    ),
    grid({"accuracy": ""}, "Attack, hostile clients"),
    "'oracle' counts only the honest clients of the same run: the yardstick.",
    first_seed=1,
)
