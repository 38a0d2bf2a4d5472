"""Named tensors as a safetensors file, written atomically."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file

from fedvote.core import State
from fedvote.errors import ConfigError
from fedvote.system.atomic_file import atomic_file


def save_tensors(path: Path, tensors: State, about: Mapping[str, str] | None = None, *, secret: bool = False) -> None:
    """Write the tensors. `about`: metadata; `secret`: only the owner can read the file."""
    with atomic_file(path, secret=secret) as part:
        try:
            save_file(tensors, part, dict(about) if about else None)
        except SafetensorError as error:  # all that the library says about a full disk
            raise ConfigError(
                f"{path} cannot be written ({error}): make room on the disk and resume the run; the old file is kept"
            ) from error
