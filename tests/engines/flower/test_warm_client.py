"""A client's process stays for the tasks of one run, and ends with the next run, when idle, or when it died."""

from __future__ import annotations

import io
from typing import Any, ClassVar

import pytest

from fedvote.engines.flower import warm_client
from fedvote.engines.flower.flower_internals import Acquired
from fedvote.engines.flower.warm_client import Dispatcher


class Worker:
    """A worker that writes down its tokens; tokens come through a pipe, and are no arguments."""

    started: ClassVar[list[Worker]] = []

    def __init__(self, command: list[str], **options: Any):
        self.command, self.stdin, self.tokens = command, self, list[str]()
        self.code: int | None = None
        Worker.started.append(self)

    def write(self, text: str) -> None:
        self.tokens += text.split()

    def flush(self) -> None: ...

    def close(self) -> None:
        self.code = 0

    def wait(self) -> None: ...

    def poll(self) -> int | None:
        return self.code


class Queue:
    """Tasks in order; None for a look that finds nothing, and an error for a SuperNode that is not there yet."""

    def __init__(self, *tasks: Acquired | Exception | None):
        self.tasks = list(tasks)

    def acquire(self) -> Acquired | None:
        task = self.tasks.pop(0)
        if isinstance(task, Exception):
            raise task
        return task


@pytest.fixture
def dispatcher(monkeypatch: pytest.MonkeyPatch) -> Dispatcher:
    Worker.started = []
    monkeypatch.setattr("subprocess.Popen", Worker)
    return Dispatcher("127.0.0.1:1", keep=10, clock=lambda: dispatcher_time[0])


dispatcher_time = [0.0]


def pass_on(dispatcher: Dispatcher, *tasks: Acquired | Exception | None) -> list[list[str]]:
    dispatcher._queue = Queue(*tasks)  # type: ignore[assignment]
    for _ in tasks:
        dispatcher.step()
    return [worker.tokens for worker in Worker.started]


def test_one_process_takes_all_tasks_of_a_run(dispatcher: Dispatcher) -> None:
    assert pass_on(dispatcher, Acquired(1, "a"), None, Acquired(1, "b")) == [["a", "b"]]
    assert not any(token in argument for argument in Worker.started[0].command for token in ("a\n", "b\n"))


def test_two_runs_never_share_a_process(dispatcher: Dispatcher) -> None:
    assert pass_on(dispatcher, Acquired(1, "a"), Acquired(2, "b"), Acquired(1, "c")) == [["a"], ["b"], ["c"]]
    assert [worker.code for worker in Worker.started] == [0, 0, None]


def test_a_process_that_died_is_replaced(dispatcher: Dispatcher) -> None:
    pass_on(dispatcher, Acquired(1, "a"))
    Worker.started[0].code = -9
    assert pass_on(dispatcher, Acquired(1, "b")) == [["a"], ["b"]]


def test_an_idle_process_ends(dispatcher: Dispatcher) -> None:
    dispatcher_time[0] = 0.0
    pass_on(dispatcher, Acquired(1, "a"), None)
    assert Worker.started[0].code is None
    dispatcher_time[0] = 11.0
    pass_on(dispatcher, None)
    assert Worker.started[0].code == 0


def test_a_supernode_that_is_not_there_yet_is_asked_again(dispatcher: Dispatcher) -> None:
    assert pass_on(dispatcher, ConnectionRefusedError(), Acquired(1, "a")) == [["a"]]


def test_a_worker_takes_the_tasks_whose_tokens_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[str, str]] = []
    monkeypatch.setattr(warm_client, "take_task", lambda address, token: taken.append((address, token)))
    monkeypatch.setattr("sys.stdin", io.StringIO("one\ntwo\n"))
    warm_client.main(["worker", "127.0.0.1:2"])
    assert taken == [("127.0.0.1:2", "one"), ("127.0.0.1:2", "two")]
