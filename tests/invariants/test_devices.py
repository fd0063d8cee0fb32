"""On every kind of device the same: losses and gradients are those of float64, a search finds what it finds on a CPU, a
resumed training ends with the same bits, and a gradient is computed without waiting for the device."""

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.fake_cuda import FakeCuda
from tests.killing import result
from tests.rounding import assert_rounds_like
from tests.tiny_training import MODEL, run, training
from tfm.data.dataset.split import Dataset
from tfm.data.dataset.store import load_dataset
from tfm.model.build import Model, build
from tfm.model.config import DropoutConfig
from tfm.model.layout import Layout
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.tasks.criteria import CrossEntropy
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.training.update import GradientComputer

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read once a process, at the first product on a GPU

GPU = pytest.param(
    "cuda",
    marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU")],
)
DEVICES = ["cpu", GPU]
LAYOUTS = {"padded": None, "flat": 128}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "post-norm, heads that share keys": {
        "norm": "post",
        "decoder": MODEL.decoder.model_copy(update={"key_value_heads": 1}),
    },
    "rotary": {"positions": "rotary"},
    "Shaw": {"positions": "shaw"},
    "window": {"window": 2},
    "additive": {"score": "additive"},
}


@pytest.fixture(scope="module")
def data(dataset: Path) -> Dataset:
    return load_dataset(dataset)


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def network(variant: str, dtype: torch.dtype = torch.float32, dropout: float = 0.0) -> Model:
    rates = DropoutConfig(residual=dropout, embedding=dropout)
    config = MODEL.model_copy(update={"dropout": rates, **VARIANTS[variant]})
    model = build(config, source_vocab=20, target_vocab=20, seed=1, compute_dtype=dtype)
    with torch.no_grad():  # biases that are zero would hide whether they are there
        for name, each in model.named_parameters():
            if name.endswith("bias"):
                each.add_(torch.linspace(-0.5, 0.5, each.numel()))
    return model


def plain_gradients(model: Model, data: Dataset, *, autocast: bool = False) -> tuple[float, dict[str, Tensor]]:
    """The same by torch's own cross entropy of all logits, padded, on the CPU; in bf16 by its autocast."""
    task, sums = Translation(CrossEntropy(0.1)), []
    batches = [task.batch(data.train, rows) for rows in task.epochs(data.train, 96, 3)(0)[:2]]
    for batch in batches:
        layouts = Layout.from_lengths(batch.source_lengths), Layout.from_lengths(batch.target_lengths)
        model.dropout_rng.seed_batch(1, 1)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            logits = model.output(model.train()(batch.source, layouts[0], batch.target_in, layouts[1]))
            sums.append(F.cross_entropy(logits, batch.target_out, reduction="sum", label_smoothing=0.1))
    loss = torch.stack(sums).sum() / sum(len(batch.target_out) for batch in batches)
    loss.backward()
    return loss.item(), {name: each.grad for name, each in model.named_parameters() if each.grad is not None}


def gradients(model: Model, data: Dataset, layout: str, device: str) -> tuple[float, dict[str, Tensor]]:
    """The mean loss of two batches, and the gradient in the model's precision, on the CPU."""
    world, task = World(device=torch.device(device)), Translation(CrossEntropy(0.1), LAYOUTS[layout])
    model = model.to(world.device).train()
    of_update = GradientComputer(model, task, data.train, training(clip_norm=None, accumulate=2), 1, world)
    update = of_update.compute(task.epochs(data.train, 96, 3)(0)[:2], 1, stop=False)
    found = {name: each.grad.cpu() for name, each in model.named_parameters() if each.grad is not None}
    return update.loss / update.tokens, found


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.few(10)
def test_the_loss_and_its_gradient_are_those_of_float64(
    variant: str, dtype: torch.dtype, layout: str, device: str, data: Dataset
) -> None:
    exact_loss, exact = gradients(network(variant).double(), data, "padded", "cpu")
    plain_loss, plain = plain_gradients(network(variant), data, autocast=dtype is torch.bfloat16)
    loss, found = gradients(network(variant, dtype), data, layout, device)
    in_float64 = torch.tensor([exact_loss], dtype=torch.float64)
    assert_rounds_like(torch.tensor([loss]), torch.tensor([plain_loss]), in_float64, products=dtype)
    assert found.keys() == plain.keys() == exact.keys()
    largest = max(float(each.abs().max()) for each in exact.values())
    for name, each in exact.items():  # some are sums of what takes itself away, as those of biases of keys
        assert_rounds_like(found[name], plain[name], each, magnitude=largest, products=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("variant", ["plain", "additive"])
@pytest.mark.few(2)
def test_the_way_of_a_gpu_rounds_like_plain_torch(variant: str, dtype: torch.dtype, data: Dataset) -> None:
    """The products, attention and loss that a GPU takes, computed without one."""
    exact_loss, exact = gradients(network(variant).double(), data, "padded", "cpu")
    plain_loss, plain = plain_gradients(network(variant), data, autocast=dtype is torch.bfloat16)
    with FakeCuda():
        loss, found = gradients(network(variant, dtype), data, "padded", "cuda")
    in_float64 = torch.tensor([exact_loss], dtype=torch.float64)
    assert_rounds_like(torch.tensor([loss]), torch.tensor([plain_loss]), in_float64, products=dtype)
    largest = max(float(each.abs().max()) for each in exact.values())
    for name, each in exact.items():
        assert_rounds_like(found[name], plain[name], each, magnitude=largest, products=dtype)


@pytest.mark.parametrize("device", [GPU])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_gradient_is_computed_without_waiting(variant: str, layout: str, device: str, data: Dataset) -> None:
    world, task = World(device=torch.device(device)), Translation(CrossEntropy(0.1), LAYOUTS[layout])
    model = network(variant, torch.bfloat16, dropout=0.1).to(world.device).train()
    of_update = GradientComputer(model, task, data.train, training(), 1, world)
    batches = task.epochs(data.train, 96, 3)(0)
    of_update.dry_run(batches[:1])  # what is made once
    torch.cuda.set_sync_debug_mode("error")
    try:
        of_update.dry_run(batches[1:2])
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.few(1)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("beam", [pytest.param(1, marks=pytest.mark.slow), 4])
@pytest.mark.parametrize(
    "variant", [pytest.param(each, marks=pytest.mark.slow if each in ("plain", "window") else ()) for each in VARIANTS]
)
def test_a_search_finds_the_same(variant: str, beam: int, device: str, data: Dataset) -> None:
    model = network(variant).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.mul_(0.2 if name.endswith("bias") else 3)  # sure of what it says
    sources = [data.train.source[row].tolist() for row in range(40)]
    config = DecodingConfig(beam=beam, n_best=beam, batch_sentences=7, max_length=12)
    expected = decode(model, sources, config.model_copy(update={"batch_sentences": 1}))
    found = decode(copy.deepcopy(model).to(device), sources, config, device=device)
    for ours, theirs in zip(found, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-9)
        assert ours[0].ids == theirs[0].ids


@pytest.mark.usefixtures("no_curves", "deterministic")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("precision", [pytest.param("fp32", marks=pytest.mark.slow), "bf16"])
@pytest.mark.few(1)
def test_a_resumed_training_ends_with_the_same_bits(
    precision: str, layout: str, device: str, dataset: Path, tmp_path: Path
) -> None:
    config = training(device=device, layout=layout, precision=precision, max_steps=12, save_every=5)
    run(dataset, tmp_path / "straight", config)
    run(dataset, tmp_path / "resumed", config.model_copy(update={"max_steps": 7}))
    run(dataset, tmp_path / "resumed", config)
    assert result(tmp_path / "resumed")[0] == result(tmp_path / "straight")[0]
