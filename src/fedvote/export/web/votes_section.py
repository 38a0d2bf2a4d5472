"""The part of the page that shows the votes of a layer as pixels."""

from __future__ import annotations

from collections.abc import Sequence

from fedvote.export.web.layer_votes import LayerVotes
from fedvote.report.markup import Html, tag

CLEAR = 2**14  # votes that are still told apart: a larger layer is not shown first


def votes_section(layers: Sequence[LayerVotes]) -> Html:
    title = tag("h2", "Votes")
    if not layers:
        return tag("section", title, tag("p", "This network has no votes: its weights are floats.", class_="explain"))
    first = shown_first(layers)
    options = [
        tag("option", f"{layer.name}: {layer.sides}", value=index, selected="" if layer is first else None)
        for index, layer in enumerate(layers)
    ]
    choose = tag("label", "Layer ", tag("select", *options, id="layer"))
    key = tag("p", id="counts", class_="scale")
    text = tag("p", "Every pixel is one weight, as the clients voted on it.", class_="explain")
    picture = tag("div", tag("canvas", id="votes", role="img"), class_="scroll")
    return tag(
        "section", title, text, tag("div", choose, key, class_="row"), picture, tag("p", id="vote", class_="explain")
    )


def shown_first(layers: Sequence[LayerVotes]) -> LayerVotes:
    """The largest layer whose votes can be told apart; if there is none, the smallest."""
    clear = [layer for layer in layers if layer.count <= CLEAR]
    return max(clear, key=lambda layer: layer.count) if clear else min(layers, key=lambda layer: layer.count)
