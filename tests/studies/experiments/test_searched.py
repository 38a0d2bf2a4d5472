"""A study in two steps: settings are chosen with seed 0, and shown with later seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedvote.errors import ConfigError
from fedvote.studies.experiments import EXPERIMENTS, Asked
from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.comparison import Comparison, configured
from fedvote.studies.experiments.searched import Chosen, Searched, best, worst
from fedvote.studies.experiments.views import grid

TINY = ("rounds=1", "local.steps=2", "federation.clients=3")
RATES = {"small": (*TINY, "method.lr=0.001"), "large": (*TINY, "method.lr=0.1")}


def compared(chosen: Chosen) -> Comparison:
    cells = tuple(Cell(what, "quickstart", RATES[name], name) for what, name in chosen.items())
    return Comparison("chosen", cells, grid({"accuracy": ""}, "What"))


def test_the_chosen_setting_is_the_best_or_worst_of_seed_0_and_runs_with_later_seeds(tmp_path: Path) -> None:
    candidates = tuple(Cell("rate", "quickstart", settings, name) for name, settings in RATES.items())
    for choose in (best, worst):
        study = Searched("a search", candidates, choose, compared)
        *_, found = study.measure(Asked(seeds=2, device="cpu"), tmp_path)
        numbers = found.numbers()
        tried = {cell["column"]: cell["seeds"][0][-1]["accuracy"] for cell in numbers["search"]}
        assert numbers["chosen"] == {"rate": choose(tried)}
        assert [cell["column"] for cell in numbers["cells"]] == [choose(tried)]
        assert all(set(cell["seeds"]) == {1, 2} for cell in numbers["cells"])


def test_only_what_is_asked_for_is_searched_and_compared(tmp_path: Path) -> None:
    candidates = tuple(Cell(what, "quickstart", RATES["small"], "small") for what in ("one", "other"))
    *_, found = Searched("a search", candidates, best, compared).measure(Asked(1, only=("other",)), tmp_path)
    assert found.numbers()["chosen"] == {"other": "small"}
    assert [cell["row"] for step in ("search", "cells") for cell in found.numbers()[step]] == ["other", "other"]
    *_, found = Searched("a search", candidates, best, compared).measure(Asked(1, only=("one",)), tmp_path)
    assert [cell["row"] for cell in found.numbers()["cells"]] == ["one", "other"]  # finished before: shown, too


def test_an_unknown_name_is_refused_before_the_search(tmp_path: Path) -> None:
    study = EXPERIMENTS["hostile-digits"]
    assert isinstance(study, Searched)
    study.check(["insider", "camps", "insider: weakest, 15"])
    with pytest.raises(ConfigError, match=r"no row 'outsider' .* it has: inverse; .* insider; .* camps; oracle$"):
        next(study.measure(Asked(only=("outsider",)), tmp_path))
    assert not list(tmp_path.iterdir())


def test_every_setting_of_a_search_and_of_its_table_can_be_run() -> None:
    for study in EXPERIMENTS.values():
        if isinstance(study, Searched):
            chosen = {cell.row: cell.column for cell in study.candidates}
            for cell in (*study.candidates[::3], *study.compare(chosen).cells[::7]):
                configured(cell, 1, Asked())
