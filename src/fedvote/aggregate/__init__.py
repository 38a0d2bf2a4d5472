"""Rules that merge many vectors into one, by name."""

from __future__ import annotations

from fedvote.aggregate.aggregate import Aggregate, Coordinatewise
from fedvote.aggregate.centred_clipping import CentredClipping
from fedvote.aggregate.geometric_median import GeometricMedian
from fedvote.aggregate.krum import Krum
from fedvote.aggregate.mean import Mean
from fedvote.aggregate.median import Median
from fedvote.aggregate.nearest_neighbour_mixing import NearestNeighbourMixing
from fedvote.aggregate.robust_learning_rate import RobustLearningRate
from fedvote.aggregate.trimmed_mean import TrimmedMean

AGGREGATES: dict[str, type[Aggregate]] = {
    "mean": Mean,
    "median": Median,
    "trimmed-mean": TrimmedMean,
    "krum": Krum,
    "geometric-median": GeometricMedian,
    "centred-clipping": CentredClipping,
    "nearest-neighbour-mixing": NearestNeighbourMixing,
    "robust-learning-rate": RobustLearningRate,
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
    "NearestNeighbourMixing",
    "RobustLearningRate",
    "TrimmedMean",
]
