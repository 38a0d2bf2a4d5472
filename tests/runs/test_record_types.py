"""A damaged record of metrics.jsonl is one sentence, also where the damage is inside of a list or an object."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fedvote.errors import ConfigError
from fedvote.report import write_report
from fedvote.runs.folder import RunFolder
from fedvote.runs.record_types import CHECKS

GOOD = {
    "round": 1, "accuracy": 0.5, "loss": None, "uplink_bytes": 3, "downlink_bytes": 4, "seconds": 0.1,
    "clients": [0, 1], "counted": [0], "refused": {"1": "no"}, "vote_weight": {"0": 1.0}, "second": {"0": 1},
    "measured": {"decided": 0.4},
}  # fmt: skip


def folder_with(path: Path, record: dict[str, Any]) -> RunFolder:
    lines = [json.dumps(record), json.dumps({**GOOD, "round": 2})]
    (path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    return RunFolder(path)


def test_a_good_record_is_read(tmp_path: Path) -> None:
    assert folder_with(tmp_path, GOOD).metrics()[0] == GOOD


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("clients", [[]]), ("clients", ["0"]), ("counted", [None]), ("counted", [True]), ("refused", {"x": "no"}),
        ("refused", {"1": []}), ("vote_weight", {"0": "1"}), ("second", {"0": None}), ("measured", {"a": {}}),
        ("metric", {}), ("metric", {"name": 3, "higher_is_better": True, "percent": True}), ("accuracy", True),
        ("accuracy_float_calibrated", "0.5"), ("turned_away", [3]), ("accuracy_quartiles", [[]]), ("seconds", None),
        ("total_bytes", "3"), ("late", {"1": 2}),
    ],
)  # fmt: skip
def test_a_wrong_type_at_any_depth_is_one_sentence(field: str, value: Any, tmp_path: Path) -> None:
    assert field in CHECKS
    with pytest.raises(ConfigError, match=f"Line 1 of .*its {field} is"):
        folder_with(tmp_path, {**GOOD, field: value}).metrics()


def test_a_metric_of_another_name_is_checked_as_accuracy_is(tmp_path: Path) -> None:
    metric = {"name": "r2", "higher_is_better": True, "percent": False}
    assert folder_with(tmp_path, {**GOOD, "metric": metric, "r2": 0.3}).metrics()
    with pytest.raises(ConfigError, match="its r2_float is"):
        folder_with(tmp_path, {**GOOD, "metric": metric, "r2_float": []}).metrics()


def test_a_report_of_a_damaged_run_is_one_sentence(tmp_path: Path) -> None:
    folder_with(tmp_path, {**GOOD, "vote_weight": {"0": [1]}})
    with pytest.raises(ConfigError):
        write_report([tmp_path], tmp_path / "report.html")
