"""scikit-learn's bundled handwritten digits: 1,797 images of 8 x 8, for demonstrations and tests without a download.

E. Alpaydin, C. Kaynak: Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
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
    try:
        import sklearn.datasets  # type: ignore[import-untyped, unused-ignore]  # noqa: F401
    except ImportError as error:
        raise DataError("digits needs scikit-learn, which is not installed: run `pip install scikit-learn`.") from error
    return _parsed()


@cache  # the file is compressed text, and every client of a local federation reads it
def _parsed() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return bunch.images, bunch.target
