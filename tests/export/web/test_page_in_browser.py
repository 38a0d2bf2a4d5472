"""The page in a browser: it asks no other host for anything, shows the votes, answers in words, and fits a phone."""

from __future__ import annotations

import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from fedvote.export.network_file import load_network
from fedvote.export.web import outputs
from tests.browser import needs_browser
from tests.export.web.opened_page import answer, assert_fits_a_phone, open_page, requested
from tests.export.web.tables import table

pytestmark = needs_browser


def test_a_file_asks_for_nothing_outside_its_folder(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["digits"].as_uri())
    folder = pages["digits"].parent.as_uri()
    assert requested(browser) == {f"{folder}/index.html", f"{folder}/runtime.js"}


def test_labels_and_targets_are_shown_as_what_they_are(opened: Any) -> None:
    told = "page.classes = ['a', 'b']; page.task = arguments[0]; show([0.25, 5]); return find('answer').textContent"
    try:
        assert opened.execute_script(told, "multi-label") == "a, b"
        assert opened.execute_script(told, "regression") == "a: 0.25, b: 5"
        assert opened.execute_script(told, "classification") == "b, 99.1\u202f%"
    finally:
        opened.get("about:blank")


def test_the_votes_of_each_layer_are_those_of_the_network(opened: Any, pages: dict[str, Path]) -> None:
    network = load_network(pages["digits"].parents[1] / "network.safetensors")
    for index, name in enumerate(opened.execute_script("return page.layers.map((layer) => layer.name)")):
        votes = opened.execute_script("return [...votesOf(page.layers[arguments[0]])]", index)
        assert votes == network.network.get_parameter(f"{name}.weight").flatten().tolist()
    opened.execute_script("find('layer').value = 0; find('layer').dispatchEvent(new Event('change'))")
    drawn = opened.execute_script("""
      const canvas = find("votes"), { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const count = (colour) => data.filter((_, at) => at % 4 === 0 && data[at + 3] && data[at] === colour[0]).length;
      return [count(rgb("--yes")), count(rgb("--none")), count(rgb("--no"))];""")
    assert drawn == opened.execute_script("return page.layers[0].counts") and sum(drawn) == 144


def test_a_phone_does_not_scroll_sideways(opened: Any) -> None:
    assert_fits_a_phone(opened)


def test_a_form_answers_as_the_network_and_says_what_is_wrong_with_a_row(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["table"].as_uri())
    row, expected = table().test.x[:1], outputs(pages["table"], table().test.x[:1])[0]
    paste = browser.find_element("id", "row")
    browser.execute_script("arguments[0].value = ''", paste)
    paste.send_keys("\t".join(f"{value:.9g}" for value in row[0].tolist()).replace("\t", " "), "\n")
    found = browser.execute_async_script("outputsOf(Float32Array.from(values)).then(arguments[0])")
    assert found == pytest.approx(expected.tolist(), abs=1e-3)
    assert answer(browser).startswith(["<b>", "b", "c", "d"][expected.argmax()] + ", ")
    fields = browser.find_elements("css selector", "#fields input[type=number]")
    assert len(fields) == 20 and float(fields[0].get_attribute("value")) == row[0, 0]
    votes = browser.execute_script("return [...votesOf(page.layers[0])]")
    assert set(votes) == {-1, 0, 1} and len(votes) == 660
    for text, sentence in (("1, 2", "These are 2 numbers, expected 20"), ("1, two", "“two” is not a number.")):
        paste.clear()
        paste.send_keys(text, "\n")
        assert sentence in browser.find_element("id", "wrong").text
    assert browser.get_log("browser") == []
    assert_fits_a_phone(browser)


def test_a_plain_server_is_asked_for_two_files_and_no_other_host_for_any(browser: Any, pages: dict[str, Path]) -> None:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(pages["digits"].parent))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        home = f"http://127.0.0.1:{server.server_port}/"
        open_page(browser, home)
        assert answer(browser) == "Draw something."
        assert requested(browser) == {home, f"{home}runtime.js"} and browser.get_log("browser") == []
        server.shutdown()


def test_a_page_without_its_runtime_says_so(browser: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "index.html").write_bytes(pages["digits"].read_bytes())
    open_page(browser, (tmp_path / "index.html").as_uri())
    text = "The network cannot run here: runtime.js is not beside this page: copy the whole folder"
    assert browser.find_element("id", "answer").text == text


def test_a_form_of_bytes_takes_no_other_numbers(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["table"].as_uri())
    browser.execute_script("page.asks.dtype = 'uint8'; page.asks.columns.length = 2; values = [1, 2]")
    for wrong in ("300", "-3", "1.5"):
        browser.execute_script("takeRow(`7, ${arguments[0]}`)", wrong)
        assert browser.find_element("id", "wrong").text == f"“{wrong}” is not a whole number from 0 to 255."
        assert browser.execute_script("return values") == [1, 2]
