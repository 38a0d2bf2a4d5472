"""Late labels: honest, and then wrong labels with no more work than a usual honest client."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fedvote.attacks import LateLabels, Seen
from fedvote.attacks.late_labels import rounded
from fedvote.errors import ConfigError
from fedvote.quantize import BINARY, TERNARY, Alphabet, round_by_shared_random
from fedvote.randomness import Key

N, LAYERS = 3000, {"first": slice(0, 1000), "second": slice(1000, 3000)}


def trained(clients: range, length: float, start_N: Tensor, alphabet: Alphabet, round: int) -> tuple[Tensor, list[Key]]:
    """Ballots of clients that moved all weights by about so much."""
    moves_KN = length * torch.randn(len(clients), N, generator=Key(9, round).torch("moves"))
    keys = [Key(0, round, client) for client in clients]
    return round_by_shared_random((start_N + moves_KN).clamp(-1, 1), alphabet, keys), keys


def view(round: int, alphabet: Alphabet) -> Seen:
    start_N = torch.rand(N, generator=Key(1).torch("start")) * 1.6 - 0.8
    own, keys = trained(range(4), 0.8, start_N, alphabet, round)
    honest, theirs = trained(range(4, 11), 0.2, start_N, alphabet, round)
    return Seen({"votes": own}, {"votes": honest}, keys, 11, {"votes": start_N}, layers=LAYERS, honest_keys=theirs)


def test_labels_are_wrong_and_votes_are_changed_from_a_round_on() -> None:
    attack, labels = LateLabels(starts=5), torch.tensor([[0, 9]])
    assert attack.poison(labels, 10, [Key(0, 4, 1)]).tolist() == [[0, 9]]
    assert attack.poison(labels, 10, [Key(0, 5, 1)]).tolist() == [[9, 0]]
    before, after = view(4, BINARY), view(5, BINARY)
    assert attack.tamper(before) is before.own
    assert not torch.equal(attack.tamper(after)["votes"], after.own["votes"])


@pytest.mark.parametrize("alphabet", [BINARY, TERNARY], ids=["binary", "ternary"])
@pytest.mark.parametrize("work", [0.5, 1.0])
def test_work_is_at_most_that_of_the_median_honest_client_in_every_layer(alphabet: Alphabet, work: float) -> None:
    seen = view(19, alphabet)
    start_N, sent_HN = seen.unmoved["votes"], LateLabels(work=work).tamper(seen)["votes"]
    untrained_HN, jumps_HN = rounded(sent_HN, start_N, alphabet, seen.keys)
    _, honest_GN = rounded(seen.honest["votes"], start_N, alphabet, seen.honest_keys)
    for layer in LAYERS.values():
        own_Hn, honest_Gn = jumps_HN[:, layer], honest_GN[:, layer]
        number, length = (own_Hn > 0).sum(1), own_Hn.sum(1)
        allowed = work * float((honest_Gn > 0).sum(1).float().median())
        assert allowed / 2 < int(number.min()) and int(number.max()) <= allowed
        assert float(length.max()) <= work * float(honest_Gn.sum(1).median()) + 1e-3
    innovations_HN = sent_HN != untrained_HN
    assert torch.equal(sent_HN[innovations_HN], seen.own["votes"][innovations_HN])


def test_floats_move_towards_wrong_labels_as_far_as_the_median_honest_client() -> None:
    own, start = torch.tensor([[5.0, 1.0], [1.0, 0.0]]), torch.tensor([1.0, 1.0])
    honest = torch.tensor([[1.0, 2.0], [1.0, 3.0], [1.0, 9.0]])
    seen = Seen({"float": own}, {"float": honest}, [Key(0, 20, 1), Key(0, 20, 2)], unmoved={"float": start})
    torch.testing.assert_close(LateLabels().tamper(seen)["float"], torch.tensor([[3.0, 1.0], [1.0, -1.0]]))


@pytest.mark.parametrize(("name", "value"), [("starts", 0), ("work", 0.0), ("work", float("inf"))])
def test_settings_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"{name} is {value}"):
        LateLabels(**{name: value})  # type: ignore[arg-type]
