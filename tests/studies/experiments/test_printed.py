"""What stands as the paper's beside our own numbers is what the paper prints: its tables, typed in a second time."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from fedvote.methods import FedVote, FetchSGD
from fedvote.network.cost import PICOJOULES_ADD, PICOJOULES_MULTIPLY
from fedvote.quantize import Tanh
from fedvote.runs.config import Config, read
from fedvote.runs.toml_tables import in_order
from fedvote.studies.experiments import EXPERIMENTS, Asked

PARTITIONS = {"iid": "i.i.d.", "dirichlet": "non-i.i.d."}

TABLE_I = """
a                   0.5   1.5   2.5   10
i.i.d.      float   90.7  90.6  90.0  88.2
i.i.d.      binary  88.7  90.4  89.9  88.2
non-i.i.d.  float   87.3  86.9  85.7  85.0
non-i.i.d.  binary  83.3  85.5  85.2  84.6
"""

TABLE_II = """
               distribution  BNN   TNN
fashion-mnist  i.i.d.        91.1  91.9
fashion-mnist  non-i.i.d.    88.3  89.4
cifar10        i.i.d.        80.5  82.5
cifar10        non-i.i.d.    74.6  77.6
"""

TABLE_III = """
        weights  adds    muls    mJ
lenet5  float    1.7e9   1.8e9   8.1
lenet5  binary   1.7e9   1.0e5   1.5
vgg7    float    4.8e10  5.4e10  242.9
vgg7    binary   4.8e10  2.1e5   43.3
"""


def rows(table: str) -> tuple[list[str], list[list[str]]]:
    """The words of the first line, and those of the others."""
    head, *others = (line.split() for line in table.strip().splitlines())
    return head, others


def cells(experiment: str) -> list[tuple[Any, Config]]:
    """Each cell of a table that is run, with the whole configuration that it stands for."""
    found = cast(Any, EXPERIMENTS[experiment]).cells
    return [(cell, read(cell.preset, in_order(cell.settings))) for cell in found]


def partition(config: Config) -> str:
    return PARTITIONS[type(config.partition).__name__.lower()]


def test_table_1_has_the_accuracies_that_the_paper_prints_for_its_normalisations() -> None:
    (_, *steepness), printed = rows(TABLE_I)
    expected = {
        (split, kind, float(a)): float(value)
        for split, kind, *values in printed
        for a, value in zip(steepness, values, strict=True)
    }
    found = {}
    for cell, config in cells("table-1"):
        assert isinstance(config.method, FedVote) and isinstance(config.method.normalisation, Tanh)
        assert (config.data.name, config.rounds) == ("fashion-mnist", 20)  # Section VI, Normalization Function
        for metric, kind in (("accuracy_float", "float"), ("accuracy", "binary")):
            found[partition(config), kind, config.method.normalisation.a] = cell.printed[metric]
    assert found == expected and len(expected) == 16


def test_table_2_has_the_accuracies_that_the_paper_prints_for_binary_and_ternary_networks() -> None:
    _, printed = rows(TABLE_II)
    expected = {
        (data, split, votes): float(value)
        for data, split, *values in printed
        for votes, value in zip(("binary", "ternary"), values, strict=True)
    }
    found = {}
    for cell, config in cells("table-2"):
        assert isinstance(config.method, FedVote) and cell.printed.keys() == {"accuracy"}
        found[config.data.name, partition(config), config.method.votes] = cell.printed["accuracy"]
    assert found == expected and len(expected) == 8


def test_table_3_has_the_costs_that_the_paper_prints_of_100_images_of_cifar10(tmp_path: Path) -> None:
    _, printed = rows(TABLE_III)
    expected = {(network, weights): tuple(map(float, values)) for network, weights, *values in printed}
    (counted,) = EXPERIMENTS["table-3"].measure(Asked(), tmp_path)
    numbers = counted.numbers()
    found = {
        (row["network"], row["weights"]): tuple(
            row[f"{name}, paper"] for name in ("additions", "multiplications", "millijoules")
        )
        for row in numbers["rows"]
    }
    assert {key: found[key] for key in expected} == expected
    assert set().union(*(values for key, values in found.items() if key not in expected)) == {None}  # not in the paper
    assert (numbers["config"]["inputs"], tuple(numbers["config"]["shape"])) == (100, (3, 32, 32))


def test_an_operation_costs_as_much_energy_as_the_paper_says() -> None:
    """Section VI, Deployment Efficiency; its own table follows from both."""
    assert (PICOJOULES_MULTIPLY, PICOJOULES_ADD) == (3.7, 0.9)
    for _, _, adds, muls, millijoules in rows(TABLE_III)[1]:
        assert 1e-9 * (0.9 * float(adds) + 3.7 * float(muls)) == pytest.approx(float(millijoules), rel=0.03)


@pytest.mark.parametrize(
    ("experiment", "data", "clients", "cohort"),
    [
        ("figure-4a", "femnist", 300, 20),
        ("figure-4b", "cifar10", 31, 0),
        ("figure-4c", "cifar10", 100, 20),
        ("figure-5", "cifar10", 31, 0),
    ],
)
def test_figures_4_and_5_have_the_papers_clients(experiment: str, data: str, clients: int, cohort: int) -> None:
    """The caption of Figure 4 and Section VI, Communication Efficiency; a cohort of 0 is everybody."""
    for _, config in cells(experiment):
        assert (config.data.name, config.federation.clients, config.federation.cohort) == (data, clients, cohort)


@pytest.mark.parametrize(
    ("experiment", "attack"),
    [("figure-6a", "Inverse"), ("figure-6b", "LabelFlip"), ("figure-6c", "Random"), ("figure-7", "Omniscient")],
)
def test_figures_6_and_7_have_the_papers_attacks_of_up_to_15_of_31_clients(experiment: str, attack: str) -> None:
    """The captions of Figures 6 and 7 and Section VI, Byzantine Resilience; the oracle's attackers do not take part."""
    for _, config in cells(experiment):
        assert config.data.name == "cifar10" and partition(config) == "non-i.i.d."
        assert (config.federation.clients, config.federation.cohort) == (31, 0)
        if config.federation.hostile and not config.federation.oracle:
            assert type(config.attack).__name__ == attack
    assert max(config.federation.hostile for _, config in cells(experiment)) == 15


def test_figure_5_quotes_the_paper() -> None:
    """Section VI, Communication Efficiency: the gain over each method, within a budget."""
    note = cast(Any, EXPERIMENTS["figure-5"]).note
    assert "with 1.5 to 4.7 GB" in note
    assert "5 to 10 points above FedPAQ, 15 to 20 above signSGD and 25 to 30 above FedAvg" in note


def test_what_is_repeated_and_sketched_is_as_much_as_in_the_paper() -> None:
    """Section VI, Data and Models: three repetitions. Appendix A-A: 10^6 columns, k = 5 10^4."""
    assert Asked().seeds == 3
    assert (FetchSGD().columns, FetchSGD().k) == (10**6, 5 * 10**4)
