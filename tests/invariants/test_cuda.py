"""On a real NVIDIA GPU, each task, architecture and search: the figures of a CPU in float64 (`pytest -m gpu`)."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.device_cases import (
    FLAT,
    MODELS,
    SEARCHES,
    TRANSLATES,
    configured,
    decisive,
    figures,
    network,
    searched,
    trained,
    weights,
)
from tests.killing import result
from tests.tiny_training import MODEL, run, training
from tfm.pipeline.model_io.ensemble import Ensemble

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read once a process, at the first product on a GPU

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU"),
]
STACKS: dict[str, dict[str, Any]] = {
    "recurrent": {"architecture": "recurrent", "positions": "none"},
    "decoder only": {"architecture": "decoder_only"},
    "convolutions": {"mixing": "convolution"},
    "recurrent mixing": {"mixing": "recurrent", "positions": "none"},
    "Transformer-XL": {"positions": "transformer_xl"},
}


@pytest.mark.parametrize(
    ("name", "layout"), [*((name, "padded") for name in MODELS), *((name, "flat") for name in FLAT)]
)
def test_updates_and_a_validation(name: str, layout: str, tmp_path: Path) -> None:
    changes = {"dropout": {"residual": 0, "embedding": 0}}  # a GPU draws others
    expected = trained(name, "cpu", tmp_path / "cpu", layout=layout, **changes)
    found = trained(name, "cuda", tmp_path / "cuda", layout=layout, **changes)
    for ours, theirs in zip(figures(found), figures(expected), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-9)
    after = weights(found)
    for which, values in weights(expected).items():
        assert after[which] == pytest.approx(values, abs=1e-9), which


@pytest.mark.parametrize("name", TRANSLATES)
def test_searches(name: str) -> None:
    """Ids and scores of each search, by each model."""
    for search in SEARCHES:
        expected = searched(decisive(network(configured(name))), search, "cpu")
        found = searched(decisive(network(configured(name), "cuda")), search, "cuda")
        for ours, theirs in zip(found, expected, strict=True):
            assert [ids for ids, _ in ours] == [ids for ids, _ in theirs], search
            assert [score for _, score in ours] == pytest.approx([score for _, score in theirs], abs=1e-9), search


def test_an_ensemble_searches() -> None:
    def make(device: str) -> Ensemble:
        names = ("transformer", "recurrent", "adaptive softmax")
        return Ensemble([decisive(network(configured(name), device, seed)) for seed, name in enumerate(names)])

    for search in ("greedy", "bans, beam"):
        expected, found = searched(make("cpu"), search, "cpu"), searched(make("cuda"), search, "cuda")
        assert [[ids for ids, _ in each] for each in found] == [[ids for ids, _ in each] for each in expected]


@pytest.mark.usefixtures("no_curves")
@pytest.mark.parametrize("name", STACKS)
def test_a_resumed_training_ends_with_the_same_bits(name: str, dataset: Path, tmp_path: Path) -> None:
    model = MODEL.model_validate({**MODEL.model_dump(), **STACKS[name]})
    config = training(device="cuda", precision="bf16", max_steps=8, save_every=3)
    torch.use_deterministic_algorithms(True)
    try:
        run(dataset, tmp_path / "straight", config, model=model)
        run(dataset, tmp_path / "resumed", config.model_copy(update={"max_steps": 5}), model=model)
        run(dataset, tmp_path / "resumed", config, model=model)
    finally:
        torch.use_deterministic_algorithms(False)
    assert result(tmp_path / "resumed")[0] == result(tmp_path / "straight")[0]


@pytest.mark.usefixtures("no_curves")
@pytest.mark.parametrize("layout", ["padded", "flat"])
def test_the_batch_size_is_found(layout: str, dataset: Path, tmp_path: Path) -> None:
    config = training(device="cuda", layout=layout, batch_tokens="auto", max_steps=4)
    run(dataset, tmp_path / "model", config)
    assert (tmp_path / "model" / "model").is_dir()
