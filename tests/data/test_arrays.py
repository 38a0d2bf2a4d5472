"""A user's own data: accepted as it comes where that is safe, refused in words where it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data import Dataset as TorchDataset

from fedvote.data import from_arrays, from_torch
from fedvote.errors import DataError, Doubt, FedVoteError

X = np.arange(24, dtype=np.uint8).reshape(3, 2, 4)
Y = np.array([0, 1, 1])


def test_images_without_a_channel_get_one_and_bytes_stay_bytes() -> None:
    data = from_arrays(X, Y, X[:1], Y[:1])
    assert data.train.x.shape == (3, 1, 2, 4) and data.train.x.dtype == torch.uint8
    assert data.train.y.tolist() == [0, 1, 1] and data.train.y.dtype == torch.int64
    assert data.classes == ("0", "1") and data.name == "custom" and data.shape == (1, 2, 4)


@pytest.mark.parametrize("kind", [np.float64, np.float16, np.int32, np.bool_])
def test_other_numbers_become_float32(kind: type) -> None:
    assert from_arrays(X.astype(kind), Y, X[:1].astype(kind), Y[:1]).train.x.dtype == torch.float32


def test_rows_of_features_and_images_of_channels_keep_their_shape() -> None:
    assert from_arrays(np.eye(3, 5)[:, :3], Y, np.ones((1, 3)), [0]).shape == (3,)
    assert from_arrays(np.ones((3, 2, 4, 4)), Y, np.ones((1, 2, 4, 4)), [0]).shape == (2, 4, 4)


def test_the_dataset_does_not_change_when_the_array_does() -> None:
    x, tensor = X.copy(), torch.ones(1, 2, 4, dtype=torch.uint8)
    data = from_arrays(x, Y, tensor, torch.tensor([1]))
    x[:] = 0
    tensor[:] = 7
    assert data.train.x.sum() == sum(range(24)) and data.test.x.sum() == 8


def test_a_read_only_array_is_fine() -> None:
    x = X.copy()
    x.flags.writeable = False
    assert len(from_arrays(x, Y, x, Y).train) == 3


def test_everything_named_arrives() -> None:
    data = from_arrays(X, Y, X, Y, classes=["a", "b", "c"], mean=[0.5], std=[0.25], writers=[4, 4, 9], name="mine")
    assert data.classes == ("a", "b", "c") and data.name == "mine"
    assert data.train.mean == data.test.mean == (0.5,) and data.test.std == (0.25,)
    assert data.writers is not None and data.writers.tolist() == [4, 4, 9]


GOOD: dict[str, Any] = {"x_train": X, "y_train": Y, "x_test": X, "y_test": Y}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y_train": [0, 1]}, "x_train has 3 rows, y_train has 2"),
        ({"y_test": [0, 1, 1, 1]}, "x_test has 3 rows, y_test has 4"),
        ({"writers": [0]}, "x_train has 3 rows, writers has 1"),
        ({"x_test": X[:, :1]}, "x_train has inputs of 1 x 2 x 4, x_test of 1 x 1 x 4"),
        ({"y_train": [0.0, 1.0, 1.0]}, r"y_train has shape \(3,\) and float64, expected \(n,\) integers"),
        ({"y_train": [[0, 1], [1, 0], [1, 0]]}, r"y_train has shape \(3, 2\)"),
        ({"x_train": [[1.0], [1.0, 2.0], [0.0]]}, "x_train has inputs of different shapes, expected one shape: pad"),
        ({"y_train": [-1, 0, 1], "classes": ["a", "b"]}, "a label is -1, expected 0 to 1"),
        ({"y_train": [1, 2, 2], "y_test": [1, 1, 5]}, "y_test has the label '5' in row 2, which y_train lacks"),
        ({"y_train": ["a", "b", "b"], "y_test": ["a", "z", "b"]}, "y_test has the label 'z' in row 1"),
        ({"y_train": ["a", None, "b"], "y_test": ["a", "a", "b"]}, "y_train has no value in row 1: fill"),
        (
            {"y_train": ["a", "b", "c"], "y_test": ["a", "a", "b"], "classes": ["a", "b"]},
            "'c' in row 2, which `classes`",
        ),
        ({"x_test": X.astype(np.float32)}, "x_train has inputs of 1 x 2 x 4, x_test of 2 x 4"),
        ({"x_train": X[:, None], "x_test": X[:, None] / 2}, "x_train is torch.uint8, x_test torch.float32"),
        ({"task": "clustering"}, "task is 'clustering', expected one of: classification"),
        ({"classes": ["a"]}, "a label is 1, expected 0 to 0 for 1 classes"),
        ({"y_train": [1j, 2j, 0j]}, "y_train holds complex128 values, expected numbers or strings"),
        ({"x_train": np.full((3, 2, 4), np.nan)}, "x_train holds values that are not finite"),
        ({"x_test": np.full((3, 2, 4), 1e300)}, "x_test holds values that are not finite as float32"),
        ({"x_train": np.empty((0, 2, 4)), "y_train": np.empty(0, int)}, r"x_train has shape \(0, 2, 4\)"),
        ({"x_train": [["a", "b"]] * 3}, "x_train holds text, expected numbers: encode it"),
        ({"x_train": [1, 2, 3]}, r"x_train has shape \(3,\)"),
        ({"x_train": torch.zeros(3, 2, 4, dtype=torch.complex64)}, "complex64"),
        ({"mean": [0.5]}, "give both"),
        ({"mean": [0.5] * 3, "std": [0.5] * 3}, "give both with 1 finite numbers"),
        ({"mean": [0.5], "std": [0.0]}, "std > 0"),
        ({"mean": [float("nan")], "std": [1.0]}, "finite numbers"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(change: dict[str, Any], words: str) -> None:
    with pytest.raises(FedVoteError, match=words):
        from_arrays(**(GOOD | change))


def test_torch_datasets_of_pairs_are_read_once() -> None:
    train = TensorDataset(torch.arange(12.0).view(3, 1, 2, 2), torch.tensor([0, 1, 1]))
    data = from_torch(train, [(np.zeros((1, 2, 2), np.float32), 1)], name="pairs")
    assert data.train.x.flatten().tolist() == list(range(12)) and data.train.y.tolist() == [0, 1, 1]
    assert data.test.y.tolist() == [1] and data.name == "pairs"


class Endless(TorchDataset[Any]):
    def __getitem__(self, index: int) -> Any:
        return torch.zeros(1), 0


@pytest.mark.parametrize(
    ("dataset", "words"),
    [
        (Endless(), "test_dataset has no length"),
        (DataLoader(Endless()), "test_dataset is a DataLoader, which gives batches, expected examples: pass loader.da"),
        ([], "test_dataset is empty"),
        ([(np.zeros((1, 2, 2)), 0), (np.zeros((1, 3, 2)), 0)], "inputs of several shapes"),
        ([(np.zeros((1, 2, 2)), 0, 0)], r"gives tuples of 3, expected pairs \(x, y\) or dicts"),
        ([{"image": np.zeros((1, 2, 2)), "label": 0}], "the keys 'image', 'label', and inputs is not named"),
        ([(object(), 0)], "test_dataset is an object, expected an array or a tensor of numbers"),
    ],
)
def test_torch_datasets_that_cannot_be_stacked_are_refused(dataset: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        from_torch([(np.zeros((1, 2, 2)), 0)], dataset)


def test_a_list_of_batches_is_doubted() -> None:
    examples = TensorDataset(torch.arange(24.0).view(8, 3), torch.arange(8.0))
    words = r"each item of \w+_dataset has an input of shape \(4, 3\) and 4 targets, as a batch has"
    with pytest.warns(Doubt, match=words) as caught:
        from_torch(list(DataLoader(examples, 4)), list(DataLoader(examples, 4)), task="regression")
    assert len(caught) == 2 and caught[0].filename == __file__


def test_one_mean_and_deviation_hold_for_all_columns() -> None:
    data = from_arrays(**GOOD, mean=0.5, std=2.0)
    assert data.train.mean == (0.5,) and data.train.std == (2.0,)
    with pytest.raises(DataError, match=r"mean \(0.0,\) and std \(0.0,\) do not fit"):
        from_arrays(**GOOD, mean=0.0, std=0.0)
    with pytest.raises(DataError, match="std is 'auto', expected one number, or one for each channel or column"):
        from_arrays(**GOOD, mean=0.0, std="auto")  # type: ignore[arg-type]


def test_a_column_of_labels_is_as_good_as_a_list() -> None:
    x, y = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([[4], [7], [4]])
    data = from_arrays(x, y, x, y)
    assert data.train.y.tolist() == [0, 1, 0] and data.classes == ("4", "7")


@pytest.mark.parametrize("places", [{"inputs": ["img", "id"]}, {"target": ("a", "b")}], ids=["inputs", "target"])
def test_several_keys_for_one_tensor_are_refused(places: dict[str, Any]) -> None:
    (what,) = places
    with pytest.raises(DataError, match=rf"{what} is .*, expected one key of a dict or one place in a tuple: join"):
        from_torch([{"img": X[0], "id": 1, "label": 0}], [], **{"inputs": "img", "target": "label"} | places)
