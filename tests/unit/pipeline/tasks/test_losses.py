from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from tests.rounding import assert_rounds_like
from tfm.data.batching.batches import pair_batch_from_ids
from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, StackConfig
from tfm.model.layers.linear import Linear
from tfm.pipeline.tasks import losses
from tfm.pipeline.tasks.criteria import Criterion, CrossEntropy, RDrop
from tfm.pipeline.tasks.losses import linear_cross_entropy, output_loss
from tfm.pipeline.tasks.translation import Translation


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("rows", [1, 512, 1100])
def test_value_and_gradients_are_torchs(smoothing: float, rows: int) -> None:
    torch.manual_seed(0)
    hidden = torch.randn(rows, 12, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(30, 12, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(30, (rows,))
    total, nll = linear_cross_entropy(hidden, weight, targets, smoothing=smoothing, compute_dtype=torch.float64)
    want = F.cross_entropy(hidden @ weight.T, targets, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(total, want, rtol=1e-12, atol=1e-10)
    torch.testing.assert_close(
        nll, F.cross_entropy(hidden @ weight.T, targets, reduction="sum"), rtol=1e-12, atol=1e-10
    )
    for ours, theirs in zip(
        torch.autograd.grad(total * 0.7, [hidden, weight]),
        torch.autograd.grad(want * 0.7, [hidden, weight]),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_low_precision_rounds_as_torchs_does(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    hidden, weight = 0.2 * torch.randn(600, 64), torch.randn(100, 64)
    targets = torch.randint(100, (600,))

    def ours(hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return linear_cross_entropy(hidden, weight, targets, smoothing=0.1, compute_dtype=dtype)[0]

    def torchs(hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        low = dtype is torch.bfloat16 and hidden.dtype is torch.float32
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            return F.cross_entropy(hidden @ weight.T, targets, reduction="sum", label_smoothing=0.1)

    made: list[list[torch.Tensor]] = []
    for loss, precision in ((ours, torch.float32), (torchs, torch.float32), (torchs, torch.float64)):
        leaves = [each.to(precision).requires_grad_() for each in (hidden, weight)]
        total = loss(*leaves)
        made.append([total / len(targets), *torch.autograd.grad(total, leaves)])
    for fast, plain, exact in zip(*made, strict=True):
        assert_rounds_like(fast, plain, exact, products=dtype)


def _confident(nll: float, rows: int = 300, width: int = 64, vocab: int = 500) -> tuple[torch.Tensor, ...]:
    """Hidden rows, weight and targets in float64 such that -log p of each target is about `nll`."""
    generator = torch.Generator().manual_seed(3)
    weight = torch.randn(vocab, width, generator=generator, dtype=torch.float64)
    targets = torch.randint(vocab, (rows,), generator=generator)
    direction = torch.nn.functional.normalize(weight[targets], dim=1)
    low, high = 0.0, 50.0
    for _ in range(60):  # the scale at which the mean loss is that
        scale = (low + high) / 2
        mean = F.cross_entropy(scale * direction @ weight.T, targets)
        low, high = (scale, high) if mean > nll else (low, scale)
    return scale * direction, weight, targets


@pytest.mark.few(3)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("nll", [3.0, 0.1, 0.01, 0.0006])
def test_bf16_gradients_of_a_model_that_is_sure_are_as_good_as_autocasts(nll: float, smoothing: float) -> None:
    """What is left of p - q where p is near q must not be lost to rounding: beside float64, twice autocast's error."""
    exact = _confident(nll)

    def gradients(loss: Callable[..., torch.Tensor], dtype: torch.dtype) -> list[torch.Tensor]:
        hidden, weight = (each.to(dtype).requires_grad_() for each in exact[:2])
        found = torch.autograd.grad(loss(hidden, weight, exact[2]), [hidden, weight])
        return [each.double() for each in found]

    def ours(hidden: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return linear_cross_entropy(hidden, weight, targets, smoothing=smoothing, compute_dtype=torch.bfloat16)[0]

    def torchs(hidden: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(hidden @ weight.T, targets, reduction="sum", label_smoothing=smoothing)

    def autocast(*given: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return torchs(*given)

    wanted = gradients(torchs, torch.float64)
    for mine, theirs, want in zip(
        gradients(ours, torch.float32), gradients(autocast, torch.float32), wanted, strict=True
    ):
        assert (mine - want).norm() <= 2 * (theirs - want).norm()


def test_chunking_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    hidden, weight = torch.randn(50, 8, dtype=torch.float64), torch.randn(20, 8, dtype=torch.float64)
    targets = torch.randint(20, (50,))
    whole = linear_cross_entropy(hidden, weight, targets, smoothing=0.1, compute_dtype=torch.float64)[0]
    monkeypatch.setattr(losses, "CHUNK_ROWS", 7)
    cut = linear_cross_entropy(hidden, weight, targets, smoothing=0.1, compute_dtype=torch.float64)[0]
    torch.testing.assert_close(whole, cut, rtol=1e-13, atol=0)


def test_an_impossible_target_has_a_finite_loss() -> None:
    hidden, weight = torch.tensor([[100.0]]), torch.tensor([[10.0], [-10.0]])
    total, _ = linear_cross_entropy(hidden, weight, torch.tensor([1]), smoothing=0.0, compute_dtype=torch.float32)
    assert total.isfinite()


@pytest.mark.few(2)
@pytest.mark.parametrize("criterion", [CrossEntropy(0.1), RDrop(0.1, 2.0)], ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("flat_rows", [None, 12])
@pytest.mark.parametrize("attention", [0.0, 0.2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_loss_and_gradients_are_asked_for_without_waiting_for_the_device(
    dtype: torch.dtype, attention: float, flat_rows: int | None, criterion: Criterion
) -> None:
    """The meta device has no numbers: to read one, as whoever waits for a GPU does, is an error there."""
    stack = StackConfig(layers=2, dim=16, heads=2, feed_forward_dim=24)
    dropout = DropoutConfig(residual=0.1, embedding=0.1, attention=attention, feed_forward=0.1)
    config = ModelConfig(encoder=stack, decoder=stack, dropout=dropout)
    model = build(config, source_vocab=30, target_vocab=30, compute_dtype=dtype).to("meta").train()
    batch = pair_batch_from_ids([[4, 5, 6], [7]], [[8], [9, 10, 11, 12]]).to("meta")
    model.dropout_rng.seed_batch(1, 1, 0, 0)
    loss = Translation(criterion, flat_rows).loss(model, batch)
    loss.sum.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    with pytest.raises((RuntimeError, NotImplementedError)):
        loss.sum.item()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_bias_of_the_output_is_part_of_the_loss_and_learns(smoothing: float) -> None:
    torch.manual_seed(0)
    output = Linear(12, 30, compute_dtype=torch.float32).double()
    torch.nn.init.normal_(output.bias)  # type: ignore[arg-type]
    hidden = torch.randn(50, 12, dtype=torch.float64, requires_grad=True)
    targets, counts = torch.randint(30, (50,)), (torch.arange(50) < 40).double()
    total, nll = output_loss(output, hidden, targets, smoothing=smoothing, row_mask=counts)
    logits = output(hidden)[:40]
    want = F.cross_entropy(logits, targets[:40], reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(total, want, rtol=1e-12, atol=1e-10)
    torch.testing.assert_close(nll, F.cross_entropy(logits, targets[:40], reduction="sum"), rtol=1e-12, atol=1e-10)
    leaves = [hidden, *output.parameters()]
    for ours, theirs in zip(torch.autograd.grad(total, leaves), torch.autograd.grad(want, leaves), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)
