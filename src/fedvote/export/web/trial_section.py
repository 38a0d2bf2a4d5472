"""The part of the page where a network is tried: the input on one side, the answer on the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedvote.report.markup import Html, join, tag

MOST_FIELDS = 200  # columns with a field of their own; longer rows are pasted
KEYS = "Keys: arrows move the pen, Space sets it down and lifts it, Backspace takes a line back, Delete clears."


def trial_section(asks: Mapping[str, Any]) -> Html:
    """`asks`: what the input is."""
    told = [tag("p", "Starting …", id="answer", role="status"), tag("ol", id="classes")]
    if "columns" in asks:
        ask = form(len(asks["columns"]))
    else:
        ask, told = pad() if asks["ink"] else chosen_image(), [*told, seen()]
    return tag("section", tag("div", ask, class_="ask"), tag("div", *told, class_="told"), class_="trial")


def seen() -> Html:
    caption = tag("figcaption", "What the network sees")
    return tag("figure", caption, tag("canvas", id="seen", role="img"), id="seen-figure")


def pad() -> Html:
    """A place to draw, with a button for images as well."""
    text = "Draw with a finger, a pen or the mouse. Or choose, drop or paste an image."
    canvas = tag(
        "canvas", id="pad", class_="drawing", tabindex=0, role="application", aria_label=f"Drawing pad. {KEYS}"
    )
    row = [tag("button", "Clear", type="button", id="clear"), tag("button", "Undo", type="button", id="undo"), button()]
    keys = tag("p", KEYS, class_="explain keys")
    return join(tag("h2", "Draw"), tag("p", text, class_="explain"), canvas, tag("div", *row, class_="row"), keys)


def chosen_image() -> Html:
    text = "Choose an image, drop one here, or paste one."
    canvas = tag("canvas", id="pad", class_="image", role="img", aria_label="The image")
    return join(tag("h2", "An image"), tag("p", text, class_="explain"), canvas, button())


def button() -> Html:
    return tag("label", "Choose an image", tag("input", type="file", accept="image/*", id="file"), class_="button")


def form(columns: int) -> Html:
    """A field for each column, and one to paste a whole row."""
    paste = tag("input", id="row", type="text", autocomplete="off", placeholder=f"{columns} numbers")
    row = tag("label", tag("span", "A whole row, as in a table"), paste, class_="field")
    fields = tag("div", id="fields") if columns <= MOST_FIELDS else Html()
    reset = tag("button", "Typical values", type="button", id="reset")
    parts = tag("h2", "The columns"), fields, row, tag("p", "", id="wrong", role="alert"), reset
    return tag("form", *parts, autocomplete="off")
