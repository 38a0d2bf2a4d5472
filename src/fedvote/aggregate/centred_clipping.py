"""The weighted mean of rows clipped to a radius around a centre: centred clipping, Karimireddy et al., 2021.

The centre is 0. Rows are the clients' changes (see `Aggregate.merge`), so 0 is the model that all started from. A
hostile share of w moves the result by at most w x radius per iteration. The paper's centre is its last result, since it
clips momenta, which change little from round to round; ByzFL keeps that result in the object.
The radius should be about the length of an honest client's change over all weights. A larger radius lets hostile
clients pull harder; a smaller one slows training down.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fedvote.aggregate.aggregate import Aggregate
from fedvote.aggregate.blocks import combine, distances
from fedvote.settings import check_above_zero, check_at_least


@dataclass(frozen=True)
class CentredClipping(Aggregate):
    radius: float = 3.0  # tau
    iterations: int = 1  # each is centred on the result of the one before

    def __post_init__(self) -> None:
        check_above_zero(self, "radius")
        check_at_least(self, iterations=1)

    def __call__(self, rows_KD: Tensor, weights_K: Tensor) -> Tensor:
        centre_D = rows_KD.new_zeros(rows_KD.shape[1]).double()
        for _ in range(self.iterations):
            centre_D = clipped_mean(rows_KD, weights_K, centre_D, self.radius)
        return centre_D.to(rows_KD.dtype)


def clipped_mean(rows_KD: Tensor, weights_K: Tensor, centre_D: Tensor, radius: float) -> Tensor:
    """(D,) the mean of the rows clipped to the radius around the centre, in float64."""
    # c_k = w_k min(1, tau / ||x_k - v||)
    distance_K = distances(rows_KD, centre_D)
    clipped_K = weights_K.double() * (radius / distance_K.clamp(min=radius))

    # v + sum_k c_k (x_k - v)
    return centre_D + combine(clipped_K, rows_KD) - clipped_K.sum() * centre_D
