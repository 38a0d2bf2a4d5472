"""Rules that weigh ballots, by name."""

from __future__ import annotations

from fedvote.reputation.camps import Camps
from fedvote.reputation.cut import Cut
from fedvote.reputation.oracle_cut import OracleCut
from fedvote.reputation.proportional import Proportional
from fedvote.reputation.reputation import Ballots, Reputation, Verdict
from fedvote.reputation.uniform import Uniform

REPUTATIONS: dict[str, type[Reputation]] = {
    "uniform": Uniform,
    "proportional": Proportional,
    "cut": Cut,
    "camps": Camps,
    "oracle-cut": OracleCut,
}

__all__ = [
    "REPUTATIONS",
    "Ballots",
    "Camps",
    "Cut",
    "OracleCut",
    "Proportional",
    "Reputation",
    "Uniform",
    "Verdict",
    "rule_of",
    "trusted_by",
]


def rule_of(method: object) -> Reputation | None:
    """The reputation rule of a method; None if all its ballots count the same."""
    rule: Reputation | None = getattr(method, "reputation", None)
    return None if rule is None or type(rule).judge is Uniform.judge else rule


def trusted_by(method: object) -> tuple[int, ...]:
    """The clients that a method's rule is told to trust."""
    rule = rule_of(method)
    return rule.trusted_clients if rule else ()
