"""Charts of accuracies: lines can be told apart."""

from __future__ import annotations

from fedvote.report.chart import look


def test_a_dozen_lines_all_look_different() -> None:
    names = [*(f"rule {index}" for index in range(12)), "oracle"]
    assert len({look(name, names) for name in names}) == 13
    assert [name for name in names if look(name, names)[1] == "dashed"] == ["oracle"]
