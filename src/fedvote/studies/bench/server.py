"""The server's side of a large round: ballots are fed to the code of a real server as fast as it takes them.

The ballots are random votes near the soft vote, as after a little training, and are encoded beforehand. A round is the
server's own: replies, poll, decoders, ballot box. Nothing trains, and nothing is sent. Memory is of the server, and of
each decoding process, beyond their start. The state is compared with the one that the simulator makes of these votes.

The network has eight layers and a million weights: `camps` compares all pairs of clients in each layer.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedvote.core import State
from fedvote.engines.flower.decoders import Decoders, Reader
from fedvote.engines.flower.mailbox import Reply, Request
from fedvote.engines.flower.poll import Poll
from fedvote.engines.flower.replies import Ballot
from fedvote.methods import FedVote
from fedvote.network.network import Network
from fedvote.plan import FlowerOptions
from fedvote.quantize import round_by_shared_random
from fedvote.randomness import Key
from fedvote.rounds import BallotBox, Round
from fedvote.studies.bench import peak_memory
from fedvote.studies.rows import Rows
from fedvote.system.threads import cores
from fedvote.wire import Outgoing, frames

LAYERS = ((250, 500), (500, 250)) * 4  # inputs and outputs of each layer that is voted on: a million weights
TOGETHER = 32  # replies that arrive at a time
DRIFT = 0.1  # standard deviation by which training moves a normalised weight
SPEED_BALLOTS, REPEATS = 64, 5
RULES = ("uniform", "camps")


def bench(clients: Sequence[int] = (1000,), only: Sequence[str] = RULES) -> Rows:
    """A row for each number of clients and each rule: memory, seconds, and the speed of decoding on all cores."""
    rows: list[dict[str, Any]] = []
    for number in clients:
        with tempfile.TemporaryDirectory(prefix="fedvote-ballots-") as folder:
            files = _encode(opened("uniform", number), number, Path(folder))
            decoding = _decoding(opened("uniform", number), files[:SPEED_BALLOTS])
            rows += [_round(opened(rule, number), rule, files) | decoding for rule in only]
    return rows


def opened(rule: str, clients: int) -> tuple[Round, State]:
    """An open round of a network with LAYERS, and the state before it."""
    shapes = (*LAYERS, (LAYERS[-1][1], 2))  # the head is not voted on
    network = Network(nn.Sequential(*(nn.Linear(*shape, bias=False) for shape in shapes)), 0)
    method = FedVote(reputation=rule)  # type: ignore[arg-type]
    return Round(method, network, Key(0, 1)), method.init(network, clients)


def votes_of(round: Round, state: State, client: int) -> torch.Tensor:
    """(1, D) a client's votes: the soft vote, moved a little, and rounded by the client's random numbers."""
    soft_D = round.method.soft(state)  # type: ignore[attr-defined]
    alphabet = round.method.alphabet  # type: ignore[attr-defined]
    moved_D = soft_D + DRIFT * torch.randn(soft_D.shape, generator=Key(0, 1, client).torch("drift"))
    return round_by_shared_random(moved_D.clamp(-0.999, 0.999)[None], alphabet, [Key(0, 1, client)])


def _encode(opened: tuple[Round, State], clients: int, folder: Path) -> list[Path]:
    """Write every client's frame to a file."""
    round, state = opened
    down, files = round.method.broadcast(state), []
    for client in range(clients):
        stack = {"votes": votes_of(round, state, client)}
        sent = Outgoing([round.header(client)], stack, lambda number: round.wire.up(down, Key(0, 1, number)))
        files.append(folder / str(client))
        files[-1].write_bytes(frames(sent)[0])
    return files


def _round(opened: tuple[Round, State], rule: str, files: Sequence[Path]) -> dict[str, Any]:
    """One round of the server, with all cores."""
    round, state = opened
    with closing(Decoders()) as decoders:
        reader, box = decoders.reader(round, state), BallotBox(round, state, len(files))
        _warm(reader, files)
        poll = Poll(1, range(len(files)), FlowerOptions(), lambda frame, k: box.put(reader(frame, k).stack, [k]))
        for process in _processes():
            peak_memory.forget_peak(process)
        start, began = {process: peak_memory.resident(process) for process in _processes()}, time.perf_counter()
        for replies in _arriving(files):
            for reply in _announced(replies, reader):
                poll.take(reply)
        heard = time.perf_counter()
        closed = box.close()
        ended = time.perf_counter()
        grown = {process: (peak_memory.peak(process) - before) / 1e6 for process, before in start.items()}
    return {
        "rule": rule, "clients": len(files), "weights": round.network.D, "layers": len(LAYERS),
        "counted": len(closed.counted),
        "ballot_bytes": statistics.mean(file.stat().st_size for file in files),
        "server_megabytes": grown.pop(os.getpid()), "megabytes_a_decoder": max(grown.values(), default=0.0),
        "seconds_ballots": heard - began, "seconds_close": ended - heard,
        "same_as_simulated": _is_simulated(opened, closed.state, len(files)),
    }  # fmt: skip


def _is_simulated(opened: tuple[Round, State], found: State, clients: int) -> bool:
    """Whether the simulator makes the same state, to the bit, of the votes themselves."""
    round, state = opened
    box = BallotBox(round, state, clients)
    for some in torch.arange(clients).split(TOGETHER):
        box.put({"votes": torch.cat([votes_of(round, state, client) for client in some.tolist()])}, some.tolist())
    expected = box.close().state
    return found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in found)


def _decoding(opened: tuple[Round, State], files: Sequence[Path]) -> dict[str, Any]:
    """Ballots decoded in a second on one core, and how much faster a process on each core is: medians of five.

    The two take turns, so that other programs on the machine slow both down.
    """
    every, threads = cores(), torch.get_num_threads()
    torch.set_num_threads(1)
    with closing(Decoders(1)) as one, closing(Decoders(every)) as all:
        readers = [decoders.reader(*opened) for decoders in (one, all)]
        for reader in readers:
            _warm(reader, files)
        pairs = [[_seconds(reader, files) for reader in readers] for _ in range(REPEATS)]
    torch.set_num_threads(threads)
    alone, together = (statistics.median(times) for times in zip(*pairs, strict=True))
    return {
        "decoded_a_second": len(files) / alone,
        "cores": every,
        "faster_on_all_cores": alone / together,
        "seconds_decoding": pairs,
    }


def _seconds(reader: Reader, files: Sequence[Path]) -> float:
    began = time.perf_counter()
    for replies in _arriving(files):
        for reply in _announced(replies, reader):
            reader(_frame(reply), reply.request.client)
    return time.perf_counter() - began


def _announced(replies: list[Reply], reader: Reader) -> list[Reply]:
    reader.ahead([(_frame(reply), reply.request.client) for reply in replies])
    return replies


def _frame(reply: Reply) -> bytes:
    assert isinstance(reply.outcome, Ballot)
    return reply.outcome.frame


def _warm(reader: Reader, files: Sequence[Path]) -> None:
    """Start the processes and fill caches, with ballots that are then forgotten."""
    some = [(file.read_bytes(), client) for client, file in enumerate(files[: 2 * cores()])]
    reader.ahead(some)
    for frame, client in some:
        reader(frame, client)


def _arriving(files: Sequence[Path]) -> Iterator[list[Reply]]:
    for start in range(0, len(files), TOGETHER):
        some = range(start, min(start + TOGETHER, len(files)))
        yield [Reply(Request(1, client), Ballot(files[client].read_bytes())) for client in some]


def _processes() -> list[int]:
    """This process and the ones that it started."""
    from fedvote.engines.flower.processes import descendants

    return [os.getpid(), *descendants(os.getpid())]
