"""The page that runs a network: a place to draw, choose or fill in, the answer, and the votes of each layer."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from fedvote.core import Task
from fedvote.export.network_file import Deployed
from fedvote.export.onnx import INPUT, OUTPUT
from fedvote.export.web.browser_runtime import VERSION
from fedvote.report.markup import Html, data_block, join, markup, tag

SCRIPTS = ("session.js", "answer.js", "drawing.js", "image.js", "form.js", "votes.js", "start.js")
GENERATOR = '<meta name="generator" content="fedvote export">'
MOST_FIELDS = 200  # columns with a field of their own; longer rows are pasted

# Scripts come from this folder, and from text in it; connect-src is none, so no request can leave the page.
PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
$generator
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:;
  script-src 'self' file: blob: 'unsafe-inline' 'wasm-unsafe-eval'">
<link rel="icon" href="data:,">
<title>$title</title>
<style>
$style</style>
</head>
<body>
$body
<script src="runtime.js"></script>
<script>
$script</script>
</body>
</html>
""")


def try_page(
    network: Deployed,
    content: bytes,
    title: str,
    asks: Mapping[str, Any],
    task: Task,
    layers: Sequence[Mapping[str, Any]],
    facts: Mapping[str, str],
    metric: tuple[str, str] | None = None,
) -> str:
    """The page around the ONNX file `content`. `asks`: what the input is; `metric`: its name and value on test data."""
    data = data_block(
        {
            "network": base64.b64encode(content).decode(), "input": INPUT, "output": OUTPUT, "asks": asks,
            "classes": network.classes, "task": task, "layers": layers,
        }
    )  # fmt: skip
    main = tag("main", trial(asks), tiles(network, len(content), metric), votes(layers))
    parts = join(heading(network, title, facts), main, footer(), data)
    own, report = files("fedvote.export.web"), files("fedvote.report")
    styles = report.joinpath("chart.css"), report.joinpath("page.css"), own.joinpath("web.css")
    return PAGE.substitute(
        title=markup(f"fedvote: {title}"),
        generator=GENERATOR,
        style="".join(style.read_text(encoding="utf-8") for style in styles),
        body=parts,
        script="\n".join(own.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS),
    )


def network_in(page: str) -> bytes:
    """The ONNX file inside a page."""
    found = re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return base64.b64decode(json.loads(found[1])["network"]) if found else b""


def heading(network: Deployed, title: str, facts: Mapping[str, str]) -> Html:
    pairs = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items() if value]
    says = "A network made of votes. It runs here, in this page: nothing that you draw or type leaves it."
    return tag(
        "header", tag("p", "fedvote", class_="brand"), tag("h1", title), tag("p", says, class_="lead"),
        tag("dl", *pairs) if pairs else "",
    )  # fmt: skip


def tiles(network: Deployed, nbytes: int, metric: tuple[str, str] | None) -> Html:
    weights = sum(weight.numel() for weight in network.network.parameters())
    votes = f"{network.votes:,} of them votes" if network.votes else "all of them floats"
    shown = [
        tile(
            "size of the network", f"{nbytes / 1000:,.1f} kB", f"its weights as float32: {weights * 4 / 1000:,.1f} kB"
        ),
        tile("weights", f"{weights:,}", votes),
        tile("time of one answer", tag("span", "…", id="time"), "on this device"),
    ]
    if metric:
        shown.append(tile(f"{metric[0]} on the test data", metric[1], "with calibrated batch norm"))
    return tag("div", *shown, class_="tiles")


def tile(label: str, value: str, note: str) -> Html:
    return tag("div", tag("span", label), tag("strong", value), tag("small", note), class_="tile")


def trial(asks: Mapping[str, Any]) -> Html:
    """The input on one side, the answer on the other."""
    ask = form(len(asks["columns"])) if "columns" in asks else pad(asks)
    result = tag("p", "Starting …", id="answer", role="status")
    seen = tag(
        "figure", tag("figcaption", "What the network sees"), tag("canvas", id="seen", role="img"), id="seen-figure"
    )
    parts = [result, tag("ol", id="classes"), seen if "columns" not in asks else ""]
    return tag("section", tag("div", ask, class_="ask"), tag("div", *parts, class_="told"), class_="trial")


def pad(asks: Mapping[str, Any]) -> Html:
    """A place to draw, if the images are drawings; and a button to choose an image."""
    label = tag("label", "Choose an image", tag("input", type="file", accept="image/*", id="file"), class_="button")
    if asks["ink"] is None:
        text = "Choose an image, drop one here, or paste one."
        return join(tag("h2", "An image"), tag("p", text, class_="explain"), canvas("image", "The image"), label)
    text = "Draw with a finger, a pen or the mouse. Or choose, drop or paste an image."
    keys = "Keys: arrows move the pen, Space sets it down and lifts it, Backspace takes a line back, Delete clears."
    name = f"Drawing pad. {keys}"
    row = [tag("button", "Clear", type="button", id="clear"), tag("button", "Undo", type="button", id="undo"), label]
    return join(
        tag("h2", "Draw"), tag("p", text, class_="explain"), canvas("drawing", name), tag("div", *row, class_="row"),
        tag("p", keys, class_="explain keys"),
    )  # fmt: skip


def canvas(kind: str, label: str) -> Html:
    role = "application" if kind == "drawing" else "img"
    return tag(
        "canvas", id="pad", class_=kind, tabindex="0" if kind == "drawing" else None, role=role, aria_label=label
    )


def form(columns: int) -> Html:
    """A field for each column, and one to paste a whole row."""
    paste = tag("input", id="row", type="text", autocomplete="off", placeholder=f"{columns} numbers")
    row = tag("label", tag("span", "A whole row, as in a table"), paste, class_="field")
    fields = tag("div", id="fields") if columns <= MOST_FIELDS else Html()
    reset = tag("button", "Typical values", type="button", id="reset")
    parts = tag("h2", "The columns"), fields, row, tag("p", "", id="wrong", role="alert"), reset
    return tag("form", *parts, autocomplete="off")


def votes(layers: Sequence[Mapping[str, Any]]) -> Html:
    if not layers:
        return tag(
            "section",
            tag("h2", "Votes"),
            tag("p", "This network has no votes: its weights are floats.", class_="explain"),
        )
    largest = max(range(len(layers)), key=lambda index: sum(layers[index]["counts"]))
    options = [
        tag("option", f"{layer['name']}: {size(layer)}", value=str(index), selected="" if index == largest else None)
        for index, layer in enumerate(layers)
    ]
    choose = tag("label", "Layer ", tag("select", *options, id="layer"))
    text = "Every pixel is one weight, as the clients voted on it."
    key = tag("p", id="counts", class_="scale")
    picture = tag("canvas", id="votes", role="img")
    return tag(
        "section", tag("h2", "Votes"), tag("p", text, class_="explain"), tag("div", choose, key, class_="row"),
        tag("div", picture, class_="scroll"), tag("p", "", id="vote", class_="explain"),
    )  # fmt: skip


def size(layer: Mapping[str, Any]) -> str:
    _, inputs, rows, columns = layer["shape"]
    sides = [layer["outputs"], inputs, *([rows, columns] if rows * columns > 1 else [])]
    return " \N{MULTIPLICATION SIGN} ".join(map(str, sides))


def footer() -> Html:
    return tag("footer", f"Run by ONNX Runtime Web {VERSION}, under the MIT License, from this folder.")
