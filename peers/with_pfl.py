"""The job in pfl-research: SimulatedBackend, FederatedAveraging, and its model adapter for PyTorch.

It follows pfl's guide to fast simulations: users as tensors in memory (here on the device), several processes that
share the cohort, evaluation only in the first round, no callback but the clock, no printing of metrics.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from importlib.metadata import version

import recipe
import torch
from torch.nn.functional import cross_entropy

OPTIONS = {
    "processes": {"type": int, "default": 1, "help": "processes that share the cohort"},
    "bfloat16": recipe.HALF,
    "compile": {"action": "store_true", "help": "torch.compile"},
}


def main() -> None:
    options = recipe.arguments(**OPTIONS)
    os.environ["PFL_PYTORCH_DEVICE"] = options.device
    if options.processes > 1 and "PFL_WORKER_RANK" not in os.environ:
        launch(options.processes)
    else:
        simulate(options)


def launch(processes: int) -> None:
    """Start this script in several processes; pfl's environment variables give each its rank."""
    addresses = [f"localhost:{_free_port()}"] + ["localhost:0"] * (processes - 1)
    shared = {**os.environ, "PFL_WORKER_ADDRESSES": ",".join(addresses)}
    running = [
        subprocess.Popen([sys.executable, *sys.argv], env={**shared, "PFL_WORKER_RANK": str(rank)})
        for rank in range(processes)
    ]
    if any([process.wait() for process in running]):
        raise SystemExit("pfl: a worker failed")


def simulate(options) -> None:
    if options.processes > 1:
        _use_gloo()  # on a GPU, pfl asks for NCCL, which refuses two processes on one device
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.aggregate.weighting import WeightByUser
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.callback.base import TrainingProcessCallback
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.pytorch import PyTorchTensorDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam import NNTrainHyperParams
    from pfl.metrics import Metrics, Weighted
    from pfl.model.pytorch import PyTorchModel

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = recipe.network()

        def forward(self, x):
            return self.layers(x)

        def loss(self, x, y):
            return cross_entropy(self(x), y)

        @torch.no_grad()
        def metrics(self, x, y):
            return {"loss": Weighted(self.loss(x, y).item() * len(y), len(y))}

    class Clock(TrainingProcessCallback):
        def __init__(self) -> None:
            self.seconds: list[float] = []

        def on_train_begin(self, *, model):
            self._read()
            return Metrics()

        def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
            self.seconds.append(-self.last + self._read())
            return False, Metrics()

        def _read(self) -> float:
            recipe.finish(options.device)
            self.last = time.perf_counter()
            return self.last

    rank = int(os.environ.get("PFL_WORKER_RANK", 0))
    users = [PyTorchTensorDataset(tensors) for tensors in recipe.clients(options.device)]
    sampler = get_user_sampler("minimize_reuse", list(range(recipe.CLIENTS)))
    federation = FederatedDataset(users.__getitem__, sampler)
    network = Network().to(options.device)
    model = PyTorchModel(
        network,
        local_optimizer_create=torch.optim.SGD,
        central_optimizer=torch.optim.SGD(network.parameters(), 1.0),
        amp_dtype=torch.bfloat16 if options.bfloat16 else None,
        use_torch_compile=options.compile,
    )
    rounds, clock = options.warm_up + options.rounds, Clock()
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=rounds,
            evaluation_frequency=rounds,
            train_cohort_size=recipe.COHORT,
            val_cohort_size=0,
        ),
        SimulatedBackend(training_data=federation, val_data=federation, postprocessors=[WeightByUser()]),
        model,
        NNTrainHyperParams(local_learning_rate=recipe.LR, local_num_epochs=1, local_batch_size=recipe.BATCH),
        callbacks=[clock],
        send_metrics_to_platform=False,
    )
    if rank == 0:
        how = {"processes": options.processes, "bfloat16": options.bfloat16, "compile": options.compile}
        recipe.report("pfl", version("pfl"), options, clock.seconds, **how)


def _use_gloo() -> None:
    initialise = torch.distributed.init_process_group

    def with_gloo(backend=None, **settings):
        initialise(backend="gloo", **settings)

    torch.distributed.init_process_group = with_gloo


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return listener.getsockname()[1]


if __name__ == "__main__":
    main()
