"""scikit-learn's bundled handwritten digits: 1,797 images of 8 x 8, for demonstrations and tests without a download.

E. Alpaydin, C. Kaynak: Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from fedvote.core import Dataset, Examples
from fedvote.data.download import Progress
from fedvote.data.files import File
from fedvote.data.source import Source
from fedvote.errors import DataError

MEAN = (0.3052,)  # measured on the training set
STD = (0.3760,)
FILE = "datasets/data/digits.csv.gz"


@dataclass(frozen=True)
class Digits(Source):
    name: str = "digits"
    about: str = "handwritten digits, 8 x 8 grey, 10 classes, 1,797 images; comes with scikit-learn"
    files: tuple[File, ...] = ()

    def load(self, folder: Path) -> Dataset:
        images, labels = _bundled()
        x = torch.from_numpy(np.rint(images * (255 / 16)).astype(np.uint8)).unsqueeze(1)
        y = torch.from_numpy(labels.astype(np.int64))
        test = torch.from_numpy(is_test(labels))
        classes = tuple("0123456789")
        return Dataset(
            self.name, Examples(x[~test], y[~test], MEAN, STD), Examples(x[test], y[test], MEAN, STD), classes
        )

    def get(self, folder: Path, progress: Progress | None = None) -> None:
        """Nothing to fetch: the images come with scikit-learn."""
        _bundled()


def is_test(labels: np.ndarray) -> np.ndarray:
    """A mask of the test images: every fifth of each class. It depends on no seed and no library."""
    chosen = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        chosen[np.flatnonzero(labels == label)[4::5]] = True
    return chosen


def _bundled() -> tuple[np.ndarray, np.ndarray]:
    """Images of 0 to 16, and labels. The file of scikit-learn is read without it: importing it takes a second."""
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise DataError("digits needs scikit-learn, which is not installed: run `pip install scikit-learn`.")
    file = Path(package.origin).parent / FILE
    return _parsed(file) if file.is_file() else load_digits()


@cache  # compressed text; every client of a local federation reads it
def _parsed(file: Path) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.loadtxt(file, delimiter=",")
    return numbers[:, :-1].reshape(-1, 8, 8), numbers[:, -1]


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """The same by scikit-learn's own function, for a version that keeps its file elsewhere."""
    from sklearn import datasets  # type: ignore[import-untyped, unused-ignore]

    bunch = datasets.load_digits()
    return bunch.images, bunch.target
