"""Keeps the measured numbers of the pages equal to the result files: `make numbers` rewrites them.

A number in a sentence is a link to its result file. The link's title is an expression over the file's keys, and a list
stands for its mean and deviation:

    [89.2 ± 0.4 %](results/x.json "last(seeds)")

A table is made by a function of this file:

    <!-- table: cells("results/paper/table-1.json", "accuracy") -->
    <!-- end -->

Any other decimal or percentage is an error, unless the page says that nobody measured it here: a setting, a number of a
paper, an example. `<!-- given: Dirichlet 0.5; 85.5 % -->` lists such phrases, separated by semicolons.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/*.md", "docs/results/*.md")
WITHOUT_MEASUREMENTS = ("docs/wire-format.md", "docs/adding.md", "docs/glossary.md", "docs/stable.md")

LINK = re.compile(r'\[([^\]\n]*\d[^\]\n]*)\]\(((?:\.\./)*results/[\w./-]+\.json)\s+"([^"]+)"\)')
TABLE = re.compile(r"(<!-- table: (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
GIVEN = re.compile(r"<!-- given: (.+?) -->", re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`\n]+(?:\n[^`\n]+)?`|\]\([^)]*\)|<!--.*?-->", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.,/-])\d+(?:\.\d+)?(?= ?%)|(?<![\w.,/-])\d+\.\d+(?![\w.]*\w)")


def pages(root: Path = ROOT) -> list[Path]:
    found = [page for pattern in PAGES for page in sorted(root.glob(pattern))]
    return [page for page in found if str(page.relative_to(root)) not in WITHOUT_MEASUREMENTS]


def rewritten(page: Path) -> str:
    """The page with every linked number and every table as its result file has them."""
    text = LINK.sub(lambda link: _linked(page, link), page.read_text())
    return TABLE.sub(lambda block: block[1] + _table(page, block[2]) + block[4], text)


def unexplained(text: str) -> list[str]:
    """Decimals and percentages of a page that come from no file and are not declared as given."""
    rest = CODE.sub(" ", LINK.sub(" ", TABLE.sub(" ", text)))
    for phrases in GIVEN.findall(text):
        for phrase in sorted(re.split(r";\s+", phrases.strip()), key=len, reverse=True):
            rest = re.sub(r"(?<![\d.])" + r"\s+".join(map(re.escape, phrase.split())) + r"(?!\d|\.\d)", " ", rest)
    return [rest[max(0, hit.start() - 30) : hit.end() + 10].strip() for hit in NUMBER.finditer(rest)]


def _linked(page: Path, link: re.Match[str]) -> str:
    shown, path, expression = link.groups()
    value = _evaluate(expression, json.loads((page.parent / path).read_text()))
    return f'[{written(value, like=shown)}]({path} "{expression}")'


def _table(page: Path, expression: str) -> str:
    makers: Mapping[str, Callable[..., Any]] = {"cells": cells, "rows": rows}
    lines: Iterable[str] = _evaluate(expression, {**makers})
    return "".join(f"{line}\n" for line in lines)


def _evaluate(expression: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression in one of the project's own pages."""
    functions = {"last": last, "mean": statistics.fmean, "each": each, "sum": sum, "len": len, "min": min, "max": max}
    return eval(expression, {"__builtins__": {}}, {**functions, **{k.replace("-", "_"): v for k, v in names.items()}})


def written(value: float | Sequence[float], like: str) -> str:
    """A value with the digits and the unit of an older text: 0.8921 like "88.1 %" is "89.2 %"."""
    numbers = list(value) if isinstance(value, Sequence) else [value]
    first, *others = re.findall(r"\d[\d,]*(?:\.(\d+))?", like)
    scale = 100 if "%" in like else 1
    comma = "," if re.search(r"\d,\d", like) else ""
    text = f"{scale * statistics.fmean(numbers):{comma}.{len(first)}f}"
    if "±" in like:
        text += f" ± {scale * statistics.stdev(numbers):.{len(others[0])}f}"
    return re.sub(r"\d[\d,.]*(?: ± [\d.]+)?", text, like, count=1)


def last(seeds: Mapping[str, Sequence[Mapping[str, float]]], metric: str = "accuracy", rounds: int = 0) -> list[float]:
    """The last value of a metric for each seed, of all rounds or of the first so many."""
    runs = ([record[metric] for record in run[: rounds or None] if metric in record] for run in seeds.values())
    return [values[-1] for values in runs]


def each(seeds: Mapping[str, Sequence[Mapping[str, float]]], metric: str) -> list[float]:
    """The mean over rounds of a metric for each seed."""
    return [statistics.fmean(record[metric] for record in run if metric in record) for run in seeds.values()]


def cells(path: str, *metrics: str, rounds: int = 0, digits: int = 2, only: Sequence[str] = ()) -> Iterable[str]:
    """A table of `fedvote reproduce`: in percent, mean ± deviation over seeds, and the paper's number in brackets."""
    found = json.loads((ROOT / path).read_text())["cells"]
    found = [cell for cell in found if not only or any(word in f"{cell['row']}, {cell['column']}" for word in only)]
    columns = list(dict.fromkeys(cell["column"] for cell in found))
    yield "| | " + " | ".join(columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for row in dict.fromkeys(cell["row"] for cell in found):
        for metric in metrics:
            name = row if len(metrics) == 1 else f"{row}, {'soft vote' if metric == 'accuracy_float' else 'deployed'}"
            of_row = {cell["column"]: cell for cell in found if cell["row"] == row}
            entries = (_entry(of_row.get(column), metric, rounds, digits) for column in columns)
            yield f"| {name} | " + " | ".join(entries) + " |"


def _entry(cell: Mapping[str, Any] | None, metric: str, rounds: int, digits: int) -> str:
    if cell is None:
        return ""
    values = [100 * value for value in last(cell["seeds"], metric, rounds)]
    spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    printed = f" ({cell['printed'][metric]})" if metric in cell.get("printed", {}) else ""
    return f"{statistics.fmean(values):.{digits}f}{spread}{printed}"


def rows(path: str, *columns: str, **kept: Any) -> Iterable[str]:
    """A table of `fedvote bench`: these columns (`key`, `key=Heading` or `key=Heading:.2f`) of the rows that match."""
    found = json.loads((ROOT / path).read_text())["rows"]
    split = [re.fullmatch(r"(\w+)(?:=([^:]*))?(?::(.+))?", column) for column in columns]
    keys = [(part[1], part[2] or part[1], part[3] or "") for part in split if part]
    yield "| " + " | ".join(heading for _, heading, _ in keys) + " |"
    yield "|---" * len(keys) + "|"
    for row in found:
        if all(row.get(name) == value for name, value in kept.items()):
            yield "| " + " | ".join("" if row.get(key) is None else f"{row[key]:{how}}" for key, _, how in keys) + " |"


def main() -> None:
    for page in pages():
        page.write_text(rewritten(page))
        for hint in unexplained(page.read_text()):
            print(f"{page.relative_to(ROOT)}: no result file for ... {' '.join(hint.split())}", file=sys.stderr)


if __name__ == "__main__":
    main()
