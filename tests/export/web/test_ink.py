"""Drawings are placed, and drawn as wide, as the images that a network has seen."""

from __future__ import annotations

import pytest
import torch

from fedvote.data import load
from fedvote.export.web.ink import measured


def test_drawings_are_placed_as_the_digits_are() -> None:
    ink = measured(load("digits").train.x[:, 0] / 255)
    assert ink and ink.light and not ink.by_mass  # they fill all rows
    assert (ink.height, ink.row) == (8, 4) and ink.width == 6 and abs(ink.column - 4) < 0.2
    dark = measured(1 - load("digits").train.x[:, 0] / 255)
    assert dark and not dark.light and dark.height == ink.height and dark.stroke == pytest.approx(ink.stroke)


def test_photos_are_no_drawings() -> None:
    assert measured(torch.rand(20, 28, 28, generator=torch.Generator().manual_seed(0))) is None
    assert measured(torch.zeros(3, 8, 8)) is None


def test_a_line_is_as_wide_as_it_is() -> None:
    image = torch.zeros(1, 28, 28)
    image[0, 4:24, 12:15] = 1
    ink = measured(image)
    assert ink and (ink.height, ink.width, ink.row, ink.column) == (20, 3, 14, 13.5)
    assert ink.stroke == pytest.approx(3, rel=0.15)


def test_images_whose_mass_lies_still_are_centred_by_mass() -> None:
    images = torch.zeros(3, 9, 9)
    for image, reach in zip(images, (1, 2, 3), strict=True):
        image[4, 4] = image[4, 4 - 1] = 1
        image[4, 4 + reach] = 1 / reach  # the mass stays, the box grows to the right
    ink = measured(images)
    assert ink and ink.by_mass and ink.row == 4.5 and ink.column == pytest.approx(4.5, abs=0.1)
