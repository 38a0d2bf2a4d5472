"""Whatever clients had to do with what is shown, it is shown as it is."""

from __future__ import annotations

import pytest

from fedvote.federation import Snapshot
from fedvote.runs import progress

RECORD = {
    "round": 1, "uplink_bytes": 10**6, "uplink_bits_per_weight": 0.5, "downlink_bits_per_weight": 2.0,
    "accuracy": 0.5, "accuracy_float": 0.25, "refused": {"3": "client 3: a frame of method '[/x]'"},
}  # fmt: skip


@pytest.mark.parametrize("way", [progress._live, progress._plain], ids=["live", "plain"])
def test_words_that_look_like_markup_are_words(
    way: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(way)
    monkeypatch.setenv("COLUMNS", "300")
    made = Snapshot(1, {}, {}, RECORD)
    assert list(way([made], 1, 0, 0, "[b] and [/nothing]")) == [made]
    shown = capsys.readouterr().err
    assert "[/x]" in shown.replace("\n", "") and "[b] and [/nothing]" in shown
