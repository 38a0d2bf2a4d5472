"""Every number that is bounded is taken up to its bound, and refused from there on, in one sentence with its name."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest

from fedvote.aggregate import CentredClipping, GeometricMedian, Krum, TrimmedMean
from fedvote.data.partition import Dirichlet, Shards, Uneven, Writer
from fedvote.errors import ConfigError
from fedvote.methods import Eden, FedPAQ, FedVote, FetchSGD, SignSGD, Signum
from fedvote.quantize import Erf, Tanh
from fedvote.reputation import Camps, Cut, Proportional

TINY = 1e-9
NEVER = (nan, inf, -inf)

BOUNDS: list[tuple[Callable[..., Any], str, tuple[float, ...], tuple[float, ...]]] = [  # with what is taken, what not
    *((kind, "a", (TINY, 1e9), (0.0, -1.0, *NEVER)) for kind in (Tanh, Erf)),
    (FedVote, "lr", (TINY, 1e9), (0.0, -1.0, *NEVER)),
    (FedVote, "p_min", (TINY, 0.5 - TINY), (0.0, 0.5, *NEVER)),
    (FedVote, "grid", (3, 2**15), (2, 2**15 + 1)),
    (FedPAQ, "levels", (1, 2**14 - 1), (0, 2**14)),
    (FedPAQ, "bucket", (0, 1), (-1,)),
    (Eden, "block", (8, 16, 2**20), (0, 4, 7, 9, 12, 24)),
    (FetchSGD, "server_lr", (TINY, 1e9), (0.0, *NEVER)),
    (FetchSGD, "momentum", (0.0, 1 - TINY), (-TINY, 1.0, *NEVER)),
    (FetchSGD, "rows", (1, 3), (-1, 0, 2)),
    (FetchSGD, "columns", (1,), (0,)),
    (FetchSGD, "k", (1,), (0,)),
    (SignSGD, "server_lr", (TINY, 1e9), (0.0, *NEVER)),
    (Signum, "beta", (0.0, 1 - TINY), (-TINY, 1.0, *NEVER)),
    *((kind, "beta", (TINY, 1 - TINY), (0.0, 1.0, *NEVER)) for kind in (Proportional, Cut, Camps)),
    *((kind, "start", (TINY, 1.0), (0.0, 1.0 + TINY, *NEVER)) for kind in (Proportional, Cut)),
    (Camps, "gap", (TINY, 1e9), (0.0, -1.0, *NEVER)),
    (Krum, "byzantine", (0,), (-1,)),
    (Krum, "select", (1,), (0,)),
    (Krum, "neighbours", (0,), (-1,)),
    (TrimmedMean, "trim", (0,), (-1,)),
    (CentredClipping, "radius", (TINY, 1e9), (0.0, -1.0, *NEVER)),
    (CentredClipping, "iterations", (1,), (0,)),
    (GeometricMedian, "iterations", (1,), (0,)),
    (GeometricMedian, "tolerance", (0.0, 1 - TINY), (-TINY, 1.0, *NEVER)),
    (GeometricMedian, "smoothing", (TINY, 1e9), (0.0, *NEVER)),
    *((kind, "alpha", (TINY, 1e9), (0.0, -1.0, *NEVER)) for kind in (Dirichlet, Uneven)),
    *((kind, "min_samples", (0,), (-1,)) for kind in (Dirichlet, Uneven)),
    (Writer, "min_samples", (1,), (0,)),
    (Shards, "shards_per_client", (1,), (0,)),
]
NAMES = [f"{getattr(kind, '__name__', kind)}.{name}" for kind, name, _, _ in BOUNDS]


@pytest.mark.parametrize(("kind", "name", "taken", "refused"), BOUNDS, ids=NAMES)
def test_a_number_is_taken_up_to_its_bound_and_refused_from_there_on(
    kind: Callable[..., Any], name: str, taken: tuple[float, ...], refused: tuple[float, ...]
) -> None:
    for value in taken:
        assert getattr(kind(**{name: value}), name) == value
    for value in refused:
        with pytest.raises(ConfigError, match=rf"{name} is {value}\b.*, expected "):
            kind(**{name: value})


@pytest.mark.parametrize(
    ("rule", "fewest"),
    [
        (Krum(byzantine=0), 3),
        (Krum(byzantine=2), 7),
        (Krum(byzantine=1, select=5), 6),
        (Krum(byzantine=0, neighbours=4), 5),
        (TrimmedMean(0), 1),
        (TrimmedMean(2), 5),
    ],
    ids=str,
)
def test_a_rule_takes_as_few_clients_as_it_can_and_no_fewer(rule: Krum | TrimmedMean, fewest: int) -> None:
    rule.check(fewest)
    with pytest.raises(ConfigError):
        rule.check(fewest - 1)
