"""Vector files are read as they were written, or refused with file and line; embeddings start from them, or stay so."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from tests.tiny_model import tiny_model
from tests.tiny_training import MODEL, run, training, write_dataset
from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.errors import DataError
from tfm.model.config import ModelConfig
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.model_io.pretrained_vectors import format_vectors, model_word_vectors, word_ids
from tfm.pipeline.model_io.vector_files import read_vectors
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages.train import plan_model
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.train import train

DIM = 16
UNTIED = MODEL.model_copy(update={"tie": "none"})


class Heard(NullReporter):
    """A reporter that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)


def written(file: Path, lines: Sequence[str]) -> Path:
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return file


# Files


@given(
    st.lists(
        st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
        min_size=1,
        max_size=5,
    )
)
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, rows: list[list[float]]) -> None:
    vectors = np.array(rows, np.float32)
    words = {f"wörd{row}": row for row in range(len(rows))}
    file = tmp_path_factory.mktemp("vectors") / "v.txt"
    file.write_text(format_vectors(words, vectors), encoding="utf-8")
    found = read_vectors(file, 3, words)
    assert list(found) == list(words)
    assert all(np.array_equal(found[word], vectors[row]) for word, row in words.items())


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz"])
def test_with_and_without_a_first_line(name: str, tmp_path: Path) -> None:
    for lines in (["2 3", "a 1 2 3 ", "b 4 5 6"], ["a 1 2 3", "b 4 5 6"], ["a 1 2 3", "", "b 4 5 6", "a 7 8 9"]):
        content = "\n".join(lines).encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        found = read_vectors(tmp_path / name, 3, {"a", "b", "c"})
        assert {word: vector.tolist() for word, vector in found.items()} == {"a": [1, 2, 3], "b": [4, 5, 6]}


def test_only_wanted_words_are_kept_and_words_may_hold_spaces(tmp_path: Path) -> None:
    file = written(tmp_path / "v.txt", ["the 1 2", ". . . 3 4", "at name@domain.com 5 6", "17 7 8"])
    assert set(read_vectors(file, 2, {"the", "17", ". . ."})) == {"the", "17", ". . ."}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["a 1 2"], r"v.txt, line 1: its vectors are 2 wide, and the embedding is 3: set model.embedding_dim = 2"),
        (["a 1 2 3 4"], r"v.txt, line 1: its vectors are 4 wide, and the embedding is 3"),
        (["5 2", "a 1 2"], r"v.txt, line 1: its vectors are 2 wide, and the embedding is 3"),
        (["a 1 2 3", "b 1 2"], r"v.txt, line 2: its vector is 2 wide, and those above it 3: remove"),
        (["a 1 2 3", "b 1 2 3 4"], r"v.txt, line 2: its vector is 4 wide, and those above it 3: remove"),
        (["a 1 2 3", "b 1 x 3"], r"v.txt, line 2: 'x' is not a number"),
        (["a\t1\t2"], r"v.txt, line 1: its vectors are 2 wide"),
        (["a 1 nan 3"], r"v.txt, line 1: a vector contains a number that is not finite"),
        (["a 1 1e39 3"], r"v.txt, line 1: a vector contains a number that is not finite"),
        (
            ["3 3", "a 1 2 3", "b 1 2 3"],
            r"v.txt, line 1: should have 3 vectors by its first line, but has 2: is it complete\?",
        ),
    ],
    ids=[
        *("narrow", "wide", "first line", "later narrow", "later wide"),
        *("no number", "tabs", "nan", "overflow", "cut"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_what_is_wrong_is_said_with_its_line(lines: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=said):
        read_vectors(written(tmp_path / "v.txt", lines), 3, {"a", "b"})


def test_words_are_pieces_without_the_space_before_them() -> None:
    texts = ["a cat sat on a hat", "cats chat", "at at at"]
    tokenizer = train(texts, TokenizerConfig(kind="bpe", vocab_size=60, min_frequency=1))
    found = word_ids(tokenizer)
    assert list(found.values()) == sorted(found.values())
    assert min(found.values()) > 3  # control tokens are no words
    assert "" not in found
    pieces = [tokenizer.surface(number) for number in range(tokenizer.vocab_size)]
    assert {" at", "at"} <= set(pieces)
    assert pieces[found["at"]] == " at"  # the word, not the end of another
    assert pieces[found["c"]] in (" c", "c")


@pytest.mark.parametrize(
    "changes",
    [
        {"architecture": "skip_gram", "task": "word_vectors"},
        {"architecture": "decoder_only"},
        {"architecture": "encoder_only", "task": "tagging"},
        {"adaptive": {"cutoffs": [20], "factor": 2, "inputs": True}, "tie": "none"},
        {},
    ],
    ids=["skip-gram", "decoder only", "encoder only", "adaptive inputs", "transformer"],
)
def test_every_model_has_vectors(changes: dict[str, Any]) -> None:
    loaded = tiny_model(**changes)
    words, vectors = model_word_vectors(loaded, "target")
    assert words == word_ids(loaded.target_tokenizer)
    assert vectors.shape == (loaded.target_tokenizer.vocab_size, 16)


def test_source_and_target_have_their_own() -> None:
    loaded = tiny_model(tie="none")
    (_, source), (_, target) = model_word_vectors(loaded, "source"), model_word_vectors(loaded, "target")
    assert np.array_equal(source, loaded.model.source_embedding.table.weight.detach().numpy())
    assert np.array_equal(target, loaded.model.target_embedding.table.weight.detach().numpy())


# Embeddings that start from vectors


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset")


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    rows = torch.randn(3, DIM, generator=torch.Generator().manual_seed(1)).tolist()
    words = zip(("one", "seven", "elsewhere"), rows, strict=True)
    return written(tmp_path / "v.txt", [f"{word} {' '.join(map(str, row))}" for word, row in words])


def rows_of(folder: Path, dataset: Path, name: str) -> dict[str, list[float]]:
    """The rows of a table of a published model, by word."""
    tokenizer, _ = load_tokenizer_pair(dataset / "tokenizer")
    table = load_file(folder / "model.safetensors")[name]
    return {word: table[number].tolist() for word, number in word_ids(tokenizer).items()}


def wanted_rows(vectors: Path) -> dict[str, list[float]]:
    return {word: vector.tolist() for word, vector in read_vectors(vectors, DIM, {"one", "seven"}).items()}


TABLES = {
    "source": (UNTIED, "source_vectors", "source_embedding.table.weight"),
    "target": (UNTIED, "target_vectors", "target_embedding.table.weight"),
    "one for both": (MODEL.model_copy(update={"tie": "embeddings"}), "target_vectors", "source_embedding.table.weight"),
    "cbow": (
        ModelConfig(architecture="cbow", task="word_vectors", embedding_dim=DIM, max_length=32),
        "target_vectors",
        "table.weight",
    ),
}
NOTHING_IS_LEARNED = {"max_steps": 1, "schedule": {"name": "constant", "peak": 1e-30, "warmup_steps": 0}}


@pytest.mark.parametrize(("model", "key", "name"), TABLES.values(), ids=TABLES)
@pytest.mark.few(2)
def test_rows_start_from_the_file(
    model: ModelConfig, key: str, name: str, dataset: Path, vectors: Path, tmp_path: Path
) -> None:
    said = Heard()
    config = training(ema=0.9, **NOTHING_IS_LEARNED)
    folder = run(dataset, tmp_path / "one", config, model=model.model_copy(update={key: str(vectors)}), reporter=said)
    found, wanted = rows_of(folder, dataset, name), wanted_rows(vectors)
    plain = rows_of(run(dataset, tmp_path / "other", config, model=model), dataset, name)
    for word, row in found.items():
        assert row == pytest.approx(wanted.get(word, plain[word]), abs=1e-6)
    assert found["one"] != plain["one"]
    side = key.removesuffix("_vectors")
    assert f"training: 2 of 10 {side} pieces start from {vectors}" in said.lines


OPTIMIZERS = {
    "adamw": {"optimizer": {"name": "adamw", "weight_decay": 0.1}, "ema": 0.9, "l2": 0.01, "clip_norm": 0.5},
    "sgd": {"optimizer": {"name": "sgd", "weight_decay": 0.1}, "accumulate": 2},
    "adagrad": {"optimizer": {"name": "adagrad"}, "l1": 0.01},
}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(each, id=name, marks=pytest.mark.slow if name != "adamw" else ())
        for name, each in OPTIMIZERS.items()
    ],
)
@pytest.mark.slow
def test_frozen_rows_stay_and_training_resumes(
    changes: dict[str, Any], dataset: Path, vectors: Path, tmp_path: Path
) -> None:
    frozen = UNTIED.model_copy(update={"source_vectors": str(vectors), "freeze_vectors": True})
    whole = run(dataset, tmp_path / "whole", training(max_steps=12, **changes), model=frozen)
    run(dataset, tmp_path / "parts", training(max_steps=5, **changes), model=frozen)
    parts = run(dataset, tmp_path / "parts", training(max_steps=12, **changes), model=frozen)
    one, other = (load_file(folder / "model.safetensors") for folder in (whole, parts))
    assert all(torch.equal(one[name], other[name]) for name in one)
    found, wanted = rows_of(whole, dataset, "source_embedding.table.weight"), wanted_rows(vectors)
    assert {word: found[word] for word in wanted} == wanted
    moved = run(dataset, tmp_path / "free", training(max_steps=12, **changes), model=unfrozen(frozen))
    assert rows_of(moved, dataset, "source_embedding.table.weight")["one"] != wanted["one"]


def unfrozen(model: ModelConfig) -> ModelConfig:
    return model.model_copy(update={"freeze_vectors": False})


def test_the_published_model_stands_without_the_file(dataset: Path, vectors: Path, tmp_path: Path) -> None:
    model = UNTIED.model_copy(update={"source_vectors": str(vectors), "freeze_vectors": True})
    folder = run(dataset, tmp_path, training(max_steps=2), model=model)
    vectors.unlink()
    loaded = load_model(folder, "cpu")
    assert loaded.config.source_vectors == str(vectors)
    assert not loaded.model.source_embedding.table.weight.requires_grad


def test_a_resumed_training_does_not_start_from_the_vectors_again(dataset: Path, vectors: Path, tmp_path: Path) -> None:
    model = UNTIED.model_copy(update={"target_vectors": str(vectors)})
    run(dataset, tmp_path, training(max_steps=5), model=model)
    said = Heard()
    run(dataset, tmp_path, training(max_steps=6), model=model, reporter=said)
    assert any("resuming after step 5" in line for line in said.lines)
    assert not any("start from" in line for line in said.lines)


def test_where_the_file_lies_is_no_reason_to_train_again_but_what_is_in_it_is(
    dataset: Path, vectors: Path, tmp_path: Path
) -> None:
    def planned(place: Path | None) -> tuple[Any, dict[str, str]]:
        given = None if place is None else str(place)
        model = UNTIED.model_copy(update={"source_vectors": given})
        found = plan_model(
            training(), model, DecodingConfig(), dataset, tmp_path, seed=1, evaluation=EvaluationConfig()
        )
        return found.config, {label: each.fingerprint for label, each in found.inputs.items()}

    elsewhere = tmp_path / "elsewhere.txt"
    elsewhere.write_bytes(vectors.read_bytes())
    assert planned(elsewhere) == planned(vectors)
    assert "v.txt" not in json.dumps(planned(vectors)[0])
    with elsewhere.open("a") as file:
        file.write("two" + " 1" * DIM + "\n")
    assert planned(elsewhere)[1] != planned(vectors)[1] != planned(None)[1]
    with pytest.raises(DataError, match="nowhere: no such file"):
        planned(Path("nowhere"))


def test_vectors_of_a_trained_model(dataset: Path, tmp_path: Path) -> None:
    word_vectors = ModelConfig(architecture="skip_gram", task="word_vectors", embedding_dim=DIM, max_length=32)
    first = run(dataset, tmp_path / "first", training(max_steps=5), model=word_vectors)
    model = UNTIED.model_copy(update={"source_vectors": str(first), "freeze_vectors": True})
    said = Heard()
    folder = run(dataset, tmp_path / "second", training(max_steps=2), model=model, reporter=said)
    name = "source_embedding.table.weight"
    assert rows_of(folder, dataset, name) == rows_of(first, dataset, "table.weight")
    assert f"training: 10 of 10 source pieces start from {first}, without training" in said.lines
    wide = UNTIED.model_copy(update={"source_vectors": str(first), "embedding_dim": 8})
    with pytest.raises(DataError, match="its vectors are 16 wide, and the embedding is 8"):
        run(dataset, tmp_path / "third", training(max_steps=2), model=wide)


def test_vectors_that_are_none_of_these_words_are_refused(dataset: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "v.txt", ["uno" + " 1" * DIM])
    with pytest.raises(DataError, match=r"v\.txt: has a vector for no piece of the source"):
        run(dataset, tmp_path, training(), model=UNTIED.model_copy(update={"source_vectors": str(file)}))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (["model.freeze_vectors=true"], "freeze_vectors needs embeddings that start from source_vectors or"),
        (["model.source_vectors=a", "model.target_vectors=b"], 'tie = "all" shares one embedding'),
        (
            ["model.source_vectors=a", "model.freeze_vectors=true"],
            'freeze_vectors with tie = "all" would freeze the output layer too',
        ),
        (
            ["model.target_vectors=a", "model.freeze_vectors=true", "model.tie=output"],
            'freeze_vectors with tie = "output" would freeze the output layer too',
        ),
        (["model.source_vectors=a", "training.init_from=m"], "training.init_from sets the embeddings too"),
    ],
    ids=["nothing to freeze", "two files, one table", "all", "output", "init_from"],
)
def test_what_does_not_combine_is_refused(keys: list[str], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        load_recipe(Path("recipes/demo.toml"), keys)


@pytest.mark.parametrize(
    "keys",
    [
        ["model.source_vectors=a", "model.freeze_vectors=true", "model.tie=output"],
        ["model.source_vectors=a", "model.target_vectors=b", "model.freeze_vectors=true", "model.tie=none"],
        ["model.target_vectors=a", "model.freeze_vectors=true", "model.tie=embeddings"],
    ],
    ids=["source alone", "none", "embeddings"],
)
def test_what_combines_is_not_refused(keys: list[str]) -> None:
    assert load_recipe(Path("recipes/demo.toml"), keys).model.frozen_vector_sides
