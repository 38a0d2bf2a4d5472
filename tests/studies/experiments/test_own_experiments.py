"""A user's own experiment is a file: it runs and is shown as those of the package."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fedvote.errors import ConfigError
from fedvote.studies.experiments import Asked
from fedvote.studies.experiments.reproduce import reproduce

OWN = """
from fedvote import FedAvg
from fedvote.studies.experiments import Cell, Comparison, grid

class Mine(FedAvg):
    pass

SMALL = ("federation.clients=2", "local.steps=1", "local.batch=4")
METHODS = (f"{__file__}:Mine", "fedavg")
digits = Comparison(
    "Mine and FedAvg",
    tuple(Cell(method[-6:], "quickstart", (*SMALL, f"method={method}"), "11") for method in METHODS),
    grid({"accuracy": ""}, "Method"),
)
"""
ASKED = Asked(seeds=1, rounds=1, device="cpu")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (file := tmp_path / "mine.py").write_text(OWN)
    return file


def test_it_has_a_file_a_page_and_a_link_beside_those_of_the_package(own: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    *_, _ = reproduce("table-3", Asked(device="cpu"), out)
    *_, _ = reproduce(f"{own}:digits", ASKED, out)
    found = json.loads((out / "mine.digits.json").read_text())
    assert found["experiment"] == f"{own}:digits" and [cell["row"] for cell in found["cells"]] == ["y:Mine", "fedavg"]
    links = re.findall(r'<a href="([^"]+)"', (out / "index.html").read_text())
    assert links == ["table-3.html", "mine.digits.html"] and (out / "mine.digits.html").is_file()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("figure", "there is no experiment 'figure'; known: figure-3, .*, or your own as FILE.py:NAME"),
        ("gone.py:digits", "experiment 'gone.py:digits': there is no Python file gone.py; expected FILE.py:NAME"),
        ("{own}:digit", "mine.py has no digit; .*did you mean digits?"),
        ("{own}:SMALL", "mine.py:SMALL' is a tuple, expected a Comparison"),
        ("{own}:Mine", "mine.py:Mine' is the class Mine, expected a Comparison"),
    ],
)
def test_what_is_no_experiment_is_one_sentence(name: str, sentence: str, own: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=sentence):
        next(reproduce(name.format(own=own), ASKED, tmp_path / "out"))
    assert not (tmp_path / "out").exists()
