"""metrics.jsonl: one JSON object a round, a line each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fedvote.errors import ConfigError
from fedvote.runs.json_table import without_nan
from fedvote.runs.record_types import check_record
from fedvote.system.atomic_file import write


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a metrics.jsonl, each with its round."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    for index, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            check_record(record)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if index == len(lines):
                return  # the run was killed while it wrote this line
            raise ConfigError(
                f"Line {index} of {path} is not a JSON object with a round in it ({error!r}): "
                "restore it, or run the experiment again."
            ) from error
        yield record


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Replace the file in one step."""
    write(path, "".join(map(_line, records)))


def append_record(path: Path, record: Mapping[str, Any]) -> None:
    """Add a line, and wait until it is on disk."""
    with path.open("a") as file:
        file.write(_line(record))
        file.flush()
        os.fsync(file.fileno())


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(without_nan(record), allow_nan=False) + "\n"
