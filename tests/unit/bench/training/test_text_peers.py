"""The peers of tasks other than translation: what they are told, what they compute, and a round of each."""

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from bench.peers.huggingface import canine_settings
from bench.peers.training.train_plain_gpt import PlainGpt, draw_windows, make_plain
from bench.processes import run
from bench.training.baselines import find_peers
from bench.training.text_peers import (
    IGNORED_LABEL,
    PROGRAM,
    canine_size,
    text_model_size,
    texts,
    texts_a_batch,
    windows,
)
from bench.training.workload import Workload, read_configs
from tfm.data.dataset.split import Split, TokenIdColumn
from tfm.pipeline.errors import RecipeError

SIZE = {
    "layers": 2,
    "dim": 8,
    "heads": 2,
    "inner": 32,
    "block": 6,
    "dropout": 0.0,
    "vocab": 11,
    "labels": 4,
    "canine": None,
}
SPLIT = Split(TokenIdColumn.from_lists([[4, 7, 5], [6]]), TokenIdColumn.from_lists([[5, 4], [6]]), weights=None)  # type: ignore[arg-type]
CANINE = {"hashes": 2, "buckets": 16, "block": 4, "rate": 4, "upsampling": 3}
HAS_TRAINER = all(importlib.util.find_spec(name) for name in ("transformers", "accelerate"))


def work_of(task: str, split: Split = SPLIT) -> Any:
    model, config = read_configs(None, ["model.architecture=encoder_only", f"model.task={task}"])
    data = SimpleNamespace(train=split, batch_tokens=12)
    return SimpleNamespace(model=model, config=config, data=data, dataset="d", source_vocab=11, vocab=4)


def test_windows_are_the_text_of_all_targets_without_its_rest() -> None:
    assert [each["input_ids"] for each in windows(SPLIT, 2)] == [[5, 4], [3, 6]]
    assert all(each["input_ids"] == each["labels"] for each in windows(SPLIT, 2))


def test_labels_stand_at_the_first_piece_of_each_word() -> None:
    split = replace(SPLIT, words=TokenIdColumn.from_lists([[2, 1], [1]]))
    none = IGNORED_LABEL
    assert [each["labels"] for each in texts(work_of("tagging", split))] == [[5, none, 4, none], [6, none]]
    assert [each["labels"] for each in texts(work_of("classification"))] == [5, 6]
    assert list(texts(work_of("masked_language_model"))) == [{"input_ids": [4, 7, 5, 3]}, {"input_ids": [6, 3]}]
    with pytest.raises(RecipeError, match="make it again"):
        list(texts(work_of("tagging")))


def test_texts_of_a_batch_fill_its_budget_on_average() -> None:
    assert texts_a_batch(work_of("classification")) == 4  # of three tokens, end tokens counted


@pytest.mark.parametrize("other", ["model.embedding_dim=8", "model.window=3"])
def test_peers_have_models_of_one_width_that_see_all(other: str) -> None:
    model, config = read_configs(None, ["model.architecture=encoder_only", "model.task=classification", other])
    with pytest.raises(RecipeError, match="peers have models"):
        text_model_size(Workload(Path("d"), model, config, 1, 1))


@pytest.mark.parametrize("recipe", ["sst2-canine", "atis-canine"])
def test_peers_of_canine_are_told_what_makes_rows_of_characters(recipe: str) -> None:
    model = read_configs(Path(f"recipes/{recipe}.toml"), [])[0]
    assert set(find_peers(model)) == {"huggingface"}
    assert canine_size(model) == {"hashes": 4, "buckets": 1024, "block": 32, "rate": 4, "upsampling": 4}
    assert canine_size(read_configs(Path("recipes/atis.toml"), [])[0]) is None
    for other, said in (("hashes=32", "16 at most"), ("buckets=512", "as many positions as buckets")):
        with pytest.raises(RecipeError, match=said):
            canine_size(read_configs(Path(f"recipes/{recipe}.toml"), [f"model.canine.{other}"])[0])


@pytest.mark.skipif(not importlib.util.find_spec("transformers"), reason="transformers is not installed here")
def test_canine_of_hugging_face_has_the_keys_that_it_is_given() -> None:
    from transformers import CanineConfig

    told = canine_settings(CANINE)
    assert len(told) == len(CANINE) + 1
    assert set(told) <= set(CanineConfig().to_dict())


def test_plain_gpt_has_the_parameters_of_its_equation_and_sees_nothing_to_come() -> None:
    torch.manual_seed(1)
    model = make_plain(SIZE, "cpu")[0].eval()
    layers, dim, vocab, block = SIZE["layers"], SIZE["dim"], SIZE["vocab"], SIZE["block"]
    matrices = 12 * layers * dim**2 + (vocab + block) * dim  # type: ignore[operator]
    assert sum(each.numel() for each in model.parameters()) == matrices + (2 * layers + 1) * dim  # type: ignore[operator]
    tokens = torch.randint(11, (2, 6))
    other = tokens.clone()
    other[:, 4] = (tokens[:, 4] + 1) % 11
    here, there = (model(each, tokens)[0] for each in (tokens, other))
    assert torch.equal(here[:, :4], there[:, :4])
    assert not torch.allclose(here[:, 4], there[:, 4])


def test_plain_gpt_learns_a_text_that_repeats() -> None:
    torch.manual_seed(1)
    model, optimizer = make_plain(SIZE, "cpu")
    text, losses = torch.arange(11).repeat(9), []
    for _ in range(60):
        loss = model(*draw_windows(text, 6, 4))[1]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert isinstance(model, PlainGpt)
    assert losses[-1] < 0.9 * np.log(11)


@pytest.mark.slow
@pytest.mark.skipif(not HAS_TRAINER, reason="transformers and accelerate are not installed here")
@pytest.mark.parametrize(
    ("task", "canine"),
    [
        *((task, None) for task in ("language_model", "masked_language_model", "classification", "tagging")),
        *((task, CANINE) for task in ("classification", "tagging")),
    ],
)
def test_trainer_of_hugging_face_trains_every_task(task: str, canine: dict[str, int] | None, tmp_path: Path) -> None:
    label = {"classification": 1, "tagging": [1, IGNORED_LABEL, 2, IGNORED_LABEL, 3, IGNORED_LABEL]}
    text = [4, 5, 6, 7, 8, 3]
    (tmp_path / "examples").write_text(
        f"{json.dumps({'input_ids': text, 'labels': label.get(task, text)})}\n" * 20, encoding="utf-8"
    )
    asked = {"examples": str(tmp_path / "examples"), "task": task, "batch": 4}
    asked |= {"size": {**SIZE, "canine": canine, "smoothing": 0.0}, "warmup": 1, "steps": 3, "device": "cpu"}
    found = run([sys.executable, PROGRAM], folder=tmp_path, text=json.dumps(asked)).answer()
    assert found["rate"] > 0
    counted = {"language_model": 20, "classification": 4, "tagging": 12}
    assert found["tokens"] == counted.get(task, pytest.approx(3.6, abs=3.6))
