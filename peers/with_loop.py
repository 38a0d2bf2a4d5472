"""The job as a plain PyTorch loop: for each client, copy the model, train it, and add it to the sum."""

from __future__ import annotations

import time

import recipe
import torch


def main() -> None:
    options = recipe.arguments(bfloat16=recipe.HALF)
    data, model = recipe.clients(options.device), recipe.network().to(options.device)
    weights = list(model.parameters())
    globally = [weight.detach().clone() for weight in weights]
    seconds = []
    for number in range(options.warm_up + options.rounds):
        recipe.finish(options.device)
        began = time.perf_counter()
        total = [torch.zeros_like(weight) for weight in globally]
        for client in recipe.cohort(number):
            with torch.no_grad():
                torch._foreach_copy_(weights, globally)
            optimizer = torch.optim.SGD(weights, lr=recipe.LR)
            x, y = data[client]
            for x_B, y_B in zip(x.split(recipe.BATCH), y.split(recipe.BATCH), strict=True):
                recipe.step(model, optimizer, x_B, y_B, options.bfloat16)
            with torch.no_grad():
                torch._foreach_add_(total, weights)
        globally = [weight / recipe.COHORT for weight in total]
        recipe.finish(options.device)
        seconds.append(time.perf_counter() - began)
    recipe.report("loop", torch.__version__, options, seconds, processes=1, bfloat16=options.bfloat16)


if __name__ == "__main__":
    main()
