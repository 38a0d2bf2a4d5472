"""Theorem 1 and Lemmas 7 to 9 on a problem whose constants are known (known_problem.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from fedvote.runs.environment import environment
from fedvote.studies.experiments.bounds_page import Checked
from fedvote.studies.experiments.contract import Asked
from fedvote.studies.experiments.known_problem import Moments, Problem, lemmas, moments, theorem
from fedvote.studies.rows import chosen
from fedvote.system.device import find_device

CASES = {
    "31 clients": Problem(31),
    "301 clients": Problem(301),
    "31 clients, a = 0.75": Problem(31, a=0.75),
    "31 clients, a = 3": Problem(31, a=3.0),
}
ROUNDS = 200
RUNS = 16  # independent runs for each seed


@dataclass(frozen=True)
class Convergence:
    ignores: ClassVar[tuple[str, ...]] = ("settings",)
    about: str = "Theorem 1: gradient norms by round and their bound, with Lemmas 7 to 9, on a known problem"

    def names(self) -> dict[str, list[str]]:
        return {"rows": list(CASES)}

    def measure(self, asked: Asked, runs: Path) -> Iterator[Checked]:
        rows, curves = [], {}
        for name in chosen(asked.only, self.names()["rows"], self.about):
            problem = CASES[name]
            seeds = [list(moments(problem, asked.rounds or ROUNDS, RUNS, seed)) for seed in range(asked.seeds)]
            found = [mean(of_round) for of_round in zip(*seeds, strict=True)]
            sides = [theorem(problem, found[:count]) for count in range(1, len(found) + 1)]
            rows.append(row(name, problem, found, sides))
            curves[name] = {
                side: {k: each[place] for k, each in enumerate(sides, start=1)}
                for place, side in enumerate(("measured", "bound"))
            }
            yield self._checked(asked, rows, curves)

    def _checked(self, asked: Asked, rows: list[dict[str, Any]], curves: dict[str, Any]) -> Checked:
        explain = (
            "c1^2 times the mean over rounds of E |grad f|^2, beside the right side of Theorem 1, for f(w) = |w - b|^2 "
            "/ 2 with 32 weights. All clients have this f; gradients have an error of +-0.5 in every coordinate; five "
            "local steps; the learning rate is the largest that the proof allows. Expectations are means over 16 "
            "independent runs for each seed. For each lemma the table has the largest ratio of its smaller to its "
            "larger side in any round: at most 1 if it holds. Lemma 8 as printed has a coefficient 2 where its proof "
            "gives 2 / c2^2, which is less if c2 > 1."
        )
        made_by = {
            "seeds": list(range(asked.seeds)),
            "environment": environment(find_device("cpu")),
            "config": {name: asdict(problem) for name, problem in CASES.items()},
        }
        return Checked(self.about, explain, rows, curves, "rounds", made_by)


def row(name: str, problem: Problem, found: Sequence[Moments], sides: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """The constants, the end of the curves, and how close each inequality comes to equality."""
    measured, bound = sides[-1]
    in_rounds = [lemmas(problem, each) for each in found]
    return {
        "problem": name,
        "rate": problem.rate,
        "c1": problem.c1(problem.rate),
        "c2": problem.c2,
        "rounding error": found[-1].rounding,
        "gradient": found[-1].gradient,
        "measured": measured,
        "bound": bound,
        "Theorem 1": max(left / right for left, right in sides),
        **{lemma: max(each[lemma][0] / each[lemma][1] for each in in_rounds) for lemma in in_rounds[0]},
        "by round": [list(each) for each in sides],
    }


def mean(of_round: Sequence[Moments]) -> Moments:
    """One round of several seeds."""
    tables = [asdict(each) for each in of_round]
    return Moments(**{name: fmean(table[name] for table in tables) for name in tables[0]})


THEOREM_1 = Convergence()
