"""Position and size of the drawings in a dataset's images, so that a page places strokes in the same way."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

MEASURED_ON = 2000  # images
DARK = 0.25  # share of the range from which a pixel is ink
PLAIN = 0.1  # share of the range within which pixels are ground


@dataclass(frozen=True)
class Ink:
    """Lengths are in pixels of the dataset's images."""

    light: bool  # whether ink is lighter than the ground
    height: float  # of the box that drawings fill: one side of it, at least
    width: float
    row: float  # of the centre
    column: float
    by_mass: bool  # whether the centre is that of the ink's mass; if not, of its box
    stroke: float  # width of a line

    @classmethod
    def usual(cls, height: int, width: int) -> Ink:
        """As in MNIST: light ink in a box of 5/7 of the image, centred by mass."""
        return cls(True, height * 5 / 7, width * 5 / 7, height / 2, width / 2, True, height / 12)


def measured(level_NHW: Tensor) -> Ink | None:
    """Measure drawings whose pixels are from 0 to 1; None if images are no drawings: most of a border is plain."""
    level_NHW = level_NHW[:MEASURED_ON]
    border = _border(level_NHW)
    light = bool(border.median() < 0.5)
    ink = level_NHW if light else 1 - level_NHW
    ink = ink[(ink >= DARK).flatten(1).any(1)]
    _, height, width = ink.shape
    if ((border if light else 1 - border) > PLAIN).float().mean() > 0.5 or not len(ink):
        return None
    (top, bottom), (left, right) = _extent((ink >= DARK).any(2)), _extent((ink >= DARK).any(1))
    mass = ink.sum((1, 2))
    by_mass = torch.stack([(ink.sum(2) @ _middles(height)) / mass, (ink.sum(1) @ _middles(width)) / mass])
    by_box = torch.stack([(top + bottom) / 2, (left + right) / 2])
    steady = bool(by_mass.var(1, correction=0).sum() < by_box.var(1, correction=0).sum())
    centre = (by_mass if steady else by_box).mean(1)
    high, wide = (float(side.quantile(0.9)) for side in (bottom - top, right - left))
    return Ink(light, high, wide, float(centre[0]), float(centre[1]), steady, _stroke(ink))


def _border(level: Tensor) -> Tensor:
    edges = level[:, 0], level[:, -1], level[:, :, 0], level[:, :, -1]
    return torch.cat([edge.flatten() for edge in edges])


def _extent(is_ink: Tensor) -> tuple[Tensor, Tensor]:
    """Where the ink of each image begins and ends along the last axis."""
    places = is_ink.int()
    return places.argmax(1).float(), (places.shape[1] - places.flip(1).argmax(1)).float()


def _middles(size: int) -> Tensor:
    return torch.arange(size) + 0.5


def _stroke(ink: Tensor) -> float:
    """A line of length L and width t has the area A = L t and the outline P = 2 L, so t = 2 A / P."""
    padded = torch.nn.functional.pad(ink, (1, 1, 1, 1))
    down, right = padded.diff(dim=1)[:, :, :-1], padded.diff(dim=2)[:, :-1]
    outline = torch.hypot(down, right).sum((1, 2))
    return float((2 * ink.sum((1, 2)) / outline).median())
