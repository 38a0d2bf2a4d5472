"""One thread for each process: the tensors are tiny, and threads that wait for each other cost more than they save."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported; processes that tests start inherit it


@pytest.fixture(autouse=True)
def _same_initial_weights() -> None:
    """A test's modules have the same initial weights in whatever order tests run: federations start from them."""
    import torch

    torch.default_generator.manual_seed(0)  # torch.manual_seed writes down where it is called, for each kind of device


@pytest.fixture(scope="session")
def translated_once() -> Iterator[None]:
    """From here on, exports of equal networks share their translation to ONNX."""
    from tests.shared_translations import shared_translations

    with shared_translations():
        yield
