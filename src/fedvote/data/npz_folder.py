"""Examples in a folder of one machine: test.npz and train.npz, each with the arrays x and y."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from fedvote.core import Dataset
from fedvote.data.arrays import from_arrays
from fedvote.errors import DataError

TEST, TRAIN = "test.npz", "train.npz"


def test_data(folder: Path) -> Dataset:
    """The examples in test.npz; those in train.npz, if there is one, calibrate batch norm."""
    x_test, y_test = arrays(folder / TEST)
    calibration = folder / TRAIN
    x, y = arrays(calibration) if calibration.is_file() else (x_test, y_test)
    with np.load(folder / TEST) as file:
        about: dict[str, Any] = {
            name: np.atleast_1d(file[name]).tolist() for name in ("classes", "mean", "std") if name in file
        }
        if "task" in file:
            about["task"] = str(file["task"])
    return from_arrays(x, y, x_test, y_test, name=str(folder), **about)


def arrays(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The arrays x and y in a file."""
    try:
        with path.open("rb") as raw, np.load(raw) as file:
            return file["x"], file["y"]
    except FileNotFoundError as error:
        raise DataError(f"there is no {path}: write it with numpy.savez, with the arrays x and y.") from error
    except (KeyError, ValueError, OSError, EOFError, BadZipFile) as error:
        raise DataError(f"{path} does not hold the arrays x and y ({error}): write it with numpy.savez.") from error
