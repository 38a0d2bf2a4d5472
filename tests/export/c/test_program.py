"""The C program answers as the network does, and compilers have nothing to say about it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fedvote.export.c import Program
from tests.export.c.run_program import MAIN, needs_compiler, run
from tests.export.networks import CASES, IMAGE, TRIED, VALUES, deployed, inputs


@needs_compiler
@pytest.mark.parametrize(("case", "votes"), TRIED)
def test_the_program_answers_as_the_network_does(case: str, votes: str) -> None:
    make, shape, dtype = CASES[case]
    network, x = deployed(make(), votes, shape, dtype), inputs(shape, dtype, 5)
    answers, expected = run(Program(network, "network"), torch.cat([x, x.flip(0)])), network(x).numpy()
    assert np.allclose(answers[:5], expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    assert np.array_equal(answers[:4:-1], answers[:5]), "nothing is left of one input for the next"


@needs_compiler
@pytest.mark.parametrize("votes", VALUES)
def test_a_sum_of_many_inputs_is_as_exact_as_one_of_few(votes: str) -> None:
    """The sum of 100,000 bytes is far larger than that of bytes of which half are negative."""
    shape = (3, 180, 180)
    layers = nn.Linear(3 * 180 * 180, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4)
    network, x = deployed(nn.Sequential(nn.Flatten(), *layers), votes, shape), inputs(shape, torch.uint8, 5)
    answers, expected = run(Program(network, "network"), x), network(x).numpy()
    assert np.abs(answers - expected).max() < 1e-4 * np.abs(expected).max()


@needs_compiler
@pytest.mark.parametrize(("case", "votes"), TRIED)
def test_nothing_is_read_or_written_where_it_should_not_be(case: str, votes: str, tmp_path: Path) -> None:
    """By the compiler's own watch over addresses and undefined behaviour, which ends the program."""
    make, shape, dtype = CASES[case]
    network, x = deployed(make(), votes, shape, dtype), inputs(shape, dtype, 3)
    Program(network, "network").write(tmp_path / "network.c")
    (tmp_path / "main.c").write_text(MAIN.replace("TYPE", "unsigned char" if dtype == torch.uint8 else "float"))
    watched = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-common"]
    build = ["cc", "-std=c99", "-O0", *watched, "main.c", "network.c", "-o", "main"]
    if subprocess.run(build, cwd=tmp_path, capture_output=True, check=False).returncode:
        pytest.skip("this compiler has no sanitizers")
    done = subprocess.run(["./main"], cwd=tmp_path, input=x.numpy().tobytes(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    answers, expected = np.frombuffer(done.stdout, np.float32).reshape(len(x), -1), network(x).numpy()
    assert np.allclose(answers, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@needs_compiler
@pytest.mark.parametrize("pixels", [1, 3, 500])
def test_pixels_are_taken_as_many_at_a_time_as_one_likes(pixels: int) -> None:
    network, x = deployed(CASES["residual"][0](), "ternary", IMAGE), inputs(IMAGE, torch.uint8, 3)
    answers = run(Program(network, "network"), x, f"-DFV_PIXELS={pixels}")
    assert np.allclose(answers, network(x), rtol=1e-4, atol=1e-3)


class Pooled(nn.Module):
    """What the other networks have not: strides, dilations, edges of one side, pooling over the edge, constants, batch
    norm that comes after no layer, other activations."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 6, (3, 5), stride=(2, 1), padding=(1, 0), dilation=(1, 2))
        self.pool = nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True)
        self.norm, self.mean = nn.BatchNorm2d(6), nn.AvgPool2d(2, stride=1, padding=1)
        self.inner = nn.AvgPool2d(2, stride=1, padding=1, count_include_pad=False)
        self.last = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.pool(torch.relu(self.first(2 * x))))
        x = (x - torch.arange(6.0).view(6, 1, 1)) * x / 3 + 1
        x = self.inner(self.mean(nn.functional.leaky_relu(nn.functional.relu6(x) - 2, 0.1)))
        y: Tensor = self.last(x.mean((2, 3)))
        return y


@needs_compiler
def test_windows_of_every_kind() -> None:
    network, x = deployed(Pooled(), "binary", IMAGE), inputs(IMAGE, torch.uint8, 5)
    answers, expected = run(Program(network, "network"), x), network(x).numpy()
    assert np.allclose(answers, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


class Between(nn.Module):
    """Numbers that are cut off below, above or on both sides; None: not there."""

    def __init__(self, least: float | None, most: float | None):
        super().__init__()
        self.least, self.most = least, most

    def forward(self, x: Tensor) -> Tensor:
        return x.clamp(self.least, self.most)


class Largest(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.amax(tuple(range(2, x.ndim)))


SMALL_PARTS: dict[str, Sequence[nn.Module]] = {
    "pool over the edge": (nn.MaxPool2d(2, padding=1, ceil_mode=True), nn.Flatten(), nn.Linear(8 * 5 * 5, 4)),
    "whole image": (nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(8, 4)),
    "largest pixel": (Largest(), nn.Linear(8, 4)),
    "largest of a sequence": (nn.Flatten(2), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(8, 4)),
    "not below": (Between(0.1, None), nn.Flatten(), nn.Linear(8 * 81, 4)),
    "not above": (Between(None, 0.1), nn.Flatten(), nn.Linear(8 * 81, 4)),
    "between": (Between(-torch.inf, 0.1), nn.Flatten(), nn.Linear(8 * 81, 4)),
}


@needs_compiler
@pytest.mark.parametrize("part", SMALL_PARTS)
def test_every_part_answers_as_torch_does(part: str) -> None:
    shape = (3, 9, 9)
    module = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *SMALL_PARTS[part])
    network, x = deployed(module, "binary", shape, torch.float32), inputs(shape, torch.float32, 5)
    answers, expected = run(Program(network, "network"), x), network(x).numpy()
    assert np.allclose(answers, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
