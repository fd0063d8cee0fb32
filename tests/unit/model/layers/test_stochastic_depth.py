"""Stochastic depth: how often which sublayer is left out, what stands in its place, and what training makes of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.invariants.test_resume import SignalAt
from tests.killing import result
from tests.tiny_training import MODEL, run, training, write_dataset
from tfm.data.dataset.store import load_dataset
from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, StackConfig
from tfm.model.layers.dropout import Dropout, DropoutRng
from tfm.model.layers.residual import RESIDUALS_BY_NORM_PLACEMENT, PostNorm, PreNorm, StochasticDepth
from tfm.pipeline.errors import StoppedError
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.tasks.criteria import CrossEntropy
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.training.update import GradientComputer

STACK = StackConfig(layers=4, dim=8, heads=2, feed_forward_dim=12)
NO_OTHER = {"residual": 0.0, "embedding": 0.0}


def network(rate: float, **more: Any) -> Any:
    rates = DropoutConfig(**NO_OTHER, depth=rate)
    config = ModelConfig(encoder=STACK, decoder=STACK, max_length=32, dropout=rates, **more)
    return build(config, source_vocab=20, target_vocab=20, seed=1).double().train()


def residuals(model: nn.Module) -> Iterator[tuple[str, PreNorm | PostNorm]]:
    for name, module in model.named_modules():
        if isinstance(module, PreNorm | PostNorm):
            yield name, module


def residual(kind: str, rate: float, noise: DropoutRng) -> nn.Module:
    return (
        RESIDUALS_BY_NORM_PLACEMENT[kind](nn.LayerNorm(6), Dropout(0.0, noise), StochasticDepth(rate, noise))
        .double()
        .train()
    )


@pytest.mark.parametrize("kind", RESIDUALS_BY_NORM_PLACEMENT)
def test_what_is_added_is_left_out_or_scaled_and_kept_in_expectation(kind: str) -> None:
    noise, x, rate, times = DropoutRng(), torch.randn(5, 6, dtype=torch.float64), 0.3, 1500
    block, calls = residual(kind, rate, noise), 0

    def sublayer(rows: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return rows * 2 + 1

    def equation(b: float) -> Tensor:
        """What the paper's equations give, b / (1 - r) in the place of b."""
        norm = block.norm
        inside = (norm(x) if kind == "pre" else x) * 2 + 1
        added = x + b / (1 - rate) * inside
        return added if kind == "pre" else norm(added)  # type: ignore[no-any-return]

    kept = []
    for step in range(times):
        noise.seed_batch(7, step)
        before, found = calls, block(x, sublayer)
        kept.append(calls - before)
        torch.testing.assert_close(found, equation(kept[-1]), rtol=1e-12, atol=1e-12)
    assert abs(np.mean(kept) - (1 - rate)) < 4 * (rate * (1 - rate) / times) ** 0.5
    # so, before the norm, the mean of what is added is what is added without it
    assert np.mean(kept) / (1 - rate) == pytest.approx(1, abs=0.07)
    torch.testing.assert_close(block.eval()(x, sublayer), equation(1 - rate))  # nothing is left out, nor scaled


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_rates_grow_with_depth_in_each_stack(norm: str) -> None:
    """p_l = 1 - l / L (1 - p_L)   (Huang et al. 2016, eq. 4), counted in passes of the whole network."""
    model, times, left_out = network(0.6, norm=norm), 60, dict[str, int]()
    source, target = torch.tensor([4, 5, 2]), torch.tensor([1, 6])
    layouts = [model.source_layout(ids, torch.tensor([len(ids)])) for ids in (source, target)]
    reached: list[str] = []
    for name, module in residuals(model):
        module.dropout = nn.Identity()  # each has its own, to be seen
        module.dropout.register_forward_hook(lambda *_, name=name: reached.append(name))
    with torch.no_grad():
        for step in range(times):
            reached.clear()
            model.dropout_rng.seed_batch(3, step)
            model(source, layouts[0], target, layouts[1])
            for name, _ in residuals(model):
                left_out[name] = left_out.get(name, 0) + (name not in reached)
    assert len(left_out) == 4 * 2 + 4 * 3
    for name, count in left_out.items():
        rate = 0.6 * (int(name.split(".")[1]) + 1) / 4
        assert dict(residuals(model))[name].depth.rate == pytest.approx(rate, rel=1e-15)
        assert abs(count / times - rate) < 4.5 * (rate * (1 - rate) / times) ** 0.5, name


def passes(model: Any) -> list[Tensor]:
    source, target = torch.tensor([4, 5, 2]), torch.tensor([1, 6])
    layouts = [model.source_layout(ids, torch.tensor([len(ids)])) for ids in (source, target)]
    found = []
    for step in range(12):
        model.dropout_rng.seed_batch(3, step)
        found.append(model(source, layouts[0], target, layouts[1]))
    return found


def test_it_is_a_function_of_seed_and_step_and_off_in_evaluation() -> None:
    model, plain = network(0.5), network(0.0)
    first, again = passes(model), passes(model)
    assert all(map(torch.equal, first, again))
    assert len({tuple(each.flatten().tolist()) for each in first}) > 8
    assert all(map(torch.equal, passes(model.eval()), passes(plain)))


def test_other_draws_are_as_ever_without_it() -> None:
    config = MODEL.model_copy(update={"dropout": DropoutConfig(residual=0.2, embedding=0.1)})
    model = build(config, source_vocab=20, target_vocab=20, seed=1).train()
    drawn = []
    for kind in ("mask", "should_drop_layer"):
        real = getattr(model.dropout_rng, kind)
        setattr(model.dropout_rng, kind, lambda *given, real=real, kind=kind: drawn.append(kind) or real(*given))
    passes(model)
    assert set(drawn) == {"mask"}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset")


def gradients_of(model: Any, dataset: Path, **changes: Any) -> GradientComputer:
    return GradientComputer(
        model, Translation(CrossEntropy(0.1)), load_dataset(dataset).train, training(**changes), 1, World()
    )


def test_what_all_batches_leave_out_has_a_gradient_of_zeros(dataset: Path) -> None:
    """As it has where another process computed it: an optimiser's momentum goes on, and weights decay."""
    model = network(0.9)
    of_update, zeros = gradients_of(model, dataset, clip_norm=None, l2=0.0), 0
    for step in range(1, 6):
        of_update.compute([np.arange(4)], step, stop=False)
        gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
        assert all(each is not None for each in gradients.values())
        zeros += sum(not each.any() for each in gradients.values())  # type: ignore[union-attr]
    assert zeros > 20


def test_memory_is_tried_with_every_layer(dataset: Path) -> None:
    model, reached = network(0.9), set()
    for name, module in residuals(model):
        module.dropout = nn.Identity()
        module.dropout.register_forward_hook(lambda *_, name=name: reached.add(name))
    gradients_of(model, dataset).dry_run([np.arange(4)])
    assert reached == {name for name, _ in residuals(model)}
    reached.clear()
    gradients_of(model, dataset).compute([np.arange(4)], 1, stop=False)
    assert len(reached) < 16


def test_a_training_stopped_and_resumed_leaves_out_the_same(dataset: Path, tmp_path: Path) -> None:
    deep = MODEL.model_copy(update={"dropout": DropoutConfig(residual=0.1, depth=0.5)})
    config = training(max_steps=8, validation={"every_steps": 4, "bleu": False}, log_every=1)
    run(dataset, tmp_path / "straight", config, model=deep)
    with pytest.raises(StoppedError):
        run(dataset, tmp_path / "stopped", config, model=deep, reporter=SignalAt(3, 15))  # type: ignore[arg-type]
    run(dataset, tmp_path / "stopped", config, model=deep)
    assert result(tmp_path / "stopped") == result(tmp_path / "straight")
    run(dataset, tmp_path / "other", config)
    assert result(tmp_path / "other") != result(tmp_path / "straight")
