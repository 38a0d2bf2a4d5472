"""Pairs of clients in each layer: how much their innovations agreed there, over rounds.

Attackers can turn one small layer around, and train and vote honestly elsewhere. Then whole ballots agree, and only the
innovations in this layer pull against the majority. One layer has fewer innovations, and more noise, than a whole
ballot (client_pairs.py). So the sums over rounds fade more slowly, and a few rounds alone decide nothing: in noise
a few honest clients seem to belong to the attackers, which near half of the clients makes them the majority.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fedvote.core import State
from fedvote.reputation.ballot_lines import cosines_by_layer
from fedvote.reputation.client_pairs import Pairs, pair_sums
from fedvote.reputation.innovations import Part

MOST_CLIENTS = 128  # whose agreement in layers is remembered: 4 MB
PLACES = 64  # in that memory; of more layers, neighbours share a place
KEPT = 0.8  # share of the older sums
FEWEST_ROUNDS = 3  # in which most pairs have voted together


def no_layer_pairs(clients: int) -> State:
    """The memory before round 1: sums of cosines by layer, and of the rounds in which both voted."""
    columns = clients if clients <= MOST_CLIENTS else 0
    agreed_NPN = torch.zeros(clients, PLACES if columns else 0, columns)
    return {"agreed_by_layer": agreed_NPN, "met_by_layer": torch.zeros(clients, columns)}


def remembered_by_layer(memory: State, clients_n: Tensor, found: Sequence[Part], stay: Tensor) -> State:
    """The memory after a round; `stay`: the rows of the clients. A network of one layer has no parts to tell apart."""
    met_NN = memory["met_by_layer"]
    if not met_NN.shape[1] or not found[-1].layer:
        return {}
    sum_NPN = memory["agreed_by_layer"].clone()
    for place, now_nn in enumerate(cosines_by_layer(found, stay, PLACES)):
        sum_NPN[:, place] = pair_sums(sum_NPN[:, place], clients_n, now_nn, KEPT)
    return {"agreed_by_layer": sum_NPN, "met_by_layer": pair_sums(met_NN, clients_n, torch.ones(()), KEPT)}


def pairs_by_layer(memory: State, clients_n: Tensor, whole: Pairs) -> Iterator[Pairs]:
    """The pairs in each layer, once they have met often; `memory`: after the round; `whole`: pairs of whole ballots."""
    here, sum_NPN, met_NN = clients_n.cpu(), memory["agreed_by_layer"], memory["met_by_layer"].cpu()
    if not met_NN.shape[1] or met_NN[here][:, here].median() < sum(KEPT**age for age in range(FEWEST_ROUNDS)) - 1e-3:
        return
    away = torch.ones(len(sum_NPN), dtype=torch.bool).index_fill(0, here, False)
    for place in range(sum_NPN.shape[1]):
        if bool(sum_NPN[:, place].any()):
            mean_NN = (sum_NPN[:, place].cpu() / met_NN).double()
            yield replace(whole, alike_nn=mean_NN[here][:, here], absent_An=mean_NN[away][:, here], one_layer=True)
