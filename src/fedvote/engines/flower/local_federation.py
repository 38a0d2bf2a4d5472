"""A whole federation on this machine, with the programs of many machines: SuperLink, SuperNodes, certificates, keys.

It is for learning and testing, and is a recipe: docs/deployment.md takes the same steps on real machines.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedvote.engines.flower import flower_internals
from fedvote.engines.flower.certificates import Certificates, certificates_in, make_certificates, make_key
from fedvote.engines.flower.processes import Processes, still_running
from fedvote.engines.flower.warm_client import KEEP
from fedvote.errors import ConfigError, FedVoteError
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.folder import NETWORK, RunFolder
from fedvote.runs.folder_lock import lock, unlock
from fedvote.system.threads import cores

CONNECTION, SUPERLINK, JOB = "local-federation", "superlink", "job"
DATABASE = "superlink.db"
APP = """\
[project]
name = "fedvote-app"
version = "1.0.0"
description = "fedvote on Flower"
dependencies = []

[tool.flwr.app]
publisher = "fedvote"

[tool.flwr.app.components]
serverapp = "fedvote.engines.flower.server_app:app"
clientapp = "fedvote.engines.flower.client_app:app"

[tool.flwr.app.config]
experiment = "quickstart"
set = ""
out = ""
data = ""
keys = ""
device = "auto"
metrics = ""
logs = "text"
"""
CLOCK_DIFFERENCE = 2.0  # seconds by which a file system's clock may differ from ours
OWN_ERROR = re.compile(r"^fedvote\.[\w.]+: (.+)$", re.MULTILINE)  # the end of a traceback
RESTART_PAUSE = 5.0  # least seconds between two starts of one node
QUIET = {
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",  # everything that the app needs is installed
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
}


class DeploymentError(FedVoteError):
    """A program of the federation failed. The message ends with the last lines of its log."""


def node_name(number: int) -> str:
    return f"supernode-{number}"


@dataclass
class LocalFederation:
    """The programs of a federation. Their certificates, keys, database and logs lie in one folder.

    A federation that was stopped starts again in its folder. Its nodes keep their keys, and so their identities.
    """

    folder: Path
    nodes: int
    tls: bool = True
    app: Path | None = None  # the folder of the app; None: fedvote's own
    port: int = 0  # of the SuperLink; 0: any free one
    warm: bool = True  # clients keep their process; False: Flower starts one for each turn
    starts_nodes: bool = True  # False: the caller connects the clients
    keep: float = KEEP  # seconds that an idle client keeps its process
    programs: Processes = field(init=False)
    certificates: Certificates | None = None
    node_ports: dict[int, int] = field(default_factory=dict)
    node_configs: dict[int, str] = field(default_factory=dict)
    proxy_ports: dict[int, int] = field(default_factory=dict)  # node -> port of its proxy to the SuperLink
    _started: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = self.folder.absolute()
        self.port = self.port or free_port()
        bin = Path(sys.executable).parent
        environment = {
            **QUIET,
            "FLWR_HOME": str(self.folder / "flower"),
            "PATH": f"{bin}{os.pathsep}{os.environ.get('PATH', '')}",
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(max(1, cores() // self.nodes))),
        }
        self.programs = Processes(self.folder / "logs", environment)

    def __enter__(self) -> LocalFederation:
        self.check()
        self.programs.__enter__()
        lock(self.folder)
        try:
            self._prepare()
            self.start_superlink()
            self._register()
            for number in range(self.nodes if self.starts_nodes else 0):
                self.start_node(number)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *exception: Any) -> None:
        self.programs.__exit__(*exception)
        unlock(self.folder)

    def check(self) -> None:
        """Refuse a folder whose federation has other nodes, or whose programs still run."""
        if not self._is_prepared():
            return
        kept, asked = len(list((self.folder / "keys").glob("*.pub"))), self.nodes if self.tls else 0
        if kept != asked:
            raise ConfigError(
                f"{self.folder} holds {_described(kept)}, asked for {_described(asked)}: "
                "ask for the same, or choose another folder with --out"
            )
        address = tomllib.loads(self._flower_config.read_text())["superlink"][CONNECTION]["address"]
        superlink = f", with a SuperLink on port {port}" if listens(port := int(address.rpartition(":")[2])) else ""
        pids = still_running("FLWR_HOME", self.programs.environment["FLWR_HOME"])
        if pids or superlink:
            how = f"kill {' '.join(map(str, pids))}" if pids else f"pkill -f {self.folder}"
            raise ConfigError(
                f"the programs of {self.folder} still run{superlink}: stop the command that started them or, if it was "
                f"killed, stop them with `{how}`"
            )

    def start_superlink(self) -> None:
        """Start the SuperLink and wait until it listens. Its database keeps the nodes' identities over restarts."""
        (self.folder / DATABASE).touch(0o600)  # it holds all messages; SQLite gives its other files the same mode
        secure = ["--insecure"]
        if (files := self.certificates) is not None:
            secure = ["--ssl-ca-certfile", str(files.authority), "--ssl-certfile", str(files.server),
                      "--ssl-keyfile", str(files.key), "--enable-supernode-auth"]  # fmt: skip
        self.programs.start(
            SUPERLINK,
            ["flower-superlink", *secure, "--host", "127.0.0.1", "--port", str(self.port),
             "--database", str(self.folder / DATABASE), "--disable-runtime-dependency-installation"],
            self.folder,
        )  # fmt: skip
        self._wait_for(SUPERLINK, self.port)

    def start_node(self, number: int) -> None:
        """Start a SuperNode with its own key and its own configuration, such as data="FOLDER"."""
        port = self.node_ports.setdefault(number, free_port())
        secure = ["--insecure"]
        if self.certificates is not None:
            secure = ["--root-certificates", str(self.certificates.authority),
                      "--auth-supernode-private-key", str(self.key(number))]  # fmt: skip
        address = f"127.0.0.1:{self.proxy_ports.get(number, self.port)}"
        command = ["flower-supernode", *secure, "--superlink", address, "--host", "127.0.0.1", "--port", str(port)]
        if self.warm:
            command = [sys.executable, "-m", "fedvote", "deploy", "client", *secure, "--superlink", address,
                       "--port", str(port), "--keep", str(self.keep)]  # fmt: skip
        if config := self.node_configs.get(number):
            command += ["--node-config", config]
        self.programs.start(node_name(number), command, self.folder)
        self._started[number] = time.monotonic()

    def restart_nodes(self) -> list[int]:
        """Restart nodes that have ended, as a supervisor would; returns their numbers."""
        due, ended = time.monotonic() - RESTART_PAUSE, self.programs.ended()
        numbers = [n for n in range(self.nodes) if node_name(n) in ended and self._started[n] < due]
        for number in numbers:
            self.start_node(number)
        return numbers

    def key(self, number: int) -> Path:
        """The file of a node's private key; its public key lies beside it, as .pub."""
        return self.folder / "keys" / node_name(number)

    def submit(self, **options: str) -> None:
        """Start a job with this run configuration: `flwr run`, which writes the server's log until the job ends."""
        if self.tls:
            options = {"keys": str(self.folder / "keys"), **options}
        run_config = " ".join(f"{name}={json.dumps(value)}" for name, value in options.items())
        app = self.app or self.folder / "app"
        self.programs.start(
            JOB, ["flwr", "run", str(app), CONNECTION, "--stream", "--run-config", run_config], self.folder
        )

    def flwr(self, *arguments: str) -> str:
        """Run Flower's command line; returns its output."""
        return self._output(["flwr", *arguments])

    def _output(self, command: Sequence[str]) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env={**os.environ, **self.programs.environment},
            capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        if done.returncode:
            raise DeploymentError(f"{' '.join(command[:4])} failed: {(done.stdout + done.stderr).strip()}")
        return done.stdout

    def follow(self, run: Path, rounds: int, pause: float = 0.5) -> Iterator[Snapshot]:
        """Yield the job's rounds as its run folder records them, until the job ends."""
        folder, shown, began = RunFolder(run), len(RunFolder(run).metrics()), time.time()
        while True:
            over = JOB in self.programs.ended()
            for record in folder.metrics()[shown:]:
                shown = record["round"]
                yield Snapshot(record["round"], {}, {}, record)
            if over:
                break
            self.restart_nodes()
            if SUPERLINK in self.programs.ended():
                raise self._ended("the SuperLink ended", SUPERLINK)
            time.sleep(pause)
        network = run / NETWORK  # every job that ends well writes it
        if shown < rounds or not network.is_file() or network.stat().st_mtime < began - CLOCK_DIFFERENCE:
            raise self._ended(f"the job ended after round {shown} of {rounds}", JOB)

    def _ended(self, what: str, name: str) -> DeploymentError:
        """Why a program ended: the sentence of fedvote's error in its log, or else the end of the log."""
        end = self.programs.tail(name)
        if sentences := OWN_ERROR.findall(end):
            return DeploymentError(f"{what}: {sentences[-1]}")
        return DeploymentError(
            f"{what}; all rounds so far are saved, and the same command resumes the run. Its log ends with:\n{end}"
        )

    @property
    def _app_file(self) -> Path:
        return self.folder / "app" / "pyproject.toml"

    @property
    def _flower_config(self) -> Path:
        return self.folder / "flower" / "config.toml"

    def _is_prepared(self) -> bool:
        """Whether an earlier start has written all certificates and keys. It wrote the app last."""
        return self._app_file.is_file()

    def _prepare(self) -> None:
        """Write certificates, keys, Flower's configuration, and an app that uses this package.

        Certificates and keys of an earlier start stay. Its database does not: it registers no key twice, and refuses a
        stopped node while it counts the node as online, about a minute.
        """
        if not self._is_prepared():
            for name in ("certificates", "keys"):  # of a start that was interrupted here
                shutil.rmtree(self.folder / name, ignore_errors=True)
            if self.tls:
                make_certificates(self.folder / "certificates")
                for number in range(self.nodes):
                    make_key(self.key(number))
        for file in self.folder.glob(f"{DATABASE}*"):  # SQLite has files beside it
            file.unlink()
        security = "insecure = true"
        if self.tls:
            self.certificates = certificates_in(self.folder / "certificates")
            security = f'root-certificates = "{self.certificates.authority}"'
        for file in (self._flower_config, self._app_file):
            file.parent.mkdir(exist_ok=True)
        self._flower_config.write_text(f'[superlink.{CONNECTION}]\naddress = "127.0.0.1:{self.port}"\n{security}\n')
        self._app_file.write_text(APP)

    def _register(self) -> None:
        """Tell the SuperLink which keys may join."""
        if not self.tls:
            return
        keys = [f"{self.key(number)}.pub" for number in range(self.nodes)]
        command = f"import sys; from {flower_internals.__name__} import register; register(*sys.argv[1:])"
        self._output([sys.executable, "-c", command, CONNECTION, *keys])

    def _wait_for(self, name: str, port: int, seconds: float = 60.0) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and name not in self.programs.ended():
            if listens(port):
                return
            time.sleep(0.1)
        raise DeploymentError(f"{name} does not listen on port {port}:\n{self.programs.tail(name)}")


def listens(port: int) -> bool:
    """Whether a program listens on this port of this machine."""
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port of this machine that no program listens on."""
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


def _described(keys: int) -> str:
    return f"a federation of {keys} clients with TLS" if keys else "a federation without TLS"
