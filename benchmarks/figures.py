"""What `methods.py` and `byzantine.py` stored, as charts and tables on one page.

    python benchmarks/figures.py results/methods-cifar10-silo.json --out results/methods-cifar10-silo.html
    python benchmarks/figures.py results/byzantine.json --out results/byzantine.html --svg results/byzantine

The page asks the network for nothing. `--svg` also writes every chart as a drawing of its own.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from pages import byzantine, methods

from fedvote.report.chart import Page


def page_of(data: dict[str, Any]) -> Page:
    """What a file holds tells which benchmark wrote it."""
    kinds = {"methods": methods.page, "runs": byzantine.page}
    if known := kinds.keys() & data.keys():
        return kinds[known.pop()](data)
    known_by = "the methods of methods.py or the runs of byzantine.py"
    raise ValueError(f"it has {', '.join(data) or 'nothing'}, expected {known_by}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="JSON that one of these wrote")
    parser.add_argument("--out", type=Path, required=True, help="the page")
    parser.add_argument("--svg", type=Path, metavar="DIR", help="a folder for the charts, one file each")
    options = parser.parse_args()
    try:
        page = page_of(json.loads(options.file.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        parser.error(f"cannot draw {options.file}: {error}")
    texts = {options.out: page.html()}
    if options.svg:
        texts |= {options.svg / f"{chart.name}.svg": chart.svg() for chart in page.charts}
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
