"""Clients that are trained together train as they would alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from torch import Tensor

from fedvote.core import Examples
from tests.toy import Federation, assert_close, batches, examples, keys, memory, scaled


def messages(federation: Federation, data: Examples, clients: Sequence[int]) -> dict[int, dict[str, Tensor]]:
    """Each client's message and memory, made in one stack."""
    network, method = federation.network, federation.method
    down = method.broadcast(federation.start())
    up, new = method.local(network, down, batches(data, clients), memory(method, network, clients), keys(clients))
    return {client: {name: value[k] for name, value in (up | new).items()} for k, client in enumerate(clients)}


def test_one_client_at_a_time_equals_all_at_once(federation: Federation) -> None:
    together = messages(federation, examples(), range(5))
    for client in range(5):
        assert_close(messages(federation, examples(), [client])[client], together[client])


@pytest.mark.parametrize("others", [(3,), (4, 0), (0, 1, 3, 4)], ids=str)
def test_a_message_does_not_depend_on_who_else_is_in_the_stack(federation: Federation, others: Sequence[int]) -> None:
    alone = messages(federation, scaled(), [2])[2]
    for stack in ([2, *others], [*others, 2]):
        assert_close(messages(federation, scaled(), stack)[2], alone)


def test_clients_with_other_data_send_other_messages(federation: Federation) -> None:
    sent = messages(federation, examples(), range(5))
    assert any((sent[0][name] != sent[1][name]).any() for name in sent[0])
