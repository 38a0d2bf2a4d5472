"""Inputs far from unit scale train badly in silence: a doubt says so once, and names the fix."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch.utils.data import TensorDataset

from fedvote.core import Dataset
from fedvote.data import from_arrays, from_pandas, from_torch, load
from fedvote.errors import Doubt
from tests.data.test_own_data import Frame

RNG = np.random.default_rng(0)
Y = np.arange(60) % 3
PIXELS = RNG.integers(0, 256, (60, 1, 4, 4))
TABLE = RNG.normal(size=(60, 3))
ADVICE = "networks train badly far from 1: pass standardise=True"


def given(x: Any, **options: Any) -> Dataset:
    return from_arrays(x, Y, x[:9], Y[:9], **options)


def said(x: Any, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", Doubt)
        given(x, **options)
    return [str(each.message) for each in caught]


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("channels", [1, 3])
def test_pixels_up_to_255_that_are_no_bytes_are_a_doubt(kind: type, channels: int) -> None:
    (words,) = said(PIXELS.repeat(channels, 1).astype(kind))
    assert words.startswith("x_train has a root mean square of 1") and ADVICE in words
    assert words.endswith(", or divide pixels by 255")


def test_images_that_are_rows_of_floats_are_one_too() -> None:
    (words,) = said(PIXELS.reshape(60, 16).astype(float))
    assert "in columns 0, 1, 2, 3, 4, 5, 6, 7, ..., and" in words


def test_the_columns_in_the_thousands_are_named() -> None:
    (words,) = said(TABLE * [1, 2000, 1])
    assert words.startswith("x_train has a root mean square of 1,7") and "in column 1, and" in words
    table = dict(zip(("age", "income", "weight"), (TABLE * 0.1 + [0, 2000, 2000]).T, strict=True))
    frame = Frame(table | {"kind": Y})
    with pytest.warns(Doubt, match="of 2,000 in columns 'income', 'weight', and") as caught:
        from_pandas(frame, frame, "kind", standardise=False)
    assert len(caught) == 1


def test_a_dataset_of_torch_is_a_doubt_once() -> None:
    items = TensorDataset(torch.from_numpy(PIXELS).float(), torch.from_numpy(Y))
    with pytest.warns(Doubt, match="divide pixels by 255") as caught:
        from_torch(items, items)
    assert len(caught) == 1


def test_pixels_that_were_divided_twice_are_a_doubt() -> None:
    (words,) = said(PIXELS / 255 / 255)
    assert words == f"x_train has no number beyond 0.0039, and {ADVICE}"


@pytest.mark.parametrize(
    ("x", "options"),
    [
        (PIXELS.astype(np.uint8), {}),
        (PIXELS / 255, {}),
        (load_digits().data[:60], {}),  # 0 to 16
        (TABLE, {}),
        (TABLE * 2000, {"standardise": True}),
        (TABLE * 2000, {"mean": 0, "std": 2000}),
        (np.eye(60), {}),  # one-hot
        (RNG.integers(0, 30_000, (60, 12)), {}),  # tokens
    ],
    ids=["bytes", "0 to 1", "digits", "normal", "standardised", "scaled", "one-hot", "tokens"],
)
def test_inputs_that_networks_can_take_are_none(x: Any, options: dict[str, Any]) -> None:
    assert not [words for words in said(x, **options) if ADVICE in words]


def test_the_packages_own_digits_are_none() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load("digits")


def test_an_outlier_of_a_standardised_table_is_none() -> None:
    x = np.concatenate([[1e6], RNG.normal(size=4999)])[:, None]
    y, scaled = np.arange(5000) % 3, (x - x.mean()) / x.std()
    assert scaled.max() > 60
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_arrays(scaled, y, scaled, y)
