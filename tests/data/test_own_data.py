"""Labels of any kind and tables are used as they are, or refused by their names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedvote.data import from_arrays, from_pandas, from_torch
from fedvote.errors import DataError, Doubt

PAGE = Path(__file__).parents[2] / "docs" / "data.md"
X = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)


def test_strings_are_class_names_in_alphabetical_order() -> None:
    data = from_arrays(X, ["cat", "ant", "cat", "bee", "ant", "cat"], X[:2], np.array(["bee", "ant"]))
    assert data.classes == ("ant", "bee", "cat")
    assert data.train.y.tolist() == [2, 0, 2, 1, 0, 2] and data.test.y.tolist() == [1, 0]


def test_booleans_are_class_names() -> None:
    truth = np.array([True, False, True, True, False, False])
    for y in (truth, torch.tensor(truth), truth.tolist()):
        data = from_arrays(X, y, X[:2], y[:2])
        assert data.classes == ("False", "True") and data.train.y.tolist() == [1, 0, 1, 1, 0, 0]
    assert from_arrays(X, truth, X[:2], [1, 0]).classes == ("0", "1")
    assert from_arrays(X, truth, X[:2], truth[:2], classes=["healthy", "ill"]).test.y.tolist() == [1, 0]


def test_any_integers_are_class_names_in_the_order_of_numbers() -> None:
    data = from_arrays(X, [-1, 20, 3, 3, -1, 20], X[:2], torch.tensor([20, -1]))
    assert data.classes == ("-1", "3", "20") and data.test.y.tolist() == [2, 0]


def test_given_classes_decide_the_order_of_strings() -> None:
    data = from_arrays(X[:2], ["b", "a"], X[:2], ["a", "c"], classes=["c", "b", "a"])
    assert data.train.y.tolist() == [1, 2] and data.test.y.tolist() == [2, 0]


def test_numbers_that_are_probably_no_classes_raise_a_doubt() -> None:
    y = np.arange(60) * 7
    with pytest.warns(Doubt, match="60 different numbers in 60 examples, and each counts as a class"):
        from_arrays(np.random.default_rng(0).normal(size=(60, 3)), y, X[:1], y[:1])


def test_targets_far_from_a_networks_outputs_raise_a_doubt() -> None:
    with pytest.warns(Doubt, match=r"y_train has mean 150 and standard deviation 50.*\(y - mean\) / std"):
        from_arrays(X[:2], [100.0, 200.0], X[:1], [150.0], task="regression")


def test_sequences_and_tables_keep_their_shape_and_grey_images_get_a_channel() -> None:
    y = [0, 1, 0, 1, 0, 1]
    assert from_arrays(X, y, X, y).shape == (3,)
    assert from_arrays(X.reshape(6, 3, 1), y, X.reshape(6, 3, 1), y).shape == (3, 1)
    image = np.zeros((6, 4, 5), np.uint8)
    assert from_arrays(image, y, image, y).shape == (1, 4, 5)


def test_standardised_columns_have_mean_0_and_deviation_1() -> None:
    y = [0, 1, 0, 1, 0, 1]
    x, _ = from_arrays(5 + 3 * X, y, X, y, standardise=True).train.take(slice(None))
    assert x.mean(0).abs().max() < 1e-5 and (x.std(0, correction=0) - 1).abs().max() < 1e-5
    with pytest.raises(DataError, match="standardise measures mean and std, but they are given"):
        from_arrays(X, y, X, y, standardise=True, mean=[0.0], std=[1.0])


@pytest.mark.parametrize("y", [[{"a"}, {"b", "a"}, set()], [["a"], ["a", "b"], []]])
def test_sets_of_labels_become_columns(y: Any) -> None:
    data = from_arrays(X[:3], y, X[:1], [["b"]], task="multi-label")
    assert data.classes == ("a", "b") and data.train.y.tolist() == [[1, 0], [1, 1], [0, 0]]
    assert data.test.y.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("y", "y2", "task", "words"),
    [
        ([0.5, np.nan, 1], [1], "regression", "y_train is not finite in row 1"),
        (["a", "b", "c"], [1], "regression", r"expected \(n,\) or \(n, targets\) numbers"),
        ([[1, 2], [3, 4], [5, 6]], [[1]], "regression", "y_train has 2 targets, y_test has 1"),
        ([[0, 2], [1, 1], [0, 0]], [[0, 1]], "multi-label", "y_train holds other numbers than 0 and 1"),
        ([["a"], ["b"], []], [["z"]], "multi-label", "y_test has the label 'z' in row 0"),
        ([[1], [3], [5]], [[1, 2]], "regression", "y_train has 1 target, y_test has 2"),
        (["a", "a b", ""], ["a"], "multi-label", "y_train has a string for each example, expected a list of the names"),
        ([["a"], ["b"], []], ["ab"], "multi-label", "y_test has a string for each example"),
    ],
)
def test_targets_that_do_not_fit_the_task_are_refused(y: Any, y2: Any, task: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        from_arrays(X[:3], y, X[:1], y2, task=task)


@pytest.mark.parametrize("y", [[0, 1, 2], ["a", "b", "a"]])
def test_two_classes_of_one_name_are_refused(y: Any) -> None:
    with pytest.raises(DataError, match=r"^`classes` has 'a' more than once, expected names that differ: rename"):
        from_arrays(X[:3], y, X[:3], y, classes=["a", "b", "a"])


@pytest.mark.parametrize("classes", [2, "ab"])
def test_classes_that_are_no_list_of_names_are_refused(classes: Any) -> None:
    y = [0, 1, 0, 1, 0, 1]
    with pytest.raises(DataError, match=r"^`classes` is (2|'ab'), expected the names of all classes in order: give"):
        from_arrays(X, y, X, y, classes=classes)


def test_columns_with_nan_and_constant_columns_are_named() -> None:
    broken, y = X.copy(), [0, 1, 0, 1, 0, 1]
    broken[2, 1] = np.nan
    with pytest.raises(DataError, match=r"not finite as float32 in column 1 \(1 of 6 rows\)"):
        from_arrays(broken, y, X, y)
    broken[:, 1:] = 4
    with pytest.warns(Doubt, match="x_train is constant in columns 1, 2"):
        from_arrays(broken, y, X, y)


def test_dicts_of_a_torch_dataset_are_read_by_their_keys() -> None:
    items = [{"image": torch.full((2,), float(row)), "kind": "ab"[row % 2]} for row in range(4)]
    data = from_torch(items, items[:2], inputs="image", target="kind")
    assert data.classes == ("a", "b") and data.train.x[:, 0].tolist() == [0, 1, 2, 3]


class Frame:
    """As much of a table of pandas as is used."""

    def __init__(self, columns: dict[str, Any]):
        self.values, self.columns = {name: np.asarray(each) for name, each in columns.items()}, list(columns)

    def __getitem__(self, key: Any) -> Any:
        return Frame({name: self.values[name] for name in key}) if isinstance(key, list) else self.values[key]

    def to_numpy(self) -> np.ndarray:
        return np.stack(list(self.values.values()), 1)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return self.to_numpy()


TABLE: dict[str, Any] = {"age": [1.0, 2, 3], "size": [5, 7, 6], "kind": ["a", "b", "a"]}


def test_a_table_is_standardised_by_column_and_columns_are_put_in_order() -> None:
    other = {name: TABLE[name] for name in ("size", "kind", "age")}
    data = from_pandas(Frame(TABLE), Frame(other), "kind")
    assert data.classes == ("a", "b") and data.train.mean == (2.0, 6.0)
    assert torch.equal(data.train.x, data.test.x)


@pytest.mark.parametrize(
    ("change", "target", "words"),
    [
        ({"age": [1.0, np.nan, 3]}, "kind", r"not finite as float32 in column 'age' \(1 of 3 rows\)"),
        ({"age": ["x", "y", "z"]}, "kind", "x_train has columns that are not numbers: 'age'"),
        ({}, "weight", "the training table has no column 'weight'; it has age, size, kind"),
        ({"age": [1.0, None, 3]}, "kind", "x_train has no value in some rows of 'age'"),
        ({"age": ["x", None, "z"]}, "kind", "x_train has no value in some rows of 'age'"),
        ({"more": [1, 2, 3]}, "kind", r"x_test lacks \['more'\]"),
    ],
)
def test_columns_that_cannot_be_used_are_named(change: dict[str, Any], target: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        from_pandas(Frame(TABLE | change), Frame(TABLE), target)


def test_a_table_of_pandas_is_read() -> None:
    pandas = pytest.importorskip("pandas", reason="the extra `pandas` is not installed")
    frame = pandas.DataFrame(TABLE | {"kind": pandas.Categorical(TABLE["kind"])})
    data = from_pandas(frame, frame, "kind")
    assert data.classes == ("a", "b") and data.shape == (2,)
    numbers = frame.assign(kind=[0, 1, 0]).rename(columns={"kind": 7, "age": ("a", "b")})
    assert from_pandas(numbers, numbers, 7).classes == ("0", "1")
    assert from_pandas(numbers, numbers, ("a", "b"), task="regression").shape == (2,)
    for bad, target, words in (
        (frame.assign(age=pandas.Categorical([1, 2, 3])), "kind", "columns that are not numbers: 'age'"),
        (
            frame.assign(age=pandas.array([True, None, False], dtype="boolean")),
            "kind",
            "no value in some rows of 'age'",
        ),
        (pandas.concat([frame, frame[["age"]]], axis=1), "kind", "x_train has 'age' more than once: rename"),
        (pandas.concat([frame, frame[["kind"]]], axis=1), "kind", "the training table has the column 'kind' more than"),
        (frame[["kind"]], "kind", "x_train has no columns, expected at least one"),
    ):
        with pytest.raises(DataError, match=words):
            from_pandas(bad, bad, target)


def test_the_program_on_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    *_, code = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["snapshot"].round == 3 and "'worst'" in capsys.readouterr().out
