"""Pieces of work on several cores: in their order, each on one, and the number of threads is left as it was."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import torch

from fedvote import FedVote
from fedvote.randomness import Key
from fedvote.system.threads import on_every_core
from tests.toy import Federation, assert_same, close_round


@pytest.fixture(params=[1, 3])
def cores(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    assert torch.get_num_threads() == request.param
    torch.set_num_threads(before)


def test_results_come_in_order_whoever_is_done_first(cores: int) -> None:
    def late_if_first(item: int) -> int:
        time.sleep(0.02 if item == 0 else 0.0)
        return item**2

    assert on_every_core(late_if_first, range(8)) == [item**2 for item in range(8)]


@pytest.mark.parametrize(("most", "expected"), [(None, 3), (2, 2), (1, 1)])
def test_no_more_threads_than_allowed_work_and_each_has_one_core(most: int | None, expected: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    meeting, met = threading.Barrier(expected, timeout=20), set()

    def meet(_: int) -> int:
        meeting.wait()  # for as many as should be at work
        met.add(threading.get_ident())
        return torch.get_num_threads()

    try:
        threads = on_every_core(meet, range(2 * expected * 3), most)
    finally:
        torch.set_num_threads(before)
    assert len(met) == expected
    assert set(threads) == ({3} if expected == 1 else {1})


def test_an_error_is_raised(cores: int) -> None:
    def fail(item: int) -> None:
        if item == 2:
            raise ValueError("the third")

    with pytest.raises(ValueError, match="the third"):
        on_every_core(fail, range(4))


def test_frames_that_are_read_side_by_side_are_counted_and_refused_as_one_by_one() -> None:
    federation = Federation(FedVote())
    state = federation.start()
    _, frames = federation.frames(state, 1, range(5))
    closed = []
    before = torch.get_num_threads()
    for cores in (1, 3):
        torch.set_num_threads(cores)
        try:
            noisy = frames | {1: b"noise", 3: frames[3][:-1]}
            closed.append(close_round(federation.method, federation.network, state, noisy, Key(0, 1)))
        finally:
            torch.set_num_threads(before)
    assert closed[0].counted == closed[1].counted == [0, 2, 4]
    assert closed[0].refused == closed[1].refused and sorted(closed[0].refused) == [1, 3]
    assert_same(closed[0].state, closed[1].state)


@pytest.mark.parametrize(
    ("chosen", "spins"), [({}, "2000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "None")]
)
def test_how_long_threads_spin_is_settled_before_torch_is_loaded_unless_it_was_chosen(
    chosen: dict[str, str], spins: str
) -> None:
    known = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    code = "import os, sys, fedvote; print(os.environ.get('GOMP_SPINCOUNT'), 'torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], env=known | chosen, capture_output=True, text=True, check=True)
    assert said.stdout.split() == [spins, "False"]  # every other module of the package loads this one first
