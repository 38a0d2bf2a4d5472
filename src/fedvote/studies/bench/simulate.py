"""Speed of the simulator: seconds a round and TFLOP/s, by network and number of clients.

The data are random: training does not depend on them. `seconds` is a round as users get it, without evaluation:
broadcast, local steps, rounding, entropy coding, counting bytes, tally. `training_seconds` is its local steps and
rounding alone. The first round, which on a GPU also records the step, is reported separately. Seconds are the best of a
few rounds; memory is the device's peak.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from fedvote.core import Dataset, Examples
from fedvote.data.partition import IID
from fedvote.engines.simulate import Simulation, simulate
from fedvote.engines.simulate.chunks import Chunks
from fedvote.method import Method
from fedvote.methods import FedAvg, FedVote
from fedvote.models import MODELS
from fedvote.randomness import Key
from fedvote.studies.bench import peak_memory
from fedvote.studies.bench.stopwatch import seconds_of
from fedvote.studies.rows import Rows, chosen
from fedvote.system.device import find_device, repeatable

ROUNDS = 3  # measured after the first, at most
PATIENCE = 5.0  # seconds after which a measurement is not repeated
LONGEST = 20.0  # seconds: larger cohorts, whose rounds would take longer, are left out


@dataclass(frozen=True)
class Job:
    """The work of one client in a round."""

    model: str
    shape: tuple[int, ...]
    method: Method
    steps: int
    batch: int
    usual: int = 31  # clients of a round, in rows that vary something else
    augment: tuple[str, ...] = ()


JOBS = (
    Job("lenet5", (1, 28, 28), FedVote(), steps=40, batch=100),
    Job("vgg7", (3, 32, 32), FedVote(), steps=40, batch=100),
    Job("small-cnn", (3, 32, 32), FedAvg(lr=0.1, optimizer="SGD"), steps=5, batch=10, usual=50),
)
COHORTS = (1, 10, 31, 50, 100, 1000)
STEPS = (10, 20, 80)  # local steps besides the job's own, for one cohort
AUGMENTED = "vgg7"  # this network is also measured with augmentation
AUGMENT = ("flip", "crop")


def bench(model: Sequence[str] = (), clients: Sequence[int] = (), device: str = "auto") -> Rows:
    """All rows, or only those of these networks and numbers of clients."""
    names = chosen(model, (job.model for job in JOBS), "simulate")
    jobs = [job for job in JOBS if job.model in names]
    steps = () if model or clients else STEPS
    return measure_all(jobs, sorted(set(clients)) or COHORTS, steps, find_device(device))


def measure_all(jobs: Sequence[Job], cohorts: Sequence[int], steps: Sequence[int], device: torch.device) -> Rows:
    """A row for each network and cohort; then for other local steps, for augmentation, and compiled on a GPU."""
    rate = matrix_rate(device)
    rows: Rows = []
    for job in jobs:
        expected = 0.0
        for last, clients in itertools.pairwise((cohorts[0], *cohorts)):
            expected *= clients / last
            if expected > LONGEST:
                break
            rows.append(measure(job, clients, device, rate))
            expected = rows[-1]["seconds"]

    def usual(job: Job) -> int:
        return job.usual if job.usual in cohorts else max(cohorts)

    rows += [measure(dataclasses.replace(jobs[0], steps=n), usual(jobs[0]), device, rate) for n in steps]
    augmented = [dataclasses.replace(job, augment=AUGMENT) for job in jobs if job.model == AUGMENTED]
    rows += [measure(job, usual(job), device, rate) for job in augmented]
    if device.type == "cuda":
        rows += [measure(job, usual(job), device, rate, compile=True) for job in (*jobs, *augmented)]
    return rows


def measure(job: Job, clients: int, device: torch.device, rate: float, compile: bool = False) -> dict[str, Any]:
    """One row: seconds a round of one job with so many clients, and numbers derived from them."""
    simulation = _federation(job, clients, device, compile)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    peak_memory.forget_peak()
    seconds: list[float] = []
    for snapshot in itertools.islice(simulation.run(), 1 + ROUNDS):  # without the last round, which is evaluated
        seconds.append(snapshot.record["seconds"])
        if sum(seconds[1:]) > PATIENCE:  # the first may include compiling
            break
    samples = clients * job.steps * job.batch
    work = samples * _flops(simulation, job) / 1e12
    best = min(seconds[1:] or seconds)
    local = _training_seconds(simulation)
    return {
        "model": job.model,
        "method": type(job.method).__name__,
        "coding": getattr(job.method, "coding", None),
        "augment": " ".join(job.augment),
        "compiled": compile,
        "clients": clients,
        "steps": job.steps,
        "batch": job.batch,
        "weights": simulation.federation.network.D + simulation.federation.network.F,
        "first_seconds": seconds[0],
        "seconds": best,
        "training_seconds": local,
        "samples_per_second": samples / best,
        "training_tflops": work / local,
        "share_of_matrix_rate": work / local / rate,
        "memory_gb": _peak_memory(device),
    }


def _training_seconds(simulation: Simulation) -> float:
    """Seconds of local steps and rounding alone, one chunk of clients at a time as in a run."""
    federation = simulation.federation
    network, train = federation.placed(), federation.data.train.to(federation.device)
    with repeatable():
        down = federation.method.broadcast(federation.start().state)
        memory = federation.method.memory(network)

        def turn(clients: Sequence[int]) -> None:
            keys = [Key(0, 1, client) for client in clients]
            own = {name: value.expand(len(keys), *value.shape) for name, value in memory.items()}
            batches = federation.batches(train, keys)
            work = partial(federation.method.local, network, down, batches, own, keys)
            spent.append(seconds_of(work, federation.device))

        times: list[float] = []
        while not times or (len(times) <= ROUNDS and sum(times) < PATIENCE):
            spent: list[float] = []
            at_once = federation.plan.engine.stack or simulation.fitting(network, train)
            Chunks(at_once).each(range(federation.plan.cohort), network, turn)
            times.append(sum(spent))
    return min(times[1:] or times)


def matrix_rate(device: torch.device) -> float:
    """TFLOP/s of a large matrix product, in the precision of training on this device."""
    size, dtype = (8192, torch.bfloat16) if device.type == "cuda" else (2048, torch.float32)
    a = torch.ones(size, size, dtype=dtype, device=device)
    return 2 * size**3 / min(seconds_of(lambda: a @ a, device) for _ in range(5)) / 1e12


def _federation(job: Job, clients: int, device: torch.device, compile: bool) -> Simulation:
    each = 100
    x = torch.randint(0, 256, (clients * each, *job.shape), dtype=torch.uint8, generator=Key(0).torch("bench"))
    y = torch.arange(clients * each) % 10
    examples = Examples(x, y, mean=(0.5,) * job.shape[0], std=(0.25,) * job.shape[0])
    data = Dataset("random", examples, examples.rows(slice(0, 100)), tuple("0123456789"))
    return simulate(
        MODELS[job.model](job.shape, 10),
        data,
        job.method,
        clients=clients,
        rounds=2 + ROUNDS,
        evaluate_every=2 + ROUNDS,
        steps=job.steps,
        batch=job.batch,
        partition=IID(),
        augment=job.augment,
        test_batch=100,
        calibrate_on=100,
        device=device.type,
        compile=compile,
    )


def _flops(simulation: Simulation, job: Job) -> float:
    """Floating-point operations of training on one example: forward, and twice as many backward."""
    start = simulation.federation.network.start
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        simulation.federation.network(start.voted, start.floats, torch.zeros(2, *job.shape))
    return 3 * float(counter.get_total_flops()) / 2


def _peak_memory(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated() / 1e9
    return peak_memory.peak() / 1e9
