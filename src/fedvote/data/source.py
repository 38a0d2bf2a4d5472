"""The contract of a named dataset: load, check and fetch its files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from fedvote.core import Dataset
from fedvote.data.download import Progress
from fedvote.data.files import File, Status, inspect
from fedvote.errors import DataError
from fedvote.system.cache import cache_folder

FOLDER = "FEDVOTE_DATA"  # the environment variable that names the folder of all datasets


def data_folder() -> Path:
    """$FEDVOTE_DATA, or fedvote/data in the user's cache folder."""
    if chosen := os.environ.get(FOLDER):
        return Path(chosen).expanduser()
    return cache_folder("data")


@dataclass(frozen=True)
class Source(ABC):
    """A named dataset, and how to load, check and fetch its files."""

    name: str
    about: str  # one line
    files: tuple[File, ...]

    @abstractmethod
    def load(self, folder: Path) -> Dataset:
        """The dataset, read from checked files."""

    @abstractmethod
    def get(self, folder: Path, progress: Progress | None = None) -> None:
        """Download missing and damaged files from the publisher."""

    def expected(self, folder: Path) -> tuple[File, ...]:
        """The files that this folder should hold. Of several formats, the one that is there."""
        return self.files

    def check(self, folder: Path) -> list[Status]:
        """One status for each expected file."""
        return [inspect(file, folder)[0] for file in self.expected(folder)]

    def read(self, folder: Path) -> list[bytes]:
        """The checked content of every expected file, in order. A missing or damaged file is a DataError."""
        statuses, contents = zip(*(inspect(file, folder) for file in self.expected(folder)), strict=True)
        if any(status.state == "missing" for status in statuses):
            raise self.incomplete(folder, self.how_to_get(folder))
        for status in statuses:
            if not status.ok:
                raise DataError(f"{status}: delete it and run `{self.command(folder)}`.")
        return list(contents)

    def incomplete(self, folder: Path, how: str) -> DataError:
        """The error about missing files; `how` says how to get them."""
        return DataError(
            f"{self.name} is not complete in {folder}: {how}; if you have the files elsewhere, set {FOLDER} to the "
            f"folder that holds {self.inside(folder)}/."
        )

    def inside(self, folder: Path) -> str:
        """The folder of the files, in the folder of all datasets."""
        return Path(self.expected(folder)[0].path).parts[0]

    def command(self, folder: Path) -> str:
        """The command that downloads the dataset into this folder."""
        return f"fedvote data get {self.name}" + ("" if folder == data_folder() else f" --dir {folder}")

    def how_to_get(self, folder: Path) -> str:
        return f"run `{self.command(folder)}`, or {self.by_hand(folder)}"

    def by_hand(self, folder: Path) -> str:
        """Advice for a user who is offline: the missing files and their folder."""
        absent = [folder / file.path for file in self.expected(folder) if not file.copies(folder)]
        names = ", ".join(path.name for path in absent)
        return f"put {names} in {absent[0].parent} yourself" if absent else f"replace the files in {folder} yourself"
