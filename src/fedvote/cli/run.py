"""`fedvote run`: train one federation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedvote.cli.completion import one_of, presets, run_folders
from fedvote.cli.options import Device, Settings, Trust

if TYPE_CHECKING:
    from fedvote.method import Method
    from fedvote.runs.folder import RunFolder


def run(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[PRESET | FILE.toml]", help="A preset or a TOML file; default: quickstart.", autocompletion=presets
        ),
    ] = None,
    set: Settings = None,
    device: Device = "auto",
    seed: Annotated[int | None, typer.Option(help="Short for --set seed=N.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder; default: runs/NAME.", autocompletion=run_folders)
    ] = None,
    track: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Also send all numbers to tensorboard, mlflow or wandb.",
            autocompletion=one_of("tensorboard", "mlflow", "wandb"),
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the run in the folder.")] = False,
    trust: Trust = False,
) -> None:
    """Train one federation; write its metrics, network and report into a run folder."""
    from fedvote.errors import ConfigError
    from fedvote.report import write_report
    from fedvote.runs.config_differences import flat
    from fedvote.runs.experiment import configure, warnings_for
    from fedvote.runs.progress import show_network, watch
    from fedvote.runs.simulated_run import run as run_experiment
    from fedvote.runs.toml_tables import as_table
    from fedvote.runs.track import track as tracked

    settings = [*(set or []), *([f"seed={seed}"] if seed is not None else [])]
    config, folder = configure(source, settings, out, resume, trust)
    for warning in warnings_for(config, folder):
        typer.echo(f"fedvote: warning: {warning}", err=True)
    done = folder.rounds_done() if resume else 0
    if resume and not done and (recorded := len(folder.metrics())):
        raise ConfigError(
            f"{folder.path} has the records of {recorded} rounds, but no {folder.checkpoint_file.name} to resume from: "
            "restore it, or start the run again in another folder with --out"
        )
    if resume and not done:
        typer.echo(f"fedvote: there is no round to resume in {folder.path}: starting with round 1", err=True)
    before = folder.metrics_before_resume() if resume else []
    try:
        snapshots = run_experiment(config, folder, device=device, resume=resume, show=show_network)
        if track:
            snapshots = tracked(snapshots, track, folder.path, flat(as_table(config)))
        for snapshot in watch(snapshots, config.rounds, before):
            done = snapshot.round
    except KeyboardInterrupt:
        typer.echo(_stopped(folder, done, config.rounds), err=True)
        raise typer.Exit(130) from None
    if _conclude(folder.path, write_report([folder.path], folder.path / "report.html"), config.method):
        raise typer.Exit(1)


def _stopped(folder: RunFolder, done: int, rounds: int) -> str:
    """Where a run was stopped, and how to go on."""
    kept = folder.rounds_done()  # not every round has a checkpoint; the last may have one and not be shown yet
    start = "" if kept >= done else f" after round {kept}, its last checkpoint,"
    advice = f"; resume{start} with: {folder.resume_command()}" if folder.config() else ""
    return f"stopped after round {max(done, kept)} of {rounds}{advice}"


def _conclude(path: Path, page: Path, method: Method) -> bool:
    """Say how the run ended, and return whether no message counted in any round."""
    from fedvote.engines.uncounted import lost_rounds, uncounted
    from fedvote.privacy.spent import spent
    from fedvote.reputation import rule_of
    from fedvote.runs.folder import NETWORK, RunFolder
    from fedvote.runs.progress import left_out_in_all
    from fedvote.tasks.shown_metric import ACCURACY, Shown

    records = RunFolder(path).metrics()
    last = records[-1]
    if lost := lost_rounds(records):
        typer.echo(f"fedvote: {lost}", err=True)
    shown = Shown.of(last)
    deployed, floating = (shown.text(last[f"{shown.name}{suffix}"]) for suffix in ("", "_float"))
    title = "" if shown.name == "accuracy" else f"{shown.name}: "
    backdoor = f", backdoor {ACCURACY.text(last['backdoor_success'])}" if "backdoor_success" in last else ""
    typer.echo(f"{title}deployed network {deployed}, float network {floating}{backdoor}")
    if rule_of(method) is not None:
        typer.echo(left_out_in_all(records))
    if privacy := spent(records):
        typer.echo(privacy)
    size = (path / NETWORK).stat().st_size
    typer.echo(f"network: {path / NETWORK} ({size / 1000:,.1f} kB), report: {page}")
    return all(map(uncounted, records))
