"""A residual network keeps its accuracy as an ONNX file, with 8-bit activations, and C; also on another processor."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import fedvote
from fedvote.core import Dataset
from fedvote.data import load
from fedvote.export import c, onnx
from fedvote.network.deployed import Deployed
from fedvote.tasks.goal import CLASSES
from tests.export.c.run_program import MAIN
from tests.export.networks import blocks

POINT = 0.005  # half a point
COMPILER, EMULATORS = "aarch64-linux-gnu-gcc", ("qemu-aarch64", "qemu-aarch64-static")


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load("digits")


@pytest.fixture(scope="module")
def trained(data: Dataset) -> Iterator[tuple[Deployed, float]]:
    """A network of both kinds of residual blocks, and its accuracy with calibrated statistics."""
    method = fedvote.FedVote(lr=0.1, sign_share=0.5)
    run = fedvote.simulate(
        blocks(1, 10),
        data,
        method,
        clients=3,
        rounds=12,
        steps=20,
        batch=32,
        evaluate_every=12,
        start="seed",
        device="cpu",
    )
    *_, last = run
    yield run.deployed(last), last.record["accuracy_calibrated"]


def accuracy_of(outputs: NDArray[Any], data: Dataset) -> float:
    return CLASSES.judge(torch.from_numpy(outputs), data.test.y)


def test_files_are_as_accurate_as_training_says(trained: tuple[Deployed, float], data: Dataset, tmp_path: Path) -> None:
    network, accuracy = trained
    assert accuracy > 0.6, "it has learned"
    onnx.export_onnx(network, tmp_path / "float.onnx")
    onnx.export_onnx(network, tmp_path / "int8.onnx", data.train.x[:300])
    for file in ("float.onnx", "int8.onnx"):
        assert abs(accuracy_of(onnx.outputs(tmp_path / file, data.test.x), data) - accuracy) <= POINT, file
    if shutil.which("cc"):
        c.export_c(network, tmp_path / "network.c")
        assert abs(accuracy_of(c.outputs(tmp_path / "network.c", data.test.x), data) - accuracy) <= POINT


def test_the_program_answers_the_same_on_aarch64(
    trained: tuple[Deployed, float], data: Dataset, tmp_path: Path
) -> None:
    emulator = next(filter(shutil.which, EMULATORS), None)
    if shutil.which(COMPILER) is None:
        pytest.skip(f"there is no {COMPILER}")
    if emulator is None:
        pytest.skip(f"there is no emulator: {' or '.join(EMULATORS)}")
    network, x = trained[0], data.test.x[:20]
    c.Program(network, "network").write(tmp_path / "network.c")
    (tmp_path / "main.c").write_text(MAIN.replace("TYPE", "unsigned char" if x.dtype == torch.uint8 else "float"))
    build = [COMPILER, "-std=c99", "-O2", "-static", "main.c", "network.c", "-o", "main"]
    subprocess.run(build, cwd=tmp_path, check=True)
    done = subprocess.run(
        [emulator, "./main"], cwd=tmp_path, input=x.numpy().tobytes(), capture_output=True, check=True
    )
    answers, expected = np.frombuffer(done.stdout, np.float32).reshape(len(x), -1), network(x).numpy()
    assert np.allclose(answers, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
