"""Runs in several processes at once, each into its own run folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from fedvote.runs.config import Config
from fedvote.runs.folder import RunFolder
from fedvote.runs.simulated_run import run


@dataclass(frozen=True)
class Task:
    """A run that is not finished."""

    title: str
    config: Config
    folder: Path
    device: str


def run_all(tasks: Sequence[Task], jobs: int) -> Iterator[int]:
    """Run every task to its end, so many at a time; tasks with the same folder once. The first error is raised.

    Yields the number of finished tasks after each of them.
    """
    once = list({task.folder: task for task in tasks}.values())
    with ProcessPoolExecutor(jobs, get_context("spawn"), _one_thread) as pool:
        waiting = {pool.submit(_run, task): task for task in once}
        try:
            for done, future in enumerate(as_completed(waiting), start=1):
                print(f"{done}/{len(once)} {waiting[future].title}: {future.result():.1%}", file=sys.stderr, flush=True)
                yield done
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _run(task: Task) -> float:
    """The accuracy at the end of a run."""
    folder = RunFolder(task.folder)
    for _ in run(task.config, folder, device=task.device, resume=True):
        pass
    return float(folder.metrics()[-1]["accuracy"])


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)
