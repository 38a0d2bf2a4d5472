"""What every named dataset promises, and what `load`, `check` and `get` say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from fedvote import data
from fedvote.data import digits as digits_module
from fedvote.data.digits import is_test
from fedvote.errors import ConfigError, DataError

FILED = ["fashion-mnist", "cifar10", "femnist"]


def test_names_in_the_registry_are_the_names_of_the_sources() -> None:
    assert list(data.DATASETS) == ["digits", "fashion-mnist", "cifar10", "femnist"]
    for name, source in data.DATASETS.items():
        assert source.name == name and source.about and "\n" not in source.about
        assert hash(source) == hash(source)


@pytest.mark.parametrize("use", [data.load, data.check, data.get])
def test_an_unknown_name_lists_the_known_ones(use: object) -> None:
    with pytest.raises(ConfigError, match="no dataset 'mnits': choose one of digits, fashion-mnist, cifar10, femnist"):
        use("mnits")  # type: ignore[operator]


@pytest.mark.parametrize("name", FILED)
def test_a_missing_dataset_is_one_sentence_that_says_where_and_what_to_do(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        data.load(name, tmp_path)
    sentence = str(caught.value)
    assert sentence.startswith(f"{name} is not complete in {tmp_path}: ") and sentence.endswith(".")
    assert "put " in sentence and "\n" not in sentence
    held = sentence.partition("set FEDVOTE_DATA to the folder that holds ")[2].removesuffix("/.")
    assert all(status.path.relative_to(tmp_path).parts[0] == held for status in data.check(name, tmp_path))
    assert {status.state for status in data.check(name, tmp_path)} == {"missing"}


def test_the_command_names_the_folder_only_where_it_is_not_the_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match=f"run `fedvote data get cifar10 --dir {tmp_path}`"):
        data.load("cifar10", tmp_path)
    monkeypatch.setenv("FEDVOTE_DATA", str(tmp_path))
    with pytest.raises(DataError, match="run `fedvote data get cifar10`"):
        data.load("cifar10")


def test_the_data_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEDVOTE_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data.data_folder() == tmp_path / ".cache/fedvote/data"
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert data.data_folder() == Path("/cache/fedvote/data")
    monkeypatch.setenv("FEDVOTE_DATA", "~/mine")
    assert data.data_folder() == tmp_path / "mine"


def test_a_folder_that_cannot_be_made_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=r"cannot write cifar10 into .*: choose another folder"):
        data.get("cifar10", tmp_path / "file")


def test_digits_are_bytes_that_span_the_range_and_every_class_is_in_both_parts() -> None:
    digits = data.load("digits")
    assert digits.shape == (1, 8, 8) and digits.classes == tuple("0123456789")
    assert (len(digits.train), len(digits.test)) == (1442, 355)
    assert digits.train.x.min() == 0 and digits.train.x.max() == 255
    assert digits.train.y.bincount().min() > 130 and digits.test.y.bincount().min() >= 34
    x, _ = digits.train.take(slice(None))
    assert abs(float(x.mean())) < 1e-3 and abs(float(x.std()) - 1) < 1e-3
    assert data.check("digits") == []
    data.get("digits")


def test_digits_test_images_are_every_fifth_of_a_class() -> None:
    assert is_test(np.array([0, 0, 1, 0, 0, 0, 1, 0])).tolist() == [False] * 5 + [True] + [False] * 2


def test_digits_are_those_that_scikit_learn_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = data.load("digits")
    monkeypatch.setattr(digits_module, "FILE", "elsewhere")
    theirs = data.load("digits")
    for a, b in ((ours.train, theirs.train), (ours.test, theirs.test)):
        assert torch.equal(a.x, b.x) and torch.equal(a.y, b.y)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(DataError, match="digits needs scikit-learn, which is not installed"):
        data.load("digits")


def test_neither_digits_nor_training_import_scikit_learn_or_rich() -> None:
    code = "import sys, fedvote.data.show; fedvote.data.load('digits'); print({'sklearn', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
