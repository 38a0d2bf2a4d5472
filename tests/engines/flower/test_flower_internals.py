"""Only one file of the package touches Flower's private modules."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import fedvote
from fedvote.engines import flower

PUBLIC = ("flwr.app", "flwr.serverapp", "flwr.clientapp")
ENGINE = Path(flower.__file__).parent
INTERNALS = ENGINE / "flower_internals.py"


def private_imports(file: Path) -> list[str]:
    """What a file imports of Flower that no public module exports."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] == "flwr"]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "flwr":
            assert node.module is not None
            exported = importlib.import_module(node.module).__all__ if node.module in PUBLIC else ()
            found += [f"{node.module}.{alias.name}" for alias in node.names if alias.name not in exported]
    return found


def test_no_other_file_of_the_engine_imports_what_flower_does_not_export() -> None:
    files = [file for file in ENGINE.rglob("*.py") if file != INTERNALS]
    assert {file.name: found for file in files if (found := private_imports(file))} == {}
    assert len(private_imports(INTERNALS)) >= 4  # the check sees private imports


def test_nothing_but_the_engine_and_a_benchmark_imports_flower() -> None:
    root = Path(fedvote.__file__).parent
    importing = {
        str(file.relative_to(root))
        for file in root.rglob("*.py")
        if ENGINE not in file.parents and any("flwr" in name for name in names(file))
    }
    # which compare with Flower's own aggregation, and time an empty round
    assert importing <= {"studies/bench/tally.py", "studies/bench/flower_stopwatch_app.py"}


def names(file: Path) -> list[str]:
    """The modules that a file imports."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    whole = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return whole + [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
