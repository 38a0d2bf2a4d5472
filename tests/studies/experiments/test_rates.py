"""Every method's learning rate is searched with the same care, and the one that was found is used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fedvote.studies.experiments.alphabets import RATES
from fedvote.studies.experiments.cells import config_of
from fedvote.studies.experiments.compared_methods import CONTENDERS
from fedvote.studies.experiments.rates import GRID, RATES_CIFAR10, best

FOUND = Path(__file__).parents[3] / "results" / "paper" / "rates-cifar10.json"


def tried(row: str, **by_rate: float) -> list[dict[str, Any]]:
    return [
        {"row": row, "column": rate.removeprefix("at_"), "seeds": {"0": [{"accuracy": value}]}}
        for rate, value in by_rate.items()
    ]


def test_every_method_is_tried_at_the_papers_eight_rates_on_held_out_examples() -> None:
    rows = {cell.row for cell in RATES_CIFAR10.cells}
    assert rows >= {*CONTENDERS, "FedVote ternary, iid", "signSGD, local", "SIGNUM, local"}
    assert GRID == ("0.0001", "0.0003", "0.001", "0.003", "0.01", "0.03", "0.1", "0.3")
    assert all([cell.column for cell in RATES_CIFAR10.cells if cell.row == row] == list(GRID) for row in rows)
    for cell in RATES_CIFAR10.cells:
        config = config_of(cell.preset, cell.settings)
        assert config.data.validation == 0.1 and config.rounds == 10


@pytest.mark.parametrize(("row", "key"), [("FedAvg", "lr"), ("signSGD", "server_lr"), ("signSGD, local", "lr")])
def test_the_column_is_the_rate(row: str, key: str) -> None:
    for cell in RATES_CIFAR10.cells:
        if cell.row == row:
            assert getattr(config_of(cell.preset, cell.settings).method, key) == float(cell.column)


def test_the_best_rate_needs_a_worse_one_on_either_side() -> None:
    bracketed = tried("a", **{"0.01": 0.5, "0.03": 0.7, "0.1": 0.6})
    open_above = tried("b", **{"0.01": 0.5, "0.03": 0.7})
    at_the_edge = tried("c", **{"0.0001": 0.5, "0.0003": 0.4})
    assert best([*bracketed, *open_above, *at_the_edge]) == {"a": "0.03", "c": "0.0001"}


def test_the_rates_in_use_are_those_that_were_found() -> None:
    found = best(json.loads(FOUND.read_text())["cells"]) if FOUND.exists() else {}
    used = {name: settings[-1].partition("=")[2] for name, settings in CONTENDERS.items()}
    for votes, rate in zip(("binary", "ternary"), RATES["cifar10-silo", "iid"], strict=True):
        used[f"FedVote {votes}, iid"] = str(rate)
    assert {name: used[name] for name in found if name in used} == {
        name: rate for name, rate in found.items() if name in used
    }
    for votes, rate in zip(("binary", "ternary"), RATES["cifar10-silo", "dirichlet"], strict=True):
        assert str(rate) == used[f"FedVote {votes}"]  # Table II and Figure 4 (b) share these runs
