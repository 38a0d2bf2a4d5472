"""The page that runs a network: a place to draw, choose or fill in, the answer, and the votes of each layer."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from fedvote.core import Task
from fedvote.export.onnx import INPUT, OUTPUT
from fedvote.export.web.browser_runtime import VERSION
from fedvote.export.web.layer_votes import layer_votes
from fedvote.export.web.trial_section import trial_section
from fedvote.export.web.votes_section import votes_section
from fedvote.network.deployed import Deployed
from fedvote.report.html_page import heading, html_page, tile
from fedvote.report.markup import Html, data_block, join, tag

SCRIPTS = ("session.js", "answer.js", "drawing.js", "image.js", "form.js", "votes.js", "start.js")
GENERATOR = '<meta name="generator" content="fedvote export">'

# Scripts come from this folder, and from text in it; connect-src is none, so no request can leave the page.
ALLOWED = "img-src data: blob:; script-src 'self' file: blob: 'unsafe-inline' 'wasm-unsafe-eval'"


def try_page(
    network: Deployed,
    content: bytes,
    title: str,
    asks: Mapping[str, Any],
    task: Task,
    facts: Mapping[str, str],
    metric: tuple[str, str] | None = None,
) -> str:
    """The page around the ONNX file `content`. `asks`: what the input is; `metric`: its name and value."""
    layers = layer_votes(network)
    votes = sum(layer.count for layer in layers)
    data = data_block(
        {
            "network": base64.b64encode(content).decode(), "input": INPUT, "output": OUTPUT, "asks": asks,
            "classes": network.classes, "task": task, "layers": [asdict(layer) for layer in layers],
        }
    )  # fmt: skip
    main = tag("main", trial_section(asks), tiles(network, votes, len(content), metric), votes_section(layers))
    kind = "A network made of votes" if votes else "A network of floats"
    sentence = f"{kind}. It runs here, in this page: nothing that you draw or type leaves it."
    body = join(heading(title, facts, sentence), main, footer(), data)
    own = files("fedvote.export.web")
    return html_page(
        title,
        body,
        [own.joinpath(name) for name in SCRIPTS],
        [own.joinpath("web.css")],
        allowed=ALLOWED,
        head=f"{GENERATOR}\n",
        loaded='<script src="runtime.js"></script>\n',
    )


def network_in(page: str) -> bytes:
    """The ONNX file inside a page."""
    found = re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return base64.b64decode(json.loads(found[1])["network"]) if found else b""


def tiles(network: Deployed, votes: int, nbytes: int, metric: tuple[str, str] | None) -> Html:
    weights = sum(weight.numel() for weight in network.network.parameters())
    as_floats = f"as ONNX; its weights as float32: {weights * 4 / 1000:,.1f} kB"
    shown = [
        tile("size of the network", f"{nbytes / 1000:,.1f} kB", as_floats),
        tile("weights", f"{weights:,}", f"{votes:,} of them votes" if votes else "all of them floats"),
        tile("time of one answer", tag("span", "…", id="time"), "on this device"),
    ]
    if metric:
        shown.append(tile(metric[0], metric[1], "with calibrated batch norm"))
    return tag("div", *shown, class_="tiles")


def footer() -> Html:
    return tag("footer", f"Run by ONNX Runtime Web {VERSION}, under the MIT License, from this folder.")
