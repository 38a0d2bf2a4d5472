"""Unknown keys, unknown names and wrong types are refused in one sentence."""

from __future__ import annotations

import pytest

from tests.runs.tables import refuse


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("round=3", "the configuration has no key 'round'; known: seed, rounds, partition"),
        ("data.folder=x", "data has no key 'folder'; known: name"),
        ("federation.size=3", "federation has no key 'size'; known: clients, cohort"),
        ("model.layers=3", "model has no key 'layers'; known: name, keep_float"),
        ("local.passes=3", "local has no key 'passes'; known: steps, batch, epochs"),
        ("engine.threads=3", "engine has no key 'threads'; known: stack, precision"),
        ("partition.beta=3", "partition 'dirichlet' has no key 'beta'; known: alpha, min_samples"),
        ("method.learning_rate=3", "method 'fedvote' has no key 'learning_rate'; known: lr, optimizer"),
        ("method.normalisation.a=0", "a is 0.0, expected a finite number above 0"),
        ("method.normalisation.a=nan", "a is nan, expected a number"),
        ("method.normalisation.b=3", "method.normalisation 'tanh' has no key 'b'; known: a"),
        ("method.reputation.beta=0.5", "method.reputation 'uniform' has no key 'beta'; known: none"),
        ("method.optimizer_options.beta=1", "Adam has no option beta; known: amsgrad, betas"),
    ],
)
def test_unknown_keys_are_refused_at_every_level_with_those_known(setting: str, sentence: str) -> None:
    refuse(sentence, "", setting)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("method=fedsgd", "method 'fedsgd' is not known; known: fedvote, fedavg"),
        ("method.name=3", "method '3' is not known; known: fedvote"),
        ("partition=even", "partition 'even' is not known; known: iid, dirichlet"),
        ("method.reputation=fame", "method.reputation 'fame' is not known; known: uniform, proportional"),
        ("method.normalisation=cube", "normalisation 'cube' is not known; known: tanh, erf"),
    ],
)
def test_unknown_names_are_refused_with_those_known(setting: str, sentence: str) -> None:
    refuse(sentence, "", setting)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("rounds=many", "rounds is 'many', expected a whole number"),
        ("rounds=2.5", "rounds is 2.5, expected a whole number"),
        ("rounds=true", "rounds is True, expected a whole number"),
        ("data.name=3", "data.name is 3, expected a string"),
        ("data=3", "data is 3, expected a table"),
        ("federation=everyone", "federation has no key 'name'"),
        ("method.lr=fast", "method.lr is 'fast', expected a number"),
        ("method.lr=true", "lr is True, expected a number"),
        ("method.train_float=1", "train_float is 1, expected true or false"),
        ("method.optimizer_options=3", "optimizer_options is 3, expected a table"),
        ("model.keep_float=last", "keep_float is 'last', expected a list of strings such as"),
        ("model.keep_float=[1]", "keep_float is [1], expected a list of strings such as"),
        ("method=3", "method is 3, expected a name or a table; known: fedvote, fedavg"),
        ("partition=[]", "partition is [], expected a name or a table; known: iid"),
    ],
)
def test_wrong_types_are_refused_with_the_right_one(setting: str, sentence: str) -> None:
    refuse(sentence, "", setting)
