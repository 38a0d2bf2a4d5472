"""Three weights, and the answers typed in."""

from __future__ import annotations

import math
import re

import pytest
import torch
from torch import Tensor

from fedvote.aggregate import (
    Aggregate,
    CentredClipping,
    GeometricMedian,
    Krum,
    Mean,
    Median,
    NearestNeighbourMixing,
    RobustLearningRate,
    TrimmedMean,
)
from fedvote.aggregate.blocks import combine, squared_distances
from fedvote.errors import ConfigError

FIVE = torch.tensor([[1.0, 0.0, 9.0], [2.0, 0.0, 7.0], [4.0, 0.0, 7.0], [8.0, 0.0, 5.0], [100.0, -6.0, 1.0]])


def equal(rows_KD: Tensor) -> Tensor:
    return torch.full((len(rows_KD),), 1 / len(rows_KD))


def of(rule: Aggregate, rows_KD: Tensor) -> list[float]:
    result: list[float] = rule(rows_KD, equal(rows_KD)).tolist()
    return result


def test_mean() -> None:
    assert of(Mean(), FIVE) == pytest.approx([23, -1.2, 5.8])
    assert Mean()(FIVE[:3], torch.tensor([0.5, 0.25, 0.25])).tolist() == [2, 0, 8]


def test_median_of_an_odd_number_is_the_middle_value() -> None:
    assert of(Median(), FIVE) == [4, 0, 7]


def test_median_of_an_even_number_is_the_mean_of_the_middle_two() -> None:
    assert of(Median(), FIVE[:4]) == [3, 0, 7]
    assert of(Median(), FIVE[3:]) == [54, -3, 3]


def test_trimmed_mean_leaves_out_as_many_at_each_end() -> None:
    assert of(TrimmedMean(1), FIVE) == pytest.approx([14 / 3, 0, 19 / 3])
    assert of(TrimmedMean(2), FIVE) == [4, 0, 7]
    assert of(TrimmedMean(0), FIVE) == pytest.approx([23, -1.2, 5.8])


def test_krum_takes_the_row_whose_neighbours_are_closest() -> None:
    # K - f - 2 = 2 neighbours: scores 5 + 13, 5 + 4, 4 + 13 + ..., of which the second row's is the lowest
    assert of(Krum(byzantine=1), FIVE) == [2, 0, 7]


def test_multi_krum_averages_the_rows_of_the_lowest_scores() -> None:
    # scores: 1st 5 + 13 = 18, 2nd 4 + 5 = 9, 3rd 4 + 13 = 17
    assert of(Krum(byzantine=1, select=2), FIVE) == [3, 0, 7]
    assert of(Krum(byzantine=1, select=3), FIVE) == pytest.approx([7 / 3, 0, 23 / 3])


def test_krum_with_one_neighbour_more_may_choose_another_row() -> None:
    rows = torch.tensor([[0.0, 0, 0], [1.0, 0, 0], [-1.0, 0, 0], [-1.5, 0, 0], [-9.0, 0, 0]])
    # two neighbours: 1 + 1, 1 + 4, 0.25 + 1, 0.25 + 2.25; three add 2.25, 6.25, 4, 6.25
    assert of(Krum(byzantine=1), rows) == [-1, 0, 0]
    assert of(Krum(byzantine=1, neighbours=3), rows) == [0, 0, 0]


def test_of_equal_scores_krum_takes_the_first() -> None:
    rows = torch.tensor([[5.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0]])
    assert of(Krum(byzantine=0), rows) == [1, 0, 0]
    assert of(Krum(byzantine=0), rows.flip(0)) == [2, 0, 0]


def test_geometric_median_of_a_triangle_sees_its_sides_under_equal_angles() -> None:
    # the Fermat point of (0, 0), (1, 0), (1/2, h) with an angle of 120 degrees at each pair: (1/2, 1 / (2 sqrt 3))
    rows = torch.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0], [0.5, 5.0, 1.0]])
    assert of(GeometricMedian(), rows) == pytest.approx([0.5, 1 / (2 * math.sqrt(3)), 1], abs=1e-5)


def test_geometric_median_goes_to_where_most_of_the_weight_is() -> None:
    rows = torch.tensor([[0.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0]])
    assert GeometricMedian()(rows, torch.tensor([0.6, 0.2, 0.2])).tolist() == pytest.approx([0, 0, 0], abs=1e-5)
    assert GeometricMedian()(rows, torch.tensor([0.2, 0.2, 0.6])).tolist() == pytest.approx([2, 0, 0], abs=1e-5)


def test_geometric_median_starts_from_the_median_and_one_step_of_clipping() -> None:
    rows = torch.tensor([[0.0, 0, 0], [1.0, 0, 0], [3.0, 0, 0], [4.0, 0, 0], [9.0, 0, 0]])
    # ways from 3: -3, -2, 0, 1, 6; cut to 2, the median distance: -2, -2, 0, 1, 2; so from 3 - 1/5
    pulls = [1 / 2.8, 1 / 1.8, 1 / 0.2, 1 / 1.2, 1 / 6.2]
    once = (pulls[1] + 3 * pulls[2] + 4 * pulls[3] + 9 * pulls[4]) / sum(pulls)
    assert of(GeometricMedian(iterations=1), rows) == pytest.approx([once, 0, 0])
    assert of(GeometricMedian(tolerance=0.99), rows) == of(GeometricMedian(iterations=1), rows)
    assert of(GeometricMedian(), rows) == pytest.approx([3, 0, 0], abs=1e-4)


def test_smoothing_bounds_the_pull_of_a_near_row() -> None:
    rows = torch.tensor([[0.0, 0, 0], [1.0, 0, 0], [3.0, 0, 0], [4.0, 0, 0], [9.0, 0, 0]])
    pulls = [1 / 2.8, 1 / 2, 1 / 2, 1 / 2, 1 / 6.2]
    once = (pulls[1] + 3 * pulls[2] + 4 * pulls[3] + 9 * pulls[4]) / sum(pulls)
    assert of(GeometricMedian(iterations=1, smoothing=2.0), rows) == pytest.approx([once, 0, 0])


@pytest.mark.parametrize("far", [1e6, 1e12, 1e30])
def test_how_far_a_hostile_row_lies_does_not_change_where_the_iteration_stops(far: float) -> None:
    near = torch.cat([FIVE[:4], torch.tensor([[0.0, 1e4, 0.0]])])
    hostile = torch.cat([FIVE[:4], torch.tensor([[0.0, far, 0.0]])])
    assert of(GeometricMedian(), hostile) == pytest.approx(of(GeometricMedian(), near), abs=0.01)


def test_geometric_median_gets_away_from_a_row_it_starts_near() -> None:
    # the coordinate-wise median is the first row, but the pull of the others is stronger
    rows = torch.tensor([[0.0, 0, 0], [10.0, -1, 0], [9.0, -1, 0], [-1.0, 10, 0], [-1.0, 9, 0]])
    at = torch.tensor(of(GeometricMedian(), rows))
    assert at.norm() > 0.1
    away = (at - rows) / (at - rows).norm(dim=1, keepdim=True)
    assert away.sum(0).tolist() == pytest.approx([0, 0, 0], abs=1e-4)


def test_centred_clipping_cuts_rows_to_the_radius() -> None:
    rows = torch.tensor([[3.0, 0.0, 4.0], [0.0, 1.0, 0.0]])
    assert of(CentredClipping(radius=2.5), rows) == pytest.approx([0.75, 0.5, 1])
    assert of(CentredClipping(radius=5), rows) == of(Mean(), rows)


def test_centred_clipping_goes_on_from_its_last_result() -> None:
    rows = torch.tensor([[10.0, 0, 0], [2.0, 0, 0]])
    # 0 -> (4 + 2) / 2 = 3 -> 3 + (4 - 1) / 2 = 4.5
    assert of(CentredClipping(radius=4, iterations=2), rows) == pytest.approx([4.5, 0, 0])


def test_centred_clipping_weighs_clients() -> None:
    rows = torch.tensor([[10.0, 0, 0], [0.0, 2.0, 0]])
    assert CentredClipping(radius=4)(rows, torch.tensor([0.25, 0.75])).tolist() == pytest.approx([1, 1.5, 0])


def test_median_of_more_than_2_to_the_24_weights() -> None:
    D = 2**24 + 5
    ramp = torch.arange(D).remainder(7).float()
    rows = torch.stack([torch.zeros(D), ramp])
    assert torch.equal(Median()(rows, equal(rows)), ramp / 2)


def test_distances_of_close_rows_far_from_zero_keep_their_digits() -> None:
    rows = torch.tensor([[1e8, 0, 0], [1e8 + 1e-3, 0, 0]], dtype=torch.float64)
    assert squared_distances(rows, rows).flatten().tolist() == pytest.approx([0, 1e-6, 1e-6, 0], rel=1e-3)


def test_sums_are_made_in_float64() -> None:
    rows = torch.tensor([[1e8, 1], [1, 1], [-1e8, 1]], dtype=torch.float32)
    assert combine(torch.ones(3), rows).tolist() == [1, 3]
    assert squared_distances(rows, torch.zeros(1, 2)).dtype == torch.float64


@pytest.mark.parametrize(
    ("rule", "K", "sentence"),
    [
        (TrimmedMean(1), 2, "TrimmedMean with trim = 1 needs at least 3 clients in a round, got 2; take more"),
        (TrimmedMean(3), 6, "needs at least 7 clients in a round, got 6"),
        (Krum(0), 2, "Krum with byzantine = 0 needs at least 2 x 0 + 3 = 3 clients in a round, got 2; take more"),
        (Krum(2), 6, "needs at least 2 x 2 + 3 = 7 clients in a round, got 6"),
        (Krum(1, select=5), 5, "select is 5, expected at most 4: with 1 hostile clients of 5"),
        (Krum(1, neighbours=5), 5, "neighbours is 5, but each of 5 clients has only 4 others"),
    ],
    ids=str,
)
def test_too_few_clients_are_refused(rule: Aggregate, K: int, sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        of(rule, torch.rand(K, 3))


@pytest.mark.parametrize("rule", [TrimmedMean(0), TrimmedMean(1), TrimmedMean(2), Krum(0), Krum(1), Krum(0, select=5)])
def test_just_enough_clients_are_not_refused(rule: Aggregate) -> None:
    assert len(of(rule, FIVE)) == 3


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        (TrimmedMean, {"trim": -1}, "trim is -1, expected 0 or more"),
        (Krum, {"byzantine": -1}, "byzantine is -1, expected 0 or more"),
        (Krum, {"select": 0}, "select is 0, expected 1 or more"),
        (Krum, {"neighbours": -1}, "neighbours is -1, expected 0 or more"),
        (GeometricMedian, {"iterations": 0}, "iterations is 0, expected 1 or more"),
        (GeometricMedian, {"tolerance": -1e-9}, "tolerance is -1e-09, expected"),
        (GeometricMedian, {"tolerance": 1.0}, "tolerance is 1.0, expected"),
        (GeometricMedian, {"smoothing": 0.0}, "smoothing is 0.0, expected"),
        (GeometricMedian, {"smoothing": math.nan}, "smoothing is nan, expected"),
        (CentredClipping, {"radius": 0.0}, "radius is 0.0, expected"),
        (CentredClipping, {"radius": math.inf}, "radius is inf, expected"),
        (CentredClipping, {"iterations": 0}, "iterations is 0, expected 1 or more"),
    ],
    ids=str,
)
def test_hyperparameters_out_of_range_are_refused(
    kind: type[Aggregate], options: dict[str, float], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        kind(**options)


def test_nearest_neighbour_mixing_averages_the_nearest_rows_then_trims() -> None:
    """Of 0, 2, 4 and 100 each becomes the mean of its three nearest: 2, 2, 2 and 35.33; the ends are dropped."""
    rows = torch.tensor([[0.0], [2.0], [4.0], [100.0]])
    assert NearestNeighbourMixing(1)(rows, torch.full((4,), 0.25)).tolist() == [2.0]
    with pytest.raises(ConfigError, match="needs at least 5 clients in a round, got 4"):
        NearestNeighbourMixing(2)(rows, torch.full((4,), 0.25))


def test_robust_learning_rate_goes_back_where_too_few_agree() -> None:
    """Signs lead by 4, by 2 and by 0 of 4 clients; 3 are asked for."""
    rows = torch.tensor([[1.0, 4.0, 3.0], [1.0, 1.0, -1.0], [1.0, 1.0, 3.0], [1.0, -2.0, -1.0]])
    assert RobustLearningRate(3)(rows, torch.full((4,), 0.25)).tolist() == [1.0, -1.0, -1.0]
    with pytest.raises(ConfigError, match="threshold = 5 needs at least 5 clients in a round, got 4"):
        RobustLearningRate(5).check(4)
