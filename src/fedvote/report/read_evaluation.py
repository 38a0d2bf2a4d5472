"""Read evaluation.json: the deployed network at the end of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedvote.errors import ConfigError
from fedvote.runs.json_table import read_table
from fedvote.runs.record_types import is_client, is_number_or_none, is_text, list_of


def read_evaluation(path: Path) -> dict[str, Any]:
    """Its content; empty if the file is not there, as in a run that has not ended."""
    found = read_table(path) if path.is_file() else {}
    if not (has_numbers(found, "by_class") and has_numbers(found, "by_client") and has_square(found)):
        raise ConfigError(
            f"{path} is damaged, expected a number for each class and client and a square of counts: "
            "delete it to leave that section out, or run the experiment again."
        )
    return found


def has_numbers(evaluation: dict[str, Any], key: str) -> bool:
    """Whether this is a number by name, or not there."""
    values = evaluation.get(key) or {}
    return isinstance(values, dict) and all(map(is_number_or_none, values.values()))


def has_square(evaluation: dict[str, Any]) -> bool:
    """Whether the confusion matrix has a row and a column for each class, or is not there."""
    if not (cells := evaluation.get("confusion")):
        return True
    classes = evaluation.get("classes")
    return (
        list_of(is_text)(classes)
        and list_of(list_of(is_client))(cells)
        and {len(cells), *map(len, cells)} == {len(classes or ())}
    )
