"""The command line: typed functions that call the library, and one place where errors become exit code 2."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import click
import typer
import typer.core

from fedvote.cli.data import data_app
from fedvote.cli.deploy import deploy_app
from fedvote.cli.options import Settings
from fedvote.errors import FedVoteError

typer.core.HAS_RICH = False  # our help is plain text: with rich installed, its brackets would be escaped

app = typer.Typer(
    help="Federated learning in which clients send votes instead of weights.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(data_app, name="data")
app.add_typer(deploy_app, name="deploy")

Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]


def _say_version(asked: bool) -> None:
    if asked:
        from fedvote import __version__

        typer.echo(f"fedvote {__version__}")
        raise typer.Exit


@app.callback()
def fedvote(
    version: Annotated[
        bool, typer.Option("--version", help="Say which version this is.", callback=_say_version, is_eager=True)
    ] = False,
) -> None:
    """Federated learning in which clients send votes instead of weights."""


@app.command()
def run(
    source: Annotated[str | None, typer.Argument(metavar="[PRESET | FILE.toml]", help="What to run.")] = None,
    set: Settings = None,
    device: Device = "auto",
    seed: Annotated[int | None, typer.Option(help="The same as --set seed=N.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder; else runs/NAME.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
) -> None:
    """Train a federation (the preset quickstart, unless told otherwise) and write a run folder with a report."""
    from fedvote.report import write_report
    from fedvote.runs.experiment import configure, warnings_for
    from fedvote.runs.experiment import run as run_experiment
    from fedvote.runs.folder import NETWORK, RunFolder, uncounted
    from fedvote.runs.progress import watch

    settings = [*(set or []), *([f"seed={seed}"] if seed is not None else [])]
    config, folder = configure(source, settings, out, resume)
    for warning in warnings_for(config, folder):
        typer.echo(f"fedvote: {warning}", err=True)
    done = folder.rounds_done() if resume else 0
    sent = sum(record.get("uplink_bytes", 0) for record in folder.metrics()[:done])
    try:
        snapshots = run_experiment(config, folder, device=device, resume=resume)
        for snapshot in watch(snapshots, config.rounds, done, sent):
            done = snapshot.round
    except KeyboardInterrupt:
        go_on = f"; go on with: fedvote run --resume --out {folder.path}" if folder.config() else ""
        typer.echo(f"stopped after round {done} of {config.rounds}{go_on}", err=True)
        raise typer.Exit(130) from None
    page = write_report([folder.path], folder.path / "report.html")
    records = RunFolder(folder.path).metrics()
    last, lost = records[-1], [record for record in records if uncounted(record)]
    if lost:
        why = next(iter(lost[-1]["refused"].values()))
        typer.echo(f"fedvote: in {len(lost)} of {len(records)} rounds nobody was counted; in the last, {why}", err=True)
    network = folder.path / NETWORK
    typer.echo(f"deployed model {last['accuracy']:.1%}, float model {last['accuracy_float']:.1%}")
    typer.echo(f"network: {network} ({network.stat().st_size / 1000:,.1f} kB), report: {page}")
    if len(lost) == len(records):
        raise typer.Exit(1)


@app.command()
def sweep(
    source: Annotated[str, typer.Argument(metavar="PRESET | FILE.toml", help="What to run.")],
    over: Annotated[list[str], typer.Option(metavar="A.B=V1,V2,...", help="Values to try, or paper-grid; repeatable.")],
    set: Settings = None,
    device: Device = "auto",
    out: Annotated[Path | None, typer.Option(help="Where the run folders go; else runs/sweep-NAME.")] = None,
) -> None:
    """Run one configuration over many values, find the best; started again, it goes on where it was."""
    from fedvote.report import write_report
    from fedvote.runs.sweep import best, means, save
    from fedvote.runs.sweep import sweep as run_sweep

    folder = out or Path("runs") / f"sweep-{Path(source).stem}"
    done = []
    try:
        for point in run_sweep(source, over, set or [], folder, device):
            done.append(point)
            typer.echo(str(point))
    except KeyboardInterrupt:
        typer.echo(f"stopped after {len(done)} runs; the same command goes on where it was", err=True)
        raise typer.Exit(130) from None
    save(done, folder / "sweep.json")
    if len(averages := means(done)) < len(done):
        for mean in averages:
            typer.echo(str(mean))
    page = write_report([point.folder for point in done], folder / "report.html")
    typer.echo(f"best: {' '.join(best(done).settings)}; table: {folder / 'sweep.json'}, report: {page}")
    if not all(point.validated for point in done):
        typer.echo("that was chosen by the test examples; --set data.validation=0.1 chooses by held-out training ones")


@app.command()
def reproduce(
    experiment: Annotated[
        str | None, typer.Argument(metavar="[EXPERIMENT | all]", help="None given: say which there are.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="How often each run is repeated, with seeds 0, 1, ...")] = 3,
    rounds: Annotated[int | None, typer.Option(help="Of every run; else as many as the experiment has.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="ROW", help="Only this line, row or column; repeatable.")
    ] = None,
    set: Settings = None,
    device: Device = "auto",
    out: Annotated[Path, typer.Option(help="Where run folders and pages go.")] = Path("runs/paper"),
) -> None:
    """Run the paper's figures and tables, or another experiment; started again, it goes on where it was."""
    from fedvote.studies.experiments import EXPERIMENTS, Asked
    from fedvote.studies.experiments.reproduce import report_on

    if experiment is None:
        list_names("experiments")
        return
    asked = Asked(seeds, rounds, tuple(set or ()), tuple(only or ()), device)
    try:
        for name in EXPERIMENTS if experiment == "all" else [experiment]:
            typer.echo(report_on(name, asked, out))
    except KeyboardInterrupt:
        typer.echo("stopped; the same command goes on where it was", err=True)
        raise typer.Exit(130) from None


@app.command(name="list")
def list_names(
    kind: Annotated[
        str | None, typer.Argument(help="methods, reputations, datasets, models, partitions, presets, ...")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """What can be named in a configuration."""
    from fedvote.runs.catalogue import catalogue

    known = catalogue(kind)
    if as_json:
        typer.echo(json.dumps(known, indent=2))
        return
    for title, entries in known.items():
        typer.echo(f"{title}:")
        for name, about in entries.items():
            typer.echo(f"  {name:18}  {about}")


@app.command()
def keys(
    start: Annotated[str, typer.Argument(help="Only those that begin so: method, federation.cohort, ...")] = "",
) -> None:
    """Every key of a configuration, with its default and meaning."""
    from fedvote.runs.keys import settings

    of = None
    for setting in settings(start):
        if setting.of != of and setting.of:
            typer.echo(f"\n{setting.of}")
        of = setting.of
        typer.echo(f"  {setting.key} = {setting.default}  # {setting.meaning}")


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Run folders, or those of sweeps.")],
    out: Annotated[
        Path | None, typer.Option(help="The page; else report.html in the folder, or compare.html here for several.")
    ] = None,
) -> None:
    """One page about one run, or about several side by side."""
    from fedvote.report import write_report

    typer.echo(write_report(folders, out or (Path("compare.html") if folders[1:] else folders[0] / "report.html")))


@app.command()
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or its network.safetensors.")],
    to: Annotated[str, typer.Option(help="The format: onnx, or c for small devices.")] = "onnx",
    out: Annotated[
        Path | None, typer.Option(help="The file, or a folder for it; else network.FORMAT beside the run's own.")
    ] = None,
    int8: Annotated[bool, typer.Option("--int8", help="Activations of 8 bits: faster. Needs the run's data.")] = False,
    test: Annotated[bool, typer.Option("--test", help="Also judge the file on the run's test data.")] = False,
) -> None:
    """Write the deployed network of a run for other programs, its votes packed into bits or trits."""
    from fedvote.export.export_run import export_run

    made, accuracy = export_run(run, to, out, int8, test)
    packed = f"{made.votes:,} votes packed" if made.votes else "no votes to pack: its weights are floats"
    tried = (
        "its answers could not be tried here" if made.agreement is None else f"answers checked: {made.agreement:.1%}"
    )
    typer.echo(f"{made.path}: {made.nbytes / 1000:,.1f} kB, {packed}; {tried}")
    if accuracy is not None:
        typer.echo(f"accuracy on the test data: {accuracy:.2%}")


@app.command()
def cost(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A network by its name, or your own as FILE.py:NAME.")],
    shape: Annotated[str, typer.Option(help="Of one input.")] = "3x32x32",
    classes: Annotated[int, typer.Option(min=1, help="How many outputs.")] = 10,
    inputs: Annotated[int, typer.Option(min=1, help="Of how many inputs; the paper counts 100.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """Count additions and multiplications with float, binary and ternary weights: the paper's cost model."""
    from fedvote.models import make_model
    from fedvote.network.cost import costs, parse_shape
    from fedvote.studies.rows import table

    sides = parse_shape(shape)
    rows = [cost.row(inputs) for cost in costs(make_model(model, sides, classes), sides, classes)]
    typer.echo(json.dumps(rows, indent=2) if as_json else table(rows))


@app.command()
def bench(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="None given: say which there are.")] = None,
    file: Annotated[Path | None, typer.Option("--json", help="Also write the numbers here.")] = None,
    page: Annotated[Path | None, typer.Option(help="Also draw them, as a web page.")] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="ROW", help="Only this row; repeatable.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="Only this network; repeatable.")] = None,
    clients: Annotated[list[int] | None, typer.Option(help="Only so many clients; repeatable.")] = None,
    preset: Annotated[str | None, typer.Option(help="What to run, where the benchmark runs one.")] = None,
    set: Settings = None,
    rounds: Annotated[int | None, typer.Option(help="Of every run; else as many as the benchmark has.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
) -> None:
    """Measure speed and bytes on this machine. A benchmark refuses options that it has no use for."""
    from fedvote.studies.bench import bench

    if name is None:
        list_names("benchmarks")
        return
    asked = {"model": model, "clients": clients, "only": only, "preset": preset, "set": set, "rounds": rounds}
    typer.echo(bench(name, file, page, **asked, device=device))


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a mistake of the user's is one sentence and exit code 2."""
    code: Any = 0
    try:
        code = app(arguments, standalone_mode=False)
    except FedVoteError as error:
        code = _complain(str(error))
    except OSError as error:  # a place that cannot be read or written
        code = _complain(f"{error.filename or 'a file'}: {error.strerror or error}")
    except typer.Exit as stop:
        code = stop.exit_code
    except typer.Abort:
        code = 130
    except click.exceptions.NoArgsIsHelpError as error:
        typer.echo(error.format_message())
    except click.ClickException as error:
        code = _complain(error.format_message())
    except Exception as error:
        from fedvote.registry import user_code_line

        if (where := user_code_line(error)) is None:
            raise
        code = _complain(where)
    sys.exit(code or 0)


def _complain(sentence: str) -> int:
    typer.echo(f"fedvote: {sentence}", err=True)
    return 2
