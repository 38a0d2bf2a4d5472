"""A client's own log: a JSON object for each turn, on its machine alone: --node-config 'log="/srv/turns.jsonl"'.

The operator of a client sees there, and with `fedvote deploy status FILE`, its rounds, its bytes, and its errors. Where
clients judge the network (a server without data), a line has the accuracy on this client's own held-out examples.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedvote.errors import ConfigError

VOTE, EVALUATION, TALLY = "vote", "evaluation", "secure tally"


def note_turn(file: str, **fields: Any) -> None:
    """Append a line to the log, if there is one."""
    if file:
        with open(file, "a", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as log:
            log.write(json.dumps({"time": time.time(), **fields}) + "\n")


def summary(file: Path) -> list[dict[str, Any]]:
    """A row for each run in a client's log: rounds, last round, bytes, failures, and the last accuracy."""
    lines = _lines(file)
    runs = dict.fromkeys(line["run"] for line in lines)
    return [_row(run, [line for line in lines if line["run"] == run]) for run in runs]


def _row(run: str, lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    votes = [line for line in lines if line["what"] == VOTE and "error" not in line]
    judged = [line["accuracy"] for line in lines if line.get("accuracy") is not None]
    return {
        "run": run, "rounds": len({line["round"] for line in votes}), "last_round": lines[-1]["round"],
        "kB_up": sum(line.get("bytes_up", 0) for line in lines) / 1e3,
        "kB_down": sum(line.get("bytes_down", 0) for line in lines) / 1e3,
        "seconds": sum(line.get("seconds", 0.0) for line in lines),
        "failures": sum("error" in line for line in lines), "accuracy": judged[-1] if judged else None,
    }  # fmt: skip


def _lines(file: Path) -> list[dict[str, Any]]:
    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        if lines and all({"run", "round", "what"} <= line.keys() for line in lines):
            return lines
    except (OSError, ValueError, AttributeError, RecursionError):
        pass
    raise ConfigError(f"{file} is not a client's log, expected the file that `log` in the node's configuration names")
