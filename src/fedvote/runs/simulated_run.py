"""Simulate a configuration into a run folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fedvote.core import Dataset
from fedvote.engines.simulate import Simulation
from fedvote.network.summary import Summary
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.claim import claim, release
from fedvote.runs.config import Config
from fedvote.runs.description import describe
from fedvote.runs.experiment import federation, record
from fedvote.runs.folder import RunFolder
from fedvote.runs.full_keys import full_keys, keys_of
from fedvote.runs.judged_by import check_same_data, judged_by


def run(
    config: Config,
    folder: RunFolder,
    *,
    device: str = "auto",
    resume: bool = False,
    data: Dataset | None = None,
    show: Callable[[Summary], None] = lambda _: None,
) -> Iterator[Snapshot]:
    """Run a configuration into a folder; yields each snapshot once its round is on disk.

    `data`: the configuration's dataset, if it is loaded already; `show` is called with the summary of the network.
    """
    planned = federation(config, device, data)
    check_same_data(folder, planned, judged := judged_by(config.data.name, planned.data))
    since = claim(folder, config, resume)
    try:
        with full_keys(keys_of(config)):
            summary = planned.summary()
            describe(folder, planned, judged, summary)
            show(summary)
            yield from record(planned, folder, since, Simulation(planned).run(since))
    finally:
        release(folder)
