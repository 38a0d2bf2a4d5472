"""The page of digits in a browser: drawings, images and keys are read as the network reads them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedvote.core import Dataset
from fedvote.export.web import outputs
from tests.browser import needs_browser
from tests.export.web.opened_page import answer

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
