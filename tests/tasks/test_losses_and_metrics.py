"""Every loss and metric is the function that its name promises."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from sklearn import metrics as reference  # type: ignore[import-untyped, unused-ignore]
from torch import Tensor

from fedvote.core import Dataset, Examples, Task
from fedvote.errors import ConfigError
from fedvote.plan import Plan
from fedvote.runs.config import parse
from fedvote.runs.toml_tables import as_table, to_toml
from fedvote.tasks.goal import Goal
from fedvote.tasks.losses import LOSSES, USUAL, Huber, Loss
from fedvote.tasks.metrics import F1, METRICS, Metric

LOGITS, CLASSES = torch.randn(60, 4, generator=torch.Generator().manual_seed(1)), torch.arange(60) % 4
NUMBERS = torch.randn(60, 4, generator=torch.Generator().manual_seed(2))
LABELS = (NUMBERS > 0.3).float()


def targets_of(task: Task) -> Tensor:
    return {"classification": CLASSES, "regression": NUMBERS, "multi-label": LABELS}[task]


def dataset(task: Task, y: Tensor | None = None) -> Dataset:
    examples = Examples(torch.zeros(60, 3), targets_of(task) if y is None else y)
    return Dataset("some data", examples, examples, tuple("abcd"), None, task)


def tried(plan: Plan, data: Dataset, outputs: Callable[[Tensor], Tensor] = lambda x: LOGITS[: len(x)]) -> Goal:
    goal = Goal.of(plan.loss, plan.metric, data)
    goal.try_on(outputs, data, batch=60)
    return goal


def test_metrics_agree_with_scikit_learn() -> None:
    classes, answers = CLASSES.numpy(), LOGITS.argmax(1).numpy()
    expected = {
        ("accuracy", "classification"): reference.accuracy_score(classes, answers),
        ("f1", "classification"): reference.f1_score(classes, answers, average="macro"),
        ("f1", "multi-label"): reference.f1_score(LABELS, LOGITS > 0, average="macro"),
        ("exact", "multi-label"): reference.accuracy_score(LABELS, LOGITS > 0),
        ("r2", "regression"): reference.r2_score(NUMBERS, LOGITS),
        ("rmse", "regression"): math.sqrt(reference.mean_squared_error(NUMBERS, LOGITS)),
        ("mae", "regression"): reference.mean_absolute_error(NUMBERS, LOGITS),
    }
    for (name, task), value in expected.items():
        assert METRICS[name]()(LOGITS, targets_of(task)) == pytest.approx(value, rel=1e-5), name  # type: ignore[arg-type]
    assert {name for name, _ in expected} == METRICS.keys() - {"auto"}
    assert F1("micro")(LOGITS, LABELS) == pytest.approx(reference.f1_score(LABELS, LOGITS > 0, average="micro"))


@pytest.mark.parametrize("name", sorted(METRICS.keys() - {"auto"}))
def test_a_metric_prefers_perfect_outputs_to_random_ones(name: str) -> None:
    metric = METRICS[name]()
    task = metric.tasks[0]
    perfect = F.one_hot(CLASSES, 4).float() if task == "classification" else targets_of(task) * 2 - 1
    perfect = NUMBERS if task == "regression" else perfect
    better = metric(perfect, targets_of(task)) - metric(LOGITS, targets_of(task))
    assert (better > 0) == metric.higher_is_better


@pytest.mark.parametrize("name", sorted(LOSSES.keys() - {"auto"}))
def test_the_sum_of_a_loss_over_batches_is_its_mean_over_all(name: str) -> None:
    loss = LOSSES[name]()
    y = targets_of(loss.tasks[0])
    halves = loss.total(LOGITS[:20], y[:20]) + loss.total(LOGITS[20:], y[20:])
    assert halves / 60 == pytest.approx(float(loss(LOGITS, y)), rel=1e-5)


@pytest.mark.parametrize("task", USUAL)
def test_auto_chooses_a_loss_and_a_metric_for_the_task(task: Task) -> None:
    goal = Goal.of(Plan().loss, Plan().metric, dataset(task))
    assert task in goal.loss.tasks and task in goal.metric.tasks


def pinball(outputs: Tensor, targets: Tensor) -> Tensor:
    return torch.maximum(0.9 * (targets - outputs), 0.1 * (outputs - targets)).mean()


def worst(outputs: Tensor, targets: Tensor) -> float:
    return float((outputs - targets).abs().max())


worst.higher_is_better = False  # type: ignore[attr-defined]


def test_a_plain_function_is_a_loss_or_a_metric() -> None:
    plan = Plan.of(loss=pinball, metric=worst)
    assert isinstance(plan.loss, Loss) and isinstance(plan.metric, Metric)
    goal = Goal.of(plan.loss, plan.metric, dataset("regression"))
    assert goal.loss(LOGITS, NUMBERS) == pinball(LOGITS, NUMBERS)
    assert goal.record == {"metric": {"name": "worst", "higher_is_better": False, "percent": False}}
    assert plan == Plan.of(loss=pinball, metric=worst), "the same functions make the same plan"


def test_a_configuration_names_losses_and_functions_and_is_written_back() -> None:
    named = parse("loss = {name = 'huber', delta = 0.5}\nmetric = 'rmse'", "here")
    assert named.loss == Huber(0.5)
    own = parse(f"loss = '{__file__}:pinball'\nmetric = '{__file__}:worst'", "here")
    assert own.metric.name == "worst" and not own.metric.higher_is_better
    for config in (named, own):
        assert parse(to_toml(as_table(config)), "again") == config


@pytest.mark.parametrize(
    ("knobs", "task", "words"),
    [
        (
            {"loss": lambda o, y: (o - y).square()},
            "regression",
            r"returns a tensor of shape \(60, 4\).*add .mean",
        ),
        (
            {"loss": lambda o, y: 3.0},
            "regression",
            "returns a float, expected one number as a tensor.*: return the",
        ),
        ({"loss": lambda o, y: None}, "regression", "returns nothing, expected one number .*: return that number$"),
        ({"loss": lambda o, y: y.sum()}, "regression", "does not depend on the outputs.*: compute it from the outputs"),
        ({"loss": lambda o, y: o.mean().detach()}, "regression", "does not depend on the outputs.*without .detach"),
        (
            {"loss": lambda o, y: o.mean() * math.nan},
            "regression",
            "returns nan though all outputs are finite.*: bound",
        ),
        (
            {"loss": lambda o, y: (o + torch.rand_like(o)).mean()},
            "regression",
            "another number each time.*: draw no random",
        ),
        ({"metric": lambda o, y: 1 / 0}, "regression", r"metric lambda fails on .*\(division by zero\)"),
        ({"loss": lambda o, y: o[y]}, "regression", "loss lambda fails on outputs of shape"),
        ({"metric": lambda o, y: math.nan}, "regression", "metric lambda is nan on 60 test examples"),
        ({"metric": lambda o, y: o}, "regression", "metric lambda fails on outputs of shape"),
        ({"loss": "mse"}, "classification", "loss MSE is for regression, but the task of some data is classification"),
        ({"metric": "accuracy"}, "multi-label", "known for it: auto, f1, exact"),
    ],
)
def test_what_cannot_be_a_goal_is_refused_in_one_sentence(knobs: dict[str, object], task: Task, words: str) -> None:
    plan = Plan.of(**knobs)
    with pytest.raises(ConfigError, match=words):
        tried(plan, dataset(task))


def test_a_loss_and_a_metric_may_be_of_probabilities_if_the_network_gives_them() -> None:
    def right(outputs: Tensor, targets: Tensor) -> float:
        assert bool(((outputs >= 0) & (outputs <= 1)).all())
        return float(((outputs > 0.5) == (targets > 0.5)).float().mean())

    plan, data = Plan.of(loss=F.binary_cross_entropy, metric=right), dataset("multi-label")
    tried(plan, data, lambda x: LOGITS[: len(x)].sigmoid())
    with pytest.raises(ConfigError, match="the loss binary_cross_entropy fails"):
        tried(plan, data)


def test_a_loss_that_would_have_to_train_itself_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"PReLU has weights of its own \(weight\), .* requires_grad_\(False\) on it"):
        Plan.of(loss=torch.nn.PReLU())
    Plan.of(loss=torch.nn.PReLU().requires_grad_(False))


def test_a_metric_called_as_another_field_is_refused() -> None:
    def loss(outputs: Tensor, targets: Tensor) -> float:
        return 0.0

    with pytest.raises(ConfigError, match="the metric is called loss"):
        Goal.of(Plan().loss, Plan.of(metric=loss).metric, dataset("regression"))


def test_r2_of_equal_targets_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"metric r2 is .* on 60 test examples"):
        tried(Plan(), dataset("regression", torch.ones(60, 4)))
