"""How far a round's votes may move a weight, by name: bounds for attacks that no rule can detect, such as backdoors."""

from __future__ import annotations

from fedvote.influence.agreement import Agreement
from fedvote.influence.capped import Capped
from fedvote.influence.influence import Influence
from fedvote.influence.trimmed import Trimmed
from fedvote.influence.unbounded import Unbounded

INFLUENCES: dict[str, type[Influence]] = {
    "unbounded": Unbounded,
    "agreement": Agreement,
    "trimmed": Trimmed,
    "capped": Capped,
}

__all__ = ["INFLUENCES", "Agreement", "Capped", "Influence", "Trimmed", "Unbounded"]
