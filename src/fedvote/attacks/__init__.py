"""Attacks of hostile clients by name, one per file."""

from __future__ import annotations

from fedvote.attacks.a_little_is_enough import ALittleIsEnough
from fedvote.attacks.attack import Attack, Seen
from fedvote.attacks.backdoor import Backdoor
from fedvote.attacks.colluders import Colluders
from fedvote.attacks.copycat import Copycat
from fedvote.attacks.inner_product import InnerProduct
from fedvote.attacks.insider import Insider
from fedvote.attacks.inverse import Inverse
from fedvote.attacks.label_flip import LabelFlip
from fedvote.attacks.min_max import MinMax
from fedvote.attacks.nothing import Nothing
from fedvote.attacks.omniscient import Omniscient
from fedvote.attacks.partial import Partial
from fedvote.attacks.random import Random
from fedvote.attacks.sleeper import Sleeper

ATTACKS: dict[str, type[Attack]] = {
    "nothing": Nothing,
    "inverse": Inverse,
    "label-flip": LabelFlip,
    "random": Random,
    "omniscient": Omniscient,
    "partial": Partial,
    "sleeper": Sleeper,
    "colluders": Colluders,
    "copycat": Copycat,
    "a-little-is-enough": ALittleIsEnough,
    "inner-product": InnerProduct,
    "min-max": MinMax,
    "insider": Insider,
    "backdoor": Backdoor,
}

__all__ = [
    "ATTACKS",
    "ALittleIsEnough",
    "Attack",
    "Backdoor",
    "Colluders",
    "Copycat",
    "InnerProduct",
    "Insider",
    "Inverse",
    "LabelFlip",
    "MinMax",
    "Nothing",
    "Omniscient",
    "Partial",
    "Random",
    "Seen",
    "Sleeper",
]
