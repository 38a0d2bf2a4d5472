"""The same job on fedvote, pfl-research, Flower's simulation and a plain PyTorch loop, in turn on one machine.

    python benchmarks/peers/run.py                                     # makes an environment for each peer
    python benchmarks/peers/run.py --here --device cuda --rounds 50    # in this one; who cannot be imported is left out

Prints a table of ratios and writes it, with versions, device and every round, to results/peers.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import venv
from datetime import date
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
IMPORTS = {"fedvote": "fedvote", "pfl": "pfl.model.pytorch", "flower": "flwr.simulation, ray", "loop": "torch"}
BUSY = 0.9  # of the cores; if fewer are free before a run, somebody else is using the machine
RECIPE = (
    "1,000 clients of 50 CIFAR-10 images, cohort 50, one local epoch in batches of 10, SGD 0.1, "
    "CNN of 32 and 64 filters and 128 units without dropout, FedAvg; evaluation not timed"
)


def ways(device: str, cores: int) -> list[tuple[str, str, list[str]]]:
    """(peer, how, arguments): every way of running a peer that might be its fastest."""
    if device == "cuda":
        shared = [(f"{n} processes", ["--processes", str(n), "--threads", "1"]) for n in (1, 4, 8, 16) if n <= cores]
        return [
            ("fedvote", "as it comes", []),
            ("fedvote", "float32", ["--precision", "float32"]),
            ("fedvote", "compiled", ["--compile"]),
            *(("pfl", how, arguments) for how, arguments in shared),
            ("pfl", "1 process, bfloat16", ["--bfloat16"]),
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


def environment(peer: str, folder: Path) -> Path:
    """The interpreter of a peer's own environment, which is made where it is not there yet."""
    home = folder / peer
    python, ready = home / "bin" / "python", home / "ready"
    wanted = FOLDER / "requirements" / f"{peer}.txt"
    if not ready.exists() or ready.read_text() != wanted.read_text():
        print(f"{peer}: making {home}", file=sys.stderr, flush=True)
        venv.create(home, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        # torch goes first, at the version pinned: a range would bring several gigabytes of CUDA
        subprocess.run([*install, "torch==2.13.0", "numpy==2.4.6"], check=True, cwd=ROOT)
        subprocess.run([*install, "--requirement", str(wanted)], check=True, cwd=ROOT)
        ready.write_text(wanted.read_text())
    return python


def missing(python: Path, peer: str, surroundings: dict[str, str]) -> str:
    """Why a peer cannot run with this interpreter; empty if it can."""
    command = [str(python), "-c", f"import {IMPORTS[peer]}"]
    tried = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else (tried.stderr.strip().splitlines() or ["no reason given"])[-1]


def measure(python: Path, peer: str, arguments: list[str], surroundings: dict[str, str], limit: float) -> Any:
    """The line a runner prints, or why it printed none."""
    command = [str(python), str(FOLDER / f"with_{peer}.py"), *arguments]
    try:
        ran = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"not done after {limit:.0f} s"
    lines = [line for line in ran.stdout.splitlines() if line.startswith('{"peer"')]
    if ran.returncode or not lines:
        return (ran.stderr.strip().splitlines() or ["no output"])[-1]
    return json.loads(lines[-1])


def free_cores(seconds: float = 1.0) -> float | None:
    """How many cores did nothing for a while; None where the system does not say. Taken while nothing of ours runs."""

    def idle() -> int:
        return int(Path("/proc/stat").read_text().split()[4])  # cpu user nice system idle ..., in ticks

    try:
        before = idle()
        time.sleep(seconds)
        return round((idle() - before) / os.sysconf("SC_CLK_TCK") / seconds, 2)
    except OSError:
        return None


def table(measured: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each way of running a peer: the median over repetitions, and how many times fedvote's best it is."""
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in measured:
        grouped.setdefault((line["peer"], line["how"]), []).append(line)
    seconds = {key: statistics.median(line["seconds_per_round"] for line in lines) for key, lines in grouped.items()}
    ours = min((value for (peer, _), value in seconds.items() if peer == "fedvote"), default=float("nan"))
    return [
        {
            "peer": peer,
            "how": how,
            "version": grouped[peer, how][0]["version"],
            "seconds_per_round": round(value, 5),
            "best_of_this_peer": value == min(v for (p, _), v in seconds.items() if p == peer),
            "times_fedvote": round(value / ours, 2),
            "seconds_of_each_repetition": [round(line["seconds_per_round"], 5) for line in grouped[peer, how]],
        }
        for (peer, how), value in seconds.items()
    ]


def show(rows: list[dict[str, Any]], left_out: dict[str, str]) -> None:
    print(f"{'peer':9} {'version':14} {'how':28} {'s / round':>10} {'x fedvote':>10}")
    for row in rows:
        mark = "*" if row["best_of_this_peer"] else " "
        numbers = f"{row['seconds_per_round']:10.4f} {row['times_fedvote']:9.2f}"
        print(f"{row['peer']:9} {row['version']:14} {row['how']:28} {numbers}{mark}")
    for what, reason in left_out.items():
        print(f"left out: {what}: {reason}")


def main() -> None:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", nargs="+", choices=IMPORTS, default=list(IMPORTS))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--rounds", type=int, default=5, help="timed, in each repetition")
    parser.add_argument("--warm-up", type=int, default=2, help="rounds before those")
    parser.add_argument("--repeat", type=int, default=2, help="times that the whole list is gone through")
    parser.add_argument("--limit", type=float, default=600, help="seconds that one runner may take")
    parser.add_argument("--environments", type=Path, default=ROOT / "build" / "peers")
    parser.add_argument("--here", action="store_true", help="with this interpreter, and without making environments")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "peers.json")
    options = parser.parse_args()

    # fedvote is run from its source; the peers do not mind that it can be imported
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    surroundings = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    if options.here:
        pythons = {peer: Path(sys.executable) for peer in options.peers}
    else:
        pythons = {peer: environment(peer, options.environments.absolute()) for peer in options.peers}
    left_out = {peer: reason for peer, python in pythons.items() if (reason := missing(python, peer, surroundings))}

    common = ["--device", options.device, "--rounds", str(options.rounds), "--warm-up", str(options.warm_up)]
    measured: list[dict[str, Any]] = []
    for repetition in range(options.repeat):
        for peer, how, arguments in ways(options.device, cores):
            name = f"{peer}, {how}"
            if peer not in options.peers or peer in left_out or name in left_out:
                continue
            free = free_cores()
            line = measure(pythons[peer], peer, [*common, *arguments], surroundings, options.limit)
            if isinstance(line, str):
                left_out[name] = line
                print(f"{name}: {line}", file=sys.stderr, flush=True)
                continue
            measured.append({**line, "how": how, "arguments": arguments, "repetition": repetition, "free_cores": free})
            print(f"{name}: {line['seconds_per_round']:.4f} s a round", file=sys.stderr, flush=True)
            write(options, measured, left_out)  # each time: what was measured outlives whatever comes after it

    write(options, measured, left_out)
    show(table(measured), left_out)
    least = least_free(measured)
    if least is not None and least < BUSY * cores:
        print(f"disturbed: only {least} of {cores} cores were free before one of the runs; measure again when all are")


def least_free(measured: list[dict[str, Any]]) -> float | None:
    return min((line["free_cores"] for line in measured if line["free_cores"] is not None), default=None)


def write(options: argparse.Namespace, measured: list[dict[str, Any]], left_out: dict[str, str]) -> None:
    """What was measured on this device so far, beside what the file has of others."""
    found = json.loads(options.out.read_text()) if options.out.exists() else {"recipe": RECIPE}
    found[options.device] = {
        "date": date.today().isoformat(),
        "device": measured[0]["device"] if measured else "",
        "cores": len(os.sched_getaffinity(0)),
        "environments": "this interpreter's" if options.here else "one a peer",
        "least_free_cores": least_free(measured),
        "variables": {name: value for name, value in os.environ.items() if name.startswith("OMP_")},
        "left_out": left_out,
        "table": table(measured),
        "measured": measured,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
