"""Size, loading time and speed of exported networks: in ONNX Runtime on all cores, and as C on one.

Networks have random weights: no number depends on their values. `of_float` is the speed relative to the float file of
the same network, in ONNX Runtime in the same run. C takes one input at a time.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fedvote.core import Weights
from fedvote.errors import ModelError
from fedvote.export.c import Program
from fedvote.export.c.compiled import Answers, can_compile, compiled
from fedvote.export.onnx import INPUT, export_onnx, session
from fedvote.models import make_model
from fedvote.network.deployed import Deployed
from fedvote.network.network import Network
from fedvote.quantize import BINARY, TERNARY
from fedvote.studies.bench.stopwatch import seconds_of
from fedvote.studies.rows import Rows

MODELS = ("lenet5", "vgg7")
SHAPE, CLASSES = (3, 32, 32), 10
WAYS = ("float", "binary", "ternary", "binary, int8", "ternary, int8")
C_WAYS = ("binary, C", "ternary, C")
C_OPTIONS = ("-O3", "-march=native")  # no -ffast-math: it would change the arithmetic of this whole process
BATCHES = (1, 100)


def bench(model: Sequence[str] = MODELS, repeats: int = 20) -> Rows:
    """A row for each network and each way to write it."""
    return [row for name in model for row in _rows(name, repeats)]


def random_network(model: str, votes: str, inputs: Tensor) -> Deployed:
    """A network with random votes (binary or ternary) or its float start, calibrated on the inputs."""
    network = Network(make_model(model, SHAPE, CLASSES))
    start_D, kinds = network.start.voted, {"binary": BINARY, "ternary": TERNARY}
    if votes in kinds:
        values = torch.tensor(kinds[votes], dtype=torch.float32)
        start_D = values[torch.randint(len(values), start_D.shape, generator=torch.Generator().manual_seed(0))]
    weights = Weights(start_D, network.start.floats)
    statistics = network.calibrate(weights, inputs / 255)
    names = [str(label) for label in range(CLASSES)]
    return Deployed(network.module(weights, statistics), (), (), names, SHAPE, torch.uint8).eval()


def _rows(model: str, repeats: int) -> Rows:
    inputs = torch.randint(
        0, 256, (max(BATCHES), *SHAPE), dtype=torch.uint8, generator=torch.Generator().manual_seed(1)
    )
    with ExitStack() as built:  # export and compile everything first: a failure then loses no measurement
        folder = Path(built.enter_context(tempfile.TemporaryDirectory()))
        files = {way: folder / f"{way}.onnx" for way in WAYS}
        for way, file in files.items():
            export_onnx(random_network(model, way.partition(",")[0], inputs), file, inputs if "int8" in way else None)
        programs = _programs(model, inputs, folder, built)
        rows = _onnx_rows(model, files, inputs, repeats)
        return rows + [_c_row(model, way, *each, inputs[:1], rows[0], repeats) for way, each in programs.items()]


def _onnx_rows(model: str, files: Mapping[str, Path], inputs: Tensor, repeats: int) -> Rows:
    loading = _least({way: partial(session, file) for way, file in files.items()}, max(1, repeats // 4))
    sessions = {way: session(file) for way, file in files.items()}
    rows: Rows = [
        {"model": model, "way": way, "megabytes": file.stat().st_size / 1e6, "load_milliseconds": 1000 * loading[way]}
        for way, file in files.items()
    ]
    for batch in BATCHES:
        x = inputs[:batch].numpy()
        runs = {way: partial(each.run, None, {INPUT: x}) for way, each in sessions.items()}
        seconds = _least(runs, repeats if batch > 1 else 10 * repeats)  # short ones vary more
        for row in rows:
            row[f"milliseconds_{batch}"] = 1000 * seconds[row["way"]]
            row[f"of_float_{batch}"] = seconds["float"] / seconds[row["way"]]
    return rows


def _programs(model: str, inputs: Tensor, folder: Path, built: ExitStack) -> dict[str, tuple[Program, Answers]]:
    """Every way to write C, compiled; empty, with a message, if the network cannot be written or compiled."""
    try:
        if not can_compile():
            raise ModelError("there is no C compiler here")
        programs = {way: Program(random_network(model, way.partition(",")[0], inputs), "network") for way in C_WAYS}
        files = {way: program.write(folder / way / "network.c") for way, program in programs.items()}
        return {way: (programs[way], built.enter_context(compiled(file, C_OPTIONS))) for way, file in files.items()}
    except ModelError as error:
        print(f"fedvote: {model} is measured without C: {error}", file=sys.stderr)
        return {}


def _c_row(
    model: str, way: str, program: Program, run: Answers, x: Tensor, beside: dict[str, Any], repeats: int
) -> dict[str, Any]:
    seconds = _least({way: partial(run, x)}, max(1, repeats // 4))[way]
    return {
        "model": model, "way": way, "megabytes": program.constant_bytes / 1e6, "load_milliseconds": None,
        "milliseconds_1": 1000 * seconds, "of_float_1": beside["milliseconds_1"] / (1000 * seconds),
        "milliseconds_100": None, "of_float_100": None,
    }  # fmt: skip


def _least(works: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Least seconds of each work. They take turns, so that other load on the machine hits all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats + 1):
        for name, work in works.items():
            seconds[name].append(seconds_of(work))
    return {name: min(each[1:]) for name, each in seconds.items()}
