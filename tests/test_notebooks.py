"""Notebooks run top to bottom, by plain Python: every cell in order, with names shared, as Jupyter's kernel runs them.

Jupyter itself is no dependency, so cells use no `%` or `!` commands.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
NOTEBOOKS = sorted(EXAMPLES.rglob("*.ipynb"))


def cells(notebook: Path, kind: str) -> list[dict[str, Any]]:
    whole = json.loads(notebook.read_text(encoding="utf-8"))
    assert whole["nbformat"] == 4
    return [cell for cell in whole["cells"] if cell["cell_type"] == kind]


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_it_runs_top_to_bottom(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells(notebook, "code"), start=1):
        exec(compile("".join(cell["source"]), f"{notebook.name}, cell {number}", "exec"), names)
    assert names["record"]["accuracy_calibrated"] > 0.8 and names["floats"] > 10 * names["sent"]
    assert names["defended"]["accuracy"] > names["undefended"]["accuracy"] + 0.1
    assert "no votes:" in capsys.readouterr().out


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_it_keeps_no_outputs_and_explains_every_step(notebook: Path) -> None:
    """Outputs would be numbers that no result file has."""
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells(notebook, "code"))
    assert len(cells(notebook, "markdown")) >= 5
