"""The count sketch by explicit loops, what it recovers, and FetchSGD's rule typed in on three weights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

from fedvote import FedAvg
from fedvote.core import State
from fedvote.errors import ConfigError
from fedvote.methods import FetchSGD
from fedvote.methods.fetchsgd import CountSketch, largest
from fedvote.network.network import Network
from fedvote.randomness import Key
from tests.toy import Federation, merge, module, three_weights

CPU = torch.device("cpu")
SHAPES = [(1, 7, 7), (3, 7, 20), (5, 16, 100), (3, 50, 20), (1, 1, 9), (5, 100, 301)]


def noise(*shape: int) -> Tensor:
    return torch.randn(shape, generator=Key(0).torch("noise"))


def places(sketch: CountSketch) -> list[list[tuple[int, float]]]:
    """The column and sign of every coordinate in every row, one at a time."""
    rows: list[list[tuple[int, float]]] = [[] for _ in range(sketch.rows)]
    for row in range(sketch.rows):
        for start in range(0, sketch.size, sketch.columns):
            a, b, signs = sketch._hash(row, start // sketch.columns, CPU)
            for r in range(min(sketch.columns, sketch.size - start)):
                rows[row].append(((a * r + b) % sketch.columns, float(signs[r])))
    return rows


@pytest.mark.parametrize(("rows", "columns", "size"), SHAPES)
def test_a_sketch_and_its_estimates_by_explicit_loops(rows: int, columns: int, size: int) -> None:
    sketch, x = CountSketch(rows, columns, size, seed=3), noise(size)
    table, where = [[0.0] * columns for _ in range(rows)], places(sketch)
    for row in range(rows):
        for i, (column, sign) in enumerate(where[row]):
            table[row][column] += sign * float(x[i])
    found = sketch.of(x[None])
    torch.testing.assert_close(found, torch.tensor(table)[None], rtol=0, atol=1e-5)
    estimates = [median(where[r][i][1] * table[r][where[r][i][0]] for r in range(rows)) for i in range(size)]
    torch.testing.assert_close(sketch.estimate(found[0]), torch.tensor(estimates), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("rows", "columns", "size"), SHAPES)
def test_coordinates_of_one_block_never_meet(rows: int, columns: int, size: int) -> None:
    for row in places(CountSketch(rows, columns, size, seed=4)):
        for start in range(0, size, columns):
            block = [column for column, _ in row[start : start + columns]]
            assert len(set(block)) == len(block)


@pytest.mark.parametrize("columns", [16, 30])
def test_coordinates_of_two_blocks_meet_as_often_as_chance_would_have_it(columns: int) -> None:
    meetings, seeds = [0] * columns, 1000
    for seed in range(seeds):
        (row,) = places(CountSketch(1, columns, 2 * columns, seed))
        meetings[[column for column, _ in row[columns:]].index(row[3][0])] += 1
    # each of the other block's coordinates in 1/C of the seeds, give or take four standard deviations
    expected = seeds / columns
    assert all(abs(count - expected) < 4 * expected**0.5 for count in meetings)


def test_signs_are_as_often_plus_as_minus_and_differ_by_row_block_and_seed() -> None:
    signs = [
        CountSketch(3, 1000, 2000, seed)._hash(row, block, CPU)[2]
        for seed in (0, 1)
        for row in (0, 1)
        for block in (0, 1)
    ]
    assert all(set(s.tolist()) == {-1.0, 1.0} and abs(float(s.sum())) < 130 for s in signs)
    agreement = torch.stack(signs) @ torch.stack(signs).T - 1000 * torch.eye(8)
    assert float(agreement.abs().max()) < 160


def test_sketches_are_linear_and_the_same_for_all_who_know_the_seed() -> None:
    x, y = noise(2, 90)
    sketch = CountSketch(3, 20, 90, seed=1)
    together = sketch.of(torch.stack([x, y, 2 * x - y]))
    torch.testing.assert_close(together[2], 2 * together[0] - together[1], rtol=0, atol=1e-5)
    assert torch.equal(CountSketch(3, 20, 90, seed=1).of(x[None])[0], together[0])
    assert not torch.equal(CountSketch(3, 20, 90, seed=2).of(x[None])[0], together[0])


@pytest.mark.parametrize("columns", [40, 41, 1000])
def test_with_columns_for_all_everything_is_recovered_exactly(columns: int) -> None:
    x = noise(40)
    sketch = CountSketch(3, columns, 40, seed=0)
    assert torch.equal(sketch.estimate(sketch.of(x[None])[0]), x)


def test_heavy_hitters_alone_are_recovered_exactly() -> None:
    x = torch.zeros(10_000)
    heavy = torch.randperm(10_000, generator=Key(0).torch("heavy"))[:8]
    x[heavy] = torch.tensor([1.0, -2, 3, -4, 5, -6, 7, -8])
    sketch = CountSketch(5, 1000, 10_000, seed=0)
    assert torch.equal(largest(sketch.estimate(sketch.of(x[None])[0]), 8), x)


def test_heavy_hitters_are_found_in_noise() -> None:
    x = 0.1 * noise(10_000)
    heavy = torch.randperm(10_000, generator=Key(0).torch("heavy"))[:8]
    x[heavy] = torch.tensor([10.0, -10, 20, -20, 10, -10, 20, -20])
    sketch = CountSketch(5, 1000, 10_000, seed=0)
    found = largest(sketch.estimate(sketch.of(x[None])[0]), 8)
    assert found.nonzero().flatten().tolist() == sorted(heavy.tolist())
    torch.testing.assert_close(found[heavy], x[heavy], rtol=0, atol=1.0)


def test_an_estimate_of_one_row_has_no_bias_and_the_error_of_a_count_sketch() -> None:
    """E (estimate_i - x_i)^2 is the energy of the other blocks over the columns."""
    x, columns, seeds = noise(60), 20, 1000
    sketches = (CountSketch(1, columns, 60, seed) for seed in range(seeds))
    error = torch.stack([sketch.estimate(sketch.of(x[None])[0]) - x for sketch in sketches])
    energy = x.square().view(3, columns).sum(1)
    expected = (energy.sum() - energy) / columns
    assert float((error.mean(0).abs() / (expected.repeat_interleave(columns) / seeds).sqrt()).max()) < 4
    torch.testing.assert_close(error.square().mean(0).view(3, columns).mean(1), expected, rtol=0.05, atol=0)


def test_the_largest_are_kept_whatever_their_sign() -> None:
    assert largest(torch.tensor([1.0, -3.0, 2.0, 0.5]), 2).tolist() == [0, -3, 2, 0]
    assert largest(torch.tensor([1.0, -3.0]), 5).tolist() == [1, -3]


# The server's rule, with a sketch that loses nothing


def merged(method: FetchSGD, state: State, update: Sequence[float]) -> State:
    sketch = method.sketch(5, seed=0)
    updates = torch.tensor([update, update]) * torch.tensor([[0.5], [1.5]])  # two clients, whose mean it is
    return merge(method, state, {"sketch": sketch.of(updates)}, [0, 1], Key(0, 1))


def unsketched(method: FetchSGD, state: State, name: str) -> list[float]:
    estimate: list[float] = method.sketch(5, seed=0).estimate(state[name]).tolist()
    return estimate


@pytest.mark.parametrize("feedback", ["subtract", "clear"])
def test_the_servers_rule_by_hand_over_two_rounds(feedback: Literal["subtract", "clear"]) -> None:
    method = FetchSGD(rows=1, columns=5, k=2, momentum=0.5, server_lr=2.0, feedback=feedback)
    network = three_weights()
    start = method.init(network, 2)
    assert start["momentum"].shape == start["error"].shape == (1, 5)

    # u = 1 4 0 -3 0, e = 2 8 0 -6 0: the second and fourth weight move
    first = merged(method, start, [1, 4, 0, -3, 0])
    torch.testing.assert_close(first["voted"], network.start.voted - torch.tensor([0.0, 8.0, 0.0]))
    torch.testing.assert_close(first["float"], network.start.floats - torch.tensor([-6.0, 0.0]))
    assert unsketched(method, first, "error") == [2, 0, 0, 0, 0]
    kept = [1, 4, 0, -3, 0] if feedback == "subtract" else [1, 0, 0, 0, 0]
    assert unsketched(method, first, "momentum") == kept

    second = merged(method, first, [1, 0, 3, 0, 0])
    if feedback == "subtract":
        # u = 1.5 2 3 -1.5 0, e = 2 0 0 0 0 + 3 4 6 -3 0: the first and third move
        assert unsketched(method, second, "momentum") == [1.5, 2, 3, -1.5, 0]
        assert unsketched(method, second, "error") == [0, 4, 0, -3, 0]
    else:
        # u = 1.5 0 3 0 0, e = 2 0 0 0 0 + 3 0 6 0 0
        assert unsketched(method, second, "momentum") == unsketched(method, second, "error") == [0, 0, 0, 0, 0]
    torch.testing.assert_close(second["voted"], first["voted"] - torch.tensor([5.0, 0.0, 6.0]))
    torch.testing.assert_close(second["float"], first["float"])


def test_with_a_sketch_that_loses_nothing_it_is_fedavg() -> None:
    everything = FetchSGD(lr=0.01, rows=1, columns=10**9, k=10**9, momentum=0.0)
    found, expected = (Federation(method, seed=7).states([(0, 2)])[-1] for method in (everything, FedAvg(lr=0.01)))
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=0, atol=1e-5)


def test_the_broadcast_is_the_weights_and_nothing_else() -> None:
    federation = Federation(FetchSGD())
    assert federation.method.broadcast(federation.states([range(5)])[-1]).keys() == {"voted", "float"}


def test_a_table_is_no_larger_than_the_vector_and_no_more_weights_change_than_it_has_columns() -> None:
    assert FetchSGD().width(13_000_000) == 1_000_000
    assert FetchSGD().width(1_000_000) == 200_000
    assert FetchSGD(rows=3, columns=10).width(1) == 1
    network = Network(module())  # 111 weights
    for k, changed in [(10**6, 23), (7, 7)]:
        state = Federation(FetchSGD(k=k), network).states([range(5)])[-1]
        assert state["error"].shape == (5, 23)
        start = FetchSGD().init(network, 5)
        assert sum(int((state[name] != start[name]).sum()) for name in ("voted", "float")) == changed


def test_a_cell_is_four_bytes() -> None:
    federation = Federation(FetchSGD(rows=3, columns=10))
    _, frames = federation.frames(federation.start(), 1, [0])
    assert len(frames[0]) == 39 + (9 + 4 * 3 * 10) + 4


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rows": 4}, "rows is 4, expected an odd number, so that there is a median"),
        ({"rows": 0}, "rows is 0, expected an odd number"),
        ({"rows": -1}, "rows is -1, expected an odd number"),
        ({"columns": 0}, "columns is 0 and k is 50000, expected whole numbers above 0"),
        ({"k": 0}, "columns is 1000000 and k is 0, expected whole numbers above 0"),
        ({"momentum": 1.0}, "momentum is 1.0, expected a number from 0 to below 1"),
        ({"feedback": "none"}, "feedback is 'none', expected one of: clear, subtract"),
        ({"server_lr": 0.0}, "server_lr is 0.0, expected a finite number above 0"),
    ],
    ids=str,
)
def test_values_that_make_no_sense_are_refused_with_those_that_do(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        FetchSGD(**options)
