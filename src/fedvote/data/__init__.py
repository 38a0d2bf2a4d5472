"""Datasets by name: `load`, `check` and `get` them. A new dataset is one file and one line in `DATASETS`."""

from __future__ import annotations

from pathlib import Path

from fedvote.core import Dataset
from fedvote.data.arrays import from_arrays, from_pandas, from_torch
from fedvote.data.cifar10 import CIFAR10
from fedvote.data.digits import Digits
from fedvote.data.download import Progress
from fedvote.data.fashion_mnist import FashionMNIST
from fedvote.data.femnist import FEMNIST
from fedvote.data.files import File, Status
from fedvote.data.hugging_face import PREFIX, from_hugging_face, load_hugging_face
from fedvote.data.source import Source, data_folder
from fedvote.errors import ConfigError, DataError, did_you_mean

__all__ = [
    "DATASETS",
    "File",
    "Progress",
    "Source",
    "Status",
    "check",
    "data_folder",
    "from_arrays",
    "from_hugging_face",
    "from_pandas",
    "from_torch",
    "get",
    "load",
]

DATASETS: dict[str, Source] = {
    "digits": Digits(),
    "fashion-mnist": FashionMNIST(),
    "cifar10": CIFAR10(),
    "femnist": FEMNIST(),
}


def load(name: str, folder: Path | str | None = None) -> Dataset:
    """Load the named dataset from checked files; `folder` is `data_folder()` by default."""
    if name.startswith(PREFIX):
        return load_hugging_face(name)
    return _source(name).load(_folder(folder))


def check(name: str, folder: Path | str | None = None) -> list[Status]:
    """The status of each file that the dataset needs; empty if it needs none."""
    return _source(name).check(_folder(folder))


def get(name: str, folder: Path | str | None = None, progress: Progress | None = None) -> None:
    """Download missing and damaged files from the publisher. Intact files stay as they are."""
    target = _folder(folder)
    try:
        _source(name).get(target, progress)
    except OSError as error:
        raise DataError(f"cannot write {name} into {target} ({error}): choose another folder with --dir.") from error


def _source(name: str) -> Source:
    if name not in DATASETS:
        file, colon, function = name.partition(":")
        meant = f"; did you mean {file}.py:{function}?" if colon else did_you_mean(name, DATASETS)
        raise ConfigError(
            f"there is no dataset {name!r}: choose one of {', '.join(DATASETS)}, or hf:NAME; your own is FILE.py:NAME "
            f"in a configuration, fedvote.from_arrays(...) in a program{meant}"
        )
    return DATASETS[name]


def _folder(folder: Path | str | None) -> Path:
    return Path(folder).expanduser() if folder is not None else data_folder()
