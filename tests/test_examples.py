"""The examples run as they say, with nothing else changed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fedvote.cli import main

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_a_method_of_ones_own_learns_and_resumes(tmp_path: Path) -> None:
    method = f"method={EXAMPLES / 'add_a_method.py'}:TernGrad"
    for rounds in (2, 4):
        with pytest.raises(SystemExit) as stop:
            main(["run", "--set", method, "--set", f"rounds={rounds}", "--out", str(tmp_path / "run"), "--resume",
                  "--device", "cpu", "quickstart"])  # fmt: skip
        assert stop.value.code == 0
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [record["round"] for record in records] == [1, 2, 3, 4]
    assert records[-1]["accuracy"] > 0.5 and records[-1]["loss"] < records[0]["loss"]
    assert 1.6 < records[-1]["uplink_bits_per_weight"] < 1.8


@pytest.mark.slow
def test_a_trained_network_is_fine_tuned() -> None:
    script = [sys.executable, str(EXAMPLES / "fine_tune.py")]
    said = subprocess.run(script, check=True, capture_output=True, text=True).stdout
    assert "Training starts from the given weights." in said
    fedavg, fedvote, anew = (float(line.rpartition(" ")[2].rstrip("%")) for line in said.splitlines()[-3:])
    assert fedavg > 97 and fedvote > anew + 5
