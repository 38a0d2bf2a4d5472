"""Exporting to C: into other programs, with the names of the classes, tried before it is written, or refused."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedvote.errors import ConfigError, ModelError
from fedvote.export.c import export_c, outputs
from fedvote.export.c import program as program_module
from fedvote.export.c.compiled import compiled
from fedvote.network.deployed import Deployed
from tests.export.c.run_program import needs_compiler
from tests.export.networks import IMAGE, deployed, inputs, mlp


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
    with pytest.raises(ConfigError, match="is not the header of an exported network"):
        outputs(path, x)
