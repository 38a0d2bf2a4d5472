"""Real SuperLink and SuperNode processes, over TLS with authentication, through everything that can go wrong."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    load_ssh_private_key,
)
from flwr.app import Context, Message, RecordDict
from flwr.app.message import remove_content_from_message
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    iterate_object_tree,
)
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents, pull_objects
from flwr.supernode.fleet_http_connection import http_request_response

from fedvote.engines.flower.certificates import make_certificates, make_key
from fedvote.engines.flower.client import take_turn
from fedvote.engines.flower.local_federation import JOB, SUPERLINK, LocalFederation, free_port, node_name
from fedvote.engines.flower.problem import receive_problem
from fedvote.engines.flower.processes import alive, descendants
from fedvote.engines.flower.replies import Ballot, reply_message
from fedvote.engines.flower.tasks import read_task
from fedvote.engines.simulate import Simulation
from fedvote.runs.checkpoint import load_snapshot
from fedvote.runs.config import Config, parse
from fedvote.runs.experiment import federation as planned
from fedvote.runs.folder import RunFolder
from fedvote.runs.progress import both_ways, traffic_text
from fedvote.runs.toml_tables import as_table, to_toml
from tests.engines.flower.grid import repeat
from tests.engines.flower.programs import APP, client_of, log, wait
from tests.toy import assert_same

pytestmark = pytest.mark.slow

EXPERIMENT = """
rounds = 6
[partition]
name = "iid"
[federation]
clients = 5
[method]
votes = "ternary"
[local]
steps = 80
batch = 32
[engine]
stack = 1
[flower]
quorum = 0.8
minimum = 0.4
deadline = 30
patience = 120
"""
KILLED, LATE, MUTANT = 0, 1, 2  # nodes; which client each becomes is the server's to say


def test_a_job_survives_the_world_and_says_what_happened(tmp_path: Path) -> None:
    """Whatever happens, the bits are those of the clients that count."""
    config = parse(EXPERIMENT, "the test")
    run, metrics = tmp_path / "run", tmp_path / "run" / "metrics.jsonl"
    (tmp_path / "experiment.toml").write_text(to_toml(as_table(config)))
    job = {"experiment": str(tmp_path / "experiment.toml"), "out": str(run)}

    def rounds() -> int:
        return len(RunFolder(run).metrics())

    def heard(node: int, text: str) -> bool:
        return text in log(federation, node_name(node))

    federation = LocalFederation(tmp_path / "federation", 5, app=APP)
    unruly = {LATE: f' late=3 metrics="{metrics}"', MUTANT: " mutate=true"}
    federation.node_configs = {n: f'data="{own_data(tmp_path, config, n)}"{unruly.get(n, "")}' for n in range(5)}
    with federation:
        federation.submit(**job)
        wait("round 2 to begin", lambda: heard(KILLED, "ROUND 2]"), federation)
        federation.programs.kill(node_name(KILLED))
        federation.start_node(KILLED)
        wait("round 4 to begin", lambda: rounds() == 3 and (heard(3, "ROUND 4]") or heard(4, "ROUND 4]")), federation)
        federation.programs.kill(SUPERLINK)
        federation.programs.kill(JOB)
        assert rounds() == 3
        federation.start_superlink()
        again = node_name(KILLED)
        wait("the killed node to be back", lambda: log(federation, again).count("SuperNode ID") == 2, federation)
        federation.submit(**job)
        wait("the job to end", lambda: JOB in federation.programs.ended(), federation, 180)
        number = {node: client_of(federation, run, node) for node in range(5)}
    records = RunFolder(run).metrics()
    assert [record["round"] for record in records] == [1, 2, 3, 4, 5, 6]

    killed, late, mutant = (str(number[node]) for node in (KILLED, LATE, MUTANT))
    assert all("checksum" in record["refused"][mutant] for record in records if mutant in voted(record))
    assert all(int(mutant) not in record["counted"] for record in records)
    assert all(mutant in voted(records[number]) for number in (1, 2))  # which waited for others until the deadline
    assert int(killed) not in records[1]["counted"] and killed in records[1]["failed"]
    assert any(int(killed) in record.get("returned", ()) for record in records[2:])
    assert late in records[2]["failed"] and int(late) not in records[2]["counted"]

    data = {number[node]: tmp_path / f"data-{node}" for node in range(5)}
    secret = bytes.fromhex((run / "run-secret").read_text())
    expected = repeat(config, records, tmp_path / "again", secret, data)
    assert_same(expected.state, load_snapshot(run / "checkpoint.safetensors").state)


def own_data(folder: Path, config: Config, node: int) -> Path:
    """A folder that only this node looks into, with a fifth of the digits."""
    made = planned(config, "cpu")
    rows, mine = made.owned[node], folder / f"data-{node}"
    mine.mkdir()
    np.savez(mine / "train.npz", x=made.data.train.x[rows].numpy(), y=made.data.train.y[rows].numpy())
    return mine


def voted(record: dict[str, Any]) -> set[str]:
    return {str(client) for client in record["counted"]} | set(record.get("refused", {}))


of_four = pytest.mark.xdist_group("four")  # one worker starts them, for all its tests


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFederation]:
    """Four registered keys and three SuperNodes: the fourth key is for a node of our own making."""
    with LocalFederation(tmp_path_factory.mktemp("four") / "federation", 4) as federation:
        federation.programs.stop(node_name(3))
        yield federation


@of_four
def test_who_has_no_registered_key_or_the_wrong_authority_or_no_tls_cannot_join(
    four: LocalFederation, tmp_path: Path
) -> None:
    stranger, foreign = tmp_path / "stranger", make_certificates(tmp_path / "elsewhere")
    make_key(stranger)
    assert four.certificates is not None
    right, known = str(four.certificates.authority), str(four.key(3))
    tries = {
        "no registered key": ["--root-certificates", right, "--auth-supernode-private-key", str(stranger)],
        "no key": ["--root-certificates", right],
        "wrong authority": ["--root-certificates", str(foreign.authority), "--auth-supernode-private-key", known],
        "no TLS": ["--insecure", "--auth-supernode-private-key", known],
    }
    for name, options in tries.items():
        where = ["--superlink", f"127.0.0.1:{four.port}", "--host", "127.0.0.1", "--port", str(free_port())]
        four.programs.start(name, ["flower-supernode", *options, *where, "--max-retries", "1"])
    wait("a registered node to join", lambda: "SuperNode ID" in log(four, node_name(0)), four)
    wait("the others to give up", lambda: set(tries) <= set(four.programs.ended()), four)
    for name in tries:
        assert four.programs.running[name].returncode != 0, log(four, name)
        assert "SuperNode ID" not in log(four, name)


@of_four
def test_a_node_that_votes_twice_is_counted_once_and_the_bits_are_those_of_the_simulator(
    four: LocalFederation, tmp_path: Path
) -> None:
    """With momentum that clients remember. One node answers every message twice; both engines end with equal bits."""
    settings = ["rounds=3", "federation.clients=4", "local.steps=2", "flower.quorum=1.0", "flower.deadline=120"]
    config = parse(EXPERIMENT.replace('votes = "ternary"', 'name = "signum"'), "the test", settings)
    (tmp_path / "experiment.toml").write_text(to_toml(as_table(config)))
    over = threading.Event()
    voter = threading.Thread(target=vote_twice, args=(four, four.key(3), over))
    voter.start()
    try:
        four.submit(experiment=str(tmp_path / "experiment.toml"), out=str(tmp_path / "run"))
        wait("the job to end", lambda: JOB in four.programs.ended(), four, 180)
    finally:
        over.set()
        voter.join()
    records = RunFolder(tmp_path / "run").metrics()
    assert [record["counted"] for record in records] == [[0, 1, 2, 3]] * 3
    assert log(four, SUPERLINK).count("Failed to store Message reply") >= 2  # the third may be too late for the job
    expected = list(Simulation(planned(config, "cpu")).run())[-1]
    assert_same(expected.state, load_snapshot(tmp_path / "run" / "checkpoint.safetensors").state)


def vote_twice(federation: LocalFederation, key: Path, over: threading.Event) -> None:
    """What a SuperNode does, by hand, and the last step always once more."""
    assert federation.certificates is not None
    private = load_ssh_private_key(key.read_bytes(), None)
    assert isinstance(private, EllipticCurvePrivateKey)
    authority = federation.certificates.authority.read_bytes()
    address = f"127.0.0.1:{federation.port}"
    with http_request_response(address, False, authority, (private, private.public_key())) as connection:
        node, receive, send, _, _, pull_object, push_object, _ = connection
        context = Context(1, node, {}, RecordDict(), {})
        while not over.wait(0.5):
            if (received := receive()) is None:
                continue
            name, run = received[0].metadata.message_id, received[0].metadata.run_id
            wished = [tree.object_id for tree in iterate_object_tree(received[1])]
            parts = pull_objects(wished, partial(pull_object, run))  # a message is there before its parts are
            message = inflate_object_from_contents(name, parts)
            assert isinstance(message, Message)
            message.metadata.__dict__["_message_id"] = name
            frame = take_turn(read_task(message, receive_problem(message.content, context.state)), context)
            for _ in range(2):
                reply = reply_message(Ballot(frame), message)
                objects = {name: part.deflate() for name, part in get_all_nested_objects(reply).items()}
                reply.metadata.__dict__["_message_id"] = reply.object_id
                wanted, session = send(remove_content_from_message(reply), get_object_tree(reply), 0.0)
                for wish in wanted:
                    push_object(run, session, wish, objects[wish])


def _heeds_ctrl_c() -> None:
    """A shell lets programs in the background ignore Ctrl-C, and so would their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_one_command_starts_a_federation_stops_all_of_it_when_interrupted_and_resumes_it(tmp_path: Path) -> None:
    out, said = tmp_path / "local", tmp_path / "said"
    settings = ["--clients", "2", "--tls", "--set", "rounds=2", "--set", "local.steps=2", "--out", str(out)]
    command = [sys.executable, "-m", "fedvote", "deploy", "local", *settings]
    with said.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, preexec_fn=_heeds_ctrl_c)
    try:
        limit = time.monotonic() + 120
        while "round 1/2" not in said.read_text() and time.monotonic() < limit and process.poll() is None:
            time.sleep(0.1)
        started = descendants(process.pid)
        process.send_signal(signal.SIGINT)
        process.wait(60)
    finally:
        process.kill()
    last = "interrupted after round 1 of 2; all programs are stopped; to resume, give the same command again\n"
    assert process.returncode == 130 and said.read_text().endswith(last), said.read_text()
    assert len(started) >= 4 and not any(alive(pid) for pid in started)

    roster = (out / "run" / "roster.json").read_text()
    again = subprocess.run(command, capture_output=True, text=True, check=True, timeout=180)
    records = RunFolder(out / "run").metrics()
    assert again.stdout.startswith("resuming after round 1 of 2: starting 2 clients")
    assert traffic_text(*both_ways(records)) in again.stderr and "round 1/2" not in again.stderr
    assert [record["counted"] for record in records] == [[0, 1]] * 2
    assert (out / "run" / "roster.json").read_text() == roster
