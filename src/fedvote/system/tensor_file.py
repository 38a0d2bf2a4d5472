"""Named tensors as a safetensors file, which is there whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file

from fedvote.core import State
from fedvote.errors import ConfigError
from fedvote.system.atomic_file import atomic_file


def save_tensors(path: Path, tensors: State, about: Mapping[str, str] | None = None, *, secret: bool = False) -> None:
    """Write them; `secret`: for the owner's eyes alone."""
    with atomic_file(path, secret=secret) as part:
        try:
            save_file(tensors, part, dict(about) if about else None)
        except SafetensorError as error:  # which is all that the library says of a disk that is full
            raise ConfigError(
                f"{path} cannot be written ({error}): make room for it and go on with the run; what was there is kept"
            ) from error
