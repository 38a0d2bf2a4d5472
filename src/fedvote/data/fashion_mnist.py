"""Fashion-MNIST: 70,000 grey images of clothes, in the IDX format of MNIST, with or without gzip.

H. Xiao, K. Rasul, R. Vollgraf: Fashion-MNIST, a novel image dataset for benchmarking machine learning algorithms, 2017.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from fedvote.core import Dataset, Examples
from fedvote.data.download import Progress, Remote, fetch
from fedvote.data.files import File, inspect
from fedvote.data.source import Source
from fedvote.errors import DataError

MEAN, STD = (0.2860,), (0.3530,)
CLASSES = ("T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")

# Sizes and digests of the unpacked content: a copy that was packed again is as good as the published one.
FILES = tuple(
    File(f"fashion-mnist/{name}", nbytes, f"sha256:{digest}")
    for name, nbytes, digest in (
        ("train-images-idx3-ubyte", 47040016, "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"),
        ("train-labels-idx1-ubyte", 60008, "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"),
        ("t10k-images-idx3-ubyte", 7840016, "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"),
        ("t10k-labels-idx1-ubyte", 10008, "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"),
    )
)

SITE = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
REMOTES = (
    Remote(f"{SITE}/train-images-idx3-ubyte.gz", 26421880, "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
    Remote(f"{SITE}/train-labels-idx1-ubyte.gz", 29515, "md5:25c81989df183df01b3e8a0aad5dffbe"),
    Remote(f"{SITE}/t10k-images-idx3-ubyte.gz", 4422102, "md5:bef4ecab320f06d8554ea6380940ec79"),
    Remote(f"{SITE}/t10k-labels-idx1-ubyte.gz", 5148, "md5:bb300cfdad3c16e7a12a480ee83cd310"),
)


@dataclass(frozen=True)
class FashionMNIST(Source):
    name: str = "fashion-mnist"
    about: str = "clothes, 28 x 28 grey, 10 classes, 60,000 + 10,000 images"
    files: tuple[File, ...] = FILES
    remotes: tuple[Remote, ...] = REMOTES  # one for each of `files`, in the same order

    def load(self, folder: Path) -> Dataset:
        x_train, y_train, x_test, y_test = (
            parse_idx(content, file.path) for content, file in zip(self.read(folder), self.files, strict=True)
        )
        train = Examples(x_train.unsqueeze(1), y_train.long(), MEAN, STD)
        test = Examples(x_test.unsqueeze(1), y_test.long(), MEAN, STD)
        return Dataset(self.name, train, test, CLASSES)

    def get(self, folder: Path, progress: Progress | None = None) -> None:
        pairs = zip(self.files, self.remotes, strict=True)
        wanted = [(file, remote) for file, remote in pairs if not inspect(file, folder)[0].ok]
        total, before = sum(remote.nbytes for _, remote in wanted), 0
        for file, remote in wanted:
            report = _shifted(progress, before, total)
            fetch(remote, (folder / file.path).with_name(remote.name), self.by_hand(folder), report)
            before += remote.nbytes


def parse_idx(content: bytes, name: str) -> torch.Tensor:
    """Parse IDX: two zero bytes, the type (8: uint8), the number of axes, each axis in 4 bytes, then the values."""
    ndim = content[3] if content[:3] == b"\x00\x00\x08" else 0
    start = 4 + 4 * ndim
    shape = tuple(int(size) for size in np.frombuffer(content[4:start], ">u4"))
    if ndim == 0 or len(content) != start + math.prod(shape):
        raise DataError(f"{name} is not an IDX file of bytes: {len(content)} bytes for shape {shape}; delete it.")
    values = np.frombuffer(content, np.uint8, offset=start).reshape(shape)
    return torch.from_numpy(values.copy())


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    """Turn the progress of one file into the progress of all files."""
    return progress and (lambda done, _: progress(before + done, total))
