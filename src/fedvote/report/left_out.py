"""Who was left out, and why: messages that did not count, and clients that the rule gave no weight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from fedvote.errors import some
from fedvote.report.read_run import Run, number
from fedvote.report.run_sentence import described, rule

EVENTS = {
    "refused": "refused",
    "failed": "no vote",
    "absent": "absent",
    "late": "late",
    "second": "second vote",
    "turned_away": "turned away",
    "returned": "came back",
}
"""Event in metrics.jsonl -> its name on the page."""

NO_WEIGHT = "no weight"
OUT = (NO_WEIGHT, "refused", "no vote", "absent")  # events after which a client is not in the tally
MOST_NAMES = 8  # clients of one cause that a summary names

Event = tuple[str, str, str]
"""What happened, to which client, and why."""


def events(run: Run) -> dict[Event, list[int]]:
    """All events of a run, each with its rounds."""
    rounds: dict[Event, list[int]] = {}
    for record in run.rounds:
        for event, name in EVENTS.items():
            for client, reason in clients_and_reasons(record.get(event)):
                rounds.setdefault((name, client, reason), []).append(record["round"])
    return weightless(run) | rounds


def weightless(run: Run) -> dict[Event, list[int]]:
    """The rounds in which the rule gave a client's message no weight, and why: if no record says it, the rule's own."""
    judged, rounds = rule(run), dict[Event, list[int]]()
    why = described("reputations", str(judged)) if judged else ""
    for record in run.rounds:
        row = record.get("vote_weight") or {}
        reasons = dict(clients_and_reasons(record.get("left_out")))
        for client in row:
            if number(row, client) == 0:
                event = NO_WEIGHT, str(client), reasons.get(str(client)) or why
                rounds.setdefault(event, []).append(record["round"])
    return rounds


def clients_and_reasons(event: object) -> list[tuple[str, str]]:
    """The clients of an event, each with its reason, or with "" if the event has none."""
    if isinstance(event, Mapping):
        return [(str(client), reason if isinstance(reason, str) else "") for client, reason in event.items()]
    return [(str(client), "") for client in event] if isinstance(event, list) else []


def left_out(run: Run) -> dict[str, set[str]]:
    """Why -> the clients that did not count in some round, for that reason."""
    found: dict[str, set[str]] = {}
    for event, client, _ in events(run):
        if event in OUT:
            found.setdefault(f"by the rule {rule(run)}" if event == NO_WEIGHT else event, set()).add(client)
    return found


def out_in_words(run: Run) -> str:
    """A few lines for the top of the page."""
    found = left_out(run)
    if not found:
        return "every client counted in all of its rounds"
    out = set[str]().union(*found.values())
    causes = [f"{cause}: {some(sorted(clients, key=in_order), MOST_NAMES)}" for cause, clients in found.items()]
    return "\n".join([*causes, how_often(run, out), *hostile_among(run, out)])


def how_often(run: Run, out: set[str]) -> str:
    """How many of the clients that were left out never counted."""
    missed: dict[str, set[int]] = {client: set() for client in out}
    for (event, client, _), rounds in events(run).items():
        missed.get(client, set()).update(rounds if event in OUT else ())
    took_part = [(str(client), record["round"]) for record in run.rounds for client in record.get("clients") or ()]
    counted = {client for client, index in took_part if client in out and index not in missed[client]}
    never = len(out - counted)
    if not never:
        return "each of them counted in some rounds"
    return "in all of their rounds" if never == len(out) else f"{never} of them in all of their rounds"


def hostile_among(run: Run, out: set[str]) -> list[str]:
    """How many hostile and honest clients are among those left out, where the run knows."""
    if not run.hostile:
        return []
    caught = len(run.hostile & out)
    return [f"{caught} of {len(run.hostile)} hostile clients, {len(out - run.hostile)} honest"]


def event_rows(run: Run) -> Iterator[list[str]]:
    """Event, clients, reason, times and rounds. Clients share a row if only their names differ."""
    order = [NO_WEIGHT, *EVENTS.values()]
    rows: dict[tuple[str, str, bool, tuple[int, ...]], list[str]] = {}
    for (event, client, reason), rounds in events(run).items():
        rows.setdefault((event, reason, client in run.hostile, tuple(rounds)), []).append(client)
    first = {row: min(map(in_order, clients)) for row, clients in rows.items()}
    for row in sorted(rows, key=lambda row: (order.index(row[0]), first[row], row)):
        event, reason, hostile, when = row
        names = ", ".join(sorted(rows[row], key=in_order)) + (" (hostile)" if hostile else "")
        yield [event, names, reason, str(len(when)), spans(when)]


def in_order(client: str) -> tuple[int, str]:
    """The order of clients: 2 before 10."""
    return len(client), client


def spans(numbers: Sequence[int]) -> str:
    """1, 2, 3, 5 as 1-3, 5 with an en dash."""
    groups = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])  # in a span, number - index is constant
    runs = [[value for _, value in group] for _, group in groups]
    return ", ".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}\N{EN DASH}{run[-1]}" for run in runs)
