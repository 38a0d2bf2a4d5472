"""Seconds that a reputation rule takes to judge the ballots of a round. Random ballots take as long as real ones.

The first time is reported separately: it includes compiling or loading loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch

from fedvote.quantize import BINARY
from fedvote.randomness import Key
from fedvote.reputation import REPUTATIONS, Ballots
from fedvote.studies.bench.stopwatch import seconds_of
from fedvote.studies.rows import Rows, chosen
from fedvote.system.device import find_device

VGG_7 = (3456, 147_456, 294_912, 589_824, 1_179_648, 2_359_296, 8_388_608)  # votes in each layer
WEIGHTS, CLIENTS, REPEATS = sum(VGG_7), 31, 6


def bench(
    only: Sequence[str] = (), clients: Sequence[int] = (CLIENTS,), device: str = "auto", weights: int = WEIGHTS
) -> Rows:
    """A row for each rule and number of clients."""
    rules, place = chosen(only, REPUTATIONS, "judge"), find_device(device)
    return [_row(rule, K, weights, place) for K in clients for rule in rules]


def _row(name: str, K: int, weights: int, device: torch.device) -> dict[str, object]:
    rule, generator = REPUTATIONS[name](), Key(0).torch("bench", device)
    votes_KD = torch.randint(0, 2, (K, weights), dtype=torch.int8, generator=generator, device=device) * 2 - 1
    soft_D, layers = torch.zeros(weights, device=device), VGG_7 if weights == WEIGHTS else ()
    ballots = Ballots(votes_KD, torch.arange(K, device=device), soft_D, BINARY, layers if rule.by_layer else ())
    memory = {part: value.to(device) for part, value in rule.init(K).items()}
    first, *seconds = [seconds_of(partial(rule.judge, memory, ballots, Key(0, 1)), device) for _ in range(REPEATS)]
    return {
        "rule": name, "clients": K, "weights": weights, "first_seconds": first, "seconds": min(seconds),
        "most_seconds": max(seconds), "each": [first, *seconds],
    }  # fmt: skip
