"""Trusted clients: up to 25 of 31 clients hostile, and three that the operator knows to be honest, on digits."""

from __future__ import annotations

from fedvote.studies.experiments.attack_catalogue import CATALOGUE
from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.comparison import Comparison
from fedvote.studies.experiments.hostile_digits import DIGITS
from fedvote.studies.experiments.views import grid

NUMBERS = (15, 20, 25)
ATTACKS = {  # at the settings that are worst for `camps` without trusted clients
    "inverse": "all votes",
    "label-flip": "mirrored",
    "label-flip of few": "one pair of classes",
    "label-flip one way": "three classes",
    "late-labels": "from round 19, 110% of the work",
    "omniscient": "all votes",
    "layer": "25 % of the first",
    "low-agreement": "5 %",
    "ladder": "30 %",
    "insider": "strongest",
    "sleeper": "from round 4",
    "reflect": "first layer, 200% of the work",
    "reflect, late": "from round 19",
    "frame": "beside two victims",
    "team": "of three",
}
TRUSTED = ("method.reputation=camps", "method.reputation.trusted=[0,1,2]")
ALONE = (*TRUSTED, "federation.oracle=true")  # no attack, so that all attacks share these runs
TRUSTED_DIGITS = Comparison(
    "15, 20 and 25 hostile clients of 31 against `camps` with three trusted clients, on digits",
    tuple(
        Cell(
            f"{attack}: {name}, {hostile}",
            "quickstart",
            (*DIGITS, f"federation.hostile={hostile}", *settings),
            column,
        )
        for hostile in NUMBERS
        for attack, name in ATTACKS.items()
        for column, settings in (("camps", (*CATALOGUE[attack][name], *TRUSTED)), ("oracle", ALONE))
    ),
    grid({"accuracy": ""}, "Attack, hostile clients"),
    "Clients 0, 1 and 2 are trusted. 'oracle' counts only the honest clients of the same run: the yardstick.",
    first_seed=1,
)
