"""CIFAR-10: 60,000 colour images of ten kinds of things, from the binary batches or the Python batches.

A. Krizhevsky: Learning multiple layers of features from tiny images, 2009. https://www.cs.toronto.edu/~kriz/cifar.html
"""

from __future__ import annotations

import io
import pickle
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedvote.core import Dataset, Examples
from fedvote.data.download import Progress, Remote, fetch
from fedvote.data.files import File, inspect, judge
from fedvote.data.source import Source
from fedvote.errors import DataError
from fedvote.system.atomic_file import write

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
IMAGE = (3, 32, 32)
RECORD_NBYTES = 1 + 3 * 32 * 32  # a label, then the red, green and blue planes

# Five training batches, then the test batch.
BINARY = tuple(
    File(f"cifar-10-batches-bin/{name}", 30730000, f"sha256:{digest}")
    for name, digest in (
        ("data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
        ("data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
        ("data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
        ("data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
        ("data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
        ("test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
    )
)
PYTHON = tuple(
    File(f"cifar-10-batches-py/{name}", nbytes, f"md5:{digest}")
    for name, nbytes, digest in (
        ("data_batch_1", 31035704, "c99cafc152244af753f735de768cd75f"),
        ("data_batch_2", 31035320, "d4bba439e000b95fd0a9bffe97cbabec"),
        ("data_batch_3", 31035999, "54ebc095f3ab1f0389bbae665268c751"),
        ("data_batch_4", 31035696, "634d18415352ddfa80567beed471001a"),
        ("data_batch_5", 31035623, "482c414d41f54cd18b22e5b47cb7c3cb"),
        ("test_batch", 31035526, "40351d587109b95175f43aff81a1287e"),
    )
)
ARCHIVE = Remote(
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", 170052171, "md5:c32a1d4ab5d03f1284b67883e8d87530"
)


@dataclass(frozen=True)
class CIFAR10(Source):
    name: str = "cifar10"
    about: str = "things and animals, 32 x 32 colour, 10 classes, 50,000 + 10,000 images"
    files: tuple[File, ...] = BINARY
    python_files: tuple[File, ...] = PYTHON
    archive: Remote = ARCHIVE  # holds `files`, under the same paths

    def expected(self, folder: Path) -> tuple[File, ...]:
        """The files of the format that is more complete in this folder; binary if neither is there."""
        return max(self.files, self.python_files, key=lambda files: sum((folder / f.path).is_file() for f in files))

    def load(self, folder: Path) -> Dataset:
        parse = parse_binary if self.expected(folder) is self.files else parse_python
        batches = [parse(content) for content in self.read(folder)]
        return Dataset(self.name, _join(batches[:-1]), _join(batches[-1:]), CLASSES)

    def get(self, folder: Path, progress: Progress | None = None) -> None:
        if all(status.ok for status in self.check(folder)):
            return
        archive = folder / self.archive.name
        temporary = not archive.exists()  # a user's own archive stays
        fetch(self.archive, archive, self.by_hand(folder), progress)
        unpack(archive, self.files, folder)
        if temporary:
            archive.unlink()


def unpack(archive: Path, files: tuple[File, ...], folder: Path) -> None:
    """Extract the expected files and no others. Each is checked before it is written."""
    with tarfile.open(archive) as tar:
        members = {member.name: member for member in tar if member.isfile()}  # a link could lead out of the folder
        for file in files:
            if inspect(file, folder)[0].ok:
                continue
            stream = tar.extractfile(members[file.path]) if file.path in members else None
            content = stream.read() if stream else b""
            status = judge(content, file, Path(f"{archive}:{file.path}"))
            if not status.ok:
                raise DataError(f"{status}: delete the archive and fetch it again.")
            write(folder / file.path, content)


Batch = tuple[np.ndarray, np.ndarray]


def parse_binary(content: bytes) -> Batch:
    records = np.frombuffer(content, np.uint8).reshape(-1, RECORD_NBYTES)
    return records[:, 1:], records[:, 0]


def parse_python(content: bytes) -> Batch:
    """Parse a pickled dict. The published ones hold Python 2 strings, which load as bytes."""
    batch = ArrayUnpickler(io.BytesIO(content), encoding="bytes").load()
    return batch[b"data"], np.array(batch[b"labels"])


class ArrayUnpickler(pickle.Unpickler):
    """An unpickler for numpy arrays alone. An ordinary one would call any function that the file names."""

    def find_class(self, module: str, name: str) -> Any:
        match module.replace("numpy._core", "numpy.core"), name:
            case "numpy.core.multiarray", "_reconstruct":
                return np.ndarray(0).__reduce__()[0]  # _reconstruct; its module differs by numpy version
            case "numpy", "ndarray" | "dtype":
                return getattr(np, name)
        raise DataError(f"the pickle asks for {module}.{name}, expected a numpy array: do not trust this file.")


def _join(batches: list[Batch]) -> Examples:
    x = np.concatenate([x for x, _ in batches]).reshape(-1, *IMAGE)
    y = np.concatenate([y for _, y in batches]).astype(np.int64)
    return Examples(torch.from_numpy(x), torch.from_numpy(y), MEAN, STD)
