"""`fedvote deploy`: run federations of separate programs over Flower."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedvote.cli.completion import run_folders
from fedvote.cli.help import WholeSentences
from fedvote.cli.mistyped import WithSettings
from fedvote.cli.options import Settings, Source

deploy_app = typer.Typer(
    cls=WholeSentences,
    help="Run federations of separate programs over Flower.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@deploy_app.command(name="local", cls=WithSettings)
def deploy_local(
    source: Source = "quickstart",
    clients: Annotated[int | None, typer.Option(help="Short for --set federation.clients=N.")] = None,
    tls: Annotated[bool, typer.Option(help="Use TLS, and a key for every client.")] = True,
    set: Settings = None,
    out: Annotated[
        Path | None, typer.Option(help="Output folder; default: runs/local-NAME. A run in it is resumed.")
    ] = None,
) -> None:
    """Start a server and its clients as programs on this machine, run one job, then stop them all."""
    from contextlib import closing

    from fedvote.engines.flower.between_machines import check_between_machines
    from fedvote.engines.flower.local_deployment import REPORT, deploy, federation_in, is_finished
    from fedvote.engines.flower.processes import end_as_by_interrupt
    from fedvote.engines.flower.status import FEDERATION, RUN
    from fedvote.runs.config import read
    from fedvote.runs.experiment import federation
    from fedvote.runs.folder import RunFolder
    from fedvote.runs.progress import watch

    config = read(source, [*(set or []), *([f"federation.clients={clients}"] if clients is not None else [])])
    folder = out or Path("runs") / f"local-{Path(source).stem}"
    check_between_machines(federation(config, "cpu"), config.flower)  # before anything is started
    programs, run = federation_in(folder, config, tls=tls), RunFolder(folder / RUN)
    page = run.path / REPORT
    if is_finished(run, config.rounds):
        more = "ask for more rounds with --set rounds=N, or choose another folder with --out"
        typer.echo(
            f"the run in {run.path} is finished, after {config.rounds} rounds, with its report in {page}: {more}"
        )
        return
    records = run.metrics()
    done = len(records)
    end_as_by_interrupt()
    resumed = f"resuming after round {done} of {config.rounds}: " if done else ""
    typer.echo(
        f"{resumed}starting {config.federation.clients} clients and a server; logs: {folder / FEDERATION / 'logs'}"
    )
    try:
        with closing(deploy(programs, config, folder)) as rounds:  # all programs stop before the message below
            for snapshot in watch(rounds, config.rounds, records):
                done = snapshot.round
    except KeyboardInterrupt:
        after = f"interrupted after round {done} of {config.rounds}; all programs are stopped"
        typer.echo(f"{after}; to resume, give the same command again", err=True)
        raise typer.Exit(130) from None
    typer.echo(f"all programs are stopped; the run is in {run.path}, the report in {page}")


@deploy_app.command(name="certificates")
def deploy_certificates(
    folder: Annotated[Path, typer.Argument(help="Folder for ca.crt, server.pem and server.key.")],
    host: Annotated[list[str], typer.Option(help="A name or address by which clients reach the server; repeatable.")],
    days: Annotated[int, typer.Option(help="Days until the certificates expire.")] = 365,
) -> None:
    """Make a certificate authority and the server's certificate. Give clients ca.crt, and no other file."""
    from fedvote.engines.flower.certificates import make_certificates

    files = make_certificates(folder, host, days)
    typer.echo(f"for every client: {files.authority}; for the server alone: {files.server}, {files.key}")


@deploy_app.command(name="key")
def deploy_key(file: Annotated[Path, typer.Argument(help="The private key; FILE.pub is the public one.")]) -> None:
    """Make a client's key pair, on the client's own machine. The server registers the public key."""
    from fedvote.engines.flower.certificates import make_key
    from fedvote.engines.flower.roster import identity_in

    public = make_key(file)
    typer.echo(f"keep {file} here; register {public} at the server, which will call it {identity_in(public)}")


@deploy_app.command(name="status")
def deploy_status(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="The server's run folder, the folder of `deploy local`, or a client's log.",
            autocompletion=run_folders,
        ),
    ],
    within: Annotated[
        float | None, typer.Option(help="Exit with 1 unless a round closed within so many seconds: a health check.")
    ] = None,
) -> None:
    """Show a run's last round, its traffic, and each client's votes and failures; or a client's own turns."""
    from fedvote.engines.flower.client_log import summary
    from fedvote.engines.flower.status import clients, headline, run_folder, seconds_since_last_round
    from fedvote.studies.rows import table

    if run.is_file():
        typer.echo(table(summary(run)))
        return
    run = run_folder(run)
    typer.echo(headline(run))
    typer.echo(table(clients(run)))
    if within is not None and seconds_since_last_round(run) > within:
        raise typer.Exit(1)


@deploy_app.command(name="client", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def deploy_client(
    context: typer.Context,
    port: Annotated[int, typer.Option(help="A free port of this machine, for the client's own programs.")] = 9094,
    keep: Annotated[float, typer.Option(help="Seconds that an idle client keeps its process, with its data.")] = 600,
) -> None:
    """Start a client: a SuperNode, and beside it a process that takes all its turns. Pass flower-supernode's options.

    Flower alone starts Python anew for each turn.
    """
    from fedvote.engines.flower.client_options import check_client
    from fedvote.engines.flower.warm_client import client

    check_client(context.args, port)
    client(context.args, port, keep)
