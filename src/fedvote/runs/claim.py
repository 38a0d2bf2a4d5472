"""Claim a run folder: check that it is free or holds this run, lock it, and load its checkpoint."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from fedvote.errors import ConfigError
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.checkpoint import load_snapshot
from fedvote.runs.config import Config, depends_on_rounds
from fedvote.runs.config_differences import differences
from fedvote.runs.folder import EVALUATION, NETWORK, RunFolder
from fedvote.runs.folder_lock import LOCK, lock, unlock
from fedvote.runs.metrics_file import write_records
from fedvote.runs.toml_tables import as_table, to_toml
from fedvote.system.atomic_file import ENDING, write


def claim(folder: RunFolder, config: Config, resume: bool) -> Snapshot | None:
    """Lock the folder for this run; returns its checkpoint, if any. Nothing is overwritten except by `resume`."""
    check_claim(folder, config, resume)
    _make_and_lock(folder.path)
    try:
        check_claim(folder, config, resume)  # again: another run may have ended since
        return _take(folder, config)
    except BaseException:
        release(folder)
        raise


def release(folder: RunFolder) -> None:
    """Let others claim the folder."""
    unlock(folder.path)


def check_claim(folder: RunFolder, config: Config, resume: bool) -> None:
    """Refuse a folder with other files than a run's, with another run, or with this run unless it is resumed."""
    saved = folder.config()
    if saved is None and folder.path.is_dir() and any(map(_is_foreign, folder.path.iterdir())):
        raise ConfigError(f"{folder.path} is not empty and holds no run: choose another folder with --out")
    if saved is not None and folder.begun() and not resume:
        raise ConfigError(
            f"{folder.path} already holds a run ({len(folder.metrics())} of {saved.rounds} rounds): "
            "resume it with --resume, or choose another folder with --out"
        )
    check_same_run(folder, config)


def check_same_run(folder: RunFolder, config: Config) -> None:
    """Refuse a configuration other than the one of the run in the folder, if there is a run."""
    saved = folder.config() if folder.begun() else None
    if saved is None:
        return
    # the same run may have more rounds, unless a schedule ends with the last, and other timeouts
    rounds = saved.rounds if depends_on_rounds(config) else config.rounds
    saved = dataclasses.replace(saved, rounds=rounds, flower=config.flower)
    if saved == config:
        return
    if saved == dataclasses.replace(config, rounds=saved.rounds):
        raise ConfigError(
            f"{folder.path} holds a run of {saved.rounds} rounds whose schedule ends with the last of them, so "
            f"it cannot go on to {config.rounds}: start a run of {config.rounds} in another folder with --out"
        )
    raise ConfigError(
        f"{folder.path} holds another run: it differs in {', '.join(differences(saved, config))}; "
        f"{folder.how_to_resume()}, or choose another folder with --out"
    )


def check_rounds(folder: RunFolder, done: int, config: Config) -> None:
    """Refuse fewer rounds than the run in the folder has."""
    if done > config.rounds:
        raise ConfigError(f"{folder.path} has {done} rounds already, asked for {config.rounds}: ask for {done} or more")


def _take(folder: RunFolder, config: Config) -> Snapshot | None:
    snapshot = load_snapshot(folder.checkpoint_file) if folder.checkpoint_file.is_file() else None
    done = snapshot.round if snapshot else 0
    check_rounds(folder, done, config)
    # the last line may have been cut off; the checkpoint holds it, too
    kept = [record for record in folder.metrics() if record["round"] < done] + ([snapshot.record] if snapshot else [])
    if [record["round"] for record in kept] != list(range(1, done + 1)):
        raise ConfigError(
            f"{folder.metrics_file} lacks some of the {done} rounds before {folder.checkpoint_file.name}: "
            "restore it, or start the run again in another folder"
        )
    try:
        write(folder.config_file, to_toml(as_table(config)))
    except OSError as error:
        raise _unwritable(folder.path, error) from error
    if done < config.rounds:
        for name in (NETWORK, EVALUATION):  # they are of an earlier round
            (folder.path / name).unlink(missing_ok=True)
    write_records(folder.metrics_file, kept)
    return snapshot


def _make_and_lock(path: Path) -> None:
    """Make the folder, and keep other runs out of it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error
    lock(path)


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"{path} cannot be written ({error}): choose another folder with --out")


def _is_foreign(file: Path) -> bool:
    """Whether a file is not ours. A run killed at its start leaves only temporary files and its lock."""
    return file.suffix != ENDING and file.name != LOCK
