"""Where a dataset comes from: the contract of every dataset that has a name."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from fedvote.core import Dataset
from fedvote.data.download import Progress
from fedvote.data.files import File, Status, inspect
from fedvote.errors import DataError


def data_folder() -> Path:
    """$FEDVOTE_DATA, else fedvote/data in the user's cache folder."""
    if chosen := os.environ.get("FEDVOTE_DATA"):
        return Path(chosen).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "fedvote" / "data"


@dataclass(frozen=True)
class Source(ABC):
    """A dataset by name: the files it is read from, and how to read, check and fetch them."""

    name: str
    about: str  # one line
    files: tuple[File, ...]

    @abstractmethod
    def load(self, folder: Path) -> Dataset:
        """The dataset, from files whose integrity was checked."""

    @abstractmethod
    def get(self, folder: Path, progress: Progress | None = None) -> None:
        """Fetch what is missing or damaged from the publisher."""

    def expected(self, folder: Path) -> tuple[File, ...]:
        """The files that this folder should hold: where a publisher offers several formats, the one begun."""
        return self.files

    def check(self, folder: Path) -> list[Status]:
        """One status for each expected file."""
        return [inspect(file, folder)[0] for file in self.expected(folder)]

    def read(self, folder: Path) -> list[bytes]:
        """The checked content of every expected file, in order; DataError where one is missing or damaged."""
        statuses, contents = zip(*(inspect(file, folder) for file in self.expected(folder)), strict=True)
        if any(status.state == "missing" for status in statuses):
            raise DataError(f"{self.name} is not complete in {folder}: {self.how_to_get(folder)}.")
        for status in statuses:
            if not status.ok:
                raise DataError(f"{status}: delete it and run `{self.command(folder)}`.")
        return list(contents)

    def command(self, folder: Path) -> str:
        """What a user types to get the dataset into this folder."""
        return f"fedvote data get {self.name}" + ("" if folder == data_folder() else f" --dir {folder}")

    def how_to_get(self, folder: Path) -> str:
        return f"run `{self.command(folder)}`, or {self.by_hand(folder)}"

    def by_hand(self, folder: Path) -> str:
        """What a user without a connection does: every file that is absent, and the folder it belongs in."""
        absent = [folder / file.path for file in self.expected(folder) if not file.copies(folder)]
        names = ", ".join(path.name for path in absent)
        return f"put {names} in {absent[0].parent} yourself" if absent else f"replace the files in {folder} yourself"
