"""Runs in several processes: results are shown while the others still run."""

from __future__ import annotations

from pathlib import Path

from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.comparison import Comparison
from fedvote.studies.experiments.contract import Asked
from fedvote.studies.experiments.views import grid

OWN = "from fedvote import FedAvg\n\n\nclass Mine(FedAvg):\n    pass\n"
SMALL = ("rounds=1", "federation.clients=2", "local.steps=1", "local.batch=4")


def test_finished_runs_are_shown_before_the_last_one_ends(tmp_path: Path) -> None:
    cells = tuple(Cell(f"lr {lr}", "quickstart", (*SMALL, f"method.lr={lr}")) for lr in (0.1, 0.2, 0.3, 0.4, 0.5))
    comparison = Comparison("Rates", cells, grid({"accuracy": ""}, "Rate"))
    found = [len(each.runs) for each in comparison.measure(Asked(seeds=1, device="cpu", jobs=2), tmp_path)]
    assert found[-1] == 5 and 4 <= found[0] <= 5 and len(found) == 2


def test_own_parts_run_in_other_processes_with_the_same_results(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    own = (*SMALL, f"method={tmp_path}/mine.py:Mine")
    cells = tuple(Cell(f"lr {lr}", "quickstart", (*own, f"method.lr={lr}")) for lr in (0.01, 0.02))
    comparison, losses = Comparison("Mine", cells, grid({"accuracy": ""}, "Rate")), []
    for jobs in (1, 2):
        *_, found = comparison.measure(Asked(seeds=1, device="cpu", jobs=jobs), tmp_path / str(jobs))
        losses.append([runs.last("loss") for runs in found.runs])
    assert losses[0] == losses[1] and losses[0][0] != losses[0][1]
