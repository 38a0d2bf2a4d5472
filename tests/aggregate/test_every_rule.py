"""What holds for every aggregation rule: a new one is tested by being in AGGREGATES, and in RULES below."""

from __future__ import annotations

import dataclasses
import math
import pickle

import pytest
import torch
from torch import Tensor

import fedvote.aggregate.blocks
from fedvote.aggregate import (
    AGGREGATES,
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
from fedvote.errors import ConfigError
from fedvote.randomness import Key
from fedvote.registry import find
from tests.toy import assert_same, copied

K, D, F = 9, 6, 2  # F of the K clients are hostile
RULES: dict[str, Aggregate] = {
    "mean": Mean(),
    "median": Median(),
    "trimmed mean": TrimmedMean(F),
    "krum": Krum(F),
    "krum of more neighbours": Krum(F, neighbours=K - F - 1),
    "multi-krum": Krum(F, select=K - F),
    "geometric median": GeometricMedian(),
    "centred clipping": CentredClipping(radius=4.0, iterations=30),
    "nearest-neighbour mixing": NearestNeighbourMixing(F),
    "robust learning rate": RobustLearningRate(0),  # with a threshold of 0 the mean; test_typed.py has others
}
WEIGHTED = (Mean, GeometricMedian, CentredClipping, RobustLearningRate)
HEADS = (Median, TrimmedMean, Krum, NearestNeighbourMixing)  # count every client once
EQUAL = torch.full((K,), 1 / K)


@pytest.fixture(params=list(RULES.values()), ids=list(RULES))
def rule(request: pytest.FixtureRequest) -> Aggregate:
    made: Aggregate = request.param
    return made


def only(*kinds: type[Aggregate]) -> pytest.MarkDecorator:
    """For tests of what holds for some rules."""
    some = {name: rule for name, rule in RULES.items() if isinstance(rule, kinds)}
    return pytest.mark.parametrize("rule", some.values(), ids=some)


def close(a: Tensor, b: Tensor, tolerance: float = 1e-4) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=tolerance)


def honest(seed: int = 0, clients: int = K) -> Tensor:
    """Rows around (1, ..., 1)."""
    return 1 + 0.2 * torch.randn(clients, D, generator=Key(seed).torch("rows"))


def shares(seed: int, rule: Aggregate) -> Tensor:
    """Random ones for rules that use them, else equal ones."""
    drawn = 0.5 + torch.rand(K, generator=Key(seed).torch("weights"))
    return drawn / drawn.sum() if isinstance(rule, WEIGHTED) else EQUAL


def test_every_rule_is_in_the_suite_and_its_defaults_are_a_rule() -> None:
    assert {type(rule) for rule in RULES.values()} == set(AGGREGATES.values()) == {*WEIGHTED, *HEADS}
    for name, kind in AGGREGATES.items():
        assert find(AGGREGATES, name, "aggregate") is kind and kind() == kind()


def test_rules_print_compare_pickle_and_are_frozen(rule: Aggregate) -> None:
    assert pickle.loads(pickle.dumps(rule)) == rule == dataclasses.replace(rule)
    for field in dataclasses.fields(rule):
        assert f"{field.name}={getattr(rule, field.name)!r}" in str(rule)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(rule, field.name, 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_rule_gives_one_new_vector_changes_nothing_and_repeats(rule: Aggregate, dtype: torch.dtype) -> None:
    rows, weights = honest().to(dtype), shares(0, rule).to(dtype)
    rows_before, weights_before = rows.clone(), weights.clone()
    result = rule(rows, weights)
    assert result.shape == (D,) and result.dtype == dtype
    assert torch.equal(result, rule(rows, weights))
    result.zero_()
    assert torch.equal(rows, rows_before) and torch.equal(weights, weights_before)


def test_the_order_of_clients_does_not_matter(rule: Aggregate) -> None:
    for seed in range(5):
        rows, weights = honest(seed), shares(seed, rule)
        order = torch.randperm(K, generator=Key(seed).torch("order"))
        close(rule(rows[order], weights[order]), rule(rows, weights), 1e-5)


@only(Mean, GeometricMedian, *HEADS)
def test_rows_that_are_moved_move_the_result(rule: Aggregate) -> None:
    for seed in range(5):
        rows, weights, shift = honest(seed), shares(seed, rule), 5 * torch.randn(D, generator=Key(seed).torch("shift"))
        close(rule(rows + shift, weights), rule(rows, weights) + shift)


def test_small_updates_are_merged_as_exactly_as_large_ones() -> None:
    rule = GeometricMedian(smoothing=1e-12)
    for seed in range(5):
        rows, weights = honest(seed), shares(seed, rule)
        torch.testing.assert_close(rule(1e-6 * rows, weights) * 1e6, rule(rows, weights), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("factor", [0.25, 8.0])
def test_rows_that_are_scaled_scale_the_result(rule: Aggregate, factor: float) -> None:
    scaled = dataclasses.replace(rule, radius=factor * rule.radius) if isinstance(rule, CentredClipping) else rule
    for seed in range(5):
        rows, weights = honest(seed), shares(seed, rule)
        close(scaled(factor * rows, weights), factor * rule(rows, weights))


def test_equal_rows_give_that_row(rule: Aggregate) -> None:
    row = honest()[0]
    close(rule(row.expand(K, -1), shares(0, rule)), row, 1e-6)


def test_the_result_lies_among_the_rows(rule: Aggregate) -> None:
    for seed in range(5):
        rows = honest(seed) - 1
        if isinstance(rule, CentredClipping):
            rows[0] = 0  # its centre counts as a row
        result = rule(rows, shares(seed, rule))
        assert (result >= rows.amin(0) - 1e-6).all() and (result <= rows.amax(0) + 1e-6).all()


@pytest.mark.parametrize("rule", [Mean(), Median(), TrimmedMean(0), GeometricMedian(), CentredClipping(4)], ids=str)
def test_a_single_client_gives_its_row(rule: Aggregate) -> None:
    row = honest(clients=1)
    close(rule(row, torch.ones(1)), row[0], 1e-6)


@pytest.mark.parametrize("size", [1e2, 1e6, 3e38])
@pytest.mark.parametrize("sign", [-1, 1])
@only(GeometricMedian, CentredClipping, *HEADS)
def test_hostile_rows_do_not_move_it_far_from_the_honest_ones(rule: Aggregate, size: float, sign: int) -> None:
    for seed in range(5):
        rows = honest(seed)
        rows[[1, 4]] = sign * size
        others = rows[[k for k in range(K) if k not in (1, 4)]]
        away = float((rule(rows, EQUAL) - others.mean(0)).norm())
        pull = F / (K - F) * rule.radius if isinstance(rule, CentredClipping) else 0.5  # of hostile and honest balance
        assert away < pull + 0.01


def test_the_mean_goes_wherever_a_hostile_row_takes_it() -> None:
    rows = honest()
    rows[4] = 1e6
    assert (Mean()(rows, EQUAL) > 1e5).all()


@only(*WEIGHTED)
def test_a_client_of_twice_the_weight_counts_as_two(rule: Aggregate) -> None:
    rows = honest()
    weights = torch.tensor([2.0, *[1.0] * (K - 1)])
    twice = torch.cat([rows[:1], rows])
    close(rule(rows, weights / weights.sum()), rule(twice, torch.full((K + 1,), 1 / (K + 1))), 1e-5)


@only(*HEADS)
def test_a_rule_that_counts_heads_refuses_weights(rule: Aggregate) -> None:
    weights = torch.tensor([0.2, *[0.1] * (K - 1)])
    with pytest.raises(ConfigError, match=r"counts every client once, but got weights from 0\.1 to 0\.2"):
        rule(honest(), weights)


def test_a_stack_cut_into_blocks_gives_the_same(rule: Aggregate, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, weights = honest(), shares(0, rule)
    whole = rule(rows, weights)
    for block in (1, 2 * K, 4 * K):  # one, two and four columns at a time; four leave a shorter block
        monkeypatch.setattr(fedvote.aggregate.blocks, "BLOCK", block)
        close(rule(rows, weights), whole, 1e-6)


def test_no_columns_are_no_result(rule: Aggregate) -> None:
    assert rule(torch.zeros(K, 0), EQUAL).shape == (0,)


def test_half_precision_around_it_changes_nothing(rule: Aggregate) -> None:
    rows, weights = honest(), shares(0, rule)
    with torch.autocast("cpu", torch.bfloat16):
        inside = rule(rows, weights)
    assert inside.dtype == torch.float32 and torch.equal(inside, rule(rows, weights))


def test_whole_models_are_merged_as_one_row_each(rule: Aggregate) -> None:
    rows, start = honest(), torch.randn(D, generator=Key(0).torch("start"))
    state = {"a": start[:4], "b": start[4:]}
    ups = {"a": rows[:, :4], "b": rows[:, 4:], "samples": torch.ones(K, 1)}
    state_before, ups_before = copied(state), copied(ups)
    merged = rule.merge(state, ups, shares(0, rule))
    assert list(merged) == ["a", "b"]
    close(torch.cat(list(merged.values())), start + rule(rows - start, shares(0, rule)), 1e-5)
    assert_same(state, state_before)
    assert_same(ups, ups_before)


def test_whole_models_that_are_moved_move_the_result(rule: Aggregate) -> None:
    rows, shift = honest(), torch.full((D,), 7.0)
    here = rule.merge({"a": torch.ones(D)}, {"a": rows}, EQUAL)["a"]
    there = rule.merge({"a": torch.ones(D) + shift}, {"a": rows + shift}, EQUAL)["a"]
    close(there, here + shift)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_agrees_repeats_and_holds_little_more_than_the_stack(rule: Aggregate) -> None:
    rows, weights = honest(), shares(0, rule)
    close(rule(rows.cuda(), weights.cuda()).cpu(), rule(rows, weights), 1e-5)

    large = torch.randn(K, 2**24 + 5, device="cuda")
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    first = rule(large, weights.cuda())
    assert torch.equal(first, rule(large, weights.cuda()))
    assert torch.cuda.max_memory_allocated() - before < 1.25 * large.nbytes
    assert math.isfinite(float(first.sum()))
