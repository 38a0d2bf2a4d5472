"""Constants and memory of the C program: votes stay packed, values share memory, weights are written once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fedvote.errors import ModelError
from fedvote.export.c import Program, export_c
from fedvote.export.c.buffers import first_fit
from tests.export.c.run_program import needs_compiler, run
from tests.export.networks import CASES, IMAGE, VALUES, deployed, inputs, mlp


def takes(program: Program, folder: Path) -> tuple[int, int]:
    """Bytes of program and constants, and of memory that is written to."""
    program.write(folder / "network.c")
    subprocess.run(["cc", "-Os", "-c", "network.c"], cwd=folder, check=True)
    size = subprocess.run(["size", "network.o"], cwd=folder, check=True, capture_output=True, text=True)
    text, data, bss, *_ = map(int, size.stdout.splitlines()[1].split()[:3])
    return text + data, bss


@needs_compiler
@pytest.mark.parametrize(("votes", "bits"), [("binary", 1), ("ternary", 2)])
def test_votes_stay_packed_in_memory(tmp_path: Path, votes: str, bits: int) -> None:
    make, shape, dtype = CASES["lenet5"]
    program = Program(deployed(make(), votes, shape, dtype), "network")
    floats = 4 * (512 * 4 + 2 * (32 + 64 + 512) + 1)
    assert program.votes * bits / 8 <= program.constant_bytes < program.votes * bits / 8 + floats + 600
    constant, written = takes(program, tmp_path)
    assert constant < program.constant_bytes + 6_000 and written <= program.working_bytes + 100


@needs_compiler
@pytest.mark.parametrize("votes", ["binary", "ternary", "float"])
def test_groups_take_no_more_memory_than_is_said(tmp_path: Path, votes: str) -> None:
    """A channel a group, 256 of them; 12 outputs of 45 inputs in each of two."""
    wide = nn.Conv2d(3, 256, 3), nn.ReLU(), nn.Conv2d(256, 256, 3, groups=256), nn.BatchNorm2d(256), nn.ReLU()
    few = nn.Conv2d(256, 10, 1, bias=False), nn.BatchNorm2d(10), nn.ReLU(), nn.Conv2d(10, 24, 3, groups=2)
    module = nn.Sequential(*wide, *few, nn.ReLU(), nn.Flatten(), nn.Linear(24 * 10 * 10, 4))
    network, x = deployed(module, votes, IMAGE), inputs(IMAGE, torch.uint8, 3)
    program = Program(network, "network")
    assert takes(program, tmp_path)[0] < program.constant_bytes + 6_000
    answers, expected = run(program, x), network(x).numpy()
    assert np.allclose(answers, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_values_share_memory() -> None:
    """At most a layer's input and its output are held, 8 x 16 x 16 each, and a gap where the image was."""
    make, shape, dtype = CASES["residual"]
    program = Program(deployed(make(), "binary", shape, dtype), "network")
    assert program.memory <= (8 + 8 + 3) * 16 * 16
    assert first_fit([], 5) == 0 and first_fit([(0, 4), (6, 8)], 2) == 4 and first_fit([(0, 4), (6, 8)], 3) == 8


class Again(nn.Module):
    """One layer in four places."""

    def __init__(self) -> None:
        super().__init__()
        self.same, self.last = nn.Linear(64, 64, bias=False), nn.Linear(64, 4)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(4):
            x = torch.relu(self.same(x))
        y: Tensor = self.last(x)
        return y


@needs_compiler
def test_weights_of_several_places_are_written_once() -> None:
    network, x = deployed(Again(), "binary", (64,), torch.float32), inputs((64,), torch.float32, 5)
    program = Program(network, "network")
    assert program.votes == 64 * 64 and program.constant_bytes < 64 * 64 / 8 + 4 * (64 + 64 * 4 + 4) + 200
    expected = network(x).numpy()
    assert np.allclose(run(program, x), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    network = deployed(mlp(), "float", (20,), torch.float32)
    network.get_parameter("network.0.weight").data[0, 0] = torch.nan
    with pytest.raises(ModelError, match="a weight of nan, expected a finite number"):
        export_c(network, tmp_path / "network.c")
    assert VALUES.keys() == {"binary", "ternary"}
