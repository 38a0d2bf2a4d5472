"""`fedvote deploy`: federations of separate programs, over Flower."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedvote.cli.completion import presets
from fedvote.cli.help import WholeSentences
from fedvote.cli.options import Settings

deploy_app = typer.Typer(
    cls=WholeSentences,
    help="Federations of separate programs, over Flower.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@deploy_app.command(name="local")
def deploy_local(
    source: Annotated[
        str, typer.Argument(metavar="[PRESET | FILE.toml]", help="What to run.", autocompletion=presets)
    ] = "quickstart",
    clients: Annotated[int | None, typer.Option(help="The same as --set federation.clients=N.")] = None,
    tls: Annotated[bool, typer.Option(help="Certificates for the server, and a key for every client.")] = True,
    set: Settings = None,
    out: Annotated[Path | None, typer.Option(help="Where everything goes; else runs/local-NAME.")] = None,
) -> None:
    """Start a server and its clients as programs on this machine, run a job, show its rounds, stop everything."""
    import signal
    from contextlib import closing

    from fedvote.engines.flower.local_federation import RUN, deploy
    from fedvote.engines.flower.processes import ENDS
    from fedvote.runs.config import read
    from fedvote.runs.experiment import federation
    from fedvote.runs.progress import watch

    config = read(source, [*(set or []), *([f"federation.clients={clients}"] if clients is not None else [])])
    folder = out or Path("runs") / f"local-{Path(source).stem}"
    federation(config, "cpu")  # so that mistakes show before anything is started
    for number in ENDS:  # to be ended is to be interrupted: stop all first
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup would have it
            signal.signal(number, signal.default_int_handler)
    typer.echo(f"starting {config.federation.clients} clients and a server; logs: {folder / 'federation' / 'logs'}")
    try:
        with closing(deploy(config, folder, tls=tls)) as rounds:  # what it started stops before anything is said
            for _ in watch(rounds, config.rounds):
                pass
    except KeyboardInterrupt:
        typer.echo("interrupted; everything that was started is stopped", err=True)
        raise typer.Exit(130) from None
    typer.echo(f"all programs are stopped; the run is in {folder / RUN}, the report in {folder / RUN / 'report.html'}")


@deploy_app.command(name="certificates")
def deploy_certificates(
    folder: Annotated[Path, typer.Argument(help="Where ca.crt, server.pem and server.key go.")],
    host: Annotated[list[str], typer.Option(help="A name or address by which clients reach the server; repeatable.")],
    days: Annotated[int, typer.Option(help="How long they are valid.")] = 365,
) -> None:
    """Make an authority and the server's certificate. Clients get ca.crt, and nothing else."""
    from fedvote.engines.flower.certificates import make_certificates

    made = make_certificates(folder, host, days)
    typer.echo(f"for every client: {made.authority}; for the server alone: {made.server}, {made.key}")


@deploy_app.command(name="key")
def deploy_key(file: Annotated[Path, typer.Argument(help="The private key; FILE.pub is the public one.")]) -> None:
    """Make a client's key pair, on the client's own machine. The server registers the public one."""
    from fedvote.engines.flower.certificates import make_key
    from fedvote.engines.flower.roster import identity_in

    public = make_key(file)
    typer.echo(f"keep {file} here; register {public} at the server, which will know it as {identity_in(public)}")
