"""The status of a run over a network, from its folder alone: rounds, traffic, and every client's last vote."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedvote.errors import ConfigError
from fedvote.runs.folder import RunFolder
from fedvote.runs.json_table import read_table
from fedvote.runs.progress import both_ways, traffic_text
from fedvote.tasks.shown_metric import Shown

ROSTER = "roster.json"
RUN = "run"  # the run folder in a folder of `fedvote deploy local`
FEDERATION = "federation"  # its certificates, keys, database and logs


def run_folder(folder: Path) -> Path:
    """The run folder itself, or the one in a folder of `fedvote deploy local`."""
    return folder / RUN if (folder / FEDERATION).is_dir() else folder


def headline(folder: Path, now: float | None = None) -> str:
    """One sentence about the run."""
    records = _records(folder)
    last, age = records[-1], seconds_since_last_round(folder, now)
    shown, planned = Shown.of(last), _planned(folder)
    quality = f", {shown.name} {shown.text(last[shown.name])}" if last.get(shown.name) is not None else ""
    cohort, out = last.get("clients", ()), len(last.get("left_out", ()))
    counted = len(_counted(last))
    number = f"{last['round']} of {planned}" if planned else last["round"]
    return (
        f"round {number}, closed {age:,.0f} s ago with {counted} of {len(cohort)} ballots"
        f"{f', {out} of them left out by the rule' * bool(out)}"
        f"{quality}; frames so far: {traffic_text(*both_ways(records))}"
    )


def _planned(folder: Path) -> int:
    """The number of rounds of the run; 0 if the folder does not say."""
    file = RunFolder(folder).config_file
    return int(tomllib.loads(file.read_text()).get("rounds", 0)) if file.is_file() else 0


def seconds_since_last_round(folder: Path, now: float | None = None) -> float:
    return (time.time() if now is None else now) - RunFolder(folder).metrics_file.stat().st_mtime


def clients(folder: Path) -> list[dict[str, Any]]:
    """A row for each client: its last vote, how often it voted, and how often the events below happened to it."""
    records, names = _records(folder), _names(folder)
    numbers = sorted({*names, *(client for record in records for client in record.get("clients", ()))})
    return [_row(client, names.get(client, ""), records) for client in numbers]


def _counted(record: Mapping[str, Any]) -> Sequence[int]:
    """The clients in the tally. The simulator's records do not list them: all that were not refused."""
    cohort = [client for client in record.get("clients", ()) if str(client) not in record.get("refused", ())]
    counted: Sequence[int] = record.get("counted", cohort)
    return counted


def _row(client: int, name: str, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    voted = [record["round"] for record in records if client in _counted(record)]
    times = {
        event: sum(client in record.get(event, ()) or str(client) in record.get(event, ()) for record in records)
        for event in ("left_out", "refused", "failed", "absent")
    }
    return {"client": client, "name": name, "last_vote": voted[-1] if voted else 0, "votes": len(voted), **times}


def _names(folder: Path) -> dict[int, str]:
    """Client -> identity and name, from the roster."""
    path = folder / ROSTER
    return {int(number): str(who) for who, number in read_table(path).items()} if path.is_file() else {}


def _records(folder: Path) -> list[dict[str, Any]]:
    if not (records := RunFolder(folder).metrics()):
        raise ConfigError(
            f"{folder} has no finished round: give the folder `out` of a run over a network, or the folder of "
            "`fedvote deploy local`, or wait"
        )
    return records
