"""Figure 5 counts as the paper does: whole bits a weight, within 1.5 and 4.7 GB."""

from __future__ import annotations

import pytest

from fedvote.report.number_text import spread
from fedvote.runs.config import read
from fedvote.studies.experiments import EXPERIMENTS
from fedvote.studies.experiments.cells import Cell, Record, Runs
from fedvote.studies.experiments.compared_methods import CONTENDERS
from fedvote.studies.experiments.paper_budget import BITS, ROUNDS, rounds_within, within, within_budgets

A_BIT: Record = {"round": 1, "accuracy": 0.5, "uplink_bytes": 31 * 12_963_200 / 8, "uplink_bits_per_weight": 1.0}


def ballots(row: str, rounds: int) -> Runs:
    """Entropy-coded: a tenth of a bit; the accuracy is the number of the round in percent."""
    sent = {"uplink_bytes": 31 * 12_963_200 / 80, "uplink_bits_per_weight": 0.1}
    records = [{**sent, "round": index, "accuracy": index / 100} for index in range(1, rounds + 1)]
    return Runs(Cell(row, "cifar10-silo"), read("cifar10-silo"), {0: records})


@pytest.mark.parametrize(("bits", "gigabytes", "rounds"), [(1, 1.5, 29), (1, 4.7, 93), (2, 4.7, 46), (32, 1.5, 0)])
def test_a_budget_allows_so_many_rounds_of_whole_bits(bits: float, gigabytes: float, rounds: int) -> None:
    assert rounds_within(gigabytes, bits, A_BIT) == rounds


def test_entropy_coding_does_not_count() -> None:
    assert within(ballots("FedVote binary", 94), 1.5) == f"{spread([0.29])}, 29 rounds"
    assert within(ballots("FedPAQ, buckets", 47), 4.7) == f"{spread([0.46])}, 46 rounds"
    assert within(ballots("FedAvg", 40), 1.5) == "no round yet"
    assert within(ballots("FedVote binary", 40), 4.7) == "ended before"


def test_every_line_of_figure_5_is_long_enough_for_both_budgets() -> None:
    assert BITS.keys() == CONTENDERS.keys()
    for cell in EXPERIMENTS["figure-5"].cells:  # type: ignore[attr-defined]
        assert f"rounds={ROUNDS[cell.row]}" in cell.settings
        assert ROUNDS[cell.row] >= max(40, rounds_within(4.7, BITS[cell.row], A_BIT))


def test_the_paper_s_count_stands_beside_the_real_bytes() -> None:
    view = within_budgets([ballots("FedVote binary", 94)])
    assert list(view.head)[-2:] == ["With 1.5 GB, paper's count", "With 4.7 GB, paper's count"]
    assert list(view.rows[0])[-1] == f"{spread([0.93])}, 93 rounds"
