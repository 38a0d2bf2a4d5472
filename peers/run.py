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
from typing import Any

FOLDER = Path(__file__).resolve().parent
ENVIRONMENTS = FOLDER.parent / "build" / "peers"
IMPORTS = {"fedvote": "fedvote", "pfl": "pfl.model.pytorch", "flower": "flwr.simulation, ray", "loop": "torch"}
REPEATS, WARM_UP, LIMIT_SECONDS = 2, 2, 600
Line = dict[str, Any]


def main(kind: str, rounds: str, *peers: str) -> None:
    left_out = {peer: reason for peer in peers if (reason := missing(peer))}
    wanted = [(peer, how, arguments) for peer, how, arguments in ways(kind, _cores()) if peer in peers]
    common = ["--device", kind, "--rounds", rounds, "--warm-up", str(WARM_UP)]
    measured: dict[tuple[str, str], list[Line]] = {(peer, how): [] for peer, how, _ in wanted}
    for _ in range(REPEATS):
        for peer, how, arguments in wanted:
            name = f"{peer}, {how}"
            if peer in left_out or name in left_out:
                continue
            free, line = free_cores(), run(peer, [*common, *arguments])
            if isinstance(line, str):
                left_out[name] = line
            else:
                measured[peer, how].append({**line, "arguments": arguments, "free_cores": free})
            result = line if isinstance(line, str) else f"{line['seconds_per_round']:.4f} s a round"
            print(f"{name}: {result}", file=sys.stderr, flush=True)
    print(json.dumps(summary(measured, left_out)))


def ways(device: str, cores: int) -> list[tuple[str, str, list[str]]]:
    """(peer, how, arguments), for every way of running a peer that might be its fastest."""
    if device == "cuda":
        shared = [(f"{n} processes", ["--processes", str(n), "--threads", "1"]) for n in (1, 4, 8, 16) if n <= cores]
        return [
            ("fedvote", "as it comes", []),
            ("fedvote", "float32", ["--precision", "float32"]),
            ("fedvote", "compiled", ["--compile"]),
            ("fedvote", "float32, compiled", ["--precision", "float32", "--compile"]),
            *(("pfl", how, arguments) for how, arguments in shared),
            *(("pfl", f"{how}, bfloat16", [*arguments, "--bfloat16"]) for how, arguments in shared),
            ("flower", "10 workers", ["--at-once", str(min(10, cores))]),
            ("loop", "float32", []),
        ]
    every, single = ["--threads", str(cores)], ["--threads", "1"]
    return [
        ("fedvote", "as it comes", every),
        ("fedvote", "one client at a time", [*every, "--stack", "1"]),
        ("fedvote", "ten clients at a time", [*every, "--stack", "10"]),
        ("pfl", f"1 process of {cores} threads", every),
        ("pfl", f"{cores} processes of 1 thread", [*single, "--processes", str(cores)]),
        ("flower", f"{cores} workers of 1 thread", ["--at-once", str(cores)]),
        ("loop", f"{cores} threads", every),
        ("loop", "1 thread", single),
    ]


def summary(measured: dict[tuple[str, str], list[Line]], left_out: dict[str, str]) -> list[Line]:
    """A row for every way, with the same columns whether it ran or not."""
    medians = {
        key: statistics.median(line["seconds_per_round"] for line in lines) for key, lines in measured.items() if lines
    }
    ours = min((value for (peer, _), value in medians.items() if peer == "fedvote"), default=None)
    return [
        {
            "peer": peer,
            "how": how,
            "version": lines[0]["version"] if lines else None,
            "seconds_per_round": (median := medians.get((peer, how))),
            "times_fedvote": median / ours if median and ours else None,
            "least_free_cores": min((free for line in lines if (free := line["free_cores"]) is not None), default=None),
            "left_out": left_out.get(peer) or left_out.get(f"{peer}, {how}"),
            "measured": lines,
        }
        for (peer, how), lines in measured.items()
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
