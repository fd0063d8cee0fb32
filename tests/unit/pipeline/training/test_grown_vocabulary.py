"""A training that starts from a model with fewer pieces: rows of new ones are means, all else computes what it did."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.huggingface_models import our_logits
from tests.recording_reporter import Listening
from tests.tiny_training import MODEL, in_float64, run, training, write_dataset
from tfm.data.config import DataConfig
from tfm.data.corpus_config import CorpusConfig
from tfm.model.config import ModelConfig
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.model_io.loaded_model import LoadedModel, load_model
from tfm.pipeline.model_io.model_weights import load_weights
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages.preprocess import preprocess
from tfm.pipeline.stages.tokenize import tokenize
from tfm.pipeline.training import session
from tfm.tokenizer.code_points import load_pair
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.growth.trainer import GrowthTrainer
from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

STILL = {"max_steps": 1, "schedule": {"name": "constant", "peak": 1e-30, "warmup_steps": 0}}
STILL |= {"validation": {"every_steps": 1, "bleu": False}}
NEW_WORDS = "eleven twelve thirteen fourteen fifteen ßß"
LETTERS = TokenizerConfig(vocab_size=50, min_frequency=1)


@pytest.fixture(autouse=True)
def _no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "draw_curves", lambda metrics, file: None)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset", pieces=LETTERS)


def grown(dataset: Path, count: int = 20) -> Tokenizer:
    trainer = GrowthTrainer(Tokenizer.load(dataset / "tokenizer" / "tokenizer.json"), count, 1)
    for word in NEW_WORDS.split():
        trainer.add(f"{word} {word}")
    return trainer.learn()


def model_of(**changes: Any) -> ModelConfig:
    return ModelConfig.model_validate({**MODEL.model_dump(), **changes})


KINDS: dict[str, dict[str, Any]] = {
    "tied": {},
    "untied, with a bias": {"tie": "none", "output_bias": True},
    "language model": {"architecture": "decoder_only", "task": "language_model", "output_bias": True},
    "masked language model": {"architecture": "encoder_only", "task": "masked_language_model"},
    "recurrent": {"architecture": "recurrent", "recurrent": {"attention": "luong"}, "tie": "none"},
}


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_new_pieces_are_means_and_logits_of_old_ones_are_the_same(
    kind: str, dataset: Path, tmp_path: Path
) -> None:
    model, heard, tokenizer = model_of(**KINDS[kind]), Listening(), grown(dataset)
    larger = write_dataset(tmp_path / "larger", words=NEW_WORDS, by=tokenizer)
    first = run(dataset, tmp_path / "first", training(**STILL), model=model)
    with in_float64():
        second = run(larger, tmp_path / "second", training(**STILL, init_from=str(first)), model=model, reporter=heard)
    assert "training: 20 new pieces begin as the mean of the old pieces that it replaces" in heard.lines
    before, after = (
        {n: w.double() for n, w in load_file(each / "model.safetensors").items()} for each in (first, second)
    )
    old = Tokenizer.load(first / "tokenizer.json")
    size, tables = old.vocab_size, 0
    assert before.keys() == after.keys()
    for name, weight in before.items():
        torch.testing.assert_close(after[name][: len(weight)], weight, rtol=0, atol=1e-20)
        if len(after[name]) == len(weight):
            continue
        tables += 1
        for number in range(size, size + 20):
            # a piece of BPE is cut inside of a text as it is alone, so a text that ends in it tells of what it is made
            parts = merged(old, tokenizer.piece(number))
            torch.testing.assert_close(after[name][number], weight[parts].mean(0), rtol=0, atol=1e-15)
    assert tables == {"untied, with a bias": 4, "recurrent": 3, "language model": 2}.get(kind, 1)

    small, large = (in_double(load_model(each, "cpu"), each) for each in (first, second))
    ids = [4, 9, 12, 8], [7, 20, 6]
    logits, theirs = our_logits(small, *ids), our_logits(large, *ids)
    torch.testing.assert_close(theirs[:, :size], logits, rtol=0, atol=1e-12)
    for number in range(size, size + 20):
        mean = logits[:, merged(old, tokenizer.piece(number))].mean(1)
        torch.testing.assert_close(theirs[:, number], mean, rtol=0, atol=1e-12)


def merged(old: Tokenizer, piece: str) -> list[int]:
    """The old pieces that spell one, by merging its letters as byte-pair encoding is defined."""
    model = old.document["model"]
    parts = [letter if letter in model["vocab"] else "<unk>" for letter in piece]
    for left, right in model["merges"]:
        place = 0
        while place < len(parts) - 1:
            if (parts[place], parts[place + 1]) == (left, right):
                parts[place : place + 2] = [left + right]
            place += 1
    return [model["vocab"][part] for part in parts]


def in_double(loaded: LoadedModel, folder: Path) -> LoadedModel:
    """The model with the weights of its file as they are there."""
    network = loaded.model.double()
    load_weights(network, load_file(folder / "model.safetensors"), folder)
    return loaded


def test_it_learns_the_new_pieces(dataset: Path, tmp_path: Path) -> None:
    tokenizer = grown(dataset)
    larger = write_dataset(tmp_path / "larger", words=NEW_WORDS, by=tokenizer)
    first = run(dataset, tmp_path / "first", training(**STILL))
    second = run(larger, tmp_path / "second", training(max_steps=2, init_from=str(first)))
    before, after = (load_file(each / "model.safetensors")["source_embedding.table.weight"] for each in (first, second))
    number = tokenizer.encode("thirteen")[-1]
    assert number >= len(before)
    mean = before[merged(Tokenizer.load(first / "tokenizer.json"), tokenizer.piece(number))].mean(0)
    assert (after[number] - mean).abs().max() > 1e-4
    third = run(larger, tmp_path / "third", training(**STILL, init_from=str(second)))  # which has them already
    again = load_file(third / "model.safetensors")["source_embedding.table.weight"]
    torch.testing.assert_close(again, after, rtol=0, atol=1e-20)


def test_another_tokenizer_is_refused_as_before(dataset: Path, tmp_path: Path) -> None:
    first = run(dataset, tmp_path / "first", training(**STILL))
    changed = grown(dataset).document
    changed["model"]["merges"].reverse()
    for name, by in (("order", Tokenizer.from_json(json.dumps(changed))), ("another", train([NEW_WORDS], LETTERS))):
        other = write_dataset(tmp_path / name, words=NEW_WORDS, by=by)
        with pytest.raises(DataError, match="was trained with another tokenizer"):
            run(other, tmp_path / "second", training(**STILL, init_from=str(first)))
    larger = run(write_dataset(tmp_path / "larger", by=grown(dataset)), tmp_path / "third", training(**STILL))
    with pytest.raises(DataError, match="was trained with another tokenizer"):  # fewer pieces than the model has
        run(dataset, tmp_path / "second", training(**STILL, init_from=str(larger)))


def test_adapters_and_clusters_are_refused_with_the_reason(dataset: Path, tmp_path: Path) -> None:
    larger = write_dataset(tmp_path / "larger", words=NEW_WORDS, by=grown(dataset))
    first = run(dataset, tmp_path / "first", training(**STILL))
    with pytest.raises(RecipeError, match=r"training\.lora leaves embeddings as they are.*new pieces"):
        run(larger, tmp_path / "second", training(**STILL, init_from=str(first), lora={"rank": 2}))
    model = model_of(adaptive={"cutoffs": [20]})
    first = run(dataset, tmp_path / "adaptive", training(**STILL, label_smoothing=0), model=model)
    with pytest.raises(RecipeError, match="adaptive softmax, with clusters in the order"):
        run(larger, tmp_path / "second", training(**STILL, label_smoothing=0, init_from=str(first)), model=model)
    assert not (tmp_path / "second").exists()


def test_an_encoder_that_is_to_label_reads_new_pieces(dataset: Path, tmp_path: Path) -> None:
    first = run(dataset, tmp_path / "first", training(**STILL), model=model_of(**KINDS["masked language model"]))
    for name, lines in (("in", NEW_WORDS.split()), ("out", ["yes", "no", "yes"] * 2)):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    corpus = CorpusConfig(source=str(tmp_path / "in"), target=str(tmp_path / "out"))
    data = DataConfig(train=(corpus,), valid=corpus, tests={"test": corpus}, batch_tokens=64)
    pieces = TokenizerConfig(
        file=str(first / "tokenizer.json"), grow=9, shared=False, target_kind="label", min_frequency=1
    )
    tokenize(pieces, data, tmp_path / "tokens", command=["test"], reporter=NullReporter())
    preprocess(data, tmp_path / "tokens", tmp_path / "labels", command=["test"], reporter=NullReporter())
    labels = ModelConfig(architecture="encoder_only", task="classification")
    second = run(tmp_path / "labels", tmp_path / "second", training(**STILL, init_from=str(first)), model=labels)
    before, after = (load_file(each / "model.safetensors")["embedding.table.weight"] for each in (first, second))
    tokenizer, _ = load_pair(second)
    assert len(after) == tokenizer.vocab_size == len(before) + 9
    last = merged(Tokenizer.load(first / "tokenizer.json"), tokenizer.piece(len(after) - 1))
    torch.testing.assert_close(after[-1], before[last].mean(0))
    torch.testing.assert_close(after[: len(before)], before, rtol=0, atol=1e-20)


def test_a_letter_that_was_unknown_begins_as_the_unknown_piece(dataset: Path, tmp_path: Path) -> None:
    tokenizer = grown(dataset)
    assert tokenizer.piece(len(tokenizer.document["model"]["vocab"]) - 20) in "ßlw"
    first = run(dataset, tmp_path / "first", training(**STILL))
    larger = write_dataset(tmp_path / "larger", words=NEW_WORDS, by=tokenizer)
    second = run(larger, tmp_path / "second", training(**STILL, init_from=str(first)))
    table = load_file(second / "model.safetensors")["source_embedding.table.weight"]
    torch.testing.assert_close(table[tokenizer.document["model"]["vocab"]["ß"]], table[UNK_ID], rtol=0, atol=1e-20)
