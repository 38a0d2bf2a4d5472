"""The job in Flower's simulation: a ClientApp and a ServerApp with FedAvg, run by Ray.

One worker a core (or `--at-once` workers on the GPU), as Flower's guide says. Each worker loads the data and builds the
network once. No evaluation, no telemetry.
"""

from __future__ import annotations

import logging
import os
import time
from importlib.metadata import version
from itertools import pairwise

os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}

import recipe
import torch
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation


def client_app(device: str, threads: int, bfloat16: bool) -> ClientApp:
    app = ClientApp()

    @app.train()
    def train(message, context):
        torch.set_num_threads(threads)
        model = recipe.kept_network(device)
        model.load_state_dict(message.content["arrays"].to_torch_state_dict())
        optimizer = torch.optim.SGD(model.parameters(), lr=recipe.LR)
        x, y = recipe.clients(device)[context.node_config["partition-id"]]
        for x_B, y_B in zip(x.split(recipe.BATCH), y.split(recipe.BATCH), strict=True):
            recipe.step(model, optimizer, x_B, y_B, bfloat16)
        metrics = MetricRecord({"num-examples": len(y)})
        return Message(RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": metrics}), reply_to=message)

    return app


def count(replies, weighted_by):
    """Check that every client answered, instead of averaging metrics."""
    if len(replies) != recipe.COHORT:
        raise RuntimeError(f"{len(replies)} clients answered, expected {recipe.COHORT}")
    return MetricRecord()


def main() -> None:
    workers = {"type": int, "default": os.cpu_count(), "help": "workers"}
    options = recipe.arguments(**{"at-once": workers, "bfloat16": recipe.HALF})
    options.threads = 1
    logging.getLogger("flwr").setLevel(logging.ERROR)
    clock: list[float] = []
    server = ServerApp()

    @server.main()
    def serve(grid, context):
        # evaluate_fn is called before the first round and after each round: here it only reads the clock
        FedAvg(
            fraction_train=recipe.COHORT / recipe.CLIENTS,
            fraction_evaluate=0.0,
            min_available_nodes=recipe.CLIENTS,
            train_metrics_aggr_fn=count,
        ).start(
            grid=grid,
            initial_arrays=ArrayRecord(recipe.network().state_dict()),
            num_rounds=options.warm_up + options.rounds,
            evaluate_fn=lambda round, arrays: clock.append(time.perf_counter()),
        )

    resources = {"num_cpus": 1, "num_gpus": 1 / options.at_once if options.device == "cuda" else 0.0}
    run_simulation(
        server_app=server,
        client_app=client_app(options.device, options.threads, options.bfloat16),
        num_supernodes=recipe.CLIENTS,
        backend_config={
            "client_resources": resources,
            "init_args": {"num_cpus": options.at_once, "logging_level": "error", "log_to_driver": False},
        },
    )
    seconds = [after - before for before, after in pairwise(clock)]
    how = {"processes": options.at_once, "bfloat16": options.bfloat16, "ray": version("ray")}
    recipe.report("flower", version("flwr"), options, seconds, **how)


if __name__ == "__main__":
    main()
