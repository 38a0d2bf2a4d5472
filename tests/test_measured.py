"""Every number of a page comes from a result file, or the page says that nobody measured it here."""

from __future__ import annotations

import html
import importlib
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
measured: Any = importlib.import_module("measured")
PAGES = {str(page.relative_to(ROOT)): page for page in measured.pages()}
FILES = sorted({path for page in PAGES.values() for path in measured.files(page.read_text(), page.parent)})


def problems(page: Path) -> list[str]:
    found: list[str] = measured.problems(page.read_text(), page.parent)
    return found


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages and the result files."""
    folder = tmp_path_factory.mktemp("copies")
    for name, page in PAGES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, folder / name)
    ignored = shutil.ignore_patterns("*.html", "*.svg")
    shutil.copytree(ROOT / "results", folder / "results", ignore=ignored, dirs_exist_ok=True)
    return folder


@pytest.fixture
def with_other(copies: Path) -> Iterator[Callable[[str, Any], Path]]:
    """The copies with another content of one result file, until the test ends."""
    changed: list[str] = []

    def change(file: str, content: Any) -> Path:
        changed.append(file)
        (copies / file).write_text(json.dumps(content))
        measured._value.cache_clear()
        return copies

    yield change
    for file in changed:
        shutil.copy(ROOT / file, copies / file)
    measured._value.cache_clear()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_numbers_of_its_files_and_no_others(name: str) -> None:
    assert problems(PAGES[name]) == []  # if not: `make numbers`
    assert measured.rewritten(PAGES[name].read_text(), PAGES[name].parent) == PAGES[name].read_text()


@pytest.mark.parametrize("name", PAGES)
def test_another_digit_on_a_page_is_a_problem(name: str) -> None:
    text, folder = PAGES[name].read_text(), PAGES[name].parent
    for start, end in places(text, folder):
        for hit in re.finditer(r"\d(?!\d|[.,]\d)", text[start:end]):  # the last digit of every number
            place = start + hit.start()
            other = text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :]
            assert measured.problems(other, folder), (text[start:end], place - start)


def places(text: str, folder: Path) -> list[tuple[int, int]]:
    """Where a page has numbers: in links, in tables that are made, and in sentences."""
    tables = [hit.span(4) for hit in measured.TABLE.finditer(text) if (folder / hit[2]).exists()]
    made = [hit.span(1) for hit in measured.LINK.finditer(text)] + tables
    hidden = [hit.span() for pattern in (measured.CODE, measured.LINK) for hit in pattern.finditer(text)]
    plain = [hit.span() for hit in measured.NUMBER.finditer(text)]
    return made + [(a, b) for a, b in plain if not any(start <= a < end for start, end in hidden)]


@pytest.mark.parametrize("file", [str(path.relative_to(ROOT)) for path in FILES])
def test_other_values_in_a_result_file_are_a_problem_of_its_pages(
    file: str, with_other: Callable[[str, Any], Path]
) -> None:
    copies = with_other(file, larger(json.loads((ROOT / file).read_text())))
    for name, page in PAGES.items():
        if ROOT / file in measured.files(page.read_text(), page.parent):
            assert problems(copies / name), name


def larger(value: Any, factor: float = 1.1) -> Any:
    """Later entries of a list grow more, so that comparisons between them change, too."""
    if isinstance(value, dict):
        return {name: larger(each, factor) for name, each in value.items()}
    if isinstance(value, list):
        return [larger(each, factor + 0.01 * place) for place, each in enumerate(value)]
    if not isinstance(value, int | float):
        return value
    return factor * value if isinstance(value, float) or value > 5000 else value  # smaller ones choose rows


def test_one_value_in_a_result_file_is_enough(with_other: Callable[[str, Any], Path], copies: Path) -> None:
    page = "docs/paper/table-1.md"
    assert problems(copies / page) == []
    found = json.loads((ROOT / "results/paper/table-1.json").read_text())
    found["cells"][0]["seeds"]["1"][-1]["accuracy"] += 0.01
    (problem,) = problems(with_other("results/paper/table-1.json", found) / page)
    assert "iid, binary" in problem and "but the file has" in problem


@pytest.mark.parametrize(
    "sentence",
    [
        "It reaches 88.1 %.",
        "It takes 3 ms.",
        "The ratio is 1.5.",
        "It sends 1,024 kB.",
        "It is ten times as fast.",
        "It loses Four\npoints.",
        "It loses half a point.",
        "It gains -3 points.",
        "It takes 3-5 %.",
        "It is 12x as fast.",
        "It takes 90 minutes.",
        "It takes 90 per cent.",
        "It reaches ninety percent.",
        "It is twice as fast.",
        "It is a tenfold gain.",
        "It saves three\nquarters of the traffic.",
        "It needs a third more megabytes.",
        "It takes a hundredth of FedAvg's bytes.",
    ],
)
def test_a_number_without_a_file_is_a_problem_unless_it_is_given(sentence: str) -> None:
    (problem,) = measured.problems(sentence, ROOT)
    assert problem.startswith(
        "no result file for ... It" if sentence.startswith("It") else "no result file for ... The"
    )
    assert measured.problems(f"{sentence}\n<!-- given: {sentence[:-1]} -->", ROOT) == []
    assert measured.problems(f"Nothing.\n<!-- given: {sentence[:-1]} -->", ROOT) == [
        f"given, but not on the page: {sentence[:-1]}"
    ]


def test_settings_whole_numbers_and_code_need_no_file() -> None:
    text = "31 clients, round 20, VGG-7, half of 8 x 8 pixels, `--set method.lr=0.1`, [1](https://x.org/1.5)."
    assert measured.problems(text, ROOT) == []


def test_a_link_with_a_number_of_its_own_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'0\.781' uses no key of cifar10-silo-ternary\.json"):
        measured.problems('[78.1 %](results/cifar10-silo-ternary.json "0.781")', ROOT)


def test_cells_are_compared_over_the_seeds_that_all_of_them_have() -> None:
    cells: list[dict[str, Any]] = [{"seeds": {"1": [], "2": []}}, {"seeds": {"2": []}}]
    assert [list(cell["seeds"]) for cell in measured.evaluate("paired(cells)", {"cells": cells})] == [["2"], ["2"]]
    for page in PAGES.values():
        for block in measured.TABLE.finditer(page.read_text()):
            file = page.parent / block[2]
            if block[3].startswith("grid(cells,") and "hostile-cifar10" not in block[2]:  # that page names its seeds
                assert len({len(cell["seeds"]) for cell in json.loads(file.read_text())["cells"]}) == 1, file


def test_the_points_that_attacks_cost_are_those_of_their_table() -> None:
    def cell(row: str, column: str, *accuracies: float) -> dict[str, Any]:
        runs = {str(seed): [{"accuracy": accuracy}] for seed, accuracy in enumerate(accuracies)}
        return {"row": row, "column": column, "seeds": runs}

    cells = [
        cell("inverse, 5", "oracle", 0.9, 0.5),  # the second seed has no partner
        cell("inverse, 5", "camps", 0.8),
        cell("inverse, 15", "oracle", 0.9),
        cell("inverse, 15", "camps", 0.6),
        cell("random, 5", "oracle", 0.9),
        cell("random, 5", "camps", 0.95),
        cell("random, 15", "camps", 0.1),
    ]
    assert measured.evaluate("losses(cells)", {"cells": cells}) == pytest.approx([-5, 30])
    assert measured.evaluate("losses(cells, 5)", {"cells": cells}) == pytest.approx([-5, 10])


@pytest.mark.parametrize(
    ("value", "like", "text"),
    [
        (0.8921, "88.1 %", "89.2 %"),
        ([0.25, 0.75], "**1.0 ± 2.00 %**", "**50.0 ± 35.36 %**"),
        ([1.0, 2.0], "7.0 s", "1.5 s"),
        ((1234.6, 7.04), "2,000 to 8.1 MB", "1,235 to 7.0 MB"),
    ],
)
def test_a_value_is_written_with_the_digits_and_the_unit_that_stand_there(value: Any, like: str, text: str) -> None:
    assert measured.written(value, like) == text


@pytest.mark.parametrize(("value", "like"), [((1.0, 2.0), "1.0 s"), (1.0, "1.0 to 2.0 s")])
def test_a_link_has_a_value_for_every_number(value: Any, like: str) -> None:
    with pytest.raises(ValueError, match=r"has \d numbers, expected \d: one for each value"):
        measured.written(value, like)


def test_a_table_whose_file_is_not_there_yet_keeps_its_lines_but_not_without_links(tmp_path: Path) -> None:
    table = "<!-- table of results/new.json: lines(rows, 'a: {a:.1f}') -->\n| a |\n|---|\n| 0.5 |\n<!-- end -->\n"
    assert measured.rewritten(table, tmp_path) == table
    (problem,) = measured.problems(table, tmp_path)
    assert problem.startswith("no result file for")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "new.json").write_text('{"rows": [{"a": 0.5}, {"a": null}]}')
    assert measured.rewritten(table, tmp_path) == table.replace("| 0.5 |\n", "| 0.5 |\n| |\n")


def test_every_result_file_is_in_the_list_of_results() -> None:
    listed = re.findall(r"`([\w./*-]+\.json)`", (ROOT / "results" / "README.md").read_text())
    for file in (ROOT / "results").rglob("*.json"):
        assert any(file.relative_to(ROOT / "results").match(pattern) for pattern in listed), file


MADE = sorted(
    page for page in (ROOT / "results").rglob("*.html") if "table" in json.loads(page.with_suffix(".json").read_text())
)


@pytest.mark.parametrize("page", MADE, ids=lambda page: page.stem)
def test_the_page_of_an_experiment_has_the_table_of_its_file(page: Path) -> None:
    _, *rows = json.loads(page.with_suffix(".json").read_text())["table"]
    cells = re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", page.read_text(), re.DOTALL)
    shown = {html.unescape(re.sub(r"<[^>]+>", "", cell)).strip() for cell in cells}
    assert {cell for row in rows for cell in row} - {""} <= shown
