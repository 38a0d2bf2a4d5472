"""The progress of a run: a live bar in a terminal, one line a round elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fedvote.federation import Snapshot
from fedvote.network.summary import Summary


def watch(
    snapshots: Iterable[Snapshot], rounds: int, done: int = 0, sent: int = 0, title: str = ""
) -> Iterator[Snapshot]:
    """Show each snapshot, then yield it. The title tells runs apart.

    `done` rounds and `sent` bytes, in both directions, came before.
    """
    yield from (_live if sys.stderr.isatty() else _plain)(snapshots, rounds, done, sent, title)


def show_network(summary: Summary) -> None:
    """Print what happens to each layer, in a terminal; elsewhere, only the warnings."""
    if not sys.stderr.isatty():
        for warning in summary.warnings:
            print(f"fedvote: {warning}", file=sys.stderr)
        return
    from rich.console import Console

    console = Console(stderr=True)
    console.print(summary.table())
    console.print(summary.total, *(f"Warning: {warning}." for warning in summary.warnings), sep="\n", highlight=False)


def _plain(snapshots: Iterable[Snapshot], rounds: int, done: int, sent: int, title: str) -> Iterator[Snapshot]:
    if title:
        print(title, file=sys.stderr)
    began = time.monotonic()
    for snapshot in snapshots:
        record = snapshot.record
        sent += both_ways(record)
        left = (time.monotonic() - began) / (record["round"] - done) * (rounds - record["round"])
        print(
            f"round {record['round']:>{len(str(rounds))}}/{rounds}  {_text(snapshot, sent)}  {left:5.0f} s left",
            file=sys.stderr,
        )
        yield snapshot


def _live(snapshots: Iterable[Snapshot], rounds: int, done: int, sent: int, title: str) -> Iterator[Snapshot]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn(title and f"{title}:", markup=False),
        TextColumn("round"),
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("{task.description}", markup=False),  # it may quote a client
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("training", total=rounds, completed=done)
        for snapshot in snapshots:
            sent += both_ways(snapshot.record)
            bar.update(task, completed=snapshot.round, description=_text(snapshot, sent))
            yield snapshot


def both_ways(record: Mapping[str, Any]) -> int:
    """Bytes of a round in both directions."""
    nbytes: int = record.get("uplink_bytes", 0) + record.get("downlink_bytes", 0)
    return nbytes


def _text(snapshot: Snapshot, sent: int) -> str:
    record = snapshot.record
    accuracy = "accuracy {accuracy:6.1%} (float {accuracy_float:6.1%})  " if "accuracy" in record else ""
    backdoor = f"backdoor {record['backdoor_success']:6.1%}  " if "backdoor_success" in record else ""
    refused = record.get("refused", {})
    uncounted = f"  {len(refused)} not counted, {next(iter(refused.values()))}" if refused else ""
    return (
        f"{accuracy.format(**record)}{backdoor}"
        f"{sent / 1e6:8.2f} MB  {record['uplink_bits_per_weight']:5.2f} bit/weight up, "
        f"{record['downlink_bits_per_weight']:.2f} down{uncounted}"
    )


@contextmanager
def downloading(name: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar. It yields a function of the bytes done and the total bytes."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn(name, markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
