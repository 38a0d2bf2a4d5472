"""Runs in several processes at once, each into its own run folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from fedvote.runs.config import parse
from fedvote.runs.folder import RunFolder
from fedvote.runs.simulated_run import run


@dataclass(frozen=True)
class PendingRun:
    """A run that is not finished."""

    title: str
    config: str  # TOML: classes of the user's own files cannot be pickled
    folder: Path
    device: str


def run_all(pending: Sequence[PendingRun], jobs: int) -> Iterator[int]:
    """Finish every run, so many at a time; runs with the same folder once. The first error is raised.

    Yields the number of finished runs after each of them.
    """
    once = list({each.folder: each for each in pending}.values())
    with ProcessPoolExecutor(jobs, get_context("spawn"), _one_thread) as pool:
        waiting = {pool.submit(_finish, each): each for each in once}
        try:
            for done, future in enumerate(as_completed(waiting), start=1):
                print(f"{done}/{len(once)} {waiting[future].title}: {future.result():.1%}", file=sys.stderr, flush=True)
                yield done
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _finish(pending: PendingRun) -> float:
    """The accuracy at the end of a run."""
    folder = RunFolder(pending.folder)
    config = parse(pending.config, pending.title)
    for _ in run(config, folder, device=pending.device, resume=True):
        pass
    return float(folder.metrics()[-1]["accuracy"])


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)
