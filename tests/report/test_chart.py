"""Charts of accuracies: lines can be told apart."""

from __future__ import annotations

from fedvote.report.chart import look


def test_two_dozen_lines_all_look_different() -> None:
    names = [*(f"rule {index}" for index in range(24)), "oracle"]
    assert len({look(name, names) for name in names}) == 25
    assert [name for name in names if look(name, names)[1] == "dashed"] == ["oracle"]
