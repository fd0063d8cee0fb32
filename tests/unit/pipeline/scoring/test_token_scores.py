"""Texts in windows that overlap: each token counts once, by what a plain loop says of it, one token at a time."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.tiny_model import tiny_model
from tests.unit.pipeline.scoring.test_likelihood_scores import LINES, Warned, split_of
from tfm.model.layout import Layout
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.likelihood_scores import score_likelihood
from tfm.pipeline.scoring.token_scores import ScoringWindows, make_windows, token_scores
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import BOS_ID, EOS_ID
from tfm.tokenizer.train import train

TEXT_MODEL: dict[str, Any] = {"architecture": "decoder_only", "task": "language_model"}
PTB = [
    " no it was n't black monday ",
    " but while the new york stock exchange did n't fall apart as the <unk> average plunged N points ",
    " some <unk> <unk> were <eos> n't </s> up to the task <pad> ",
    " ",
    " the N stock <unk> were up N N ",
]


def contexts_of(texts: list[int], longest: int, stride: int) -> list[list[int]]:
    """Of each token of each text, how many tokens stand before it in the window that it counts in."""
    lengths = np.array(texts, np.int64)
    windows = make_windows(lengths, longest, stride)
    found: list[list[int]] = [[] for _ in range(int(lengths.sum()))]
    for start, length, context in zip(windows.starts, windows.lengths, windows.contexts, strict=True):
        for place in range(context, length):
            found[start + place].append(place)
    assert all(len(each) == 1 for each in found), "every token counts once"
    parts = np.split(np.array([each for (each,) in found]), np.cumsum(lengths)[:-1])
    assert (windows.lengths <= longest).all()
    return [part.tolist() for part in parts]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(1, 12), st.data())
def test_every_token_counts_once_with_the_context_that_was_promised(
    texts: list[int], longest: int, data: st.DataObject
) -> None:
    stride = data.draw(st.integers(1, longest))
    for length, contexts in zip(texts, contexts_of(texts, longest, stride), strict=True):
        # all that its text has, or so many; never a token of another text
        assert all(min(place, longest - stride) <= context <= place for place, context in enumerate(contexts))
        (longer,) = contexts_of([length + data.draw(st.integers(0, 30))], longest, stride)
        assert longer[:length] == contexts, "what follows a token changes nothing of what stands before it"


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.integers(1, 12))
def test_a_stride_as_long_as_the_window_puts_windows_side_by_side(texts: list[int], longest: int) -> None:
    windows = make_windows(np.array(texts), longest, longest)
    assert not windows.contexts.any()
    assert windows.starts.tolist() == [0, *np.cumsum(windows.lengths)[:-1]]
    assert len(windows.starts) == sum(-(-each // longest) for each in texts)


def one_at_a_time(loaded: LoadedModel, text: list[int], longest: int, stride: int) -> list[float]:
    """log p of each token of one text, each by a pass of its own over what stands before it in its window."""
    found = []
    for place, token in enumerate(text):
        late = max(place + 1 - longest, 0)  # tokens that a window from the beginning has no room for
        start = -(-late // stride) * stride
        read = torch.tensor([BOS_ID, *text[start:place]])
        with torch.no_grad():
            hidden = loaded.model.hidden_states(read, Layout.from_lengths(torch.tensor([len(read)]), "cpu"))
            found.append(float(loaded.model.output(hidden[-1:]).log_softmax(-1)[0, token]))
    return found


def ids_of(loaded: LoadedModel, lines: list[str]) -> list[list[int]]:
    return [[*loaded.target_tokenizer.encode(line), EOS_ID] for line in lines]


@pytest.mark.parametrize("block", [None, 8])
@pytest.mark.parametrize(
    ("stride", "extra"),
    [
        *((stride, {}) for stride in (1, 3, 7, 8)),
        (3, {"positions": "transformer_xl"}),
        (5, {"mixing": "recurrent", "positions": "none"}),
        (2, {"adaptive": {"cutoffs": [20]}}),
    ],
)
@pytest.mark.few(7)
def test_windows_say_what_a_plain_loop_says(stride: int, block: int | None, extra: Any, tmp_path: Path) -> None:
    loaded = tiny_model(dtype=torch.float64, max_length=8 if block is None else 20, block=block, **TEXT_MODEL, **extra)
    lines = ids_of(loaded, LINES)
    texts = lines if block is None else [[token for line in lines for token in line]]
    log_probs = [each for text in texts for each in one_at_a_time(loaded, text, 8, stride)]
    nll, count, heard = -sum(log_probs), len(log_probs), Warned()
    made = score_likelihood(loaded, "main", split_of(LINES, loaded, tmp_path / "split"), 40, heard, stride=stride)
    by_line, rest = [], iter(log_probs)
    for line, text in zip(lines, LINES, strict=True):
        by_line.append((sum(next(rest) for _ in line), len(line), len(text.split()) + 1))
    assert made.likelihoods is not None
    assert made.likelihoods.log_probs.tolist() == pytest.approx([each for each, _, _ in by_line], rel=1e-10)
    assert made.likelihoods.pieces.tolist() == [each for _, each, _ in by_line]
    assert made.likelihoods.words.tolist() == [each for _, _, each in by_line]
    found = made.scores
    assert found["perplexity"].score == math.exp(-made.likelihoods.total / count)  # to the last bit
    words, kept = sum(len(line.split()) + 1 for line in LINES), sum(len(" ".join(line.split())) + 1 for line in LINES)
    assert found["perplexity"].score == pytest.approx(math.exp(nll / count), rel=1e-10)
    assert found["word_perplexity"].score == pytest.approx(math.exp(nll / words), rel=1e-10)
    assert found["bits_per_character"].score == pytest.approx(nll / math.log(2) / kept, rel=1e-10)
    for score in found.values():
        assert f"unit:token|count:{count}|end:counted" in score.signature
        assert (f"|stride:{stride}" in score.signature) == (stride < 8)
    assert any(f"windows of 8 tokens, each {stride} after" in each for each in heard.warnings) == (
        block is None and stride < 8
    )


@pytest.mark.parametrize("block", [None, 8])
def test_a_stride_of_the_window_is_none(block: int | None, tmp_path: Path) -> None:
    loaded = tiny_model(max_length=8 if block is None else 20, block=block, **TEXT_MODEL)
    split = split_of(LINES, loaded, tmp_path / "split")
    assert score_likelihood(loaded, "a", split, 40, NullReporter()) == score_likelihood(
        loaded, "a", split, 40, NullReporter(), stride=8
    )


@pytest.mark.parametrize("block", [None, 80])
def test_texts_that_fit_into_one_window_have_no_stride(block: int | None, tmp_path: Path) -> None:
    loaded = tiny_model(max_length=96, block=block, **TEXT_MODEL)
    split = split_of(LINES[:2], loaded, tmp_path / "split")
    assert score_likelihood(loaded, "a", split, 40, NullReporter()) == score_likelihood(
        loaded, "a", split, 40, NullReporter(), stride=4
    )


def test_a_stride_longer_than_the_window_is_refused(tmp_path: Path) -> None:
    for block, named in ((None, "max_length = 20"), (8, "block = 8")):
        loaded = tiny_model(max_length=20, block=block, **TEXT_MODEL)
        split = split_of(LINES, loaded, tmp_path / named)
        with pytest.raises(RecipeError, match=rf"stride \(21\) exceeds the model's window \(model.{named}\)"):
            score_likelihood(loaded, "a", split, 40, NullReporter(), stride=21)


def test_a_batch_of_more_rows_than_go_through_the_output_layer_at_once() -> None:
    loaded = tiny_model(dtype=torch.float64, max_length=20, block=8, **TEXT_MODEL)
    text = np.random.default_rng(1).integers(4, 30, 700).astype(np.int32)
    windows = make_windows(np.array([700]), 8, 5)
    large, small = (
        token_scores(loaded.model, text, windows, name="a", batch_tokens=tokens, reporter=NullReporter())
        for tokens in (4096, 16)
    )
    assert np.allclose(large.log_probs, small.log_probs, rtol=1e-10)
    assert (large.right == small.right).all()
    assert 0 < large.right.sum() < 700


def test_accuracy_is_of_what_windows_predict_not_of_what_they_repeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = tiny_model(max_length=20, block=4, **TEXT_MODEL)
    text = np.array([5, 6, 7, 8, 9, 10], np.int32)
    rows: list[int] = []

    def output(hidden: torch.Tensor) -> torch.Tensor:
        rows.append(len(hidden))
        logits = torch.zeros(len(hidden), 12)
        logits[:, 9] = 1.0
        return logits

    monkeypatch.setattr(loaded.model.output, "forward", output)
    windows = ScoringWindows(np.array([0, 2]), np.array([4, 4]), np.array([0, 2]))
    found = token_scores(loaded.model, text, windows, name="a", batch_tokens=64, reporter=NullReporter())
    assert found.right.tolist() == [False, False, False, False, True, False]
    assert sum(rows) == 6


@pytest.mark.parametrize("block", [None, 16])
def test_of_words_perplexity_by_word_is_by_piece_and_that_of_penn_treebank(block: int | None, tmp_path: Path) -> None:
    """AWD-LSTM and Transformer-XL: words = line.split() + ["<eos>"], exp(mean of -log p)."""
    tokenizer = train(PTB, TokenizerConfig(kind="word", vocab_size=999, min_frequency=1))
    loaded = tiny_model(tokenizer=tokenizer, dtype=torch.float64, max_length=96, block=block, **TEXT_MODEL)
    found = score_likelihood(loaded, "ptb", split_of(PTB, loaded, tmp_path / "split"), 400, heard := Warned()).scores
    assert found["word_perplexity"].score == found["perplexity"].score
    assert heard.warnings == []
    vocabulary = {word: tokenizer.encode(word)[0] for line in PTB for word in line.split()}
    assert len(set(vocabulary.values())) == len(vocabulary) == tokenizer.vocab_size - 4  # <unk>, </s>, <pad> are words
    assert min(vocabulary.values()) >= 4
    lines = [[vocabulary[word] for word in line.split()] + [EOS_ID] for line in PTB]
    stream = [token for line in lines for token in line]
    windows = lines if block is None else [stream[start : start + 16] for start in range(0, len(stream), 16)]
    log_probs = [each for window in windows for each in one_at_a_time(loaded, window, 96, 96)]
    assert found["word_perplexity"].score == pytest.approx(math.exp(-sum(log_probs) / len(stream)), rel=1e-10)
    assert f"unit:word|count:{len(stream)}|newline:counted|" in found["word_perplexity"].signature
    assert "unknown" not in found["word_perplexity"].signature


def test_words_that_are_not_in_the_vocabulary_are_counted_and_are_not_the_texts_own_unk(tmp_path: Path) -> None:
    tokenizer = train(PTB, TokenizerConfig(kind="word", vocab_size=999, min_frequency=1))
    loaded = tiny_model(tokenizer=tokenizer, max_length=96, **TEXT_MODEL)
    split = split_of([" <unk> 犬 <unk> собака ", " N N "], loaded, tmp_path / "split")
    found = score_likelihood(loaded, "ptb", split, 400, heard := Warned()).scores
    assert "unit:word|count:8|newline:counted|unit:token|count:8|" in found["word_perplexity"].signature
    assert "|unknown:2" in found["word_perplexity"].signature
    assert any("2 of 6 pieces" in each for each in heard.warnings)


@pytest.mark.parametrize("kind", ["bpe", "char", "byte", "word", "wordpiece", "unigram"])
def test_words_are_the_texts_own_whatever_the_pieces(kind: Any, tmp_path: Path) -> None:
    words = {"": 0, "   ": 0, "Ünïté 犬が 走る": 3, "شجرة\u3000كبيرة\u00a0جدا": 3, " GROẞ\tb\x1c ": 2, "<unk>": 1}
    tokenizer = train([*PTB, *words], TokenizerConfig(kind=kind, vocab_size=400, min_frequency=1))
    loaded = tiny_model(tokenizer=tokenizer, max_length=96, **TEXT_MODEL)
    found = score_likelihood(loaded, "a", split_of([*words], loaded, tmp_path / "split"), 400, NullReporter()).scores
    by_word, by_piece = found["word_perplexity"], found["perplexity"]
    count = sum(len(ids) for ids in ids_of(loaded, [*words]))
    assert by_word.signature.startswith(f"unit:word|count:{sum(words.values()) + 6}|newline:counted|unit:token|")
    assert math.log(by_word.score) * (sum(words.values()) + 6) == pytest.approx(math.log(by_piece.score) * count)
    assert (count == sum(words.values()) + 6) == (kind == "word")
