"""FEMNIST: handwritten characters by writer, from a user's own LEAF sampling (JSON).

S. Caldas et al.: LEAF, a benchmark for federated settings, 2018. https://github.com/TalwalkarLab/leaf
White paper is 1.0 and ink 0.0, as in LEAF. Samplings differ, so the structure is checked, not a digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import string
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from fedvote.core import Dataset, Examples
from fedvote.data.download import Progress
from fedvote.data.files import File, Status
from fedvote.data.source import Source
from fedvote.errors import DataError

MEAN, STD = (0.9627,), (0.1613,)  # measured on the training images of 360 writers
CLASSES = tuple(string.digits + string.ascii_uppercase + string.ascii_lowercase)
SPLITS = ("train", "test")
PIXELS = 28 * 28
CACHE = "parsed.npz"

Arrays = dict[str, np.ndarray]
Writers = dict[str, tuple[np.ndarray, np.ndarray]]  # name -> images (n, 784) uint8 and labels (n,)


@dataclass(frozen=True)
class FEMNIST(Source):
    name: str = "femnist"
    about: str = "handwritten characters by writer, 28 x 28 grey, 62 classes; LEAF JSON that you sample yourself"
    files: tuple[File, ...] = ()

    def load(self, folder: Path) -> Dataset:
        paths = {split: _json_files(folder, split) for split in SPLITS}
        if not all(paths.values()):
            raise self.incomplete(folder, self.by_hand(folder))
        arrays = parsed(paths, folder / "femnist" / CACHE)
        train, test = (
            Examples(
                torch.from_numpy(arrays[f"x_{split}"]).view(-1, 1, 28, 28),
                torch.from_numpy(arrays[f"y_{split}"]),
                MEAN,
                STD,
            )
            for split in SPLITS
        )
        return Dataset(self.name, train, test, CLASSES, torch.from_numpy(arrays["writer_train"]))

    def check(self, folder: Path) -> list[Status]:
        """The status of each JSON file. Only reading all of it can tell."""
        statuses = []
        for split in SPLITS:
            paths = _json_files(folder, split)
            statuses += [_check_file(path) for path in paths] or [
                Status(folder / "femnist" / split / "*.json", "missing")
            ]
        return statuses

    def get(self, folder: Path, progress: Progress | None = None) -> None:
        if any(not _json_files(folder, split) for split in SPLITS):
            raise DataError(f"femnist has no ready download: {self.by_hand(folder)}.")

    def inside(self, folder: Path) -> str:
        return "femnist"

    def by_hand(self, folder: Path) -> str:
        return (
            "in LEAF's data/femnist run `./preprocess.sh -s niid --sf 0.2 -k 0 -t sample` and put its data/train "
            f"and data/test, which hold *.json files, in {folder / 'femnist'}"
        )


def _json_files(folder: Path, split: str) -> list[Path]:
    return sorted((folder / "femnist" / split).glob("*.json"))


def _check_file(path: Path) -> Status:
    try:
        read_writers(path)
    except DataError as error:
        return Status(path, "damaged", str(error).removeprefix(f"{path}: "), "a file that LEAF wrote")
    return Status(path, "present")


def parsed(paths: dict[str, list[Path]], cache: Path) -> Arrays:
    """The arrays of all files, cached beside them: JSON takes a hundred times as long to read."""
    key = _fingerprint(paths)
    arrays = _read_cache(cache, key)
    if arrays is None:
        arrays = {"key": np.array(key)}
        for split in SPLITS:
            x, y, writer = _gather(paths[split])
            arrays |= {f"x_{split}": x, f"y_{split}": y, f"writer_{split}": writer}
        _write_cache(cache, arrays)
    return arrays


def _gather(paths: list[Path]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images, labels and writer numbers of all files, ordered by the writers' names."""
    writers: Writers = {}
    for path in paths:
        new = read_writers(path)
        if twice := sorted(writers.keys() & new.keys()):
            _refuse(path, f"the writer {twice[0]!r} is in an earlier file too, expected each writer in one")
        writers |= new
    ordered = [writers[name] for name in sorted(writers)]
    x, y = (np.concatenate(parts) for parts in zip(*ordered, strict=True))
    return x, y, np.repeat(np.arange(len(ordered)), [len(labels) for _, labels in ordered])


def read_writers(path: Path) -> Writers:
    """Read one LEAF file: {"users": [...], "num_samples": [...], "user_data": {user: {"x": [[784]], "y": []}}}."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        _refuse(path, f"it is not whole JSON ({error})")
    try:
        users, counts, data = content["users"], content["num_samples"], content["user_data"]
        if not users or len(users) != len(counts) or sorted(users) != sorted(data):
            _refuse(path, f"{len(users)} users, {len(counts)} counts and data of {len(data)} users do not match")
        return {user: _one_writer(path, user, n, data[user]) for user, n in zip(users, counts, strict=True)}
    except (KeyError, TypeError) as error:
        _refuse(path, f"it is not LEAF's layout of users, num_samples and user_data ({error!r})")


def _one_writer(path: Path, user: str, count: int, data: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    try:
        x = np.array(data["x"], dtype=np.float32).reshape(len(data["x"]), PIXELS)
        y = np.array(data["y"])
    except ValueError:
        _refuse(path, f"the images of {user!r} do not have {PIXELS} numbers each")
    if not len(x) == len(y) == count:
        _refuse(path, f"{user!r} has {len(x)} images and {len(y)} labels, expected {count}")
    if count and not (x.min() >= 0 and x.max() <= 1):  # refuses NaN, too
        _refuse(path, f"{user!r} has pixels from {x.min()} to {x.max()}, expected 0 to 1")
    if count and not (y.dtype.kind == "i" and y.min() >= 0 and y.max() < len(CLASSES)):
        _refuse(path, f"{user!r} has labels that are not integers from 0 to {len(CLASSES) - 1}")
    return np.rint(x * 255).astype(np.uint8), y.astype(np.int64)


def _refuse(path: Path, problem: str) -> NoReturn:
    raise DataError(f"{path}: {problem}; delete it and make it again with LEAF.")


def _fingerprint(paths: dict[str, list[Path]]) -> str:
    """A hash that changes when a file is added, removed, renamed or rewritten."""
    facts = [(split, p.name, p.stat().st_size, p.stat().st_mtime_ns) for split in SPLITS for p in paths[split]]
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _read_cache(cache: Path, key: str) -> Arrays | None:
    """The cached arrays; None if the cache is missing, stale or damaged."""
    try:
        with cache.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return dict(stored) if str(stored["key"]) == key else None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _write_cache(cache: Path, arrays: dict[str, Any]) -> None:
    partial = cache.with_name(f"{cache.stem}.{os.getpid()}.tmp.npz")
    with contextlib.suppress(OSError):  # in a read-only folder there is no cache
        try:
            np.savez(partial, **arrays)
            partial.replace(cache)
        finally:
            partial.unlink(missing_ok=True)
