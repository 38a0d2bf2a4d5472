"""A slow link lets bytes through at its rate, one after the other; a run is timed until it has the accuracy."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from fedvote.errors import ConfigError
from fedvote.runs.config import read
from fedvote.runs.toml_tables import in_order
from fedvote.studies.bench.counting_proxy import CountingProxy
from fedvote.studies.bench.slow_link import CONTENDERS, SETTINGS, bench, summary


class Idle:
    """A thread that never starts."""

    def __init__(self, **_: Any) -> None: ...

    def start(self) -> None: ...


def test_bytes_wait_for_those_before_them_in_their_direction_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def send() -> None:
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 50.0)
        for way, nbytes in (("up", 500), ("up", 250), ("down", 1000)):
            await proxy._wait(way, nbytes)
        await CountingProxy(9)._wait("up", 10**9)

    monkeypatch.setattr(threading, "Thread", Idle)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    proxy = CountingProxy(9, {"up": 1000.0, "down": 4000.0})
    loop = asyncio.new_event_loop()
    loop.run_until_complete(send())
    loop.close()
    assert waits == pytest.approx([0.5, 0.75, 0.25])


def rounds(*accuracies: float) -> list[dict[str, Any]]:
    sent = {"uplink_tcp_bytes": 10.0, "downlink_tcp_bytes": 30.0}
    return [{"round": n, "accuracy": a, "seconds": 2.0 * n, **sent} for n, a in enumerate(accuracies, start=1)]


def test_seconds_are_those_of_all_rounds_up_to_the_accuracy() -> None:
    assert summary(rounds(0.3, 0.7, 0.85)) == {
        "rounds": 3, "accuracy": 0.85, "seconds to 84%": 12.0, "seconds a round": 5.0, "uplink_tcp_bytes": 10.0,
        "downlink_tcp_bytes": 30.0,
    }  # fmt: skip
    assert summary(rounds(0.3, 0.83))["seconds to 84%"] is None


def test_every_contender_can_be_configured_and_others_are_refused() -> None:
    for settings in CONTENDERS.values():
        read("fashion-mnist", in_order([*SETTINGS, *settings]))
    with pytest.raises(ConfigError, match="there is no row 'FedMail'"):
        bench(only=["FedMail"])
