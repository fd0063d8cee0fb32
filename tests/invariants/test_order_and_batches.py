"""Figures follow from the texts alone: not from the order of lines, the batches they are in, or the files they come in.

For each task: validation, scores of a test set, questions, contrast sets, recorded attention and sampled texts.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

from tests.quick import mostly_slow
from tests.rounding import assert_rounds_like
from tests.tiny_model import tiny_model
from tfm.data.dataset.split import Split, TokenIdColumn
from tfm.model.config import SUPPORTED_TASKS, Architecture, StackConfig
from tfm.pipeline.attention_page.head_statistics import measure_heads
from tfm.pipeline.attention_page.reading import trace_text
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding import teacher_forcing
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring import alternatives
from tfm.pipeline.scoring.alternative_files import AlternativeKind, AlternativeSet, parse_item
from tfm.pipeline.scoring.likelihood_scores import score_likelihood
from tfm.pipeline.scoring.validation import Validator
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.pipeline.tasks.registry import TASKS
from tfm.pipeline.tasks.task import Task, TaskContext
from tfm.pipeline.training_config import TrainingConfig
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

WORDS = "a dog runs through the snow two dogs and cat sit by sea asleep is cold".split()
NEAR = 1e-9
STACK = StackConfig(layers=1, dim=8, heads=2, feed_forward_dim=8)
CASES: dict[str, dict[str, Any]] = {
    f"{architecture} {task}": {"architecture": architecture, "task": task}
    for architecture in get_args(Architecture)
    for task in SUPPORTED_TASKS[architecture]
}
for name in ("skip_gram word_vectors", "cbow word_vectors"):
    for settings in ({"shrink": True}, {"negatives": 3}, {"negatives": 2, "shrink": True, "subsample": 0.01}):
        CASES[f"{name} {'+'.join(settings)}"] = CASES[name] | {"word_vectors": {"window": 3, **settings}}
CASES["running text"] = CASES["decoder_only language_model"] | {"block": 24}


def texts() -> list[str]:
    """21 lines, some of them twice, some of one word, one blank."""
    draw = np.random.default_rng(3)
    lines = [" ".join(draw.choice(WORDS, size=draw.integers(1, 12))) for _ in range(16)]
    return [*lines, "", lines[0], lines[7], "dog", "dog"]


LINES = texts()
PIECES: Tokenizer = train(LINES, TokenizerConfig(kind="bpe", vocab_size=60, min_frequency=1, sentinels=20))


def made(name: str, dtype: torch.dtype = torch.float64) -> tuple[LoadedModel, Task, Split]:
    """A model, its task, and the lines as it learns from them."""
    settings = {"encoder": STACK, "decoder": STACK, **CASES[name]}
    if settings["architecture"] == "recurrent":
        settings["positions"] = "none"
    loaded = tiny_model(dtype=dtype, tokenizer=PIECES, **settings)
    source, target = (PIECES.encode_batch(LINES) for _ in range(2))
    if settings["task"] == "classification":
        target = [[4 + len(ids) % 5] for ids in source]
    if settings["task"] == "tagging":
        target = [[4 + piece % 5 for piece in ids] for ids in source]
    if settings["task"] == "translation":
        target = [ids[::-1] for ids in source]
    split = Split.from_texts(TokenIdColumn.from_lists(source), TokenIdColumn.from_lists(target), LINES, LINES)
    if settings["task"] == "tagging":
        split = replace(split, words=TokenIdColumn.from_lists([[1] * len(ids) for ids in source]))
    task = TASKS[settings["task"]](TaskContext(TrainingConfig(), loaded.config, PIECES, PIECES, 64))
    return loaded, task, split


def rows_of(split: Split, rows: Sequence[int]) -> Split:
    some = np.array(rows, np.int64)
    words = None if split.words is None else split.words.select_rows(some)
    return replace(split.select_rows(some), words=words)


def sums(loaded: LoadedModel, task: Task, split: Split, budget: int) -> np.ndarray:
    """-log p, how many predictions are right, how many there are, and unknown labels."""
    validator = Validator(task, split, task.ordered_batches(split, budget), None)
    with torch.no_grad():
        return np.array(validator.sum_predictions_over_processes(loaded.model.eval(), World(), lambda: None))


def assert_same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=NEAR, atol=NEAR)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.few(8)
def test_validation_does_not_see_batches(name: str) -> None:
    loaded, task, split = made(name)
    expected = sums(loaded, task, split, 4096)
    assert expected[2] > 20
    for budget in (16, 70):
        assert_same(sums(loaded, task, split, budget), expected)


ORDERED = [name for name in CASES if name != "running text"]
QUICK = [name for name in ORDERED if not name.startswith(("transformer span", "recurrent"))]


@pytest.mark.few(2)
@pytest.mark.parametrize("name", mostly_slow(ORDERED, *QUICK))
def test_validation_does_not_see_the_order_of_lines_nor_their_files(name: str) -> None:
    """Running text is another text in another order, and where it is cut a line loses what stands before it."""
    loaded, task, split = made(name)
    expected, count = sums(loaded, task, split, 64), len(LINES)
    assert_same(sums(loaded, task, rows_of(split, range(count)[::-1]), 64), expected)
    assert_same(sums(loaded, task, rows_of(split, np.random.default_rng(5).permutation(count).tolist()), 64), expected)
    halves = [sums(loaded, task, rows_of(split, part), 64) for part in (range(7), range(7, count))]
    assert_same(halves[0] + halves[1], expected)
    alone = [sums(loaded, task, rows_of(split, [row]), 64) for row in range(count)]
    assert_same(np.sum(alone, 0), expected)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CASES)
def test_in_fp32_only_rounding_sees_batches_and_lines(name: str) -> None:
    """-log p of all lines, beside the exact one of the same weights: as near as one line at a time is by plain sums."""
    loaded, task, split = made(name, torch.float32)
    double = replace(loaded, model=copy.deepcopy(loaded.model).double())
    count = len(LINES)
    splits = [(split, 4096), (split, 16), (split, 70)]
    if name == "running text":
        plain = [sums(loaded, task, split, 1)]
    else:
        mixed = np.random.default_rng(5).permutation(count).tolist()
        splits += [(rows_of(split, range(count)[::-1]), 64), (rows_of(split, mixed), 64)]
        plain = [sums(loaded, task, rows_of(split, [row]), 64) for row in range(count)]
    found = np.array([sums(loaded, task, some, budget) for some, budget in splits])
    exact = sums(double, task, split, 4096)
    assert (found[:, 2:] == exact[2:]).all()
    nll, alone = torch.tensor(found[:, 0]), torch.tensor(np.sum(plain, 0)[0])
    assert_rounds_like(nll.float(), alone.expand(len(splits)).float(), torch.full((len(splits),), exact[0]).double())


BY_PROBABILITY = [name for name in CASES if not TASK_SPECS[CASES[name]["task"]].gives_hypotheses]


@pytest.mark.parametrize("name", BY_PROBABILITY)
@pytest.mark.few(3)
def test_scores_of_a_test_set_follow_from_its_texts(name: str) -> None:
    loaded, task, split = made(name)
    expected = score_likelihood(loaded, "main", split, 4096, NullReporter()).scores
    others = [(split, 40)]
    if name != "running text":
        others.append((rows_of(split, range(len(LINES))[::-1]), 64))
    for some, budget in others:
        found = score_likelihood(loaded, "main", some, budget, NullReporter()).scores
        assert {each: score.signature for each, score in found.items()} == {
            each: score.signature for each, score in expected.items()
        }
        assert_same([found[each].score for each in expected], [score.score for score in expected.values()])
    nll, correct, count, _ = sums(loaded, task, split, 64)  # of validation
    figure = "perplexity" if task.has_perplexity else "loss"
    assert_same(expected[figure].score, math.exp(nll / count) if task.has_perplexity else nll / count)
    assert_same(expected["token_accuracy"].score, 100 * correct / count)


def test_signatures_say_how_many_draws_there_are_and_what_is_counted() -> None:
    loaded, _, split = made("encoder_only masked_language_model")
    count = int(split.source_lengths.sum())
    signature = score_likelihood(loaded, "main", split, 64, NullReporter()).scores["perplexity"].signature
    wanted = f"unit:chosen-token|count:{count}|end:none|context:line|chosen:each-once|draws:7|hidden:0.8|random:0.1"
    assert signature.startswith(wanted)
    loaded, _, split = made("transformer span_corruption")
    signature = score_likelihood(loaded, "main", split, 64, NullReporter()).scores["perplexity"].signature
    assert "|end:counted|sentinels:counted|hidden:0.15-in-spans-of-3|draws:7" in signature
    loaded, _, split = made("cbow word_vectors negatives+shrink+subsample")
    assert "|window:each-of-1-to-3|noise-words:2-others|draws:3" in score_likelihood(
        loaded, "main", split, 64, NullReporter()
    ).scores["loss"].signature  # fmt: skip


def asked(kind: AlternativeKind) -> AlternativeSet:
    """Questions with choices, or a contrast set, some of them twice."""
    draw, items = np.random.default_rng(4), []
    for line in range(1, 20):
        first, *others = (" ".join(draw.choice(WORDS, size=draw.integers(1, 6))) for _ in range(4))
        row = {"context": first, "choices": others, "answer": 0}
        if kind == "contrast":
            row = {"source": "", "right": others[0], "wrong": others[1:]}
        items.append(parse_item(row, line, kind))
    return AlternativeSet("some", (*items, items[3], items[3]))


@pytest.mark.parametrize("kind", get_args(AlternativeKind))
@pytest.mark.parametrize("name", ["decoder_only language_model", "running text", "transformer translation"])
def test_alternatives_do_not_see_each_other(name: str, kind: AlternativeKind, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, of = made(name)[0], asked(kind)
    if name == "transformer translation" and kind == "contrast":
        of = replace(of, items=tuple(replace(each, context="a dog") for each in of.items))

    def log_probs(items: AlternativeSet) -> list[list[float]]:
        scored, _ = alternatives.score_alternatives(loaded, items, kind, NullReporter())
        return [[*each.log_probs, *(each.log_probs_alone or ())] for each in scored]

    expected = log_probs(of)
    turned = log_probs(replace(of, items=of.items[::-1]))[::-1]
    for line, found in zip(expected, turned, strict=True):
        assert_same(found, line)
    monkeypatch.setattr(alternatives, "REQUESTS_PER_CHUNK", 2)
    monkeypatch.setattr(teacher_forcing, "MAX_BATCH_TOKENS", 20)
    for line, found in zip(expected, log_probs(of), strict=True):
        assert_same(found, line)


def test_recorded_attention_does_not_see_other_sentences(tmp_path: Path) -> None:
    loaded = made("encoder_only masked_language_model")[0]
    lines = [line for line in LINES if line]
    given = [trace_text(loaded, line, None, DecodingConfig()) for line in lines]
    turned = [trace_text(loaded, line, None, DecodingConfig()) for line in lines[::-1]][::-1]
    for one, other in zip(given, turned, strict=True):
        for weights, again in zip(one.attentions, other.attentions, strict=True):
            assert_same(weights.weights, again.weights)
    files = [tmp_path / name for name in ("all", "first", "second")]
    for file, part in zip(files, (lines[::-1], lines[:9], lines[9:]), strict=True):
        file.write_text("\n".join(part) + "\n", encoding="utf-8")
    whole, parts = (
        measure_heads(loaded, some, DecodingConfig(), NullReporter()).as_json() for some in (files[:1], files[1:])
    )
    assert_same(numbers(whole), numbers(parts))


def numbers(found: Any) -> list[float]:
    """All fractions in a document, in order."""
    if isinstance(found, float):
        return [found]
    items = found.values() if isinstance(found, dict) else found if isinstance(found, (list, tuple)) else ()
    return [number for each in items for number in numbers(each)]


@pytest.mark.parametrize("name", ["transformer translation", "decoder_only translation", "recurrent translation"])
@pytest.mark.few(1)
def test_sampled_texts_do_not_see_other_lines(name: str) -> None:
    loaded = made(name)[0]
    sources = [ids for ids in PIECES.encode_batch(LINES[:20]) if ids]
    config = DecodingConfig(strategy="sample", n_best=2, max_length=12, seed=3, beam=1)

    def sampled(some: Sequence[list[int]], batch_sentences: int) -> list[list[Any]]:
        asked = config.model_copy(update={"batch_sentences": batch_sentences})
        return [[each.ids for each in hypotheses] for hypotheses in decode(loaded.model, some, asked)]

    expected = sampled(sources, 64)
    assert len({str(each) for each in expected}) > 10
    assert sampled(sources, 3) == expected
    assert sampled(sources[::-1], 64)[::-1] == expected
    assert [sampled([source], 1)[0] for source in sources] == expected
