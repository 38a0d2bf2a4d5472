"""Values and tables from result files: the functions that expressions in the pages may use (docs/measured.py)."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fedvote.studies.experiments.both_ways import megabytes_to

Records = Sequence[Mapping[str, float]]
"""The rounds of one run."""

UP, DOWN = "mean(each(seeds, 'uplink_bits_per_weight'))", "mean(each(seeds, 'downlink_bits_per_weight'))"
BITS = (f"bits a weight up: {{{UP}:.2f}}", f"down: {{{DOWN}:.2f}}", f"both: {{{UP} + {DOWN}:.2f}}")
"""Columns of `lines`: the bits that a weight takes in a round, of runs in `seeds`."""


def evaluate(expression: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression in one of the project's own pages, over the keys of a result file."""
    known = {"mean": statistics.fmean, **{function.__name__: function for function in FUNCTIONS}}
    return eval(re.sub(r"\s*\n\s*", " ", expression), {**known, **{key.replace("-", "_"): names[key] for key in names}})


def last(runs: Mapping[str, Records], metric: str = "accuracy", rounds: int = 0) -> list[float]:
    """The last value of a metric for each seed, of all rounds or of the first so many."""
    found = ([record[metric] for record in run[: rounds or None] if metric in record] for run in runs.values())
    return [values[-1] for values in found]


def each(runs: Mapping[str, Records], metric: str) -> list[float]:
    """The mean over rounds of a metric for each seed."""
    return [statistics.fmean(record[metric] for record in run if metric in record) for run in runs.values()]


def ends(runs: Mapping[str, Mapping[str, Any]], name: str, key: str = "accuracy") -> list[Any]:
    """A value of every run whose name begins with this name; of a list, the last one."""
    found = [run[key] for full, run in runs.items() if full.startswith(f"{name}/")]
    return [value[-1] if isinstance(value, list) else value for value in found]


def bits(rounds: Records, clients: int, weights: int, way: str = "up") -> float:
    """Bits a weight that a client sends, or gets, in a round; the mean of these rounds."""
    return 8 * statistics.fmean(record[f"{way}link_bytes"] for record in rounds) / clients / weights


def span(values: Iterable[float]) -> tuple[float, float]:
    """The least and the largest value."""
    found = list(values)
    return min(found), max(found)


def where(rows: Iterable[Mapping[str, Any]], **values: Any) -> Mapping[str, Any]:
    """The one row with these values."""
    (row,) = (row for row in rows if all(row[name] == value for name, value in values.items()))
    return row


def percent(values: float | Sequence[float], digits: int = 1, unit: str = " %") -> str:
    """A share, or the mean ± deviation of several."""
    found = [100 * value for value in ([values] if isinstance(values, float | int) else values)]
    spread = f" ± {statistics.stdev(found):.{digits}f}" if len(found) > 1 else ""
    return f"{statistics.fmean(found):.{digits}f}{spread}{unit}"


def lines(rows: Any, *columns: str, labels: Mapping[str, str] | None = None) -> list[str]:
    """A line for each row; a column is `heading: text with {values}`, and is empty for rows whose value is None.

    `rows` is a list, or a dict whose keys become each row's `name`. `labels` chooses and orders rows by their first
    column, and renames them. Values whose names have spaces are `this["a name"]`.
    """
    rows = [{"name": name, **row} for name, row in rows.items()] if isinstance(rows, Mapping) else rows
    heads, texts = zip(*(column.split(": ", 1) for column in columns), strict=True)
    found = {}
    for row in rows:
        first, *others = [_filled(text, row) for text in texts]
        found[first] = others
    named = labels or {first: first for first in found}
    return [*_head(heads), *(_line([label, *found[first]]) for first, label in named.items())]


def _filled(text: str, row: Mapping[str, Any]) -> str:
    try:
        return str(evaluate(f"f'''{text}'''", {**row, "this": row}))
    except TypeError:  # None has no digits
        return ""


def sent(cells: Iterable[Mapping[str, Any]], labels: Mapping[str, str] | None = None) -> list[str]:
    """A table of `fedvote reproduce`: accuracy, and the bits that a weight takes in a round, up, down and in all."""
    return lines(cells, "method: {row}", "accuracy: {percent(last(seeds))}", *BITS, labels=labels)


def compared(cells: Iterable[Mapping[str, Any]], labels: Mapping[str, str], *targets: float) -> list[str]:
    """The table of `sent`, with the megabytes both ways to each target."""
    columns = [f"MB to {100 * target:g} %: {{megabytes(seeds, {target})}}" for target in targets]
    return lines(cells, "method: {row}", "accuracy: {percent(last(seeds))}", *BITS, *columns, labels=labels)


def megabytes(runs: Mapping[str, Records], target: float) -> str:
    """`needed` as text."""
    found = needed(runs, target)
    return "not reached" if found is None else f"{found:,.0f}"


def needed(runs: Mapping[str, Records], target: float) -> float | None:
    """The mean megabytes of all clients, up and down, until a run first has an accuracy; None if one never has it."""
    found = [megabytes_to(target, run) for run in runs.values()]
    reached = [value for value in found if value is not None]
    return statistics.fmean(reached) if len(reached) == len(found) else None


def traffic(runs: Mapping[str, Mapping[str, Any]], labels: Mapping[str, str]) -> list[str]:
    """A table of single runs: accuracies after the last round, and bits a weight and round, up, down and in all."""
    up, down = (f"mean(each({{0: rounds}}, '{way}link_bits_per_weight'))" for way in ("up", "down"))
    names = {"bits a weight up": up, "down": down, "both": f"{up} + {down}"}
    ends = {"deployed": "accuracy", "soft vote": "accuracy_float"}
    columns = [f"{name}: {{percent(last({{0: rounds}}, '{metric}'))}}" for name, metric in ends.items()]
    columns += [f"{name}: {{{value}:.3f}}" for name, value in names.items()]
    return lines(runs, "run: {name}", *columns, labels=labels)


def grid(cells: Iterable[Mapping[str, Any]], metrics: Mapping[str, str], corner: str = "", digits: int = 2,
         only: Sequence[str] = (), rounds: int = 0) -> list[str]:  # fmt: skip
    """A table of `fedvote reproduce`: in percent, mean ± deviation over seeds; in brackets, the paper's number."""
    found = {(cell["row"], cell["column"]): cell for cell in cells if not only or cell["row"] in only}
    columns = sorted(dict.fromkeys(column for _, column in found), key=_as_number)
    body = []
    for row in dict.fromkeys(row for row, _ in found):
        for metric, label in metrics.items():
            entries = [_entry(found.get((row, column)), metric, digits, rounds) for column in columns]
            body.append(_line([f"{row}, {label}" if label else row, *entries]))
    return [*_head([corner, *columns]), *body]


def paired(cells: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The cells, each with the seeds that all of them have: means over other seeds do not compare."""
    found = list(cells)
    both = set.intersection(*(set(cell["seeds"]) for cell in found))
    return [{**cell, "seeds": {seed: run for seed, run in cell["seeds"].items() if seed in both}} for cell in found]


def shown(table: Sequence[Sequence[str]]) -> list[str]:
    """The table of an experiment's page, as its file has it."""
    head, *rows = table
    return [*_head(head), *map(_line, rows)]


def _as_number(column: str) -> float:
    return float(column) if re.fullmatch(r"[\d.]+", column) else 0.0


def defended(cells: Iterable[Mapping[str, Any]], corner: str, rule: str = "camps") -> list[str]:
    """A line for each attack: accuracy under a rule; in brackets, the difference to the honest clients alone."""
    return _by_attack(cells, corner, lambda by_rule: _difference(by_rule, rule))


def counted_until(cells: Iterable[Mapping[str, Any]], corner: str, rule: str = "camps") -> list[str]:
    """A line for each attack: the last round in which a hostile client has a vote; least and most of the seeds."""
    return _by_attack(cells, corner, lambda by_rule: _last_vote(by_rule.get(rule, {})))


def losses(cells: Iterable[Mapping[str, Any]], hostile: int | None = None, rule: str = "camps") -> list[float]:
    """The points that each attack costs, least first: with the number of hostile clients that costs most, or with this.

    They are the differences of `defended`, with the other sign.
    """
    found: dict[str, dict[str, Any]] = {}
    for cell in cells:
        found.setdefault(cell["row"], {})[cell["column"]] = cell["seeds"]
    worst: dict[str, float] = {}
    for row, by_rule in found.items():
        attack, _, number = row.rpartition(", ")
        if both := _with_yardstick(by_rule, rule):
            loss = both[1] - both[0]
            if hostile is None or int(number) == hostile:
                worst[attack] = max(loss, worst.get(attack, loss))
    return sorted(worst.values())


def _by_attack(
    cells: Iterable[Mapping[str, Any]], corner: str, entry: Callable[[Mapping[str, Mapping[str, Records]]], str]
) -> list[str]:
    """A line for each attack. Rows of the file are `attack, hostile clients`: each number of them is a column.

    `entry` gets the runs of a cell, by rule.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for cell in cells:
        attack, _, hostile = cell["row"].rpartition(", ")
        found.setdefault((attack, hostile), {})[cell["column"]] = cell["seeds"]
    numbers = list(dict.fromkeys(hostile for _, hostile in found))
    body = [
        _line([attack, *(entry(found.get((attack, hostile), {})) for hostile in numbers)])
        for attack in dict.fromkeys(attack for attack, _ in found)
    ]
    return [*_head([corner, *numbers]), *body]


def _last_vote(runs: Mapping[str, Records]) -> str:
    each = _last_rounds(runs)
    return " to ".join(str(n) for n in sorted({min(each), max(each)})) if each else ""


def _last_rounds(runs: Mapping[str, Records]) -> list[int]:
    return [max([int(r["round"]) for r in run if r["hostile_weight"] > 0], default=0) for run in runs.values()]


def last_votes(cells: Iterable[Mapping[str, Any]], *rows: str, rule: str = "camps") -> tuple[int, int]:
    """The last round in which a hostile client has a vote, in rows that begin so: least and most of all runs."""
    chosen = [cell for cell in cells if cell["column"] == rule and cell["row"].startswith(rows)]
    each = [round for cell in chosen for round in _last_rounds(cell["seeds"])]
    return min(each), max(each)


def _difference(by_rule: Mapping[str, Mapping[str, Records]], rule: str) -> str:
    both = _with_yardstick(by_rule, rule)
    return f"{both[0]:.1f} ({both[0] - both[1]:+.1f})" if both else ""


def _with_yardstick(by_rule: Mapping[str, Mapping[str, Records]], rule: str) -> tuple[float, float] | None:
    """The accuracy under a rule, and that of the honest clients alone, in percent, over the seeds that both have."""
    both = [seed for seed in by_rule.get(rule, {}) if seed in by_rule.get("oracle", {})]
    if not both:
        return None
    accuracy, yardstick = (last({seed: by_rule[name][seed] for seed in both}) for name in (rule, "oracle"))
    return 100 * statistics.fmean(accuracy), 100 * statistics.fmean(yardstick)


def honest(cells: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line for each kind of data: accuracies with a rule and without, and the share of honest votes that it takes."""
    found: dict[str, dict[str, Any]] = {}
    for cell in cells:
        found.setdefault(cell["row"], {})[cell["column"]] = cell
    head = _head(["data", "`camps`", "no rule", "difference, points", "votes lost"])
    both = {row: each for row, each in found.items() if {"camps", "uniform"} <= set(each)}
    return [*head, *(_line([row, *_cost(each["camps"], each["uniform"])]) for row, each in both.items())]


def _cost(with_rule: Mapping[str, Any], without: Mapping[str, Any]) -> list[str]:
    ends = last(with_rule["seeds"]), last(without["seeds"])
    mean = [100 * statistics.fmean(each) for each in ends]
    return [*(f"{value:.1f} %" for value in mean), f"{mean[0] - mean[1]:+.1f}", percent(lost(with_rule), 2)]


def lost(cell: Mapping[str, Any]) -> float:
    """The share of honest votes that a rule takes, over all rounds and seeds."""
    federation = cell["config"]["federation"]
    honest_clients = int(federation["clients"]) - int(federation["hostile"])
    return statistics.fmean(each(cell["seeds"], "honest_without")) / honest_clients


def heard(cell: Mapping[str, Any]) -> float:
    """The share of a minority's votes that a rule counts, relative to its share of the clients."""
    federation = cell["config"]["federation"]
    share = int(federation["hostile"]) / int(federation["clients"])
    weights = [record["hostile_weight"] for records in cell["seeds"].values() for record in records]
    return statistics.fmean(min(1.0, weight / share) for weight in weights)  # more, where others lose votes


def alone(cells: Iterable[Mapping[str, Any]], rule: str = "camps") -> int:
    """The largest number of rounds in a row in which hostile clients alone have votes."""
    longest = 0
    for run in (run for cell in cells if cell["column"] == rule for run in cell["seeds"].values()):
        row = 0
        for record in run:
            row = row + 1 if record.get("hostile_weight", 0) > 0.999 else 0
            longest = max(longest, row)
    return longest


def _entry(cell: Mapping[str, Any] | None, metric: str, digits: int, rounds: int) -> str:
    if cell is None:
        return ""
    printed = f" ({cell['printed'][metric]})" if metric in cell.get("printed", {}) else ""
    return percent(last(cell["seeds"], metric, rounds), digits, "") + printed


def _head(names: Sequence[str]) -> tuple[str, str]:
    return _line(names), "|---" * len(names) + "|"


def _line(entries: Sequence[str]) -> str:
    return re.sub(" +", " ", f"| {' | '.join(entries)} |")


FUNCTIONS = (
    last,
    each,
    ends,
    bits,
    span,
    where,
    percent,
    lines,
    sent,
    compared,
    megabytes,
    needed,
    losses,
    traffic,
    grid,
    paired,
    shown,
    defended,
    counted_until,
    last_votes,
    honest,
    lost,
    heard,
    alone,
)
