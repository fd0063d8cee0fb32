"""Networks of one stack of recurrent layers: their equations, step by step as at once."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, StackConfig
from tfm.model.layout import Layout
from tfm.model.recurrent.cells import RecurrentLayer
from tfm.tokenizer.special import BOS_ID

F64, V, DIM = torch.float64, 15, 8
TEXTS = ([4, 9, 6, 7, 12], [5], [8, 8, 10])


def network(task: str, layers: int = 2, **recurrent: Any) -> Any:
    stack = StackConfig(layers=layers, dim=DIM, heads=1)
    config = ModelConfig.model_validate(
        {
            "architecture": "recurrent",
            "task": task,
            "encoder": stack,
            "decoder": stack,
            "max_length": 20,
            "recurrent": recurrent,
            "dropout": DropoutConfig(residual=0, embedding=0),
        }
    )
    model = build(config, source_vocab=V, target_vocab=V, seed=3).double().eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("bias"):
                weight.copy_(torch.linspace(-1, 1, weight.numel()))
    return model


def read(cell: RecurrentLayer, rows: Tensor) -> Tensor:
    """h of every row of one text, one step after the other."""
    states, found = cell.zero_states(rows, 1), []
    for row in rows:
        states = cell.step(cell.input(row[None]), states)
        found.append(states[0][0])
    return torch.stack(found)


def stacked(layers: nn.ModuleList, rows: Tensor) -> Tensor:
    """All layers, with the norm that each but the first has."""
    for layer in layers:
        cells: list[Any] = list(layer.attention.cells)  # type: ignore[union-attr]
        normed = layer.around_attention.norm(rows)  # type: ignore[union-attr,operator]
        hidden = [read(cells[0], normed), *(read(cell, normed.flip(0)).flip(0) for cell in cells[1:])]
        rows = torch.cat(hidden, 1)
    return rows


def laid_out(texts: Any) -> tuple[Tensor, Layout]:
    return torch.tensor([token for text in texts for token in text]), Layout.from_lengths(
        torch.tensor([len(text) for text in texts])
    )


VARIANTS: list[dict[str, Any]] = [
    {"cell": "lstm"},
    {"cell": "gru"},
    {"cell": "gru_reset_before"},
    {"cell": "ssru"},
    {"cell": "tanh", "normalization": "layer"},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda each: each["cell"])
def test_a_language_model_is_its_layers_and_step_by_step_it_is_at_once(variant: dict[str, Any]) -> None:
    model = network("language_model", **variant)
    tokens, layout = laid_out([[BOS_ID, *text] for text in TEXTS])
    with torch.no_grad():
        found = model.log_probs(model.hidden_states(tokens, layout))
        for text, rows in zip(TEXTS, torch.split(found, layout.lengths.tolist()), strict=True):
            ids = torch.tensor([BOS_ID, *text])
            hidden = stacked(model.layers, model.embedding.table(ids) * DIM**0.5)
            want = (hidden @ model.output.weight.T).log_softmax(-1)
            torch.testing.assert_close(rows, want, rtol=0, atol=1e-10)
            state = model.empty_state(1)
            for token, row in zip(ids, rows, strict=True):
                predict, state = model.step(token[None], state)
                torch.testing.assert_close(predict(slice(0, 1))[0], row, rtol=0, atol=1e-10)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("task", ["tagging", "classification"])
def test_labels_are_of_the_rows_of_one_direction_or_two(task: str, bidirectional: bool) -> None:
    model = network(task, bidirectional=bidirectional, normalization="layer_std")
    tokens, layout = laid_out(TEXTS)
    norms = [type(layer.around_attention.norm).__name__ for layer in model.encoder]
    assert norms == ["Identity", "StdLayerNorm"]
    with torch.no_grad():
        found = model(tokens, layout)
        lengths = [len(text) if task == "tagging" else 1 for text in TEXTS]
        for text, rows in zip(TEXTS, torch.split(found, lengths), strict=True):
            want = stacked(model.encoder, model.embedding.table(torch.tensor(text)) * DIM**0.5)
            if task == "classification":
                want = torch.tanh(model.head.inner(want.mean(0, keepdim=True)))
            torch.testing.assert_close(rows, want, rtol=0, atol=1e-10)


def test_nothing_of_a_transformer_is_in_it() -> None:
    """Embedding, cells and output: D V, and of each layer 4 (2 D^2 + D)."""
    model = network("language_model", layers=3)
    assert sum(each.numel() for each in model.parameters()) == DIM * V + 3 * 4 * (2 * DIM * DIM + DIM)
    assert {name.split(".")[0] for name, _ in model.named_parameters()} == {"embedding", "layers"}


def test_norms_between_layers_of_an_encoder_and_a_decoder() -> None:
    stack = StackConfig(layers=2, dim=DIM, heads=1)
    asked = {"architecture": "recurrent", "encoder": stack, "decoder": stack, "recurrent": {"normalization": "batch"}}
    asked["dropout"] = {"residual": 0.0, "embedding": 0.0}
    model: Any = build(ModelConfig.model_validate(asked), source_vocab=V, target_vocab=V, seed=3).double()
    for layers in ([parts[0] for parts in model.encoder.layers], list(model.decoder.layers)):
        assert [type(each.input).__name__ for each in layers] == ["Linear", "Sequential"]
    tokens, layout = laid_out(TEXTS)
    rows = torch.randn(len(tokens), DIM, dtype=F64)
    hidden, _ = model.encoder(rows, layout)
    first, second = (parts[0] for parts in model.encoder.layers)
    texts = torch.split(rows, layout.lengths.tolist())
    between = torch.cat([read(first, text) for text in texts])
    normed = (between - between.mean(0)) / (between.var(0, correction=0) + 1e-5).sqrt()
    product = second.input[1]
    for text, got in zip(
        torch.split(normed, layout.lengths.tolist()), torch.split(hidden, layout.lengths.tolist()), strict=True
    ):
        states = second.zero_states(text, 1)
        for row, h in zip(text, got, strict=True):
            states = second.step(product(row[None]), states)
            torch.testing.assert_close(h, states[0][0], rtol=0, atol=1e-10)
