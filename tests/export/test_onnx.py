"""An exported file answers as the network does, with its votes packed, in a runtime that knows nothing of fedvote."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedvote import FedAvg, Federation, FedVote, Plan, load_network, save_network
from fedvote.core import Weights
from fedvote.errors import ConfigError, ModelError
from fedvote.export.c import export_c
from fedvote.export.c.program import Program
from fedvote.export.onnx import export_onnx, outputs
from fedvote.method import Method
from fedvote.models import make_model
from fedvote.network.deployed import Deployed
from fedvote.network.network import Network
from tests.export.networks import CASES, IMAGE, TRIED, VALUES, deployed, inputs, mlp
from tests.toy import dataset


def answers(path: Path, x: Tensor) -> NDArray[Any]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {"input": x.numpy()})
    return np.asarray(logits)


@pytest.mark.parametrize(("case", "votes"), TRIED)
def test_the_file_answers_as_the_network_does(tmp_path: Path, case: str, votes: str) -> None:
    make, shape, dtype = CASES[case]
    network = deployed(make(), votes, shape, dtype)
    made = export_onnx(network, tmp_path / "deep" / "network.onnx")
    for count in (1, 2, 60):
        x = inputs(shape, dtype, count)
        assert np.allclose(answers(made.path, x), network(x), rtol=1e-4, atol=1e-4 * float(network(x).abs().max()))
    assert made.agreement == 1 and made.nbytes == made.path.stat().st_size
    voted = sum(slot.size for slot in Network(make()).voted)
    assert made.votes == (voted if votes in VALUES else 0)


@pytest.mark.parametrize(("method", "votes"), [(FedVote(), 6 * 16), (FedAvg(), 0)], ids=["fedvote", "fedavg"])
def test_a_frozen_weight_of_zeros_is_no_vote(tmp_path: Path, method: Method, votes: int) -> None:
    module = nn.Sequential(nn.Linear(6, 16), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
    nn.init.zeros_(module[1].weight)  # type: ignore[arg-type]
    module[1].requires_grad_(False)
    federation = Federation.of(module, dataset(), method, Plan.of(clients=5, rounds=1, batch=8), device="cpu")
    network = load_network(save_network(tmp_path, federation, federation.start()), module)
    assert export_onnx(network, tmp_path / "network.onnx").votes == votes
    assert Program(network, "network").votes == votes


@pytest.mark.parametrize(("votes", "a_byte"), [("binary", 8), ("ternary", 5)])
def test_weights_take_their_bits_and_little_else(tmp_path: Path, votes: str, a_byte: int) -> None:
    made = export_onnx(deployed(make_model("lenet5", IMAGE, 4), votes, IMAGE), tmp_path / "network.onnx")
    floats = 4 * (512 * 4 + 2 * (32 + 64 + 512))  # the last layer; a scale and a shift of every output
    assert made.votes / a_byte < made.nbytes < made.votes / a_byte + floats + 8_000


def test_the_file_says_what_it_takes_and_what_its_outputs_mean(tmp_path: Path) -> None:
    made = export_onnx(deployed(mlp(), "binary", (20,), torch.float32), tmp_path / "network.onnx")
    model = onnx.load(made.path)
    onnx.checker.check_model(model, full_check=True)
    assert json.loads({each.key: each.value for each in model.metadata_props}["classes"]) == list("abcd")
    assert model.producer_name == "fedvote"
    ((taken,), (given,)) = model.graph.input, model.graph.output
    assert (taken.name, taken.type.tensor_type.shape.dim[1].dim_value) == ("input", 20)
    assert given.name == "logits" and taken.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    assert not any(part.metadata_props or part.doc_string for part in model.graph.node)


@pytest.mark.parametrize("votes", ["binary", "ternary", "float"])
def test_integers_between_layers_change_few_answers(tmp_path: Path, votes: str) -> None:
    network, x = deployed(make_model("lenet5", IMAGE, 4), votes, IMAGE), inputs(IMAGE, torch.uint8, 300)
    made = export_onnx(network, tmp_path / "int8.onnx", int8=x[:200])
    same = answers(made.path, x[200:]).argmax(1) == network(x[200:]).argmax(1).numpy()
    assert same.mean() >= 0.9 and made.agreement and made.agreement >= 0.9
    assert made.votes == (Network(make_model("lenet5", IMAGE, 4)).D if votes in VALUES else 0)
    plain = export_onnx(network, tmp_path / "plain.onnx")
    assert made.nbytes < plain.nbytes / 3.5 if votes == "float" else made.nbytes < 1.1 * plain.nbytes
    kinds = {node.op_type for node in onnx.load(made.path).graph.node}
    assert {"QuantizeLinear", "DequantizeLinear"} <= kinds


def test_votes_stay_votes_among_integers(tmp_path: Path) -> None:
    """127 in their place would be as good, but sums of two products overflow 16 bits on processors without VNNI."""
    network = deployed(make_model("lenet5", IMAGE, 4), "ternary", IMAGE)
    export_onnx(network, tmp_path / "int8.onnx", int8=inputs(IMAGE, torch.uint8))
    model = onnx.load(tmp_path / "int8.onnx")
    (table,) = [each for each in model.graph.initializer if each.name == "ternary votes"]
    assert set(onnx.numpy_helper.to_array(table).flat) == {-1, 0, 1}
    made_by = {node.output[0]: node.op_type for node in model.graph.node}
    weights = [node.input[0] for node in model.graph.node if node.op_type == "DequantizeLinear"]
    assert [made_by.get(name) for name in weights].count("Reshape") == 3


def test_inputs_of_another_kind_are_refused(tmp_path: Path) -> None:
    network = deployed(make_model("lenet5", IMAGE, 4), "binary", IMAGE)
    for wrong in (inputs((3, 8, 8), torch.uint8), inputs(IMAGE, torch.float32), inputs(IMAGE, torch.uint8, 0)):
        with pytest.raises(ConfigError, match=r"int8 is torch\.\w+ of shape .*, expected inputs as the network takes"):
            export_onnx(network, tmp_path / "network.onnx", int8=wrong)
    assert not list(tmp_path.iterdir())


def test_a_file_that_answers_otherwise_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network, module = deployed(mlp(), "binary", (20,), torch.float32), importlib.import_module("fedvote.export.onnx")
    scaled = module._decoder

    def wrong(name: str, packed: Any, shape: tuple[int, ...]) -> Any:
        constants, nodes = scaled(name, packed, shape)
        kept = [each for each in constants if not each.name.endswith(".packed")]
        return [*kept, onnx.numpy_helper.from_array(255 - packed.bytes, f"{name}.packed")], nodes

    monkeypatch.setattr(module, "_decoder", wrong)
    with pytest.raises(ModelError, match="answers differently from the network"):
        export_onnx(network, tmp_path / "network.onnx")
    with pytest.raises(ModelError, match="inputs the same class as with floats, expected 90%"):
        export_onnx(network, tmp_path / "network.onnx", int8=inputs((20,), torch.float32))
    assert not list(tmp_path.iterdir())


def test_a_network_that_cannot_be_translated_is_named(tmp_path: Path) -> None:
    class Odd(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x if float(x.sum()) > 0 else -x  # which a graph cannot say

    network = Deployed(Odd(), (), (), "ab", (2,), torch.float32).eval()
    with pytest.raises(ModelError, match=r"cannot be made ONNX: torch cannot translate it \(Could not guard on data"):
        export_onnx(network, tmp_path / "network.onnx")


class Stacked(nn.Module):
    """A forward that torch can only translate for one size of batch."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 8), nn.ReLU(), nn.Linear(8, 4))

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([self.layers(row) for row in x])


class Tokens(nn.Module):
    """Ten tokens, the first of them `first`, through an embedding and an encoder."""

    def __init__(self, encoder: nn.Module, first: int = 0) -> None:
        super().__init__()
        self.first, self.embedding, self.encoder, self.last = first, nn.Embedding(10, 8), encoder, nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        encoded = self.encoder(self.embedding(x.long() - self.first))
        y: Tensor = self.last((encoded[0] if isinstance(encoded, tuple) else encoded).mean(1))
        return y


def of_tokens(encoder: nn.Module, dtype: torch.dtype, first: int = 0) -> tuple[Deployed, Tensor]:
    """A network of rows of six tokens, and such rows."""
    x = torch.randint(first, first + 10, (60, 6), generator=torch.Generator().manual_seed(1)).to(dtype)
    return Deployed(Tokens(encoder, first), (), (), "abcd", (6,), dtype).eval().requires_grad_(False), x


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_a_network_with_an_embedding_is_tried_on_tokens_that_it_has(
    tmp_path: Path, kind: str, dtype: torch.dtype
) -> None:
    torch.manual_seed(3)
    attention = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.LSTM(8, 8, batch_first=True) if kind == "lstm" else nn.TransformerEncoder(attention, 1)
    network, x = of_tokens(encoder, dtype)
    made = export_onnx(network, tmp_path / "network.onnx")
    assert np.allclose(answers(made.path, x), network(x), rtol=1e-4, atol=1e-4) and made.agreement == 1
    integers = export_onnx(network, tmp_path / "int8.onnx", int8=x)
    assert integers.agreement and integers.agreement >= 0.9
    if dtype == torch.float32:
        with pytest.raises(ModelError, match=r"for which there is no C yet; .* export it as onnx"):
            export_c(network, tmp_path / "network.c")


def test_a_network_that_accepts_no_random_inputs_is_tried_on_those_given(tmp_path: Path) -> None:
    network, x = of_tokens(nn.Linear(8, 8), torch.float32, first=50)
    with pytest.raises(ModelError, match=r"accepts no random inputs \(IndexError: index out of range.*inputs=x\[:4\]"):
        export_onnx(network, tmp_path / "network.onnx")
    for count in (1, 60):
        made = export_onnx(network, tmp_path / "network.onnx", inputs=x[:count])
        assert np.allclose(answers(made.path, x), network(x), rtol=1e-4, atol=1e-4)
    assert export_onnx(network, tmp_path / "int8.onnx", int8=x).agreement
    with pytest.raises(ConfigError, match=r"inputs is torch\.int64 of shape \(60, 6\), expected inputs as the network"):
        export_onnx(network, tmp_path / "network.onnx", inputs=x.long())


def test_a_graph_for_batches_of_one_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot be made ONNX: .*(batch|size|constraint|specialize)"):
        export_onnx(deployed(Stacked(), "binary", (20,), torch.float32), tmp_path / "network.onnx")
    assert not list(tmp_path.iterdir())


class Counted(nn.Module):
    """Its forward asks for the size of the batch by len."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(1, 4))
        self.layers = nn.Sequential(nn.Linear(20, 8), nn.ReLU(), nn.Linear(8, 4))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x) + self.first.expand(len(x), -1)
        return y


def test_a_forward_that_calls_len_is_exported_for_batches_of_any_size(tmp_path: Path) -> None:
    network, x = deployed(Counted(), "binary", (20,), torch.float32), inputs((20,), torch.float32, 7)
    for made in (export_onnx(network, tmp_path / "x.onnx"), export_onnx(network, tmp_path / "i.onnx", int8=x)):
        assert answers(made.path, x).shape == (7, 4) and answers(made.path, x[:1]).shape == (1, 4)
    assert np.allclose(answers(tmp_path / "x.onnx", x), network(x), rtol=1e-4, atol=1e-4)
    with pytest.raises(ModelError, match=r"a Shape of inputs .* for which there is no C yet"):
        export_c(network, tmp_path / "network.c")


class Tied(nn.Module):
    """The last layer has the weight of the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.middle, self.last = nn.Embedding(10, 8), nn.Linear(8, 8), nn.Linear(8, 10, bias=False)
        self.last.weight = self.table.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.middle(self.table(x.long()).mean(1)).tanh())  # type: ignore[no-any-return]


@pytest.mark.parametrize("voted", [["middle.weight"], ["middle.weight", "table.weight"]])
def test_a_weight_that_an_embedding_shares_stays_float_among_integers(tmp_path: Path, voted: list[str]) -> None:
    torch.manual_seed(3)
    made = Network(Tied(), shape=(6,), voted=voted)
    votes = torch.where(made.start.voted > 0, 1.0, -1.0)
    module = made.module(Weights(votes, made.start.floats), {})
    network = Deployed(module, (), (), tuple("abcdefghij"), (6,), torch.float32).eval()
    x = torch.randint(0, 10, (60, 6), generator=torch.Generator().manual_seed(1)).float()
    integers = export_onnx(network, tmp_path / "int8.onnx", int8=x)
    assert integers.agreement and integers.agreement >= 0.9


def test_what_is_translated_wrongly_is_not_rounded_to_integers(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AvgPool2d(2, divisor_override=3), nn.Flatten(), nn.Linear(196, 4))
    with pytest.raises(ModelError, match="answers differently from the network"):
        export_onnx(deployed(module, "binary", IMAGE), tmp_path / "x.onnx", int8=inputs(IMAGE, torch.uint8))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("votes", ["binary", "ternary"])
def test_votes_are_found_whichever_axis_is_that_of_outputs(tmp_path: Path, votes: str) -> None:
    """Linear layers over sequences, and convolutions the other way round, with and without batch norm and groups."""
    sequence = nn.Sequential(nn.Linear(8, 5), nn.ReLU(), nn.Flatten(), nn.Linear(15, 4))
    upwards = nn.Sequential(nn.ConvTranspose2d(3, 5, 3), nn.BatchNorm2d(5), nn.ReLU(), nn.ConvTranspose2d(5, 6, 3))
    upwards = nn.Sequential(upwards, nn.Flatten(), nn.Linear(6 * 10 * 10, 4))
    groups = nn.Sequential(nn.ConvTranspose2d(6, 8, 3, groups=2), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten())
    groups = nn.Sequential(groups, nn.Linear(8 * 8 * 8, 4))
    cases = ((sequence, (3, 8)), (upwards, (3, 6, 6)), (groups, (6, 6, 6)))
    for module, shape in cases if votes == "binary" else cases[2:]:  # alphabets differ in their values alone
        network, x = deployed(module, votes, shape, torch.float32), inputs(shape, torch.float32, 200)
        plain = export_onnx(network, tmp_path / "plain.onnx")
        integers = export_onnx(network, tmp_path / "int8.onnx", int8=x)
        assert np.allclose(answers(plain.path, x), network(x), rtol=1e-3, atol=1e-3)
        assert plain.votes == Network(module).D and integers.agreement and integers.agreement >= 0.9


def test_a_network_in_training_is_exported_as_it_will_be_used(tmp_path: Path) -> None:
    network, x = deployed(mlp(), "binary", (20,), torch.float32), inputs((20,), torch.float32, 9)
    expected = network(x)
    made = export_onnx(network.train(), tmp_path / "network.onnx")
    assert np.allclose(answers(made.path, x), expected, atol=1e-4) and network.training


def test_files_and_networks_of_another_kind_are_refused_before_anything_is_done(tmp_path: Path) -> None:
    network = deployed(mlp(), "binary", (20,), torch.float32)
    with pytest.raises(ConfigError, match=r"expected a name that ends in \.onnx"):
        export_onnx(network, tmp_path / "network.safetensors")
    with pytest.raises(ConfigError, match=r"expected a name that ends in \.c"):
        export_c(network, tmp_path / "network.h")
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(ConfigError, match=r"is a folder, expected a file in it"):
        export_onnx(network, tmp_path / "folder.onnx")
    for export, name in ((export_onnx, "x.onnx"), (export_c, "x.c")):
        with pytest.raises(
            ConfigError, match=r"got a Sequential, expected a deployed network: .*fedvote\.load_network"
        ):
            export(mlp(), tmp_path / name)  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["folder.onnx"]


@pytest.mark.parametrize("library", ["onnx", "onnxscript", "onnxruntime"])
def test_what_is_not_installed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigError, match=rf"need {library}, which is not installed: pip install '\.\[onnx\]'"):
        export_onnx(deployed(mlp(), "binary", (20,), torch.float32), tmp_path / "network.onnx")


def test_accuracy_is_that_of_the_network(tmp_path: Path) -> None:
    network, x = deployed(mlp(), "binary", (20,), torch.float32), inputs((20,), torch.float32, 250)
    y = network(x).argmax(1)
    y[:50] = (y[:50] + 1) % 4
    made = export_onnx(network, tmp_path / "network.onnx")
    assert (outputs(made.path, x).argmax(1) == y.numpy()).mean() == 0.8
