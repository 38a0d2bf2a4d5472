"""Experiments by name, the paper's figures and tables first: their runs, their pages, and the paper's numbers."""

from __future__ import annotations

from fedvote.studies.experiments.alphabets import TABLE_2
from fedvote.studies.experiments.backdoors import BACKDOOR_CIFAR10, BACKDOOR_DIGITS
from fedvote.studies.experiments.broadcast_levels import (
    LEVELS_CIFAR10,
    LEVELS_DIGITS,
    LEVELS_FASHION,
    LEVELS_FEMNIST,
    LEVELS_HOSTILE,
    LEVELS_HOSTILE_DIGITS,
)
from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.compared_methods import (
    BOTH_WAYS,
    BOTH_WAYS_DIGITS,
    DIGITS,
    FIGURE_4A,
    FIGURE_4B,
    FIGURE_4C,
    FIGURE_5,
)
from fedvote.studies.experiments.comparison import Comparison
from fedvote.studies.experiments.contract import Asked, Experiment, Found
from fedvote.studies.experiments.convergence import THEOREM_1
from fedvote.studies.experiments.endings import ENDINGS_DIGITS
from fedvote.studies.experiments.fast_paths import FAST_PATHS
from fedvote.studies.experiments.float_weights import TRAIN_FLOAT_CIFAR10, TRAIN_FLOAT_DIGITS, TRAIN_FLOAT_FASHION
from fedvote.studies.experiments.hostile_cifar10 import HOSTILE_CIFAR10
from fedvote.studies.experiments.hostile_clients import (
    FIGURE_6A,
    FIGURE_6B,
    FIGURE_6C,
    FIGURE_7,
)
from fedvote.studies.experiments.hostile_digits import (
    COHORTS_DIGITS,
    FEW_DIGITS,
    HONEST_DIGITS,
    HOSTILE_DIGITS,
    INFLUENCE_DIGITS,
    LABELS_DIGITS,
    RULES_DIGITS,
    UNEVEN_DIGITS,
)
from fedvote.studies.experiments.last_rounds import LAST_ROUNDS_DIGITS
from fedvote.studies.experiments.normalisations import TABLE_1
from fedvote.studies.experiments.one_vote import LEMMA_1
from fedvote.studies.experiments.operation_counts import TABLE_3
from fedvote.studies.experiments.quantiser_inputs import FIGURE_3
from fedvote.studies.experiments.rates import RATES_CIFAR10
from fedvote.studies.experiments.recipe import ABLATION, ACCURACY, ACCURACY_FASHION, ACCURACY_FEMNIST
from fedvote.studies.experiments.trusted_clients import TRUSTED_DIGITS
from fedvote.studies.experiments.views import by_round, grid
from fedvote.studies.experiments.wire_bits import WIRE

__all__ = ["EXPERIMENTS", "Asked", "Cell", "Comparison", "Experiment", "Found", "by_round", "grid"]

EXPERIMENTS: dict[str, Experiment] = {
    "figure-3": FIGURE_3,
    "figure-4a": FIGURE_4A,
    "figure-4b": FIGURE_4B,
    "figure-4c": FIGURE_4C,
    "figure-5": FIGURE_5,
    "figure-6a": FIGURE_6A,
    "figure-6b": FIGURE_6B,
    "figure-6c": FIGURE_6C,
    "figure-7": FIGURE_7,
    "table-1": TABLE_1,
    "table-2": TABLE_2,
    "table-3": TABLE_3,
    "lemma-1": LEMMA_1,
    "theorem-1": THEOREM_1,
    "rates-cifar10": RATES_CIFAR10,
    "cifar10-best": ACCURACY,
    "fashion-mnist-best": ACCURACY_FASHION,
    "femnist-best": ACCURACY_FEMNIST,
    "ablation": ABLATION,
    "endings-digits": ENDINGS_DIGITS,
    "digits": DIGITS,
    "hostile-digits": HOSTILE_DIGITS,
    "few-digits": FEW_DIGITS,
    "trusted-digits": TRUSTED_DIGITS,
    "last-rounds-digits": LAST_ROUNDS_DIGITS,
    "cohorts-digits": COHORTS_DIGITS,
    "rules-digits": RULES_DIGITS,
    "backdoor-digits": BACKDOOR_DIGITS,
    "backdoor-cifar10": BACKDOOR_CIFAR10,
    "hostile-cifar10": HOSTILE_CIFAR10,
    "honest-digits": HONEST_DIGITS,
    "uneven-digits": UNEVEN_DIGITS,
    "labels-digits": LABELS_DIGITS,
    "influence-digits": INFLUENCE_DIGITS,
    "fast-paths": FAST_PATHS,
    "wire": WIRE,
    "both-ways": BOTH_WAYS,
    "both-ways-digits": BOTH_WAYS_DIGITS,
    "levels-digits": LEVELS_DIGITS,
    "levels-fashion-mnist": LEVELS_FASHION,
    "levels-cifar10": LEVELS_CIFAR10,
    "levels-femnist": LEVELS_FEMNIST,
    "levels-hostile-digits": LEVELS_HOSTILE_DIGITS,
    "levels-hostile": LEVELS_HOSTILE,
    "train-float-digits": TRAIN_FLOAT_DIGITS,
    "train-float-fashion-mnist": TRAIN_FLOAT_FASHION,
    "train-float-cifar10": TRAIN_FLOAT_CIFAR10,
}
