"""Float methods that round their broadcast: clients have exactly the server's weights, and nothing is lost for long."""

from __future__ import annotations

import pytest
import torch

from fedvote import FedAvg, FedPAQ
from fedvote.errors import ConfigError
from fedvote.methods import Eden
from fedvote.methods.rounded_broadcast import UNSENT, RoundedBroadcast
from tests.toy import Federation, assert_same, open_round, read_broadcast

METHODS = [FedAvg(down_levels=3), FedPAQ(bucket=64, down_levels=7), Eden(down_levels=1)]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_clients_decode_what_the_server_continues_from(method: RoundedBroadcast) -> None:
    federation = Federation(method)
    _, second, third = federation.states([range(5), range(5)])
    held = method.broadcast(second)
    short, whole = (open_round(method, federation.network, third, 3, each) for each in (held, None))
    assert len(short) < len(whole) / 2
    for frame, reference in ((short, held), (whole, None)):
        assert_same(read_broadcast(method, federation.network, frame, 3, reference), method.broadcast(third))


def test_clients_decode_pruned_weights_to_the_last_bit() -> None:
    """A negative weight times a mask of 0 is -0.0: another checksum than 0.0, so another reference."""
    method = FedAvg(down_levels=1)
    federation = Federation(method)
    before = federation.start()
    before["voted"][::2] = -0.0
    held, after = method.broadcast(before), federation.round(before, 1)
    frame = open_round(method, federation.network, after, 2, held)
    assert_same(read_broadcast(method, federation.network, frame, 2, held), method.broadcast(after))


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_what_rounding_cuts_off_is_kept_and_sent_later(method: RoundedBroadcast) -> None:
    before = Federation(method).start()
    target = {name: before[name] + 0.1 * torch.arange(len(before[name])) for name in ("voted", "float")}
    after = method.rounded(before, target)
    for name, value in target.items():
        torch.testing.assert_close(after[name] - after[UNSENT + name], value, rtol=1e-5, atol=1e-5)
    for _ in range(60):
        after = method.rounded(after, {name: after[name] for name in target})
    for name, value in target.items():
        torch.testing.assert_close(after[name], value, rtol=1e-4, atol=1e-4)


def test_without_levels_there_is_no_more_state() -> None:
    assert set(Federation(FedAvg()).start()) == {"voted", "float"}


def test_levels_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"down_levels is 128, expected 0 \(float32\) or 1 to 127"):
        FedAvg(down_levels=128)
