"""The progress of a run: a live bar in a terminal, one line a round elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from fedvote.errors import some
from fedvote.network.summary import Summary
from fedvote.rounds.snapshot import Snapshot
from fedvote.tasks.shown_metric import ACCURACY, Shown

WIDE = 100  # columns from which on a line also has the float network and a bar
MOST_NAMES = 16  # clients that a line names
EVENTS = {
    "left_out": "left out by the rule",
    "failed": "no vote",
    "absent": "not online",
    "turned_away": "turned away, as they have no vote",
}
"""Event of a record -> how its line begins."""
MISSING = ("failed", "absent")  # events that are news again, once the client was back
Event = tuple[str, str]
"""Its name, and the client."""
Sent = tuple[int, int]
"""Bytes up, and bytes down."""


def watch(
    snapshots: Iterable[Snapshot], rounds: int, before: Sequence[Mapping[str, Any]] = (), title: str = ""
) -> Iterator[Snapshot]:
    """Show each snapshot, then yield it. `before`: the records of the rounds before the first snapshot.

    The title tells runs apart. Without a terminal, as in a notebook or a log, every round is a line.
    """
    show = _live if sys.stderr.isatty() else _plain
    yield from show(snapshots, rounds, len(before), both_ways(before), title)


def show_network(summary: Summary) -> None:
    """Print what happens to each layer, in a terminal; elsewhere, only the warnings."""
    if not sys.stderr.isatty():
        for warning in summary.warnings:
            print(f"fedvote: warning: {warning}", file=sys.stderr)
        return
    from rich.console import Console

    console = Console(stderr=True)
    console.print(summary.table())
    console.print(summary.total, *(f"Warning: {warning}." for warning in summary.warnings), sep="\n", highlight=False)


def _plain(snapshots: Iterable[Snapshot], rounds: int, done: int, sent: Sent, title: str) -> Iterator[Snapshot]:
    if title:
        print(title, file=sys.stderr)
    began, known = time.monotonic(), set[Event]()
    for snapshot in snapshots:
        sent = _added(sent, snapshot)
        left = (time.monotonic() - began) / (snapshot.round - done) * (rounds - snapshot.round)
        round = f"round {snapshot.round:>{len(str(rounds))}}/{rounds}"
        print(f"{round}  {_text(snapshot, sent)}  {_seconds(left)} left", file=sys.stderr)
        for line in _news(snapshot, known):
            print(line, file=sys.stderr)
        yield snapshot


def _live(snapshots: Iterable[Snapshot], rounds: int, done: int, sent: Sent, title: str) -> Iterator[Snapshot]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console, known = Console(stderr=True), set[Event]()
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
            bar.update(task, completed=snapshot.round, description=_text(snapshot, sent, one_line=True))
            for line in _news(snapshot, known):  # it quotes a client: no markup
                console.print(f"round {snapshot.round}: {line}", markup=False, highlight=False)
            yield snapshot


def both_ways(records: Iterable[Mapping[str, Any]]) -> Sent:
    """The bytes of these rounds in each direction."""
    records = list(records)
    up, down = (sum(record.get(f"{way}link_bytes", 0) for record in records) for way in ("up", "down"))
    return up, down


def _added(sent: Sent, snapshot: Snapshot) -> Sent:
    up, down = both_ways([snapshot.record])
    return sent[0] + up, sent[1] + down


def _text(snapshot: Snapshot, sent: Sent, one_line: bool = False) -> str:
    """The metric, a backdoor's success, and the traffic so far.

    With `one_line`, 46 characters at most, unless the terminal is wide: beside a backdoor, both directions are added.
    """
    record, shown = snapshot.record, Shown.of(snapshot.record)
    traffic = traffic_text(*sent)
    if shown.name not in record:
        return traffic
    deployed, floating = (shown.text(record[f"{shown.name}{suffix}"]) for suffix in ("", "_float"))
    wide = shutil.get_terminal_size().columns >= WIDE
    quality = f"{shown.name} {deployed:>6}{f' (float {floating:>6})' * wide}"
    if "backdoor_success" in record:
        quality += f", backdoor {ACCURACY.text(record['backdoor_success']):>6}"
        traffic = _size(sum(sent)) if one_line and not wide else traffic
    return f"{quality}  {traffic}"


def _news(snapshot: Snapshot, known: set[Event]) -> Iterator[str]:
    """Lines about refused messages, and about events that are not `known` yet. Adds these events to `known`."""
    if refused := snapshot.record.get("refused", {}):
        yield f"{len(refused)} not counted, {next(iter(refused.values()))}"
    back = set(map(str, snapshot.record.get("counted", ())))
    known -= {event for event in known if event[0] in MISSING and event[1] in back}
    for name, says in EVENTS.items():
        happened = snapshot.record.get(name, ())
        reasons = happened if isinstance(happened, Mapping) else dict.fromkeys(happened, "")
        new = {who: why for who, why in reasons.items() if (name, str(who)) not in known}
        known |= {(name, str(who)) for who in new}
        for why in dict.fromkeys(new.values()):
            those = [who for who in new if new[who] == why]
            yield f"{says}: {_some(those, 'key' if name == 'turned_away' else 'client')}{f'; {why}' * bool(why)}"


def left_out_in_all(records: Sequence[Mapping[str, Any]]) -> str:
    """The clients that the rule left out in the last round, and how many others before, in one sentence."""
    rounds = [sorted(map(int, record.get("left_out", {}))) for record in records]
    last, others = rounds[-1], len({client for out in rounds for client in out if client not in rounds[-1]})
    before = f"; in earlier rounds {others} {'other ' * bool(last)}client{'s' * (others > 1)}" if others else ""
    return f"left out by the rule in the last round: {_some(last) if last else 'nobody'}{before}"


def _some(names: Sequence[object], word: str = "client") -> str:
    return f"{word}{'s' * (len(names) > 1)} {some(list(map(str, names)), MOST_NAMES)}"


def traffic_text(up: float, down: float) -> str:
    """Bytes in both directions, for people."""
    return f"up {_size(up)}, down {_size(down)}"


def _size(nbytes: float) -> str:
    unit, size = next(((unit, size) for unit, size in (("GB", 1e9), ("MB", 1e6)) if nbytes >= 0.1 * size), ("kB", 1e3))
    number = nbytes / size
    places = max(0, 4 - len(str(int(number))))  # four digits, zeros too: a column of numbers does not jump
    return f"{number:.{places}f} {unit}"


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
