"""The benchmark of peers: every peer runs in each precision, and is compared with fedvote in the same one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "peers"
spec = importlib.util.spec_from_file_location("peers_run", FOLDER / "run.py")
assert spec and spec.loader
run: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)


def rows(**seconds: float | None) -> dict[str, dict[str, Any]]:
    """The table of ways that took so many seconds a round. Names are PEER_PRECISION; None did not run."""
    measured = []
    for name, each in seconds.items():
        peer, precision = name.split("_")
        lines = [] if each is None else [{"version": "1", "seconds_per_round": each, "free_cores": 2.0}]
        measured.append((run.Way(peer, name, precision, []), lines))
    return {row["how"]: row for row in run.summary(measured, {})}


def test_a_ratio_is_to_the_fastest_fedvote_and_another_to_the_fastest_of_the_same_precision() -> None:
    table = rows(fedvote_bfloat16=1.0, fedvote_float32=4.0, pfl_float32=8.0, pfl_bfloat16=6.0)
    ratios = {how: (row["times_fedvote"], row["times_fedvote_same_precision"]) for how, row in table.items()}
    assert ratios == {
        "fedvote_bfloat16": (1, 1), "fedvote_float32": (4, 1), "pfl_float32": (8, 2), "pfl_bfloat16": (6, 6)
    }  # fmt: skip


def test_a_way_that_did_not_run_and_one_without_a_fedvote_of_its_precision_have_no_ratio() -> None:
    table = rows(fedvote_bfloat16=1.0, fedvote_float32=None, loop_float32=3.0)
    assert (table["loop_float32"]["times_fedvote"], table["loop_float32"]["times_fedvote_same_precision"]) == (3, None)
    assert table["fedvote_float32"]["seconds_per_round"] is None and table["fedvote_float32"]["times_fedvote"] is None
    assert {tuple(row) for row in table.values()} == {tuple(table["loop_float32"])}, "the same columns"


@pytest.mark.parametrize(("device", "precisions"), [("cpu", {"float32"}), ("cuda", {"float32", "bfloat16"})])
def test_every_peer_runs_in_every_precision_of_a_device(device: str, precisions: set[str]) -> None:
    ways = run.ways(device, 16)
    assert {(way.peer, way.precision) for way in ways} == {(peer, one) for peer in run.IMPORTS for one in precisions}
    assert len({(way.peer, way.how) for way in ways}) == len(ways), "each has a name of its own"


def test_a_way_asks_for_the_precision_that_its_row_names() -> None:
    """On a GPU fedvote comes in bfloat16, and the others in float32."""
    for way in run.ways("cuda", 16):
        usual = "bfloat16" if way.peer == "fedvote" else "float32"
        asked = {"--bfloat16": "bfloat16", "float32": "float32"}
        assert next((asked[word] for word in way.arguments if word in asked), usual) == way.precision


@pytest.mark.parametrize("bfloat16", [False, True])
def test_a_step_in_mixed_precision_lowers_the_loss_and_leaves_float32_weights(
    bfloat16: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.syspath_prepend(str(FOLDER))
    recipe: Any = importlib.import_module("recipe")
    try:
        model, generator = recipe.network(), torch.Generator().manual_seed(0)
        x, y = torch.randn(10, *recipe.SHAPE, generator=generator), torch.arange(10)
        optimizer = torch.optim.SGD(model.parameters(), lr=recipe.LR)
        losses = []
        for _ in range(3):
            losses.append(torch.nn.functional.cross_entropy(model(x), y).item())
            recipe.step(model, optimizer, x, y, bfloat16)
        assert losses[0] > losses[1] > losses[2]
        assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    finally:
        del sys.modules["recipe"]
