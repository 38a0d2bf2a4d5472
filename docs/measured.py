"""Keeps the measured numbers of the pages equal to the result files: `make numbers` rewrites them.

Numbers in a sentence are a link to their result file. Its title is an expression over the file's keys, with the
functions of result_tables.py:

    [89.2 ± 0.4 %](results/x.json "last(seeds)")      a list stands for its mean and deviation
    [24 to 30 s](results/y.json "min(times), max(times)")      a tuple has one value for each number

A table stands between two comments; the first has an expression over the file's keys as well:

    <!-- table of results/z.json: lines(rows, "model: {model}", "MB: {megabytes:.2f}") -->
    <!-- end -->

While its file is not there, a table keeps its lines, whose numbers are then links.

Any other number with a decimal point or a unit is an error, also one in words (ten times, a third more megabytes, a
point), unless the page says that nobody measured it here: a setting, a number of a paper, an example.
`<!-- given: Dirichlet 0.5; 85.5 % (Table I) -->` lists such phrases. So is an expression that uses no key of its file.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from functools import cache
from pathlib import Path
from typing import Any

from result_tables import evaluate

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "CHANGELOG.md", "docs/**/*.md", "examples/*/README.md")

FILE = r"(?:\.\./)*results/[\w./-]+\.json"
LINK = re.compile(rf'\[([^\]\n]*\d[^\]\n]*)\]\(({FILE})(\s+)"([^"]+)"\)')
TABLE = re.compile(rf"(<!-- table of ({FILE}):\s+(.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
GIVEN = re.compile(r"<!-- given: (.+?) -->", re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`\n]+(?:\n[^`\n]+)?`|\$\$.*?\$\$|\$[^$\n]+\$|\]\([^)]*\)|<!--.*?-->", re.DOTALL)
UNIT = r"(?:[ \n]?(?:%|(?:per ?cent|points?|times|hours?|minutes?|seconds?|ms|s|kB|MB|GB|mJ|pJ)\b)|x\b)"
WORD = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|"
    "ninety|hundred|thousand"
)
IN_WORDS = rf"\b(?i:{WORD})\s+(?:per\s?cent|points|times|seconds|milliseconds|kilobytes|megabytes|gigabytes)\b"
PART = "half|halves|(?:third|quarter|(?:fif|six|seven|eigh|nin|ten|twelf|sixteen|twentie|hundred|thousand)th)s?"
COMPARED = "traffic|megabytes|bytes|bits|energy|memory|time|(?:fast|slow|long|larg|small|few)er|more|less|many|much"
IN_PARTS = rf"\b(?i:an?|one|{WORD})\s+(?:{PART})\s+(?:(?:of|as)\s+)?(?:(?!of\b)[\w']+\s+){{0,2}}(?:{COMPARED})\b"
ONE_POINT = r"\b(?i:half\s+a|a)\s+point\b"
MULTIPLE = r"\b(?i:twice\s+as|[a-z]+fold)\b"
IN_DIGITS = (  # not the 5 of 1.5, LeNet-5 or 3/5; but the 5 of -5 % and 3-5 %
    rf"(?<![\w.,/])(?<![A-Za-z]-)\d+(?:,\d{{3}})*(?:\.\d+(?:e-?\d+)?(?![\w.]*\w)|(?:\.\d+)?{UNIT})"
)
NUMBER = re.compile(rf"{IN_DIGITS}|{IN_WORDS}|{IN_PARTS}|{ONE_POINT}|{MULTIPLE}")
SHOWN = re.compile(r"\d+(?:,\d{3})*(?:\.(\d+))?(?: ± \d+(?:\.(\d+))?)?")


def pages(root: Path = ROOT) -> list[Path]:
    return [page for pattern in PAGES for page in sorted(root.glob(pattern))]


def problems(text: str, folder: Path) -> list[str]:
    """A sentence for everything on a page in this folder that differs from the files, or comes from nowhere."""
    now = rewritten(text, folder)
    pairs = zip(text.splitlines(), now.splitlines(), strict=False)
    changed = next((f"{old.strip()!r}, but the file has {new.strip()!r}" for old, new in pairs if old != new), None)
    differs = [] if now == text else [changed or "a table has another number of lines than its file"]
    return [*differs, *unexplained(text, folder)]


def rewritten(text: str, folder: Path) -> str:
    """A page in this folder with every linked number and every table as its result file has them."""
    text = LINK.sub(lambda link: _linked(folder, *link.groups()), text)
    return TABLE.sub(lambda block: _table(folder, *block.groups()), text)


def unexplained(text: str, folder: Path) -> list[str]:
    """Numbers of a page that come from no file and are not declared as given; and phrases that it does not have."""
    without_tables = TABLE.sub(lambda block: " " if (folder / block[2]).exists() else block[4], text)
    rest = CODE.sub(" ", LINK.sub(" ", without_tables))
    phrases = [phrase for given in GIVEN.findall(text) for phrase in re.split(r";\s+", given.strip())]
    found = []
    for phrase in sorted(phrases, key=len, reverse=True):
        pattern = r"(?<![\d.])" + r"\s+".join(map(re.escape, phrase.split())) + r"(?!\d|\.\d)"
        rest, count = re.subn(pattern, " ", rest)
        found += [] if count else [f"given, but not on the page: {phrase}"]
    hits = (rest[max(0, hit.start() - 30) : hit.end() + 10] for hit in NUMBER.finditer(rest))
    return found + [f"no result file for ... {' '.join(hit.split())}" for hit in hits]


def files(text: str, folder: Path) -> set[Path]:
    """The result files of a page in this folder."""
    paths = [link[2] for link in LINK.finditer(text)] + [block[2] for block in TABLE.finditer(text)]
    return {path for path in ((folder / path).resolve() for path in paths) if path.exists()}


def _linked(folder: Path, shown: str, path: str, space: str, expression: str) -> str:
    return f'[{written(_value(folder / path, expression), like=shown)}]({path}{space}"{expression}")'


def _table(folder: Path, begin: str, path: str, expression: str, now: str, end: str) -> str:
    if (folder / path).exists():
        now = "".join(f"{line}\n" for line in _value(folder / path, expression))
    return begin + now + end


@cache
def _value(path: Path, expression: str) -> Any:
    content = json.loads(path.read_text())
    if not set(re.findall(r"[a-z_]\w*", expression)) & {key.replace("-", "_") for key in content}:
        raise ValueError(f"{expression!r} uses no key of {path.name}: its value comes from nowhere")
    try:
        return evaluate(expression, content)
    except Exception as error:
        raise ValueError(f"{path.name} has no {expression}: {error!r}") from error


def written(value: Any, like: str) -> str:
    """Values with the digits and the unit of an older text: 0.8921 like "88.1 %" is "89.2 %"."""
    values = value if isinstance(value, tuple) else (value,)
    if (numbers := len(SHOWN.findall(like))) != len(values):
        raise ValueError(f"{like!r} has {numbers} numbers, expected {len(values)}: one for each value")
    left = iter(values)
    scale = 100 if "%" in like else 1

    def number(shown: re.Match[str]) -> str:
        found = next(left)
        each = [scale * one for one in (found if isinstance(found, list) else [found])]
        comma = "," if "," in shown[0] else ""
        text = f"{statistics.fmean(each):{comma}.{len(shown[1] or '')}f}"
        return f"{text} ± {statistics.stdev(each):.{len(shown[2] or '')}f}" if "±" in shown[0] else text

    return SHOWN.sub(number, like)


def main() -> int:
    """Rewrite every page; returns the number of problems that are left."""
    left = 0
    for page in pages():
        page.write_text(rewritten(page.read_text(), page.parent))
        for problem in problems(page.read_text(), page.parent):
            print(f"{page.relative_to(ROOT)}: {problem}", file=sys.stderr)
            left += 1
    return left


if __name__ == "__main__":
    sys.exit(min(main(), 1))
