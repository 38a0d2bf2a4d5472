"""The C program answers as the network does, in little memory, and compilers have nothing to say about it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedvote.errors import ConfigError, ModelError
from fedvote.export.c import Program, export_c, outputs
from fedvote.export.c import program as program_module
from fedvote.export.c.buffers import first_fit
from fedvote.export.c.compiled import compiled
from fedvote.export.network_file import Deployed
from tests.export.networks import CASES, IMAGE, TRIED, VALUES, deployed, inputs, mlp

STRICT = ("-O1", "-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion", "-pedantic", "-Werror")


def run(program: Program, x: Tensor, *more: str) -> NDArray[Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = program.write(Path(folder) / "network.c")
        with compiled(path, (*STRICT, *more)) as answers:
            return answers(x)


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


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


MAIN = """
#include <stdio.h>
#include "network.h"
int main(void) {
    static TYPE x[NETWORK_INPUTS];
    static float y[NETWORK_OUTPUTS];
    while (fread(x, sizeof x, 1, stdin) == 1) {
        network_run(x, y);
        fwrite(y, sizeof y, 1, stdout);
    }
    return 0;
}
"""


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


@needs_compiler
def test_a_file_and_its_header_go_into_another_program(tmp_path: Path) -> None:
    network = deployed(mlp(), "binary", (20,), torch.float32)
    made = export_c(network, tmp_path / "my-net.c")
    assert made.path == tmp_path / "my-net.c" and made.agreement == 1
    (tmp_path / "main.cpp").write_text("""
        #include <cstdio>
        #include "my-net.h"
        int main() {
            float x[MY_NET_INPUTS], y[MY_NET_OUTPUTS];
            for (int i = 0; i < MY_NET_INPUTS; i++) x[i] = i / 10.0f - 1;
            my_net_run(x, y);
            for (int i = 0; i < MY_NET_OUTPUTS; i++) printf("%s %.6f\\n", my_net_classes[i], y[i]);
        }
    """)
    build = "cc -std=c99 -c my-net.c -o net.o && c++ main.cpp net.o -o main && ./main"
    said = subprocess.run(build, shell=True, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    labels, numbers = zip(*(line.split() for line in said.splitlines()), strict=True)
    x = torch.arange(20)[None] / 10 - 1
    assert labels == tuple("abcd") and [float(each) for each in numbers] == pytest.approx(
        network(x)[0].tolist(), abs=1e-3
    )


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


class Squared(nn.Module):
    """A product of two values."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x).view(-1, 4, 4)
        y: Tensor = self.last((x @ x).flatten(1))
        return y


class Folded(nn.Module):
    """Every channel an input of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(1, 8, 3), nn.Linear(3 * 8 * 6 * 6, 4)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.last(self.first(x.reshape(-1, 1, 8, 8)).reshape(x.shape[0], -1))
        return y


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


@needs_compiler
def test_classes_are_called_as_they_are(tmp_path: Path) -> None:
    """Quotes, line ends, and what C reads as another character."""
    names = ["a??!b", 'say "x"', "back\\slash\n", "caf\u00e9"]
    network = Deployed(mlp(), (), (), names, (20,), torch.float32).eval()
    export_c(network, tmp_path / "network.c")
    (tmp_path / "main.c").write_text("""
        #include <stdio.h>
        #include "network.h"
        int main(void) {
            for (int i = 0; i < NETWORK_OUTPUTS; i++) printf("%s%c", network_classes[i], 0);
            return 0;
        }
    """)
    build = "cc -std=c99 -Wall -Wextra -Werror network.c main.c -o main && ./main"
    said = subprocess.run(build, shell=True, cwd=tmp_path, check=True, capture_output=True).stdout
    assert said.decode().split("\0")[:4] == [*names[:3], "caf\\xe9"]


def test_what_there_is_no_c_for_is_named(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(4 * 14 * 14, 4))
    with pytest.raises(
        ModelError, match=r"a Tanh of inputs of shape .*, for which there is no C yet; expected conv.*onnx"
    ):
        export_c(deployed(module, "binary", IMAGE), tmp_path / "network.c")
    with pytest.raises(ModelError, match=r"a MatMul of .*, for which there is no C yet"):
        export_c(deployed(Squared(), "binary", (16,), torch.float32), tmp_path / "network.c")
    with pytest.raises(ModelError, match=r"a Reshape that changes the batch axis, for which"):
        export_c(deployed(Folded(), "binary", (3, 8, 8), torch.float32), tmp_path / "network.c")
    with pytest.raises(ConfigError, match="int8 is for ONNX files"):
        export_c(deployed(mlp(), "binary", (20,), torch.float32), tmp_path / "network.c", inputs((20,), torch.float32))
    with pytest.raises(ConfigError, match=r"takes torch\.float64, expected one of torch\.uint8, torch\.float32"):
        export_c(Deployed(mlp(), (), (), "abcd", (20,), torch.float64), tmp_path / "network.c")
    assert not list(tmp_path.iterdir())


@needs_compiler
def test_a_program_that_answers_otherwise_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = deployed(mlp(), "binary", (20,), torch.float32)

    @contextmanager
    def wrong(path: Path) -> Iterator[Callable[[Tensor], NDArray[Any]]]:
        with compiled(path) as answers:
            yield lambda x: 1 - answers(x)

    with monkeypatch.context() as patch, pytest.raises(ModelError, match="answers differently from the network"):
        patch.setattr(program_module, "compiled", wrong)
        export_c(network, tmp_path / "network.c")
    assert not list(tmp_path.iterdir())


def test_without_a_compiler_it_is_written_untried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    made = export_c(deployed(mlp(), "binary", (20,), torch.float32), tmp_path / "network.c")
    assert made.agreement is None and made.path.exists()
    with pytest.raises(ConfigError, match="needs a C compiler"):
        outputs(made.path, torch.zeros(1, 20))


@needs_compiler
def test_accuracy_is_that_of_the_network(tmp_path: Path) -> None:
    network, x = deployed(mlp(), "binary", (20,), torch.float32), inputs((20,), torch.float32, 50)
    y = network(x).argmax(1)
    y[:10] = (y[:10] + 1) % 4
    path = export_c(network, tmp_path / "network.c").path
    assert (outputs(path, x).argmax(1) == y.numpy()).mean() == 0.8
    path.with_suffix(".h").write_text("")
    with pytest.raises(ConfigError, match="is no header of an exported network"):
        outputs(path, x)


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    network = deployed(mlp(), "float", (20,), torch.float32)
    network.get_parameter("network.0.weight").data[0, 0] = torch.nan
    with pytest.raises(ModelError, match="a weight of nan, expected a finite number"):
        export_c(network, tmp_path / "network.c")
    assert VALUES.keys() == {"binary", "ternary"}
