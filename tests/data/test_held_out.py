"""Examples that are held out of training judge a model, and nobody trains on them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

import fedvote
from fedvote.core import Dataset
from fedvote.data.validation import hold_out
from fedvote.errors import ConfigError, DataError
from fedvote.runs.config import read
from fedvote.runs.experiment import dataset, division, federation

SMALL = ["federation.clients=3", "local.batch=8", "data.validation=0.2"]


@pytest.fixture
def numbered() -> Dataset:
    """Inputs that say which example they are of; the test ones are negative."""
    x = np.arange(40, dtype=np.float32)[:, None]
    return fedvote.from_arrays(x, np.arange(40) % 2, -1 - x[:10], np.arange(10) % 2, writers=np.arange(40) // 4)


def test_every_training_example_is_trained_on_or_judged_by_and_the_test_ones_are_gone(numbered: Dataset) -> None:
    data = hold_out(numbered, 0.25, 0)
    kept, out = data.train.x.flatten().tolist(), data.test.x.flatten().tolist()
    assert len(out) == 10 and sorted(kept + out) == list(range(40))


def test_labels_and_writers_stay_with_their_examples(numbered: Dataset) -> None:
    data = hold_out(numbered, 0.25, 0)
    assert data.writers is not None
    for examples in (data.train, data.test):
        assert torch.equal(examples.y, examples.x.flatten().long() % 2)
    assert torch.equal(data.writers, data.train.x.flatten().long() // 4)


def test_what_is_held_out_is_drawn_by_chance(numbered: Dataset) -> None:
    first, second, again = (hold_out(numbered, 0.25, seed).test.x for seed in (0, 1, 0))
    assert torch.equal(first, again) and not torch.equal(first, second)


@pytest.mark.parametrize("share", [0.001, 0.999])
def test_a_share_that_leaves_nothing_is_refused(numbered: Dataset, share: float) -> None:
    with pytest.raises(DataError, match=f"40 training samples, and a share of {share} holds out"):
        fedvote.hold_out(numbered, share)


@pytest.mark.parametrize("share", [200, 0, 1, -0.5, 1.5, float("nan"), "a tenth"])
def test_what_is_no_share_is_refused(numbered: Dataset, share: Any) -> None:
    with pytest.raises(DataError, match=f"share is {share!r}, expected a number between 0 and 1"):
        fedvote.hold_out(numbered, share)
    with pytest.raises(DataError, match="data is a str, expected a Dataset"):
        fedvote.hold_out("digits", 0.1)  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [-0.1, 1.0, float("inf")])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(ConfigError, match=r"data\.validation is .*, expected a share"):
        read("quickstart", [f"data.validation={share}"])


def test_no_client_of_a_run_has_an_example_that_judges_it() -> None:
    whole = dataset("digits")
    made = federation(read("quickstart", SMALL), "cpu")
    assert len(made.data.test) == round(0.2 * len(whole.train))
    owned = torch.cat(list(made.owned))
    assert len(owned.unique()) == len(made.data.train) == len(whole.train) - len(made.data.test)


def test_what_is_shown_of_a_division_is_what_is_run() -> None:
    config = read("quickstart", SMALL)
    out = io.StringIO()
    Console(file=out, width=80).print(division(config))
    rows = [line.split() for line in out.getvalue().splitlines()[1:4]]
    assert [int(row[-1]) for row in rows] == [len(own) for own in federation(config, "cpu").owned]


def test_of_data_that_stay_with_clients_none_are_held_out(numbered: Dataset) -> None:
    owned = [torch.arange(40), torch.arange(0), torch.arange(0)]
    with pytest.raises(ConfigError, match="clients bring their own data"):
        federation(read("quickstart", SMALL), "cpu", numbered, owned)
