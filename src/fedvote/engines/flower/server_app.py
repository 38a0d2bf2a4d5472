"""Flower's ServerApp: `fedvote.engines.flower.server_app:app`.

The keys of the run configuration:

    experiment  a preset or a TOML file, as for `fedvote run`
    set         changes to it, as a.b=c a.d=e
    out         the run folder; a run in it is resumed
    data        the server's own test examples: a folder, or FILE.py:FUNCTION
    keys        a folder with the public keys of the clients that may vote
    device      as for `fedvote run`
    metrics     a port of this machine for /metrics and /health; none if empty
    logs        text, or json: an object a line
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flwr.app import Context, UserConfig
from flwr.serverapp import Grid, ServerApp

from fedvote.engines.flower.local_data import servers_site
from fedvote.engines.flower.log_lines import json_line, log_of
from fedvote.engines.flower.metrics_page import SLACK, RunNumbers, serve_page
from fedvote.engines.flower.roster import keys_in
from fedvote.engines.flower.server import Server
from fedvote.errors import ConfigError, FedVoteError
from fedvote.report import write_report
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.claim import claim, release
from fedvote.runs.config import read
from fedvote.runs.description import describe
from fedvote.runs.experiment import record
from fedvote.runs.folder import RunFolder
from fedvote.runs.judged_by import check_same_data, judged_by
from fedvote.runs.progress import watch

DEFAULTS = {
    "experiment": "quickstart", "set": "", "out": "", "data": "", "keys": "", "device": "auto", "metrics": "",
    "logs": "text",
}  # fmt: skip


def make(folder: Path | None = None) -> ServerApp:
    """Make the app. It looks for the experiment's TOML file in `folder` first."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        try:
            serve(grid, context.run_config, folder)
        except FedVoteError as error:  # Flower prints a traceback: without our frames, its sentence is easy to find
            raise error.with_traceback(None) from None

    return app


def serve(grid: Grid, options: UserConfig, beside: Path | None = None) -> None:
    """Run the options' experiment to its end; a run that has begun is resumed."""
    chosen = _options(options)
    source = chosen["experiment"]
    if beside is not None and (beside / source).is_file():
        source = str(beside / source)
    try:
        settings = shlex.split(chosen["set"])
    except ValueError as error:
        raise ConfigError(f"set is {chosen['set']!r}, expected settings in shell syntax, a.b=c ...: {error}") from error
    config, log = read(source, settings), log_of(chosen["logs"])
    folder = RunFolder(Path(chosen["out"] or Path("runs") / f"flower-{Path(source).stem}"))
    federation = servers_site(config, chosen["data"], chosen["device"])
    judged = judged_by(chosen["data"] or config.data.name, federation.data)
    check_same_data(folder, federation, judged)
    since = claim(folder, config, resume=True)
    try:
        describe(folder, federation, judged)
        keys = keys_in(Path(chosen["keys"])) if chosen["keys"] else None
        server = Server(federation, config, folder.path, grid, keys, log=log)
        with _page(server, folder, chosen["metrics"]) as numbers:
            _serve(server, folder, since, numbers)
    finally:
        release(folder)


def _serve(server: Server, folder: RunFolder, since: Snapshot | None, numbers: RunNumbers) -> None:
    """Run the rounds into the run folder, and write its report."""
    before = folder.metrics()
    rounds = record(server.federation, folder, since, server.run(since), 1.0, server.statistics)  # a checkpoint a round
    shown = rounds if server.log is json_line else watch(rounds, server.config.rounds, before)
    for snapshot in shown:
        numbers.add(snapshot.record)
        if server.log is json_line:
            server.log("round", f"round {snapshot.round} closed", record=snapshot.record)
    write_report([folder.path], folder.path / "report.html")


@contextmanager
def _page(server: Server, folder: RunFolder, port: str) -> Iterator[RunNumbers]:
    """The numbers of the run so far, and a page that shows them while the block runs, if a port is given."""
    attendance, rules = server.attendance, server.config.flower
    numbers = RunNumbers(
        online=lambda: len(attendance.online),
        strangers=lambda: len(attendance.strangers),
        alive=attendance.unseen,
        clients=len(server.federation.owned),
        patience=rules.deadline + SLACK,
    )
    for earlier in folder.metrics():
        numbers.add(earlier, folder.metrics_file.stat().st_mtime)
    if port and not port.isdecimal():
        raise ConfigError(f"metrics is {port!r}, expected the number of a free port")
    page = serve_page(numbers, int(port)) if port else None
    try:
        yield numbers
    finally:
        if page is not None:
            page.shutdown()
            page.server_close()


def _options(options: UserConfig) -> dict[str, str]:
    if unknown := options.keys() - DEFAULTS.keys():
        raise ConfigError(
            f"the run configuration has no key {', '.join(sorted(unknown))}; known: {', '.join(DEFAULTS)}; "
            "settings of the experiment go into its TOML file, or into `set`"
        )
    return {name: str(options.get(name, default)) for name, default in DEFAULTS.items()}


app = make()
