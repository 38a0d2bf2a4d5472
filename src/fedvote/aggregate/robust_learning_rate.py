"""Robust learning rate: a coordinate follows the mean only where enough clients agree. Ozdayi et al., 2021.

Every client's update votes with its sign. Where the votes of one sign lead by less than a threshold, the coordinate
moves against the mean update, as in the paper: a backdoor is learned by few clients, and is unlearned so. Made against
backdoors; as a rule against other attacks it is as weak as a mean.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fedvote.aggregate.aggregate import Aggregate
from fedvote.aggregate.blocks import combine
from fedvote.errors import ConfigError
from fedvote.settings import check_at_least


@dataclass(frozen=True)
class RobustLearningRate(Aggregate):
    threshold: int = 4  # lead of one sign, in clients; more than the number of hostile clients

    def __post_init__(self) -> None:
        check_at_least(self, threshold=0)

    def check(self, K: int) -> None:
        if self.threshold > K:
            raise ConfigError(
                f"RobustLearningRate with threshold = {self.threshold} needs at least {self.threshold} clients in "
                f"a round, got {K}; take more clients or a smaller threshold"
            )

    def __call__(self, rows_KD: Tensor, weights_K: Tensor) -> Tensor:
        # eta_i = eta if |sum_k sign(x_ki)| >= theta, else -eta
        lead_D = rows_KD.sign().sum(0).abs()
        mean_D = combine(weights_K, rows_KD).to(rows_KD)
        return mean_D.where(lead_D >= self.threshold, -mean_D)
