"""The progress of a run: a live bar in a terminal, one line a round elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from fedvote.federation import Snapshot
from fedvote.tasks.goal import Shown

WIDE = 100  # columns from which on a line also has the float model and a bar


def watch(
    snapshots: Iterable[Snapshot], rounds: int, done: int = 0, sent: tuple[int, int] = (0, 0), title: str = ""
) -> Iterator[Snapshot]:
    """Show each snapshot, then yield it. `done` rounds and `sent` bytes, up and down, came before.

    The title tells runs apart. Without a terminal, as in a notebook or a log, every round is a line.
    """
    yield from (_live if sys.stderr.isatty() else _plain)(snapshots, rounds, done, sent, title)


def _plain(
    snapshots: Iterable[Snapshot], rounds: int, done: int, sent: tuple[int, int], title: str
) -> Iterator[Snapshot]:
    if title:
        print(title, file=sys.stderr)
    began = time.monotonic()
    for snapshot in snapshots:
        sent = _added(sent, snapshot)
        left = (time.monotonic() - began) / (snapshot.round - done) * (rounds - snapshot.round)
        round = f"round {snapshot.round:>{len(str(rounds))}}/{rounds}"
        print(f"{round}  {_text(snapshot, sent)}  {_seconds(left)} left", file=sys.stderr)
        if uncounted := _uncounted(snapshot):
            print(uncounted, file=sys.stderr)
        yield snapshot


def _live(
    snapshots: Iterable[Snapshot], rounds: int, done: int, sent: tuple[int, int], title: str
) -> Iterator[Snapshot]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("round"),
        MofNCompleteColumn(),
        *([BarColumn()] if console.width >= WIDE else []),
        TextColumn("{task.description}", markup=False),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    if title:
        console.print(title, markup=False, highlight=False)
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("training", total=rounds, completed=done)
        for snapshot in snapshots:
            sent = _added(sent, snapshot)
            bar.update(task, completed=snapshot.round, description=_text(snapshot, sent))
            if uncounted := _uncounted(snapshot):  # it quotes a client: no markup
                console.print(f"round {snapshot.round}: {uncounted}", markup=False, highlight=False)
            yield snapshot


def _added(sent: tuple[int, int], snapshot: Snapshot) -> tuple[int, int]:
    up, down = sent
    return up + snapshot.record["uplink_bytes"], down + snapshot.record["downlink_bytes"]


def _text(snapshot: Snapshot, sent: tuple[int, int]) -> str:
    """The metric, and the traffic so far; 46 characters at most, unless the terminal is wide."""
    record, shown = snapshot.record, Shown.of(snapshot.record)
    traffic = f"up {_size(sent[0])}, down {_size(sent[1])}"
    if shown.name not in record:
        return traffic
    deployed, floating = (shown.text(record[f"{shown.name}{suffix}"]) for suffix in ("", "_float"))
    wide = shutil.get_terminal_size().columns >= WIDE
    return f"{shown.name} {deployed:>6}{f' (float {floating:>6})' * wide}  {traffic}"


def _uncounted(snapshot: Snapshot) -> str:
    refused = snapshot.record.get("refused", {})
    return f"{len(refused)} not counted, {next(iter(refused.values()))}" if refused else ""


def _size(nbytes: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if nbytes >= 0.1 * size:
            return f"{nbytes / size:.4g} {unit}"
    return f"{nbytes / 1e3:.4g} kB"


def _seconds(seconds: float) -> str:
    minutes, hours = seconds / 60, seconds / 3600
    return f"{seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min" if hours < 2 else f"{hours:.1f} h"


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
