"""The page in a browser: it answers as the exported network, asks no other host for anything, and fits a phone."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fedvote
from fedvote import ConfigError
from fedvote.core import Dataset
from fedvote.data import load
from fedvote.export.network_file import load_network
from fedvote.export.web import export_web, outputs
from fedvote.export.web.browser_runtime import runtime_script
from fedvote.models import make_model
from fedvote.runs.config import ModelConfig
from tests.browser import chromium, needs_browser, set_width
from tests.export.networks import deployed, mlp
from tests.export.test_web import table

pytestmark = needs_browser

STROKES = {
    "0": [[(50, 10), (30, 25), (25, 50), (30, 75), (50, 90), (70, 75), (75, 50), (70, 25), (50, 10)]],
    "1": [[(40, 25), (55, 10), (55, 90)]],
    "2": [[(28, 28), (40, 12), (60, 12), (70, 30), (60, 50), (30, 88), (75, 88)]],
    "3": [[(30, 18), (50, 10), (68, 20), (65, 38), (48, 48), (68, 58), (70, 75), (52, 90), (30, 82)]],
    "4": [[(50, 10), (25, 60), (75, 60)], [(60, 35), (60, 90)]],
    "5": [[(70, 10), (35, 10), (32, 45), (55, 42), (70, 58), (66, 80), (50, 90), (30, 84)]],
    "6": [[(62, 10), (42, 30), (32, 60), (38, 85), (58, 88), (68, 70), (58, 52), (38, 60)]],
    "7": [[(28, 12), (72, 12), (50, 50), (42, 90)]],
    "8": [[(50, 48), (32, 30), (50, 10), (68, 30), (50, 48), (30, 70), (50, 90), (70, 70), (50, 48)]],
    "9": [[(66, 35), (50, 50), (34, 35), (45, 12), (62, 15), (66, 35), (62, 60), (50, 90)]],
}
"""Handwriting, in hundredths of the pad: x to the right, y down."""

READ = """
const [images, width, height, done] = arguments;
(async () => {
  const found = [];
  for (const image of images) {
    const data = new ImageData(width, height);
    image.forEach((level, index) => data.data.set([level, level, level, 255], 4 * index));
    const outputs = await outputsOf(valuesOfImage(await createImageBitmap(data)));
    found.push(outputs.indexOf(Math.max(...outputs)));
  }
  return found;
})().then(done, (error) => done(String(error)));
"""
DRAW = """
const [drawings, done] = arguments;
(async () => {
  const found = [];
  for (const strokes of drawings) {
    const outputs = await outputsOf(inkValues(levelsOfStrokes(strokes)));
    found.push(outputs.indexOf(Math.max(...outputs)));
  }
  return found;
})().then(done, (error) => done(String(error)));
"""

WAIT = "const done = arguments[0]; (function wait() { running || wanted ? setTimeout(wait, 5) : done(); })()"


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load("digits")


@pytest.fixture(scope="module")
def runtime() -> str:
    """ONNX Runtime Web, from the cache or the registry."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NPM_CONFIG_FETCH_RETRIES", "0")
        try:
            return runtime_script()
        except ConfigError as error:
            pytest.skip(str(error))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, data: Dataset, runtime: str) -> dict[str, Path]:
    """A page for digits, trained for a second, and one for a table, with random votes."""
    folder = tmp_path_factory.mktemp("pages")
    run = fedvote.simulate(
        make_model("digits-cnn", data.shape, 10), data, fedvote.FedVote(lr=0.1),
        clients=3, rounds=4, steps=40, batch=32, evaluate_every=4,
    )  # fmt: skip
    file = fedvote.save_network(folder, run.federation, list(run)[-1], ModelConfig("digits-cnn"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedvote.export.web.web_folder.runtime_script", lambda package: runtime)
        made = export_web(load_network(file), folder / "digits", data=data, title="digits")
        network = deployed(mlp(), "ternary", (20,), torch.float32)
        form = export_web(network, folder / "table", data=table(), title="table")
    return {"digits": made.path, "table": form.path}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, pages: dict[str, Path]) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile"), performance="ALL") as driver:
        yield driver


@pytest.fixture
def opened(browser: Any, pages: dict[str, Path]) -> Any:
    """The digits, opened as a file, with an empty pad."""
    if browser.current_url != pages["digits"].as_uri():
        open_page(browser, pages["digits"].as_uri())
    browser.execute_script("clearPad()")
    return browser


def open_page(browser: Any, address: str) -> None:
    for log in ("performance", "browser"):
        browser.get_log(log)  # and forget it
    browser.get(address)
    browser.execute_async_script("started.then(arguments[0])")


def requested(browser: Any) -> set[str]:
    """The addresses that the page has asked for, without text that it holds itself."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
    asked = {each["request"]["url"] for each in sent if not each["documentURL"].startswith("chrome:")}
    return {address for address in asked if not address.startswith(("data:", "blob:"))}


def answer(browser: Any) -> str:
    """The sentence of the answer, once the network has answered."""
    browser.execute_async_script(
        "const done = arguments[0]; (function wait() { running || wanted ? setTimeout(wait, 5) : done(); })()"
    )
    return str(browser.find_element("id", "answer").text)


def assert_fits_a_phone(browser: Any) -> None:
    set_width(browser, 390)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    set_width(browser, 1200)


def test_a_file_asks_for_nothing_outside_its_folder(browser: Any, pages: dict[str, Path]) -> None:
    open_page(browser, pages["digits"].as_uri())
    folder = pages["digits"].parent.as_uri()
    assert requested(browser) == {f"{folder}/index.html", f"{folder}/runtime.js"}


def test_digits_of_the_test_set_are_read_with_the_accuracy_of_the_network(
    opened: Any, data: Dataset, pages: dict[str, Path]
) -> None:
    expected = outputs(pages["digits"], data.test.x).argmax(1)
    assert (expected == data.test.y.numpy()).mean() > 0.9, "it has learned"
    images = data.test.x.flatten(1).tolist()
    assert opened.execute_async_script(READ, images, 8, 8) == expected.tolist()
    assert opened.get_log("browser") == []


def test_large_pictures_of_digits_on_white_paper_are_read_almost_as_well(
    opened: Any, data: Dataset, pages: dict[str, Path]
) -> None:
    x, y = data.test.x[::5, 0], data.test.y[::5].numpy()
    accuracy = (outputs(pages["digits"], x[:, None]).argmax(1) == y).mean()
    large = np.pad(x.repeat_interleave(6, 1).repeat_interleave(6, 2), ((0, 0), (20, 5), (30, 12)))
    found = opened.execute_async_script(READ, (255 - large).reshape(len(x), -1).tolist(), 90, 73)
    assert (np.array(found) == y).mean() > accuracy - 0.06


def test_drawn_digits_are_read_wherever_and_however_large_they_are_drawn(opened: Any) -> None:
    whole = [[[(x / 100, y / 100) for x, y in line] for line in lines] for lines in STROKES.values()]
    corner = [[[(0.5 + x / 3, y / 3) for x, y in line] for line in lines] for lines in whole]
    found = opened.execute_async_script(DRAW, whole)
    assert sum(str(one) == name for one, name in zip(found, STROKES, strict=True)) >= 8
    assert opened.execute_async_script(DRAW, corner) == found


def test_strokes_are_centred_by_mass_where_the_images_are(opened: Any) -> None:
    place = "massOf(levelsOfStrokes([[[0.2, 0.2], [0.2, 0.8], [0.7, 0.8]]]), 8)"
    by_box = opened.execute_script(f"return {place}")
    try:
        by_mass = opened.execute_script(f"ink.by_mass = true; ink.height = ink.width = 5; return {place}")
        centre = opened.execute_script("return [ink.row, ink.column]")
    finally:
        opened.get("about:blank")
    assert by_mass == pytest.approx(centre, abs=0.1) and by_box != pytest.approx(centre, abs=0.3)


def test_photos_are_cut_to_their_middle_and_have_a_channel_after_the_other(opened: Any) -> None:
    try:
        values = opened.execute_async_script("""
          const done = arguments[0], canvas = new OffscreenCanvas(160, 80), context = canvas.getContext("2d");
          context.fillStyle = "#fff";
          context.fillRect(0, 0, 160, 80);
          context.fillStyle = "rgb(10, 100, 200)";
          context.fillRect(36, 0, 88, 80);
          page.asks.shape = [3, 8, 8];
          createImageBitmap(canvas).then((bitmap) => done([...valuesOf(levelsOfPhoto(bitmap))]));""")
    finally:
        opened.get("about:blank")
    assert values == [10] * 64 + [100] * 64 + [200] * 64


def test_labels_and_targets_are_shown_as_what_they_are(opened: Any) -> None:
    told = "page.classes = ['a', 'b']; page.task = arguments[0]; show([0.25, 5]); return find('answer').textContent"
    try:
        assert opened.execute_script(told, "multi-label") == "a, b"
        assert opened.execute_script(told, "regression") == "a: 0.25, b: 5"
        assert opened.execute_script(told, "classification") == "b, 99.1\u202f%"
    finally:
        opened.get("about:blank")


def test_a_pointer_draws_and_buttons_take_lines_back(opened: Any) -> None:
    from selenium.webdriver import ActionChains

    assert answer(opened) == "Draw something."
    pad = opened.find_element("id", "pad")
    side = pad.size["width"]
    for line in STROKES["4"]:
        places = [(round((x / 100 - 0.5) * side), round((y / 100 - 0.5) * side)) for x, y in line]
        moves = ActionChains(opened, duration=0).move_to_element_with_offset(pad, *places[0]).click_and_hold()
        for (x, y), (to_x, to_y) in pairwise(places):
            moves = moves.move_by_offset(to_x - x, to_y - y)
        moves.release().perform()
    both = answer(opened)
    assert both.startswith("4, ") and both.endswith("%")
    assert opened.find_element("css selector", "#classes .best span").text == "4"
    opened.find_element("id", "undo").click()
    assert answer(opened) != both
    opened.find_element("id", "clear").click()
    assert answer(opened) == "Draw something."


def test_keys_draw_as_well(opened: Any) -> None:
    down = "\ue015"  # the arrow
    opened.find_element("id", "pad").send_keys(*["\ue013"] * 8, " ", *[down] * 16, " ")
    assert answer(opened).startswith("1, ")
    assert opened.execute_script("return strokes.map((stroke) => stroke.length)") == [17]
    opened.find_element("id", "pad").send_keys("\ue017")
    assert answer(opened) == "Draw something."


def test_a_file_that_is_no_image_is_said_to_be_none(opened: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no image")
    opened.find_element("id", "file").send_keys(str(tmp_path / "notes.txt"))
    opened.execute_async_script("setTimeout(arguments[0], 100)")
    assert answer(opened) == "notes.txt is no image that this browser can read."


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
