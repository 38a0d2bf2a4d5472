"""Every experiment is made of configurations that can be run, and runs that are the same are made once."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest

from fedvote.aggregate import Krum
from fedvote.errors import ConfigError
from fedvote.runs.config import Config, depends_on_rounds
from fedvote.studies.experiments import EXPERIMENTS, Asked
from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.compared_methods import CONTENDERS
from fedvote.studies.experiments.comparison import Comparison, configured, name_of
from fedvote.studies.experiments.hostile_clients import CLIENTS, RULES, settings_of
from fedvote.studies.experiments.operation_counts import PRINTED, counted

COMPARISONS = {name: each for name, each in EXPERIMENTS.items() if isinstance(each, Comparison)}
CELLS = [cell for each in COMPARISONS.values() for cell in each.cells[:: 1 + len(each.cells) // 15]]  # about 15 of each
ASKED = Asked()


def of_one_round(cell: Cell, asked: Asked = ASKED) -> Config:
    """Runs that differ by their rounds are one run that goes on, unless a schedule depends on their number."""
    config = configured(cell, 0, asked)
    return config if depends_on_rounds(config) else dataclasses.replace(config, rounds=1)


def test_two_cells_share_a_folder_if_and_only_if_they_are_the_same_run() -> None:
    known = {(name_of(cell, 0, ASKED), repr(of_one_round(cell))) for cell in CELLS}
    names, configs = zip(*known, strict=True)
    assert len(set(names)) == len(set(configs)) == len(known)


def test_figures_of_the_same_runs_share_them_all() -> None:
    def names(experiment: str) -> set[str]:
        return {name_of(cell, 0, ASKED) for cell in COMPARISONS[experiment].cells}

    assert names("figure-4b") == names("figure-5")
    assert names("figure-4b") & names("table-2") and names("figure-6a") & names("figure-7")


def test_folders_differ_by_seed_and_by_what_is_set_but_not_by_rounds() -> None:
    cell = CELLS[0]
    name = name_of(cell, 0, ASKED)
    assert name == name_of(cell, 0, Asked(rounds=3)) == name_of(cell, 0, Asked(settings=("rounds=3",)))
    assert name == name_of(cell, 0, Asked(settings=("federation.hostile=0",)))  # which it is in any case
    assert len({name, name_of(cell, 1, ASKED), name_of(cell, 0, Asked(settings=("local.steps=3",)))}) == 3


def test_names_of_folders_have_an_end_and_still_differ() -> None:
    many = tuple(f"engine.{key}={value}" for key, value in (("test_batch", 500), ("calibrate_on", 500), ("stack", 3)))
    long = (
        *many,
        "data.name=digits",
        "model.name=digits-cnn",
        "engine.evaluate_every=2",
        "local.batch=8",
        "method.lr=0.125",
    )
    names = [name_of(CELLS[0], 0, Asked(settings=(*long, f"local.steps={steps}"))) for steps in (3, 4)]
    assert names[0] != names[1] and max(map(len, names)) < 220


def test_a_seed_is_asked_for_by_its_number() -> None:
    with pytest.raises(ConfigError, match="expected a number of seeds: use --seeds N"):
        Asked(settings=("seed=5",))


@pytest.mark.parametrize("name", COMPARISONS)
def test_lines_and_columns_name_every_cell_once(name: str) -> None:
    places = [(cell.row, cell.column) for cell in COMPARISONS[name].cells]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("name", [name for name in COMPARISONS if name.startswith(("figure-6", "figure-7"))])
def test_attackers_are_as_many_as_the_column_says_and_the_server_is_never_told(name: str) -> None:
    for cell in COMPARISONS[name].cells:
        config = of_one_round(cell)
        assert config.federation.hostile == int(cell.column) and config.federation.clients == CLIENTS
        assert config.federation.oracle == (cell.row == "oracle" and cell.column != "0")


def test_those_who_must_be_told_a_number_get_one_that_they_can_bear() -> None:
    for rule, hostile in itertools.product(RULES, (0, 5, 15)):
        settings = settings_of(rule, hostile, CLIENTS)
        assert not any("{" in setting for setting in settings)
        of_one_round(Cell(rule, "cifar10-silo", (f"federation.hostile={hostile}", *settings)))
    assert "method.lr=0.5" in settings_of("median@0.5", 15, CLIENTS)
    for clients in range(3, 12):  # of which a majority may be hostile
        (told,) = [setting for setting in settings_of("Krum", clients, clients) if "byzantine" in setting]
        Krum(byzantine=int(told.partition("=")[2])).check(clients)


@pytest.mark.parametrize("name", CONTENDERS)
def test_the_rate_of_a_contender_reaches_its_method(name: str) -> None:
    *_, rate = CONTENDERS[name]
    key, _, value = rate.removeprefix("method.").partition("=")
    made = of_one_round(Cell(name, "cifar10-silo", CONTENDERS[name]))
    assert key in ("lr", "server_lr") and getattr(made.method, key) == float(value)


def test_cells_are_chosen_by_row_by_column_or_by_both() -> None:
    every = COMPARISONS["few-digits"]

    def places(*only: str) -> list[tuple[str, str]]:
        return [(cell.row, cell.column) for cell in every.wanted(Asked(only=only))]

    assert len(places()) == len(every.cells)
    row = "inverse, 5 of 11"
    assert places(row, "camps", "oracle") == [(row, "camps"), (row, "oracle")]
    assert {column for _, column in places("insider, 3 of 7")} == {cell.column for cell in every.cells}
    assert {row for row, _ in places("camps")} == {cell.row for cell in every.cells}


@pytest.mark.parametrize("network", sorted({network for network, _ in PRINTED}))
def test_votes_cost_fewer_multiplications_and_less_energy_here_and_in_the_paper(network: str) -> None:
    rows = {row["weights"]: row for row in counted(network)}
    for suffix in ("", ", paper"):
        float_row, binary = ({k: row[f"{k}{suffix}"] for k in ("multiplications", "millijoules")}
                             for row in (rows["float"], rows["binary"]))  # fmt: skip
        assert binary["multiplications"] < float_row["multiplications"] / 100
        assert binary["millijoules"] < float_row["millijoules"] / 4


def test_rows_that_are_not_there_are_named_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match=r"there is no row 'FedAverage' in 'Figure 4 .b.*FedVote binary; .*FedAvg"):
        next(iter(COMPARISONS["figure-4b"].measure(Asked(only=("FedAverage",)), None)))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["seeds", "rounds"])
def test_none_is_refused_as_a_number(name: str) -> None:
    none: dict[str, Any] = {name: 0}
    with pytest.raises(ConfigError, match=r"asked for 0 .*, expected 1 or more"):
        dataclasses.replace(ASKED, **none)
