"""The job of every runner: pfl-research's CIFAR-10 recipe, without dropout so that all do the same arithmetic.

It needs only numpy and torch, so any peer's environment can import it. CIFAR-10 is read from $FEDVOTE_DATA if it is
there; otherwise the images are random, of the same shape: speed does not depend on them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

CLIENTS, EACH, COHORT = 1000, 50, 50
BATCH, STEPS, LR = 10, 5, 0.1  # one local epoch
CLASSES, SHAPE = 10, (3, 32, 32)
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
HALF = {"action": "store_true", "help": "mixed precision"}  # the option --bfloat16
FILES = [f"data_batch_{number}.bin" for number in range(1, 6)]


def network() -> nn.Module:
    """Two 3x3 convolutions of 32 and 64 filters, a max pool, 128 units, 10 classes."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 32, 3),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 14 * 14, 128),
        nn.ReLU(),
        nn.Linear(128, CLASSES),
    )


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, bfloat16: bool) -> None:
    """One step of SGD, in float32 or in mixed precision, for runners whose framework leaves it to the user."""
    optimizer.zero_grad()
    with torch.autocast(x.device.type, torch.bfloat16, enabled=bfloat16):
        loss = cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()


@lru_cache(maxsize=1)
def kept_network(device: str) -> nn.Module:
    """One network a process: a worker that serves many clients builds it once."""
    return network().to(device)


def images() -> tuple[Tensor, Tensor, str]:
    """50,000 images as bytes, their labels, and the name of their source. CIFAR-10's files are shuffled already."""
    folder = Path(os.environ.get("FEDVOTE_DATA", "")) / "cifar-10-batches-bin"
    if all((folder / file).is_file() for file in FILES):
        rows = np.concatenate([np.fromfile(folder / file, np.uint8).reshape(-1, 3073) for file in FILES])
        x, y = torch.from_numpy(rows[:, 1:].reshape(-1, *SHAPE)), torch.from_numpy(rows[:, 0].astype(np.int64))
        return x, y, "cifar10"
    source = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (CLIENTS * EACH, *SHAPE), dtype=torch.uint8, generator=source)
    return x, torch.arange(len(x)) % CLASSES, "random"


@lru_cache(maxsize=1)
def clients(device: str) -> list[tuple[Tensor, Tensor]]:
    """Each client's images and labels, normalised and on the device: preparing data is not timed."""
    x, y, _ = images()
    x = x.to(device)
    mean, std = (torch.tensor(values, device=device).view(3, 1, 1) for values in (MEAN, STD))
    parts = [(part / 255 - mean) / std for part in x.split(EACH)]
    return list(zip(parts, y.to(device).split(EACH), strict=True))


def cohort(round: int) -> list[int]:
    """The clients of a round, for runners whose framework does not draw them."""
    return random.Random(round).sample(range(CLIENTS), COHORT)


def arguments(**extra: dict[str, Any]) -> argparse.Namespace:
    """Parse the options of every runner, and the extra ones of this runner."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--rounds", type=int, default=5, help="rounds that are timed")
    parser.add_argument("--warm-up", type=int, default=2, help="rounds before the timed ones")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="torch's threads in each process")
    for name, settings in extra.items():
        parser.add_argument(f"--{name}", **settings)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    return options


def report(peer: str, version: str, options: argparse.Namespace, seconds: Sequence[float], **how: Any) -> None:
    """Print one line of JSON: the seconds of the timed rounds, and their median."""
    timed = list(seconds)[options.warm_up :]
    if len(timed) != options.rounds:
        raise SystemExit(f"{peer}: {len(seconds)} rounds were run, expected {options.warm_up} + {options.rounds}")
    cuda = options.device == "cuda"
    line = {
        "peer": peer,
        "version": version,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name() if cuda else _processor(),
        "images": images()[2],
        "rounds": options.rounds,
        "warm_up": options.warm_up,
        "threads": options.threads,
        "seconds_per_round": statistics.median(timed),
        "seconds": [round(value, 5) for value in timed],
        **how,
    }
    print(json.dumps(line), flush=True)


def finish(device: str) -> None:
    """Wait for the device to finish, before the clock is read."""
    if device == "cuda":
        torch.cuda.synchronize()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
