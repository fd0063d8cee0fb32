"""Laws of `training.shard`, `training.recompute` and `training.elastic`: processes with a part of the weights train the
model that one process trains; a layer computed again has the same gradient to the bit.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.killing import result
from tests.sharded_ranks import train_by_ranks
from tests.tiny_training import MODEL, run, training
from tfm.model.config import DropoutConfig, ModelConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.training_config import TrainingConfig

EXACT = 1e-10
EXACT_MODEL = MODEL.model_copy(update={"dropout": DropoutConfig(residual=0, embedding=0)})
ALL: dict[str, Any] = {
    "max_steps": 20,
    "ema": 0.9,
    "clip_norm": 0.5,
    "label_smoothing": 0.1,
    "save_every": 10,
    "keep": {"last": 3},
    "validation": {"every_steps": 10},
}
TASKS = {
    "translation": EXACT_MODEL,
    "language model": EXACT_MODEL.model_copy(update={"architecture": "decoder_only", "task": "language_model"}),
}

OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "R-Drop": ("none", {"r_drop": 1.0}),
}
"""By recipe, how four processes share its weights, and its settings; with dropout."""


def model_of(out: Path) -> dict[str, torch.Tensor]:
    return load_file(out / "model" / "model.safetensors")


def difference(one: Path, other: Path) -> float:
    """The largest difference of any weight of two published models."""
    first, second = model_of(one), model_of(other)
    assert first.keys() == second.keys()
    return max((first[name] - second[name]).abs().max().item() for name in first)


def by_ranks(dataset: Path, out: Path, ranks: int, model: ModelConfig = EXACT_MODEL, **settings: Any) -> Path:
    """A training by so many processes that ends well."""
    for code, text in train_by_ranks(dataset, out, training(**{**ALL, **settings}), model, ranks):
        assert code == 0, text
    return out


def move_losses(out: Path) -> list[tuple[Any, ...]]:
    return [(line["event"], line["step"], line["loss"]) for line in result(out)[1]]


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("shard", "ranks"), [("full", 2), ("optimizer", 2), ("full", 4)])
def test_processes_with_parts_of_the_weights_train_the_model_of_one(
    dataset: Path, tmp_path: Path, shard: str, ranks: int, task: str
) -> None:
    alone = by_ranks(dataset, tmp_path / "one", 1, TASKS[task], accumulate=4)
    several = by_ranks(dataset, tmp_path / "several", ranks, TASKS[task], accumulate=4 // ranks, shard=shard)
    assert difference(alone, several) < EXACT
    for (_, step, loss), (_, same, other) in zip(move_losses(alone), move_losses(several), strict=True):
        assert step == same
        assert loss == pytest.approx(other, abs=EXACT)
    files = [file.name for file in (several / "training" / "checkpoints" / "step-0000020").glob("*.safetensors")]
    assert sorted(files) == sorted(
        f"{name}-{rank:05d}-of-{ranks:05d}.safetensors"
        for name in ("model", "optimizer", "ema")
        for rank in range(1, ranks + 1)
    )


@pytest.mark.slow
def test_weights_in_single_precision_are_those_of_one_process_up_to_rounding(dataset: Path, tmp_path: Path) -> None:
    config = training(**{**ALL, "clip_norm": None, "optimizer": {"name": "sgd"}}, shard="full")
    outs = tmp_path / "one", tmp_path / "two"
    for ranks, out in zip((1, 2), outs, strict=True):
        given = config.model_copy(update={"shard": "none", "accumulate": 2}) if ranks == 1 else config
        for code, text in train_by_ranks(dataset, out, given, EXACT_MODEL, ranks, "float32"):
            assert code == 0, text
    assert difference(*outs) < 1e-4


@pytest.mark.slow
def test_adapters_alone_are_trained_by_processes_with_parts(dataset: Path, tmp_path: Path) -> None:
    first = by_ranks(dataset, tmp_path / "first", 1) / "model"
    lora = {"lora": {"rank": 2}, "init_from": str(first)}
    alone = by_ranks(dataset, tmp_path / "one", 1, accumulate=2, **lora)
    assert difference(alone, by_ranks(dataset, tmp_path / "two", 2, shard="full", **lora)) < EXACT
    assert difference(alone, tmp_path / "first") > 1e-6


@pytest.mark.slow
def test_a_checkpoint_of_four_resumes_to_the_same_bits_and_with_others_when_asked_for(
    dataset: Path, tmp_path: Path
) -> None:
    straight = by_ranks(dataset, tmp_path / "straight", 4, MODEL, shard="full")
    half = by_ranks(dataset, tmp_path / "half", 4, MODEL, shard="full", max_steps=10)
    places = {"same": (4, "full"), "fewer": (2, "full"), "alone": (1, "none")}
    for name in places:
        shutil.copytree(half, tmp_path / name)
    by_ranks(dataset, tmp_path / "same", 4, MODEL, shard="full")
    assert result(tmp_path / "same")[0] == result(straight)[0]
    for name in ("fewer", "alone"):
        (ranks, shard), out = places[name], tmp_path / name
        if name == "alone":
            ((code, said),) = train_by_ranks(dataset, out, training(**ALL, shard=shard), MODEL, ranks)
            assert code == 2
            assert "training.elastic = true" in said
        by_ranks(dataset, out, ranks, MODEL, shard=shard, elastic=True)
        assert difference(straight, out) < EXACT
        figures = json.loads((out / "model" / "manifest.json").read_text("utf-8"))["figures"]
        assert f"after update 10: processes 4 -> {ranks}" in figures["changed_during_training"]


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [((1, "none"), (3, "full")), ((4, "none"), (2, "none"))])
def test_a_training_goes_on_with_any_number_of_processes(
    dataset: Path, tmp_path: Path, before: tuple[int, str], after: tuple[int, str]
) -> None:
    straight = by_ranks(dataset, tmp_path / "straight", 1, MODEL, accumulate=4)
    given: dict[str, Any] = {"accumulate": 4 // before[0]}
    out = by_ranks(dataset, tmp_path / "out", before[0], MODEL, shard=before[1], max_steps=10, **given)
    refused = train_by_ranks(dataset, out, training(**ALL, **given, shard=after[1]), MODEL, after[0])
    assert [code for code, _ in refused] == [2] * after[0], refused
    by_ranks(dataset, out, after[0], MODEL, shard=after[1], elastic=True, **given)
    assert difference(straight, out) < EXACT
    figures = json.loads((out / "model" / "manifest.json").read_text("utf-8"))["figures"]
    assert f"after update 10: processes {before[0]} -> {after[0]}" in figures["changed_during_training"]


@pytest.mark.slow
@pytest.mark.parametrize("case", OTHERS)
def test_four_processes_train_the_model_of_one_whatever_the_recipe(case: str, dataset: Path, tmp_path: Path) -> None:
    shard, settings = OTHERS[case]
    batches = settings.get("accumulate", 4)
    alone_settings, shared = ({**settings, "accumulate": each} for each in (batches, batches // 4))
    alone = by_ranks(dataset, tmp_path / "one", 1, MODEL, **alone_settings)
    several = by_ranks(dataset, tmp_path / "four", 4, MODEL, shard=shard, **shared)
    assert difference(alone, several) < EXACT
    assert [each[:2] for each in move_losses(alone)] == [each[:2] for each in move_losses(several)]


@pytest.mark.slow
def test_a_training_of_whole_weights_goes_on_with_parts(dataset: Path, tmp_path: Path) -> None:
    straight = by_ranks(dataset, tmp_path / "straight", 2)
    out = by_ranks(dataset, tmp_path / "out", 2, max_steps=10)
    by_ranks(dataset, out, 2, shard="full", recompute=True)
    assert difference(straight, out) < EXACT


@pytest.mark.slow
def test_the_mean_of_checkpoints_of_parts_is_published(dataset: Path, tmp_path: Path) -> None:
    keep = {"last": 2, "average": "last"}
    alone = by_ranks(dataset, tmp_path / "one", 1, accumulate=2, keep=keep)
    assert difference(alone, by_ranks(dataset, tmp_path / "two", 2, shard="full", keep=keep)) < EXACT


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.few(1)
def test_layers_computed_again_give_the_same_bits_with_dropout(dataset: Path, tmp_path: Path, task: str) -> None:
    model = TASKS[task].model_copy(update={"dropout": DropoutConfig(residual=0.2, attention=0.1, feed_forward=0.1)})
    settings: dict[str, Any] = {"max_steps": 8, "parallel": "threads", "validation": {"every_steps": 8, "bleu": False}}
    one, other = (tmp_path / name for name in ("kept", "again"))
    run(dataset, one, training(**settings), model=model)
    run(dataset, other, training(**settings, recompute=True), model=model)
    assert result(one) == result(other)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [({"shard": "full"}, "is for several processes, and there is one"), ({"shard": "optimizer"}, "torchrun")],
)
def test_one_process_has_nothing_to_shard(
    dataset: Path, tmp_path: Path, settings: dict[str, Any], problem: str
) -> None:

    with pytest.raises(RecipeError, match=problem):
        run(dataset, tmp_path, TrainingConfig.model_validate({**ALL, **settings}))
