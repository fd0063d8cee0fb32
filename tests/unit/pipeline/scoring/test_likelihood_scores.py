"""Models scored by how probable they find texts: each figure beside plain arithmetic, and what its signature says."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tiny_model import tiny_model
from tfm.data.dataset.split import Split, TokenIdColumn
from tfm.data.dataset.store import load_split, write_split
from tfm.model.layout import Layout
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring import likelihood_scores
from tfm.pipeline.scoring.likelihood_scores import score_likelihood, split_from_lines
from tfm.pipeline.scoring.text_counts import CharacterCounts
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import BOS_ID, EOS_ID, UNK_ID
from tfm.tokenizer.train import train

LINES = [
    "a dog",
    "",
    "  the  sea\u00a0is cold !\t",
    "two dogs and a cat sit by the sea , asleep . " * 3,
    "a 犬 runs",
    "the sea",
]


class Warned(NullReporter):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def split_of(lines: list[str], loaded: LoadedModel, folder: Path) -> Split:
    """The lines on both sides, as `tfm preprocess` writes them."""
    ids = TokenIdColumn.from_lists(loaded.source_tokenizer.encode_batch(lines))
    with write_split(folder, texts=True) as writer:
        writer.write((ids.values, ids.lengths), (ids.values, ids.lengths), lines, lines)
    return load_split(folder)


def plain_nll(loaded: LoadedModel, lines: list[str]) -> tuple[float, int]:
    """-log p of the lines, each in windows as long as the model reads, one at a time; and how many tokens they have."""
    total, count = 0.0, 0
    for line in lines:
        tokens = [*loaded.target_tokenizer.encode(line), EOS_ID]
        for start in range(0, len(tokens), loaded.model.max_length):
            window = tokens[start : start + loaded.model.max_length]
            read = torch.tensor([BOS_ID, *window[:-1]])
            with torch.no_grad():
                logits = loaded.model.output(
                    loaded.model.hidden_states(read, Layout.from_lengths(torch.tensor([len(window)]), "cpu"))
                )
            total -= float(logits.log_softmax(-1)[torch.arange(len(window)), torch.tensor(window)].sum())
            count += len(window)
    return total, count


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi"])
@pytest.mark.parametrize("max_length", [12, 96])
def test_lines_longer_than_the_model_reads_are_scored_in_windows(
    positions: str, max_length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"architecture": "decoder_only", "task": "language_model", "positions": positions}
    loaded, heard = tiny_model(dtype=torch.float64, max_length=max_length, **settings), Warned()
    split, read = split_of(LINES, loaded, tmp_path / "split"), []
    nll, count = plain_nll(loaded, LINES)
    monkeypatch.setattr(loaded.model, "hidden_states", _watched(loaded.model.hidden_states, read))
    found = score_likelihood(loaded, "main", split, 40, heard).scores
    assert max(read) <= max_length
    assert found["perplexity"].score == pytest.approx(math.exp(nll / count), rel=1e-10)
    words = sum(len(line.split()) + 1 for line in LINES)
    assert found["word_perplexity"].score == pytest.approx(math.exp(nll / words), rel=1e-10)
    assert found["word_perplexity"].signature.startswith(f"unit:word|count:{words}|newline:counted|unit:token|count:")
    unknown = sum(loaded.target_tokenizer.encode(line).count(UNK_ID) for line in LINES)
    long = sum(len(loaded.target_tokenizer.encode(line)) >= max_length for line in LINES)
    kept = sum(len(" ".join(line.split())) + 1 for line in LINES)
    assert found["bits_per_character"].score == pytest.approx(nll / math.log(2) / kept, rel=1e-10)
    for score in found.values():
        assert f"|unknown:{unknown}" in score.signature
        assert (f"|lines-in-windows:{long}" in score.signature) == (long > 0)
    assert f"count:{kept}|read:{sum(map(len, LINES)) + 6}|kept:{kept}|" in found["bits_per_character"].signature
    assert any("unknown to the tokenizer" in warning for warning in heard.warnings)
    assert any("in windows of 12 tokens" in warning for warning in heard.warnings) == (max_length == 12)
    assert unknown > 0


def _watched(read: object, lengths: list[int]) -> object:
    """`model.hidden_states`, which notes the longest text it is asked for."""

    def watched(tokens: torch.Tensor, layout: Layout) -> torch.Tensor:
        lengths.append(int(layout.lengths.max()))
        result: torch.Tensor = read(tokens, layout)  # type: ignore[operator]
        return result

    return watched


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_a_masked_language_model_reads_what_is_not_cut_off(positions: str, tmp_path: Path) -> None:
    settings = {"architecture": "encoder_only", "task": "masked_language_model", "positions": positions}
    loaded, heard = tiny_model(max_length=12, **settings), Warned()
    found = score_likelihood(loaded, "main", split_of(LINES, loaded, tmp_path / "whole"), 40, heard).scores
    long = sum(len(loaded.source_tokenizer.encode(line)) >= 12 for line in LINES)
    assert f"|cut:{long}" in found["perplexity"].signature
    assert "|unknown-in-text:1" in found["perplexity"].signature
    assert long == 1
    assert "main: 1 of 6 texts is longer than the 11 pieces that the model reads, and was cut" in heard.warnings


def test_ordinary_text_has_a_plain_signature_and_no_warnings(tmp_path: Path) -> None:
    loaded, heard = tiny_model(architecture="decoder_only", task="language_model"), Warned()
    found = score_likelihood(
        loaded, "main", split_of(["a dog", "the sea"], loaded, tmp_path / "split"), 40, heard
    ).scores
    assert heard.warnings == []
    assert found["bits_per_character"].signature.startswith(
        "unit:code-point|count:14|newline:counted|unit:token|count:"
    )
    assert not any(part in found["perplexity"].signature for part in ("unknown", "windows", "cut", "read:"))


@pytest.mark.parametrize(("texts", "read", "kept"), [(["a  b ", "ﬁ"], 6, 4), (["한국"], 2, 2), (["e\u0301" * 3], 6, 3)])
def test_characters_are_those_of_the_text_or_of_what_is_kept_whichever_are_fewer(
    texts: list[str], read: int, kept: int
) -> None:
    found = CharacterCounts.count_texts(texts, tiny_model().target_tokenizer)
    assert (found.read, found.kept, found.num_characters) == (read, kept, min(read, kept))
    assert ("read:" in found.signature) == (read != kept)
    assert CharacterCounts(4, 9).num_characters == 4


@pytest.mark.parametrize("words", [{"window": 2}, {"window": 3, "negatives": 2}, {"window": 2, "shrink": True}])
def test_the_objective_of_word_vectors_is_divided_by_the_words_of_the_text(
    words: dict[str, object], tmp_path: Path
) -> None:
    """J = -1/T sum_t sum_j ln P(w_{t+j} | w_t): the mean loss, times the predictions of a pass, by the words."""
    lines = ["a dog runs by the sea", "the sea", "two dogs and a cat sit by the sea asleep", "dog"]
    word_by_word = train(lines, TokenizerConfig(kind="word", vocab_size=60, min_frequency=1))
    settings: dict[str, Any] = {"architecture": "skip_gram", "task": "word_vectors", "embedding_dim": 5}
    loaded = tiny_model(dtype=torch.float64, tokenizer=word_by_word, word_vectors=words, **settings)
    found = score_likelihood(loaded, "main", split_of(lines, loaded, tmp_path / "split"), 40, Warned()).scores
    texts = [line.split() for line in lines]
    widths = range(1, int(str(words["window"])) + 1) if "shrink" in words else [int(str(words["window"]))]
    places = [(i, j) for text in texts for i in range(len(text)) for j in range(len(text))]
    pairs = sum(0 < abs(i - j) <= width for width in widths for i, j in places)
    loss = found["loss"].score if "negatives" in words else math.log(found["perplexity"].score)
    num_words = sum(map(len, texts))
    assert found["objective"].score == pytest.approx(loss * pairs / len(widths) / num_words, rel=1e-9)
    assert found["objective"].signature.startswith(f"words:{num_words}|unit:neighbour|")


def test_lines_are_encoded_part_by_part_as_they_are_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = train(LINES, TokenizerConfig(kind="bpe", vocab_size=60, min_frequency=1))
    whole = split_from_lines(LINES, tokenizer, tokenizer)
    given: list[int] = []

    class Counted:
        def encode_flat(self, texts: list[str]) -> Any:
            given.append(len(texts))
            return tokenizer.encode_flat(texts)

    monkeypatch.setattr(likelihood_scores, "ENCODED_LINES", 4)
    parts = split_from_lines(LINES, Counted(), Counted())  # type: ignore[arg-type]
    assert given == [4, 2, 4, 2]
    assert (
        parts.target.to_lists() == parts.source.to_lists() == whole.source.to_lists() == tokenizer.encode_batch(LINES)
    )
    assert len(split_from_lines([], tokenizer, tokenizer)) == 0
