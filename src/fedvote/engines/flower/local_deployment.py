"""A configuration, run by a federation of programs on this machine: `fedvote deploy local`.

The same command in the same folder continues an interrupted run.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from fedvote.engines.flower.local_federation import LocalFederation
from fedvote.engines.flower.status import FEDERATION, ROSTER, RUN
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.claim import check_claim, check_rounds
from fedvote.runs.config import Config
from fedvote.runs.folder import NETWORK, RunFolder
from fedvote.runs.toml_tables import as_table, to_toml
from fedvote.system.atomic_file import write

REPORT = "report.html"


def federation_in(folder: Path, config: Config, *, tls: bool) -> LocalFederation:
    """The federation of a folder, old or new, before its start; ConfigError if it cannot run this configuration."""
    federation, run = LocalFederation(folder / FEDERATION, config.federation.clients, tls), RunFolder(folder / RUN)
    federation.check()
    check_claim(run, config, resume=True)
    check_rounds(run, run.rounds_done(), config)
    return federation


def is_finished(run: RunFolder, rounds: int) -> bool:
    """Whether nothing is left to do: all rounds are recorded, and the network and the report are written."""
    return run.rounds_done() == rounds and all((run.path / name).is_file() for name in (NETWORK, REPORT))


def deploy(federation: LocalFederation, config: Config, folder: Path) -> Generator[Snapshot, None, None]:
    """Run a configuration with programs on this machine; yields its rounds, then stops all programs."""
    experiment = folder / "experiment.toml"
    with federation:
        write(experiment, to_toml(as_table(config)))
        if not federation.tls:  # nodes have new keys at every start: the old ones must not hold the clients' numbers
            (folder / RUN / ROSTER).unlink(missing_ok=True)
        federation.submit(experiment=str(experiment.absolute()), out=str((folder / RUN).absolute()))
        yield from federation.follow(folder / RUN, config.rounds)
