"""The encoder-only Transformer: heads and poolings, each as its words say."""

from typing import Any, get_args

import pytest
import torch

from tfm.model.build import build, num_parameters
from tfm.model.config import ModelConfig, Pooling, StackConfig, Task
from tfm.model.layout import Layout
from tfm.model.transformer.encoder_only import POOLINGS, EncoderOnly
from tfm.tokenizer.special import BOS_ID

LAYOUT = Layout.from_lengths(torch.tensor([2, 1, 3]))
ROWS = torch.tensor([[1.0, -4.0], [3.0, 2.0], [5.0, 5.0], [0.0, 1.0], [2.0, 0.0], [-2.0, 8.0]], dtype=torch.float64)
POOLED = {
    "mean": [[2.0, -1.0], [5.0, 5.0], [0.0, 3.0]],
    "max": [[3.0, 2.0], [5.0, 5.0], [2.0, 8.0]],
    "first": [[1.0, -4.0], [5.0, 5.0], [0.0, 1.0]],
}


def network(task: Task, **changes: Any) -> EncoderOnly:
    stack = StackConfig(layers=2, dim=16, heads=2, feed_forward_dim=32)
    config = {"architecture": "encoder_only", "task": task, "encoder": stack, "max_length": 32} | changes
    model = build(ModelConfig.model_validate(config), source_vocab=30, target_vocab=7, seed=1)
    assert isinstance(model, EncoderOnly)
    return model.double().eval()


@pytest.mark.parametrize("name", get_args(Pooling))
def test_pooling(name: str) -> None:
    rows = ROWS.clone().requires_grad_()
    assert POOLINGS[name](rows, LAYOUT).tolist() == POOLED[name]
    assert torch.autograd.gradcheck(lambda rows: POOLINGS[name](rows, LAYOUT), (rows,))


@pytest.mark.parametrize(
    ("task", "shape"), [("masked_language_model", (6, 30)), ("classification", (3, 7)), ("tagging", (6, 7))]
)
def test_what_comes_out_has_the_shape_of_the_task(task: Task, shape: tuple[int, int]) -> None:
    model = network(task)
    assert model.output(model(torch.tensor([4, 5, 6, 7, 8, 9]), LAYOUT)).shape == shape


@pytest.mark.parametrize("task", ["masked_language_model", "classification", "tagging"])
def test_a_sentence_does_not_see_another(task: Task) -> None:
    model = network(task)
    one, other = (model(torch.tensor([4, 5, last, 7, 8, 9]), LAYOUT) for last in (6, 20))
    rows = [0, 1] if task != "classification" else [0]
    rest = [3, 4, 5] if task != "classification" else [2]
    torch.testing.assert_close(one[rows + rest], other[rows + rest], rtol=0, atol=1e-12)
    changed = 2 if task != "classification" else 1
    assert not torch.allclose(one[changed], other[changed])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "post"},
        {"normalization": "batch"},
        {"normalization": "batch", "norm": "post"},
        {"task": "masked_language_model"},
        {"task": "masked_language_model", "begin_token": True},
        {"begin_token": True, "positions": "rotary", "window": 1},
        {"begin_token": True, "normalization": "batch"},
    ],
    ids=str,
)
@pytest.mark.parametrize("training", [False, True])
def test_rows_that_are_asked_for_are_those_of_all(training: bool, changes: dict[str, Any]) -> None:
    model = network(**({"task": "tagging", "dropout": {"residual": 0.0, "embedding": 0.0}} | changes)).train(training)
    source, places = torch.tensor([4, 5, 6, 7, 8, 9]), torch.tensor([5, 0, 3])
    weights = list(model.parameters())
    rows, asked = model(source, LAYOUT)[places], model(source, LAYOUT, places)
    torch.testing.assert_close(asked, rows, rtol=0, atol=1e-12)
    gradients = (torch.autograd.grad(each.sin().sum(), weights, allow_unused=True) for each in (asked, rows))
    for of_asked, of_rows in zip(*gradients, strict=True):
        assert (of_asked is None) == (of_rows is None)
        if of_rows is not None:
            torch.testing.assert_close(of_asked, of_rows, rtol=0, atol=1e-12)


def test_the_last_layer_feeds_the_rows_that_are_asked_for_alone() -> None:
    model, fed = network("tagging"), []
    model.encoder[-1].feed_forward.register_forward_hook(lambda module, inputs, output: fed.append(len(output)))
    for places in ([5, 0, 3], [], [2]):
        model(torch.tensor([4, 5, 6, 7, 8, 9]), LAYOUT, torch.tensor(places, dtype=torch.long))
    assert fed == [3, 0, 1]


def test_the_masked_model_may_tie_its_output_to_its_embeddings() -> None:
    tied, apart = network("masked_language_model"), network("masked_language_model", tie="none")
    assert tied.output.weight is tied.embedding.table.weight
    assert num_parameters(apart) == num_parameters(tied) + 30 * 16


@pytest.mark.parametrize("task", ["masked_language_model", "classification", "tagging"])
def test_a_text_is_read_after_the_begin_token(task: Task) -> None:
    """As a model without that key reads a text in which the token stands; then rows of the token are left out."""
    ours = network(task, begin_token=True, positions="learned", max_length=31, pooling="first")
    plain = network(task, positions="learned", pooling="first")
    plain.load_state_dict(ours.state_dict())
    source = torch.tensor([4, 5, 6, 7, 8, 9])
    longer, layout = (
        torch.tensor([BOS_ID, 4, 5, BOS_ID, 6, BOS_ID, 7, 8, 9]),
        Layout.from_lengths(torch.tensor([3, 2, 4])),
    )
    wanted = plain(longer, layout)
    if task != "classification":
        wanted = wanted[[1, 2, 4, 6, 7, 8]]
    torch.testing.assert_close(ours(source, LAYOUT), wanted, rtol=0, atol=1e-12)
    torch.testing.assert_close(ours.encode(source, LAYOUT), plain.encode(longer, layout), rtol=0, atol=1e-12)
    assert not torch.allclose(network(task, pooling="first")(source, LAYOUT), ours(source, LAYOUT))
    assert BOS_ID == BOS_ID


def test_gradients_reach_the_begin_token() -> None:
    ours = network("classification", begin_token=True, tie="none")
    ours.output(ours(torch.tensor([4, 5, 6, 7, 8, 9]), LAYOUT)).pow(2).sum().backward()
    found = ours.embedding.table.weight.grad.abs().sum(1)
    assert (found > 0).nonzero().squeeze(1).tolist() == [BOS_ID, *range(4, 10)]


def test_the_layer_before_the_output_is_its_equation() -> None:
    """log p = log softmax(E norm(gelu(W h + b)) + c), written out; narrower embeddings need no layer more."""
    for width in (16, 12):
        changes = {"head_transform": True, "activation": "gelu", "output_bias": True, "embedding_dim": width}
        model = network("masked_language_model", **changes, norm_eps=1e-3)
        named = {
            name: weight + 0.3 * torch.sin(torch.arange(weight.numel()).double()).view(weight.shape)
            for name, weight in model.state_dict().items()
        }
        model.load_state_dict(named)
        source = torch.tensor([4, 5, 6, 7, 8, 9])
        h = model.encode(source, LAYOUT)
        x = h @ named["head.narrow.dense.weight"].T + named["head.narrow.dense.bias"]
        x = x * (1 + torch.erf(x / 2**0.5)) / 2
        x = (x - x.mean(1, keepdim=True)) / (x.var(1, correction=0, keepdim=True) + 1e-3).sqrt()
        x = x * named["head.narrow.norm.weight"] + named["head.narrow.norm.bias"]
        wanted = x @ named["embedding.table.weight"].T + named["output.bias"]
        torch.testing.assert_close(model.output(model(source, LAYOUT)), wanted, rtol=0, atol=1e-10)
        assert model.output.weight is model.embedding.table.weight
