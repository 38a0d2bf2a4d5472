"""Run the job in every peer, one after another on one machine; `fedvote bench peers` starts this.

    python peers/run.py DEVICE ROUNDS PEER...

A peer runs with its own interpreter, build/peers/NAME/bin/python, or else with this one. Peers that cannot be imported
are left out, and their rows say why. The rows are printed as JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).resolve().parent
ENVIRONMENTS = FOLDER.parent / "build" / "peers"
IMPORTS = {"fedvote": "fedvote", "pfl": "pfl.model.pytorch", "flower": "flwr.simulation, ray", "loop": "torch"}
PRECISIONS = ("float32", "bfloat16")
REPEATS, WARM_UP, LIMIT_SECONDS = 2, 2, 600
Line = dict[str, Any]


class Way(NamedTuple):
    """One way of running a peer. It may be the fastest of its precision."""

    peer: str
    how: str
    precision: str
    arguments: list[str]


def main(kind: str, rounds: str, *peers: str) -> None:
    left_out = {peer: reason for peer in peers if (reason := missing(peer))}
    wanted = [way for way in ways(kind, _cores()) if way.peer in peers]
    common = ["--device", kind, "--rounds", rounds, "--warm-up", str(WARM_UP)]
    measured: list[tuple[Way, list[Line]]] = [(way, []) for way in wanted]
    for _ in range(REPEATS):
        for way, lines in measured:
            name = f"{way.peer}, {way.how}"
            if way.peer in left_out or name in left_out:
                continue
            free, line = free_cores(), run(way.peer, [*common, *way.arguments])
            if isinstance(line, str):
                left_out[name] = line
            else:
                lines.append({**line, "arguments": way.arguments, "free_cores": free})
            result = line if isinstance(line, str) else f"{line['seconds_per_round']:.4f} s a round"
            print(f"{name}: {result}", file=sys.stderr, flush=True)
    print(json.dumps(summary(measured, left_out)))


def ways(device: str, cores: int) -> list[Way]:
    """Every way of running a peer that might be its fastest: on a GPU in float32 and in bfloat16."""
    if device == "cuda":
        half = ["--bfloat16"]
        shared = [(f"{n} processes", ["--processes", str(n), "--threads", "1"]) for n in (1, 4, 8, 16) if n <= cores]
        workers = ["--at-once", str(min(10, cores))]
        return [
            Way("fedvote", "as it comes", "bfloat16", []),
            Way("fedvote", "compiled", "bfloat16", ["--compile"]),
            Way("fedvote", "float32", "float32", ["--precision", "float32"]),
            Way("fedvote", "float32, compiled", "float32", ["--precision", "float32", "--compile"]),
            *(Way("pfl", how, "float32", arguments) for how, arguments in shared),
            *(Way("pfl", f"{how}, bfloat16", "bfloat16", [*arguments, *half]) for how, arguments in shared),
            Way("flower", "10 workers", "float32", workers),
            Way("flower", "10 workers, bfloat16", "bfloat16", [*workers, *half]),
            Way("loop", "as it comes", "float32", []),
            Way("loop", "bfloat16", "bfloat16", half),
        ]
    every, single = ["--threads", str(cores)], ["--threads", "1"]
    return [
        Way("fedvote", "as it comes", "float32", every),
        Way("fedvote", "one client at a time", "float32", [*every, "--stack", "1"]),
        Way("fedvote", "ten clients at a time", "float32", [*every, "--stack", "10"]),
        Way("pfl", f"1 process of {cores} threads", "float32", every),
        Way("pfl", f"{cores} processes of 1 thread", "float32", [*single, "--processes", str(cores)]),
        Way("flower", f"{cores} workers of 1 thread", "float32", ["--at-once", str(cores)]),
        Way("loop", f"{cores} threads", "float32", every),
        Way("loop", "1 thread", "float32", single),
    ]


def summary(measured: list[tuple[Way, list[Line]]], left_out: dict[str, str]) -> list[Line]:
    """A row for every way, with the same columns whether it ran or not.

    `times_fedvote` compares with the fastest way of running fedvote, `times_fedvote_same_precision` with the fastest
    way that has the row's precision.
    """
    medians = [
        statistics.median(line["seconds_per_round"] for line in lines) if lines else None for _, lines in measured
    ]
    ours = [(way, seconds) for (way, _), seconds in zip(measured, medians, strict=True) if way.peer == "fedvote"]

    def fastest(*precisions: str) -> float | None:
        return min((seconds for way, seconds in ours if seconds and way.precision in precisions), default=None)

    def ratio(seconds: float | None, to: float | None) -> float | None:
        return seconds / to if seconds and to else None

    return [
        {
            "peer": way.peer,
            "how": way.how,
            "precision": way.precision,
            "version": lines[0]["version"] if lines else None,
            "seconds_per_round": median,
            "times_fedvote": ratio(median, fastest(*PRECISIONS)),
            "times_fedvote_same_precision": ratio(median, fastest(way.precision)),
            "least_free_cores": min((free for line in lines if (free := line["free_cores"]) is not None), default=None),
            "left_out": left_out.get(way.peer) or left_out.get(f"{way.peer}, {way.how}"),
            "measured": lines,
        }
        for (way, lines), median in zip(measured, medians, strict=True)
    ]


def python(peer: str) -> str:
    own = ENVIRONMENTS / peer / "bin" / "python"
    return str(own.absolute()) if own.exists() else sys.executable


def missing(peer: str) -> str:
    """Why a peer cannot run here; empty if it can."""
    tried = subprocess.run([python(peer), "-c", f"import {IMPORTS[peer]}"], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else _last_line(tried.stderr)


def run(peer: str, arguments: list[str]) -> Line | str:
    """The JSON that a runner prints, or a text: why it printed none."""
    command = [python(peer), str(FOLDER / f"with_{peer}.py"), *arguments]
    quiet = {**os.environ, "PYTHONWARNINGS": "ignore"}
    try:
        ran = subprocess.run(command, env=quiet, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        return f"not done after {LIMIT_SECONDS} s"
    lines = [line for line in ran.stdout.splitlines() if line.startswith('{"peer"')]
    if ran.returncode or not lines:
        return _last_line(ran.stderr)
    found: Line = json.loads(lines[-1])
    return found


def free_cores(seconds: float = 1.0) -> float | None:
    """Idle cores, measured while no runner runs; None if the system does not tell."""

    def idle() -> int:
        return int(Path("/proc/stat").read_text().split()[4])  # cpu user nice system idle ..., in ticks

    try:
        before = idle()
        time.sleep(seconds)
        return round((idle() - before) / os.sysconf("SC_CLK_TCK") / seconds, 2)
    except OSError:
        return None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _last_line(errors: str) -> str:
    return (errors.strip().splitlines() or ["no reason given"])[-1]


if __name__ == "__main__":
    main(*sys.argv[1:])
