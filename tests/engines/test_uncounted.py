"""Rounds in which no client's message had weight."""

from __future__ import annotations

from typing import Any

import pytest

from fedvote.engines.uncounted import lost_rounds, uncounted


@pytest.mark.parametrize(
    ("events", "lost"),
    [
        ({}, False),
        ({"refused": {0: "noise"}}, False),
        ({"refused": {"0": "noise", "1": "noise"}}, True),
        ({"left_out": {0: "forged"}}, False),
        ({"left_out": {0: "forged", 1: "opposed"}}, True),
        ({"refused": {"1": "noise"}, "left_out": {"0": "forged"}}, True),
        ({"refused": {"1": "noise"}, "left_out": {"1": "forged"}}, False),
    ],
    ids=str,
)
def test_a_round_is_lost_if_nobody_is_neither_refused_nor_left_out(events: dict[str, Any], lost: bool) -> None:
    record = {"clients": [0, 1], **events}
    assert uncounted(record) == lost and bool(lost_rounds([record])) == lost


def test_a_round_without_clients_is_not_lost() -> None:
    assert not uncounted({"clients": []})
