"""R-Drop: the loss of two passes against its equations, and what it makes of each task and of a training."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.invariants.test_resume import SignalAt
from tests.killing import result
from tests.rounding import assert_rounds_like
from tests.tiny_training import MODEL, WHOLE_WORDS, run, training, write_dataset
from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.dataset.store import load_dataset
from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, StackConfig
from tfm.model.layers import dropout
from tfm.model.layers.adaptive_softmax import AdaptiveSoftmax, VocabularyCluster
from tfm.model.layers.linear import Linear
from tfm.pipeline.errors import RecipeError, StoppedError
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.tasks import r_drop
from tfm.pipeline.tasks.criteria import RDrop
from tfm.pipeline.tasks.losses import output_loss
from tfm.pipeline.tasks.r_drop import two_pass_loss
from tfm.pipeline.tasks.registry import make_task
from tfm.pipeline.tasks.task import LossSums, TaskContext
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.training.checks import check_adaptive_softmax
from tfm.pipeline.training.update import GradientComputer

V, E = 30, 12


def equations(
    first: Tensor, second: Tensor, weight: Tensor, targets: Tensor, smoothing: float, alpha: float
) -> tuple[Tensor, Tensor]:
    """Half of equation 4 of Liang et al. 2021 by torch's own functions, summed over rows, and the mean of -log p."""
    logits = [hidden @ weight.T for hidden in (first, second)]
    log_p = [each.log_softmax(-1) for each in logits]
    one_other = F.kl_div(log_p[1], log_p[0], reduction="sum", log_target=True)  # KL(p1 || p2)
    other_one = F.kl_div(log_p[0], log_p[1], reduction="sum", log_target=True)
    nll = sum(F.cross_entropy(each, targets, reduction="sum", label_smoothing=smoothing) for each in logits)
    assert isinstance(nll, Tensor)
    plain = sum(F.cross_entropy(each, targets, reduction="sum") for each in logits) / 2
    assert isinstance(plain, Tensor)
    return (nll + alpha * (one_other + other_one) / 2) / 2, plain


def drawn(rows: int, apart: float, dtype: torch.dtype = torch.float64) -> tuple[list[Tensor], Tensor]:
    """Hidden rows of two passes and a weight, and targets."""
    generator = torch.Generator().manual_seed(rows)
    first, moved = (torch.randn(rows, E, generator=generator, dtype=torch.float64) for _ in range(2))
    weight = torch.randn(V, E, generator=generator, dtype=torch.float64)
    targets = torch.randint(V, (rows,), generator=generator)
    return [each.to(dtype).requires_grad_() for each in (first, first + apart * moved, weight)], targets


def linear(weight: Tensor, dtype: torch.dtype = torch.float64) -> Any:
    layer = Linear(E, V, bias=False, compute_dtype=dtype)
    layer.weight = torch.nn.Parameter(weight.detach().clone())
    return layer


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("alpha", [0.3, 5.0])
@pytest.mark.parametrize(("rows", "apart"), [(1, 0.5), (40, 0.5), (1100, 0.01)])
def test_value_and_gradients_are_those_of_the_equations(
    smoothing: float, alpha: float, rows: int, apart: float
) -> None:
    leaves, targets = drawn(rows, apart)
    output = linear(leaves[2])
    total, nll = two_pass_loss(output, *leaves[:2], targets, smoothing=smoothing, alpha=alpha)
    want, plain = equations(*leaves, targets, smoothing, alpha)  # type: ignore[misc, arg-type]
    torch.testing.assert_close(total, want, rtol=1e-12, atol=1e-10)
    torch.testing.assert_close(nll, plain, rtol=1e-12, atol=1e-10)
    ours = torch.autograd.grad(total * 0.7, [*leaves[:2], output.weight])
    for found, theirs in zip(ours, torch.autograd.grad(want * 0.7, leaves), strict=True):
        torch.testing.assert_close(found, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_low_precision_rounds_as_torchs_does(dtype: torch.dtype) -> None:
    exact, targets = drawn(600, 0.5)

    def ours(first: Tensor, second: Tensor, weight: Tensor) -> tuple[Tensor, list[Tensor]]:
        output = linear(weight, dtype)
        total = two_pass_loss(output, first, second, targets, smoothing=0.1, alpha=3.0)[0]
        return total, [first, second, output.weight]

    def torchs(first: Tensor, second: Tensor, weight: Tensor) -> tuple[Tensor, list[Tensor]]:
        low = dtype is torch.bfloat16 and first.dtype is torch.float32
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            return equations(first, second, weight, targets, 0.1, 3.0)[0], [first, second, weight]

    made: list[list[Tensor]] = []
    for loss, precision in ((ours, torch.float32), (torchs, torch.float32), (torchs, torch.float64)):
        total, leaves = loss(*(each.detach().to(precision).requires_grad_() for each in exact))
        made.append([total / len(targets), *torch.autograd.grad(total, leaves)])
    for fast, plain, wanted in zip(*made, strict=True):
        assert_rounds_like(fast, plain, wanted, products=dtype)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    leaves, targets = drawn(50, 0.5)
    whole = two_pass_loss(linear(leaves[2]), *leaves[:2], targets, smoothing=0.1, alpha=2.0)[0]
    monkeypatch.setattr(r_drop, "CHUNK_ROWS", 7)
    cut = two_pass_loss(linear(leaves[2]), *leaves[:2], targets, smoothing=0.1, alpha=2.0)[0]
    torch.testing.assert_close(whole, cut, rtol=1e-13, atol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_two_passes_that_say_the_same_are_one_pass(dtype: torch.dtype) -> None:
    """Whatever alpha is, to the bit: what is apart is exactly nothing."""
    precision = torch.float64 if dtype is torch.float64 else torch.float32
    (hidden, _, weight), targets = drawn(300, 0.0, precision)
    losses, gradients = [], []
    for alpha in (1e-9, 3.0, 1e6):
        output = linear(weight, dtype)
        total = two_pass_loss(output, hidden, hidden, targets, smoothing=0.1, alpha=alpha)[0]
        losses.append(total)
        gradients.append(torch.autograd.grad(total, [hidden, output.weight]))
    assert losses[0] == losses[1] == losses[2]
    assert all(torch.equal(*each) for other in gradients[1:] for each in zip(gradients[0], other, strict=True))
    if dtype is torch.float64:
        output = linear(weight)
        one = output_loss(output, hidden, targets, smoothing=0.1)[0]
        torch.testing.assert_close(losses[0], one, rtol=1e-12, atol=0)
        for found, wanted in zip(gradients[0], torch.autograd.grad(one, [hidden, output.weight]), strict=True):
            torch.testing.assert_close(found, wanted, rtol=0, atol=1e-11)


def test_filler_costs_nothing_and_a_bias_learns() -> None:
    leaves, targets = drawn(50, 0.5)
    output = Linear(E, V, compute_dtype=torch.float64).double()
    torch.nn.init.normal_(output.bias)  # type: ignore[arg-type]
    counts = (torch.arange(50) < 40).double()
    given: dict[str, Any] = {"smoothing": 0.1, "alpha": 2.0}
    total, nll = two_pass_loss(output, *leaves[:2], targets, **given, counts=counts)
    first, second = (F.pad(each[:40], (0, 1), value=1.0) for each in leaves[:2])
    weight = torch.cat([output.weight, output.bias[:, None]], 1)  # type: ignore[index]
    want, plain = equations(first, second, weight, targets[:40], 0.1, 2.0)
    torch.testing.assert_close(total, want, rtol=1e-12, atol=1e-10)
    torch.testing.assert_close(nll, plain, rtol=1e-12, atol=1e-10)
    wanted = torch.autograd.grad(want, [*leaves[:2], *output.parameters()])
    for found, each in zip(torch.autograd.grad(total, [*leaves[:2], *output.parameters()]), wanted, strict=True):
        torch.testing.assert_close(found, each, rtol=0, atol=1e-10)


def test_an_adaptive_softmax_is_one_without_tails() -> None:
    leaves, targets = drawn(50, 0.5)
    whole = AdaptiveSoftmax([VocabularyCluster(V, E)], compute_dtype=torch.float64)
    whole.words.weight = torch.nn.Parameter(leaves[2].detach())
    total = two_pass_loss(whole, *leaves[:2], targets, smoothing=0.1, alpha=2.0)[0]
    torch.testing.assert_close(total, equations(*leaves, targets, 0.1, 2.0)[0], rtol=1e-12, atol=0)  # type: ignore[misc, arg-type]
    tails = AdaptiveSoftmax([VocabularyCluster(20, E), VocabularyCluster(10, 4)], compute_dtype=torch.float64)
    with pytest.raises(ValueError, match="needs the full softmax"):
        two_pass_loss(tails, *leaves[:2], targets, smoothing=0.0, alpha=2.0)


# Tasks

STACK = StackConfig(layers=2, dim=16, heads=2, feed_forward_dim=24)
RECURRENT = StackConfig(layers=1, dim=16, heads=2)
KINDS: dict[str, dict[str, Any]] = {
    "translation": {},
    "recurrent": {"architecture": "recurrent", "encoder": RECURRENT, "decoder": RECURRENT},
    "translation of one stack": {"architecture": "decoder_only"},
    "language model": {"architecture": "decoder_only", "task": "language_model"},
    "language model of windows": {"architecture": "decoder_only", "task": "language_model", "block": 5},
    "masked language model": {"architecture": "encoder_only", "task": "masked_language_model"},
    "span corruption": {"task": "span_corruption"},
    "tagging": {"architecture": "encoder_only", "task": "tagging"},
    "classification": {"architecture": "encoder_only", "task": "classification"},
}
DROPPED = DropoutConfig(residual=0.3, embedding=0.1, feed_forward=0.2, depth=0.3)
NOTHING_DROPPED = DropoutConfig(residual=0, embedding=0)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pieces = WHOLE_WORDS.model_copy(update={"sentinels": 4})
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset", pieces=pieces)


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dropout.POOL_SIZES, "cpu", 1 << 14)


def setting(
    dataset: Path, kind: str, rates: DropoutConfig, alpha: float | None = None
) -> tuple[Any, Callable[[int], LossSums]]:
    """A model in float64, and the loss of a batch at a step."""
    base = {"encoder": STACK, "decoder": STACK, "max_length": 32, "dropout": rates}
    config = ModelConfig(**{**base, **KINDS[kind]})
    data = load_dataset(dataset)
    source, target = load_tokenizer_pair(data.tokenizer_folder)
    task: Any = make_task(TaskContext(training(r_drop=alpha), config, source, target, 64))
    vocab = {"source_vocab": source.vocab_size, "target_vocab": target.vocab_size}
    model: Any = build(config, **vocab, seed=1).double().train()
    rows = task.epochs(data.train, 64, 1)(0)[0]
    batch = task.batch(data.train, rows)

    def loss(step: int) -> LossSums:
        model.dropout_rng.seed_batch(7, step)
        found: LossSums = task.loss(model, batch)
        return found

    return model, loss


def gradients(model: Any, loss: LossSums) -> list[Tensor]:
    parameters = list(model.parameters())
    found = torch.autograd.grad(loss.sum, parameters, allow_unused=True)
    return [torch.zeros_like(p) if each is None else each for p, each in zip(parameters, found, strict=True)]


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", KINDS)
def test_without_dropout_it_is_the_loss_of_one_pass(dataset: Path, kind: str) -> None:
    model, loss = setting(dataset, kind, NOTHING_DROPPED)
    one = loss(3)
    wanted = gradients(model, one)
    sums = []
    for alpha in (1e-9, 5.0, 1e6):
        twice, of_two = setting(dataset, kind, NOTHING_DROPPED, alpha)
        two = of_two(3)
        sums.append(two.sum.item())
        assert two.count == one.count
        torch.testing.assert_close(two.nll, one.nll, rtol=1e-12, atol=0)
        for found, each in zip(gradients(twice, two), wanted, strict=True):
            torch.testing.assert_close(found, each, rtol=0, atol=1e-11)
    assert sums[0] == sums[1] == sums[2]
    assert sums[0] == pytest.approx(one.sum.item(), rel=1e-12)


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", KINDS)
def test_with_dropout_the_passes_are_apart_and_drawn_from_seed_and_step(dataset: Path, kind: str) -> None:
    _, loss = setting(dataset, kind, DROPPED, 5.0)
    _, one = setting(dataset, kind, DROPPED)
    _, closer = setting(dataset, kind, DROPPED, 1e-9)
    first, again, later = loss(3), loss(3), loss(4)
    assert first.sum == again.sum != later.sum
    assert first.nll != one(3).nll  # one of the two passes has other dropout than that
    assert first.count == one(3).count
    torch.testing.assert_close(first.nll, closer(3).nll, rtol=1e-12, atol=0)
    apart = (first.sum - closer(3).sum) / 5.0
    assert apart > 1e-4 * first.count


def test_the_first_pass_is_that_of_a_training_without_it(dataset: Path) -> None:
    seen: list[Tensor] = []
    for alpha in (None, 5.0):
        model, loss = setting(dataset, "translation", DROPPED, alpha)
        model.narrow.register_forward_hook(lambda *given: seen.append(given[2]))
        loss(3)
    one, first, second = seen
    assert torch.equal(one, first)
    assert not torch.allclose(first, second)


# Trainings

ASKED: dict[str, Any] = {"max_steps": 9, "r_drop": 2.0, "log_every": 1, "validation": {"every_steps": 9, "bleu": False}}


def test_batches_of_an_update_add_up(dataset: Path) -> None:
    """With dropout that follows from nothing but the rows there is none to add up: so each batch by itself."""
    data, model = load_dataset(dataset), build(MODEL, source_vocab=20, target_vocab=20, seed=1).double().train()
    of_update = GradientComputer(model, Translation(RDrop(0.1, 4.0)), data.train, training(clip_norm=None), 1, World())
    group = [np.arange(4), np.arange(4, 11)]
    found = of_update.compute(group, 1, stop=False)
    total = {name: p.grad.clone() * found.tokens for name, p in model.named_parameters() if p.grad is not None}
    parts: dict[str, Tensor] = {}
    for place, rows in enumerate(group):
        model.zero_grad()
        model.dropout_rng.seed_batch(1, 1, place)
        loss = of_update.task.loss(model, of_update.task.batch(data.train, rows))
        loss.sum.backward()  # type: ignore[no-untyped-call]
        for name, p in model.named_parameters():
            assert p.grad is not None
            parts[name] = parts.get(name, torch.zeros_like(p)) + p.grad
    assert found.tokens == sum(int((data.train.target_lengths[rows] + 1).sum()) for rows in group)
    for name, each in parts.items():
        torch.testing.assert_close(total[name], each, rtol=0, atol=1e-10)


def test_a_training_resumes_to_the_same_bits(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path / "straight", training(**ASKED))
    with pytest.raises(StoppedError):
        run(dataset, tmp_path / "stopped", training(**ASKED), reporter=SignalAt(4, 15))  # type: ignore[arg-type]
    run(dataset, tmp_path / "stopped", training(**ASKED))
    assert result(tmp_path / "stopped") == result(tmp_path / "straight")
    run(dataset, tmp_path / "plain", training(**{**ASKED, "r_drop": None}))
    twice, once = (
        [line for line in result(tmp_path / name)[1] if line["event"] == "train"] for name in ("straight", "plain")
    )
    assert twice[0]["nll"] == pytest.approx(once[0]["nll"], rel=0.1)
    assert twice[0]["loss"] > once[0]["loss"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("model.dropout = { residual = 0, embedding = 0 }", "training.r_drop = 1.0 has no effect"),
        ('model.architecture = "cbow"\nmodel.task = "word_vectors"', "no dropout, by which two passes would differ"),
        ("model.adaptive = { cutoffs = [100] }\ntraining.label_smoothing = 0", "compares the probabilities of every"),
        ('model.normalization = "batch"', "with training.r_drop a batch is read twice"),
    ],
)
def test_where_it_would_do_nothing_or_wrong_it_is_refused(tmp_path: Path, more: str, said: str) -> None:
    recipe = tmp_path / "some.toml"
    recipe.write_text(f'data.path = "corpora"\n{more}\n', "utf-8")
    load_recipe(recipe)
    with pytest.raises(RecipeError, match=said):
        load_recipe(recipe, ["training.r_drop=1.0"])


def test_tails_are_refused_also_without_a_recipe() -> None:
    check_adaptive_softmax(True, training(label_smoothing=0.0))
    with pytest.raises(RecipeError, match=r"training.r_drop = 2\.0 compares"):
        check_adaptive_softmax(True, training(label_smoothing=0.0, r_drop=2.0))
