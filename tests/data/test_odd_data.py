"""Odd inputs, labels and datasets are used as they are meant, or are one sentence that names a fix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import IterableDataset

import fedvote
from fedvote import Doubt
from fedvote.core import Dataset
from fedvote.data import from_arrays, from_torch
from fedvote.errors import FedVoteError
from tests.toy import dataset, module

X = np.arange(12.0).reshape(6, 2)
Y = np.array([0, 1, 2, 0, 1, 2])


class Items(TorchDataset[Any]):
    def __init__(self, item: Callable[[int], Any]):
        self.item = item

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, index: int) -> Any:
        return self.item(index)


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return iter(zip(X, Y, strict=True))

    def __len__(self) -> int:
        return len(X)


def given(x: Any = X, y: Any = Y, **options: Any) -> Dataset:
    return from_arrays(x, y, x, y, **options)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: given(x=(row for row in X)), r"x_train is a generator, .* pass list\(x_train\)"),
        (lambda: given(y=map(int, Y)), r"y_train is a map, .* pass list\(y_train\)"),
        (lambda: given(x=torch.tensor(X).to_sparse()), r"x_train is a sparse Tensor, .* pass x_train.to_dense\(\)"),
        (
            lambda: given(x=X[:, 0]),
            r"x_train has shape \(6,\) .*: give one number an example as a column, x\[:, None\]",
        ),
        (lambda: given(y=Y.astype("S")), r"y_train holds \|S.* values.*: pass y_train.astype\(str\)"),
        (lambda: given(y=[[0], [1, 2], [0], [1], [2], [0]]), "y_train has rows of different lengths"),
        (lambda: given(y=np.where(Y == 1, np.nan, Y)), r"y_train has no value in 2 rows \(1, 4\)"),
        (lambda: from_arrays(X, Y % 2, X, Y), r"y_test has the label '2' in row 2, which y_train lacks .*`classes`"),
        (lambda: from_torch(Stream(), Items(lambda i: (X[i], 0))), r"train_dataset has no length .*list\(dataset\)"),
        (
            lambda: from_torch(Items(lambda i: (X[i], 1 // (i - 3))), []),
            r"fails at item 3 \(ZeroDivisionError: .*\): correct it",
        ),
        (lambda: from_torch(Items(lambda i: (X[i], 0, i)), []), r"gives tuples of 3, .* as in inputs=0, target=2"),
        (lambda: from_torch(Items(lambda i: X[i]), []), "gives a ndarray, expected pairs"),
    ],
)
def test_data_that_cannot_be_used_are_one_sentence_with_a_fix(make: Callable[[], Dataset], words: str) -> None:
    with pytest.raises(FedVoteError, match=words) as refusal:
        make()
    assert "\n" not in str(refusal.value)


def test_numbers_that_are_objects_are_numbers() -> None:
    assert torch.equal(given(x=X.astype(object)).train.x, given().train.x)


def test_large_labels_keep_their_names() -> None:
    data = given(y=np.array([2**63 + 5, 5, 9], dtype=np.uint64)[Y])
    assert data.classes == ("5", "9", str(2**63 + 5)) and data.train.y.tolist()[:3] == [2, 0, 1]


def test_a_test_class_that_training_lacks_is_taken_if_it_is_named() -> None:
    assert from_arrays(X, Y % 2, X, Y, classes=["a", "b", "c"]).test.y.tolist() == Y.tolist()


def test_one_class_alone_is_a_doubt() -> None:
    with pytest.warns(Doubt, match="all 6 training examples are of the class '0': there is nothing to learn"):
        given(y=np.zeros(6, int))


def test_places_in_a_tuple_are_honoured() -> None:
    for item, inputs, target in ((lambda i: (Y[i], X[i]), 1, 0), (lambda i: (i, X[i], Y[i]), 1, -1)):
        data = from_torch(Items(item), Items(item), inputs=inputs, target=target)
        assert data.train.y.tolist() == Y.tolist() and data.train.x.tolist() == X.tolist()


def test_labels_of_several_may_be_lists_of_numbers() -> None:
    data = given(y=[[10], [9, 2], [], [2], [9], [10]], task="multi-label")
    assert data.classes == ("2", "9", "10") and data.train.y[:3].tolist() == [[0, 0, 1], [1, 1, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    "rows",
    [np.arange(100) < 50, np.arange(40.0), "all", np.zeros((2, 2), int)],
    ids=["mask", "floats", "word", "matrix"],
)
def test_owned_examples_are_named_by_whole_numbers(rows: Any) -> None:
    with pytest.raises(FedVoteError, match=r"owned gives client 1 .*, expected whole numbers \(n,\).*np.flatnonzero"):
        fedvote.simulate(module(), dataset(), clients=2, owned=[range(50), rows])  # type: ignore[list-item]


def test_there_are_as_many_clients_as_own_examples() -> None:
    rows = [torch.arange(start, start + 10) for start in range(0, 80, 10)]
    made = fedvote.simulate(module(), dataset(), owned=rows, batch=8, cohort=8)
    assert len(made.federation.owned) == made.federation.plan.federation.clients == 8
    with pytest.raises(FedVoteError, match=r"among 8 clients, but clients is 5: expected as many; give clients=8"):
        fedvote.simulate(module(), dataset(), owned=rows, batch=8, clients=5)


def test_examples_that_several_clients_own_are_a_doubt() -> None:
    with pytest.warns(Doubt, match="owned has 10 indices more than once"):
        fedvote.simulate(module(), dataset(), clients=2, owned=[range(50), range(40, 90)], batch=8)  # type: ignore[list-item]
