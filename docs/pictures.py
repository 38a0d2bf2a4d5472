"""Draws the pictures of docs/method.md with the package itself: `python docs/pictures.py`.

One is a function of a formula. The other shows the weights of one neuron in a real round on handwritten digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

import fedvote
from fedvote.data import load
from fedvote.quantize import Tanh
from fedvote.report.axis import Axis
from fedvote.report.chart import Chart
from fedvote.report.lines import Point, Series
from fedvote.report.markup import Html, tag
from fedvote.report.svg import style, text

FOLDER = Path(__file__).parent / "pictures"
ROUND, CLIENTS = 6, 11
PIXEL, GAP, TOP = 13, 22, 62


def probability() -> str:
    """The probability of the vote +1 by latent weight, for some normalisations."""
    series = []
    for index, a in enumerate((0.5, 1.5, 10.0)):
        h = torch.linspace(-2, 2, 81)
        share = 50 * (Tanh(a)(h) + 1)
        points = tuple(Point(x, y, "") for x, y in zip(h.tolist(), share.tolist(), strict=True))
        series.append(Series(f"a = {a:g}", index, "solid", (f"line-{index}",), points))
    x, y = Axis(-2, 2, (-2, -1, 0, 1, 2)), Axis(0, 100, (0, 25, 50, 75, 100))
    return Chart("probability", "How likely the vote +1 is", tuple(series), x, "latent weight h", y).svg()


def one_neuron() -> str:
    """The weights of a neuron from one soft vote to the next: three ballots on the way, and the plurality."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 10)
    )
    method = fedvote.FedVote(lr=0.1)
    run = fedvote.simulate(
        network, load("digits"), method, clients=CLIENTS, rounds=ROUND, steps=20, batch=50, device="cpu", start="seed"
    )
    *_, before, after = run
    federation = run.federation
    keys = [federation.key(ROUND, client) for client in range(CLIENTS)]
    batches = federation.batches(federation.training, keys)
    down = method.broadcast(before.state)
    ups, _ = method.local(federation.placed(), down, batches, {}, keys)
    soft, counted = method.soft(down), method.soft(method.broadcast(after.state))
    assert torch.allclose(ups["votes"].float().mean(0).clamp(-0.998, 0.998), counted, atol=1e-4)  # the round's own
    neuron = slice(64 * 5, 64 * 6)
    panels = [("soft vote", soft), *((f"ballot {i + 1}", ups["votes"][i].float()) for i in range(3))]
    panels += [(f"mean of {CLIENTS}", counted), ("plurality", after.state["plurality"].float())]
    return drawn([(name, weights[neuron].reshape(8, 8)) for name, weights in panels])


def drawn(panels: Sequence[tuple[str, Tensor]]) -> str:
    """Squares of pixels side by side; blue is -1, orange +1, white in between."""
    side = 8 * PIXEL
    width, height = GAP + len(panels) * (side + GAP), TOP + side + 40
    parts = [text("One neuron in one round", GAP, 26, text_anchor="start", class_="title")]
    for index, (name, weights) in enumerate(panels):
        left = GAP + index * (side + GAP)
        parts += [square(left, weights), text(name, left + side / 2, TOP + side + 22)]
    ground = tag("path", d=f"M0 0h{width}v{height}h-{width}z", class_="box")
    return tag(
        "svg", tag("style", Html(style())), ground, *parts,
        xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}", width=width, height=height,
    ) + "\n"  # fmt: skip


def square(left: int, weights: Tensor) -> Html:
    pixels = [
        tag("path", d=f"M{left + x * PIXEL} {TOP + y * PIXEL}h{PIXEL}v{PIXEL}h-{PIXEL}z", fill=colour(float(w)))
        for y, row in enumerate(weights) for x, w in enumerate(row)
    ]  # fmt: skip
    edge = f"M{left} {TOP}h{8 * PIXEL}v{8 * PIXEL}h-{8 * PIXEL}z"
    return tag("g", *pixels, tag("path", d=edge, fill="none", stroke="#566070"))


def colour(weight: float) -> str:
    full = (213, 94, 0) if weight > 0 else (0, 114, 178)
    mixed = (round(255 + (channel - 255) * min(abs(weight), 1)) for channel in full)
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for draw in (probability, one_neuron):
        (FOLDER / f"{draw.__name__.replace('_', '-')}.svg").write_text(draw(), encoding="utf-8")
