"""The page in a browser: tooltips, keys, legends and tables work, nothing fails, a phone does not scroll sideways."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fedvote.report import write_report
from fedvote.report.axis import axis_from_zero, percent_axis
from fedvote.report.lines import LegendKey, Point, Series, legend, line_chart
from fedvote.report.markup import tag
from fedvote.report.page import shell
from tests.browser import chromium, needs_browser, set_width
from tests.report.pages import MakeRun

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

pytestmark = needs_browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def open_report(browser: Any, *folders: Path, width: int = 1200) -> None:
    set_width(browser, width)
    browser.get(write_report(folders, folders[0] / "report.html").as_uri())


def find(browser: Any, selector: str) -> Any:
    return browser.find_element("css selector", selector)


def in_view(browser: Any, selector: str) -> Any:
    """An element in the middle of the window. Scrolling hides the tooltip a frame later: that frame has passed."""
    found = find(browser, selector)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", found)
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    return found


def hover(browser: Any, selector: str) -> str:
    plot = in_view(browser, selector)
    webdriver.ActionChains(browser).move_to_element(plot).perform()
    return str(find(browser, "#tip").text)


def test_nothing_is_written_to_the_console(browser: Any, make_run: MakeRun) -> None:
    open_report(browser, make_run(weights=True, hostile=4, refused={"1": "no ballot"}), make_run("other"))
    hover(browser, ".plot")
    assert browser.get_log("browser") == []


def test_hovering_over_a_line_chart_shows_every_line_of_the_nearest_round(browser: Any, make_run: MakeRun) -> None:
    open_report(browser, make_run())
    assert not find(browser, "#tip").is_displayed()
    text = hover(browser, ".plot")
    assert text.startswith("round 5\nfloat\n") and "deployed, calibrated" in text and "%" in text
    assert len(browser.find_elements("css selector", ".dot")) == 3


def test_hovering_over_the_data_map_shows_client_class_and_count(browser: Any, make_run: MakeRun) -> None:
    folder = make_run(clients=3, classes=3)
    (folder / "clients.json").write_text(
        '{"classes": ["a", "b", "c"], "counts": [[0,0,0],[0,42,0],[0,0,0]], "hostile": [1]}'
    )
    open_report(browser, folder)
    assert hover(browser, ".heat .plot") == "client 1 (hostile) \N{MIDDLE DOT} class b\n42 examples"


def test_the_tooltip_goes_when_the_pointer_does(browser: Any, make_run: MakeRun) -> None:
    open_report(browser, make_run())
    hover(browser, ".plot")
    webdriver.ActionChains(browser).move_to_element(find(browser, ".legend button")).perform()
    assert not find(browser, "#tip").is_displayed()


def test_a_key_of_the_legend_hides_its_line_and_brings_it_back(browser: Any, make_run: MakeRun) -> None:
    open_report(browser, make_run())
    key, line = find(browser, '[data-token="accuracy_float"]'), find(browser, '[data-tokens~="accuracy_float"]')
    assert line.is_displayed() and key.get_attribute("aria-pressed") == "true"
    key.click()
    assert not line.is_displayed() and key.get_attribute("aria-pressed") == "false"
    assert "float" not in hover(browser, ".plot")
    key.click()
    assert line.is_displayed()


def test_a_line_is_shown_only_while_its_run_and_its_kind_are(browser: Any, make_run: MakeRun) -> None:
    open_report(browser, make_run(), make_run("other"))
    calibrated = browser.find_elements("css selector", 'figure:first-of-type [data-tokens~="accuracy_calibrated"]')[:2]
    assert [line.is_displayed() for line in calibrated] == [False, False]
    find(browser, '[data-token="run-0"]').click()
    find(browser, '[data-token="accuracy_calibrated"]').click()
    assert [line.is_displayed() for line in calibrated] == [False, True]


def test_a_legend_rules_over_all_charts_beside_it(browser: Any, tmp_path: Path) -> None:
    line = Series("one", 0, "solid", ("one",), (Point(0, 50, ""), Point(1, 60, "")))
    chart = line_chart("a chart", [line], axis_from_zero(1), percent_axis([50, 60]), "x", str)
    figure = tag("figure", chart, data_chart="lines")
    panels = tag("div", legend([LegendKey("one", "one", 0, "solid")]), tag("div", figure, figure, class_="panels"))
    (tmp_path / "page.html").write_text(shell("panels", panels))
    browser.get((tmp_path / "page.html").as_uri())
    lines = browser.find_elements("css selector", ".series")
    assert [line.is_displayed() for line in lines] == [True, True]
    find(browser, '[data-token="one"]').click()
    assert [line.is_displayed() for line in lines] == [False, False]


@pytest.mark.parametrize("width", [390, 768, 1200])
@pytest.mark.parametrize(("clients", "classes"), [(10, 10), (31, 62), (300, 62)])
def test_the_page_never_scrolls_sideways(
    browser: Any, make_run: MakeRun, width: int, clients: int, classes: int
) -> None:
    name = "a-run-with-a-name-that-goes-on-and-on-without-a-single-blank-in-it"
    run = make_run(name, clients=clients, classes=classes, weights=True, hostile=3, refused={"1": "x" * 90}, rounds=12)
    open_report(browser, run, make_run("other"), width=width)
    browser.execute_script("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def column(browser: Any, index: int) -> list[str]:
    rows = browser.find_elements("css selector", "table[data-sorts] tbody tr")
    return [row.find_elements("css selector", "th, td")[index].text for row in rows]


def test_a_table_sorts_by_any_column_by_click_and_by_key(browser: Any, make_run: MakeRun) -> None:
    small, large, none = (
        make_run(name, method=name, nbytes=nbytes) for name, nbytes in (("b", 8_000), ("c", 300_000), ("a", 20_000))
    )
    (none / "metrics.jsonl").write_text("")
    open_report(browser, small, large, none)
    heads = browser.find_elements("css selector", "table[data-sorts] thead th")
    order = [head.get_attribute("aria-sort") for head in heads]
    assert set(order) == {"none"} and column(browser, 0) == ["b", "c", "a"]
    name, smaller = (heads[index].find_element("css selector", "button") for index in (0, 4))
    name.click()
    assert column(browser, 0) == ["a", "b", "c"] and heads[0].get_attribute("aria-sort") == "ascending"
    name.send_keys(webdriver.Keys.ENTER)
    assert column(browser, 0) == ["c", "b", "a"] and heads[0].get_attribute("aria-sort") == "descending"
    smaller.send_keys(webdriver.Keys.SPACE)
    assert column(browser, 0) == ["b", "c", "a"]  # by number, and a run without one comes last
    assert [heads[index].get_attribute("aria-sort") for index in (0, 4)] == ["none", "descending"]
    smaller.click()
    assert column(browser, 0) == ["c", "b", "a"]


def test_arrow_keys_go_from_round_to_round_and_from_cell_to_cell(browser: Any, make_run: MakeRun) -> None:
    open_report(browser, make_run(clients=3, classes=3))
    keys, tip = webdriver.Keys, find(browser, "#tip")
    lines = in_view(browser, ".plot")
    lines.send_keys(keys.ARROW_RIGHT)
    assert tip.text.startswith("round 1\n")
    lines.send_keys(keys.ARROW_RIGHT, keys.ARROW_RIGHT, keys.ARROW_LEFT)
    assert tip.text.startswith("round 2\n")
    lines.send_keys(keys.ESCAPE)
    assert not tip.is_displayed()
    heat = in_view(browser, ".heat .plot")
    heat.send_keys(keys.ARROW_DOWN)
    heat.send_keys(keys.ARROW_DOWN, keys.ARROW_RIGHT)
    assert tip.text.startswith("client 1 \N{MIDDLE DOT} class 1\n")


def test_dark_and_light_screens_get_their_own_colours(browser: Any, make_run: MakeRun) -> None:
    open_report(browser, make_run())
    seen = []
    for scheme in ("light", "dark"):
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        seen.append(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert seen == ["rgb(245, 246, 248)", "rgb(16, 20, 26)"]


def test_long_names_and_extreme_numbers_leave_a_phone_its_width(browser: Any, make_run: MakeRun) -> None:
    name = "x" * 300
    judged = {"metric": {"name": name, "percent": False, "higher_is_better": False}, name: 1e-200}
    folder = make_run(**judged)
    found = {"classes": [name], "confusion": [[1]], "by_class": {name: 0.5}, "by_client": {"0": 1e200}}
    (folder / "evaluation.json").write_text(json.dumps(found))
    open_report(browser, folder, make_run("other" * 40), width=390)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    open_report(browser, folder, width=390)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
