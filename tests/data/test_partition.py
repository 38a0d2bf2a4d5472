"""Partitions are partitions for every size, and each kind is uneven in its own way only."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedvote.core import Dataset
from fedvote.data.partition import IID, PARTITIONS, Dirichlet, Partition, Shards, Uneven, Writer, divide
from fedvote.data.partition.dirichlet import draw, take_turns
from fedvote.data.show import class_counts
from fedvote.errors import ConfigError, DataError
from fedvote.randomness import Key

Toy = Callable[..., Dataset]
COVERING = [
    IID(),
    Dirichlet(0.5),
    Dirichlet(0.01),
    Dirichlet(100.0),
    Shards(),
    Shards(3),
    Uneven(0.5, 0),
    Uneven(0.01, 0),
]


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(0, 300),
    clients=st.integers(1, 40),
    classes=st.integers(1, 12),
    seed=st.integers(0, 10_000),
    partition=st.sampled_from(COVERING),
)
def test_every_sample_has_exactly_one_client(
    n: int, clients: int, classes: int, seed: int, partition: Partition, toy: Toy
) -> None:
    rng = Key(seed).numpy("test")
    parts = partition.split(toy(rng.integers(0, classes, n), classes), clients, rng)
    assert len(parts) == clients
    assert sorted(np.concatenate(parts).tolist()) == list(range(n))
    for part in parts:
        assert part.dtype == np.int64 and (np.diff(part) > 0).all()
    if not isinstance(partition, Shards | Uneven):
        sizes = [len(part) for part in parts]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("partition", COVERING, ids=str)
def test_one_seed_gives_one_partition(partition: Partition, toy: Toy) -> None:
    data = toy(np.arange(200) % 7, 7)

    def split(seed: int) -> list[list[int]]:
        return [part.tolist() for part in partition.split(data, 9, Key(seed).numpy("partition"))]

    assert split(1) == split(1)
    assert split(1) != split(2)


def test_the_registry_makes_every_partition_from_its_fields() -> None:
    assert list(PARTITIONS) == ["iid", "dirichlet", "uneven", "writer", "shards", "flwr"]
    for kind in PARTITIONS.values():
        partition = kind()
        assert kind(**dataclasses.asdict(partition)) == partition
    assert Dirichlet().alpha == 0.5 and Shards().shards_per_client == 2


def test_iid_clients_have_every_class_in_proportion(toy: Toy) -> None:
    data = toy(np.arange(10_000) % 10, 10)
    counts = class_counts(data, IID().split(data, 5, Key(0).numpy("partition")))
    assert counts.min() > 150 and counts.max() < 250


def test_a_large_alpha_is_even_and_a_small_alpha_is_one_class_each(toy: Toy) -> None:
    data = toy(np.arange(10_000) % 10, 10)

    def largest_share(alpha: float) -> float:
        counts = class_counts(data, Dirichlet(alpha).split(data, 50, Key(0).numpy("partition")))
        return float((counts.max(1) / counts.sum(1)).mean())

    assert largest_share(1000.0) < 0.15
    assert 0.3 < largest_share(0.5) < 0.45
    assert largest_share(0.01) > 0.65  # less than 1: clients that want one class cannot all have it


@pytest.mark.parametrize(("alpha", "wanted", "got"), [(0.1, 0.66, 0.54), (0.5, 0.39, 0.36)])
def test_what_clients_get_is_milder_than_what_is_drawn_for_them(alpha: float, wanted: float, got: float) -> None:
    """By as much as dirichlet.py says, with 31 clients and ten even classes."""
    largest = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        mixtures = rng.dirichlet(np.full(10, alpha), size=31)
        counts = take_turns(mixtures, np.full(31, 1000), np.full(10, 3100), rng)
        largest.append((mixtures.max(1).mean(), counts.max(1).mean() / 1000))
    assert np.mean(largest, axis=0).tolist() == pytest.approx([wanted, got], abs=0.01)


def test_no_client_gets_only_what_nobody_wanted(toy: Toy) -> None:
    """Dealt to one client after another, the last ones are 0.7 and more away from their mixtures."""
    rng = Key(3).numpy("test")
    mixtures = rng.dirichlet(np.full(10, 0.5), size=100)
    counts = take_turns(mixtures, np.full(100, 100), np.full(10, 1000), rng)
    distance = np.abs(counts / 100 - mixtures).sum(1) / 2
    assert distance.max() < 0.35 and distance.mean() < 0.15
    assert counts.sum(0).tolist() == [1000] * 10 and counts.sum(1).tolist() == [100] * 100


def test_shares_of_a_class_follow_alpha_and_sizes_differ(toy: Toy) -> None:
    data = toy(np.arange(10_000) % 10, 10)

    def counts(alpha: float) -> np.ndarray:
        return class_counts(data, Uneven(alpha, 0).split(data, 20, Key(0).numpy("partition")))

    even, uneven = counts(1000.0), counts(0.1)
    assert even.min() > 40 and even.max() < 60
    assert np.ptp(uneven.sum(1)) > 500 and uneven.max(0).mean() > 300  # of the 1000 of a class, at one client of twenty


def test_divisions_are_drawn_again_until_everybody_has_enough(toy: Toy) -> None:
    data = toy(np.arange(1000) % 10, 10)
    sizes = [[len(part) for part in Uneven(0.2, few).split(data, 10, Key(3).numpy("partition"))] for few in (0, 40)]
    assert min(sizes[0]) < 40 <= min(sizes[1]) and sum(sizes[1]) == 1000
    with pytest.raises(
        DataError, match=r"none of 1000 divisions of 1000 samples by Uneven\(alpha=0.2, min_samples=101\)"
    ):
        Uneven(0.2, 101).split(data, 10, Key(0).numpy("partition"))


def test_an_empty_class_is_renormalised_away() -> None:
    rng = Key(0).numpy("test")
    assert draw(np.array([0.5, 0.3, 0.2]), np.array([0, 9, 0]), 4, rng).tolist() == [0, 4, 0]
    assert draw(np.array([1.0, 0.0, 0.0]), np.array([2, 1, 1]), 4, rng).tolist() == [2, 1, 1]
    assert draw(np.array([0.9, 0.1]), np.array([1, 9]), 5, rng).tolist() == [1, 4]


def test_shards_give_few_classes_each(toy: Toy) -> None:
    data = toy(np.arange(400) % 10, 10)
    parts = Shards(2).split(data, 20, Key(0).numpy("partition"))
    assert [len(part) for part in parts] == [20] * 20
    held = class_counts(data, parts) > 0
    assert held.sum(1).max() <= 2
    apart = [np.ptp(np.flatnonzero(row)) for row in held]
    assert sum(distance > 1 for distance in apart) > 8, "most have classes that are no neighbours"
    others = Shards(2).split(data, 20, Key(1).numpy("partition"))
    assert not np.array_equal(class_counts(data, others) > 0, held), "the deal follows from the seed"


def test_a_client_is_one_writer_with_all_of_their_samples(toy: Toy) -> None:
    data = toy([0] * 7, 1, writers=[5, 5, 8, 8, 8, 2, 9])
    parts = Writer().split(data, 4, Key(0).numpy("partition"))
    assert sorted(part.tolist() for part in parts) == [[0, 1], [2, 3, 4], [5], [6]]
    assert sorted(part.tolist() for part in Writer(min_samples=2).split(data, 2, Key(0).numpy("p"))) == [
        [0, 1],
        [2, 3, 4],
    ]


def test_writers_are_chosen_by_the_generator(toy: Toy) -> None:
    data = toy([0] * 50, 1, writers=list(range(50)))

    def chosen(seed: int) -> list[int]:
        return [int(part[0]) for part in Writer().split(data, 5, Key(seed).numpy("partition"))]

    assert chosen(0) == chosen(0) and len(set(chosen(0))) == 5
    assert chosen(0) != chosen(1)


def test_too_few_writers_or_none_are_refused(toy: Toy) -> None:
    rng = Key(0).numpy("partition")
    with pytest.raises(DataError, match="toy does not name its writers"):
        Writer().split(toy([0, 0], 1), 1, rng)
    with pytest.raises(DataError, match="2 writers with 1 or more samples, too few for 3 clients: ask for 2"):
        Writer().split(toy([0, 0], 1, writers=[0, 1]), 3, rng)


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan"), float("inf")])
def test_an_alpha_that_is_no_concentration_is_refused(alpha: float) -> None:
    for kind in (Dirichlet, Uneven):
        with pytest.raises(ConfigError, match=f"alpha is {alpha}, expected a finite number above 0"):
            kind(alpha)


def test_other_fields_out_of_range_are_refused(toy: Toy) -> None:
    with pytest.raises(ConfigError, match="shards_per_client is 0"):
        Shards(0)
    with pytest.raises(ConfigError, match="min_samples is -1"):
        Dirichlet(min_samples=-1)
    with pytest.raises(ConfigError, match="min_samples is -1"):
        Uneven(min_samples=-1)
    with pytest.raises(ConfigError, match="min_samples is 0"):
        Writer(min_samples=0)
    with pytest.raises(DataError, match="10 samples give 3 clients 3 each, min_samples is 4"):
        Dirichlet(min_samples=4).split(toy([0] * 10, 1), 3, Key(0).numpy("partition"))


@dataclasses.dataclass(frozen=True)
class Fixed(Partition):
    parts: tuple[tuple[int, ...], ...]

    def split(self, data: Dataset, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        return [np.array(part, dtype=np.int64) for part in self.parts]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (((0, 1), (), (2,)), "client 1 has no samples of toy by .*: ask for fewer clients"),
        (((0, 1), (1, 2), (3, 4)), "gives a sample to two clients"),
    ],
)
def test_divide_refuses_what_cannot_be_trained_on(parts: tuple[tuple[int, ...], ...], words: str, toy: Toy) -> None:
    with pytest.raises(DataError, match=words):
        divide(Fixed(parts), toy([0] * 5, 1), 3, Key(0).numpy("partition"))


def test_divide_refuses_more_clients_than_samples_and_fewer_than_one(toy: Toy) -> None:
    rng = Key(0).numpy("partition")
    with pytest.raises(DataError, match="toy has 5 training samples, too few for 6 clients: ask for 5 clients"):
        divide(IID(), toy([0] * 5, 1), 6, rng)
    with pytest.raises(ConfigError, match="clients is 0, expected 1 or more"):
        divide(IID(), toy([0] * 5, 1), 0, rng)
    assert [len(part) for part in divide(IID(), toy([0] * 5, 1), 5, rng)] == [1] * 5
