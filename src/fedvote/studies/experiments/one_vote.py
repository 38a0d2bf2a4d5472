"""Lemma 1: how often one plurality vote is wrong, by the number of clients, beside the lemma's bound.

Clients are wrong independently, with probabilities from s/2 to 3s/2. They vote on many weights at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from fedvote.quantize import BINARY, plurality, round_stack, tally
from fedvote.randomness import Key
from fedvote.runs.environment import environment
from fedvote.studies.experiments.bounds_page import Checked
from fedvote.studies.experiments.contract import Asked
from fedvote.studies.rows import Rows, chosen
from fedvote.system.device import find_device

CASES = {f"s = {s}": s for s in (0.1, 0.2, 0.3, 0.4)}
CLIENTS = (1, 3, 5, 7, 11, 15, 21, 31, 41, 51)
WEIGHTS = 100_000  # votes with the same probabilities of an error, in each seed


@dataclass(frozen=True)
class OneVote:
    ignores: ClassVar[tuple[str, ...]] = ("settings", "rounds")
    about: str = "Lemma 1: errors of one plurality vote by number of clients, and their bound"

    def names(self) -> dict[str, list[str]]:
        return {"rows": list(CASES)}

    def measure(self, asked: Asked, runs: Path) -> Iterator[Checked]:
        names = chosen(asked.only, self.names()["rows"], self.about)
        rows: Rows = [{"case": name, **row(CASES[name], M, asked.seeds)} for name in names for M in CLIENTS]
        kinds = ("measured", "exact", "bound")
        curves = {
            name: {kind: {each["clients"]: each[kind] for each in rows if each["case"] == name} for kind in kinds}
            for name in names
        }
        explain = (
            "P(error) <= [2 s exp(1 - 2 s)]^(M / 2) for M clients that are wrong with mean probability s. 'exact' is "
            "the probability that half of the votes or more are wrong; 'measured' counts wrong weights of real votes."
        )
        made_by = {
            "seeds": list(range(asked.seeds)),
            "environment": environment(find_device("cpu")),
            "config": {"weights": WEIGHTS, "errors": "from s/2 to 3s/2"},
        }
        yield Checked(self.about, explain, rows, curves, "clients", made_by)


def row(s: float, M: int, seeds: int) -> dict[str, float]:
    errors_M = np.linspace(s / 2, 3 * s / 2, M) if M > 1 else np.array([s])
    measured = float(np.mean([share_wrong(torch.from_numpy(errors_M), seed) for seed in range(seeds)]))
    return {"clients": M, "measured": measured, "exact": exact(errors_M), "bound": bound(s, M)}


def share_wrong(errors_M: Tensor, seed: int) -> float:
    """The share of weights whose plurality is not the right vote."""
    M = len(errors_M)
    right_D = torch.where(torch.rand(WEIGHTS, generator=Key(seed, M).torch("truth")) < 0.5, 1, -1)
    # P(vote = truth) = 1 - error, so the mean vote is truth (1 - 2 error)
    generators = [Key(seed, M, m).torch("rounding") for m in range(M)]
    votes_MD = round_stack(right_D * (1 - 2 * errors_M[:, None]), BINARY, generators)
    voted_D = plurality(tally(votes_MD, torch.ones(M), BINARY), BINARY, Key(seed, M).torch("tie"))
    return float((voted_D != right_D).double().mean())


def exact(errors_M: Sequence[float] | np.ndarray) -> float:
    """P(Y >= M/2), where the number Y of wrong votes has the Poisson binomial distribution."""
    chances = np.ones(1)
    for error in errors_M:
        chances = np.convolve(chances, [1 - error, error])
    return float(chances[[2 * wrong >= len(errors_M) for wrong in range(len(errors_M) + 1)]].sum())


def bound(s: float, M: int) -> float:
    # [2 s exp(1 - 2 s)]^(M / 2)
    return float((2 * s * exp(1 - 2 * s)) ** (M / 2))


LEMMA_1 = OneVote()
