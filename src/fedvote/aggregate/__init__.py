"""Rules that merge many vectors into one, by name."""

from __future__ import annotations

from fedvote.aggregate.aggregate import Aggregate, Coordinatewise
from fedvote.aggregate.centred_clipping import CentredClipping
from fedvote.aggregate.geometric_median import GeometricMedian
from fedvote.aggregate.krum import Krum
from fedvote.aggregate.mean import Mean
from fedvote.aggregate.median import Median
from fedvote.aggregate.trimmed_mean import TrimmedMean

AGGREGATES: dict[str, type[Aggregate]] = {
    "mean": Mean,
    "median": Median,
    "trimmed-mean": TrimmedMean,
    "krum": Krum,
    "geometric-median": GeometricMedian,
    "centred-clipping": CentredClipping,
}

__all__ = [
    "AGGREGATES",
    "Aggregate",
    "CentredClipping",
    "Coordinatewise",
    "GeometricMedian",
    "Krum",
    "Mean",
    "Median",
    "TrimmedMean",
]
