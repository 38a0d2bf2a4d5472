"""What made a result, besides its configuration: command, seeds, commit, versions, device, threads."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

PACKAGES = (
    "numpy", "constriction", "scikit-learn", "numba", "zstandard", "flwr", "onnx", "onnxruntime", "cryptography",
    "dp-accounting",
)  # fmt: skip

ENVIRONMENT = ("fedvote", "commit", "python", "torch", "device", "threads")


def provenance(device: torch.device, seeds: Iterable[int]) -> dict[str, Any]:
    """The head of every result file."""
    installed = {package.name.lower(): package.version for package in metadata.distributions()}
    return {
        "command": shlex.join(["fedvote", *sys.argv[1:]]),
        "seeds": sorted(set(seeds)),
        "environment": environment(device),
        "packages": {name: installed[name] for name in PACKAGES if name in installed},
    }


def environment(device: torch.device) -> dict[str, str]:
    from fedvote import __version__

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "fedvote": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": f"{device.type}: {name}",
        "threads": str(torch.get_num_threads()),  # it decides the order of sums, and so their last bit
    }


def commit() -> str:
    """The commit of the source, with a + if it was changed since; "unknown" outside of a clone.

    FEDVOTE_COMMIT names it on machines that have the source without its history.
    """
    if given := os.environ.get("FEDVOTE_COMMIT"):
        return given
    source = Path(__file__).parents[1]
    if not (source.parents[1] / ".git").exists():  # installed, perhaps inside of somebody else's clone
        return "unknown"
    try:
        head = _git(source, "rev-parse", "HEAD")
        return head + ("+" if _git(source, "status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
