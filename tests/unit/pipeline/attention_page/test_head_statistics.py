"""What heads do in a corpus: each figure by hand, each token that asks counted once, tags by word."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import finfo, float32, float64

from tests.tiny_model import TEXTS, tiny_model
from tfm.pipeline.attention_page.attended import ATTENTION_KIND_TITLES, AttendedToken, AttentionAxes
from tfm.pipeline.attention_page.head_report import RELATIVE_POSITIONS, HeadMeasures, HeadReport
from tfm.pipeline.attention_page.head_statistics import HeadStatisticSums, measure_heads, uniform_attention
from tfm.pipeline.attention_page.reading import trace_text
from tfm.pipeline.attention_page.tagged_corpus import TaggedSentence, encode_with_word_indices, read_sentences
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.runtime.progress import NullReporter
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.train import train

GREEDY = DecodingConfig(beam=1, max_length=9)
LINES = ["a dog runs .", "two dogs sit by the sea", "the cat is cold !"]
TAGGED = [
    [("a", "DET"), ("dog", "NOUN"), ("runs", "VERB"), (".", "PUNCT")],
    [("don't", "AUX"), ("sit", "VERB"), ("by", "ADP"), ("the", "DET"), ("sea", "NOUN")],
]


def axes(num_queries: int, num_keys: int, separators: tuple[int, ...] = ()) -> AttentionAxes:
    tokens = tuple(AttendedToken(str(i), i in separators, i) for i in range(max(num_queries, num_keys)))
    return AttentionAxes(tokens[:num_queries], tokens[:num_keys], ("",) * num_queries)


def rows(*weights: list[float]) -> np.ndarray:
    """Weights (1, T, S) of one head."""
    return np.array([weights])


def conllu(file: Path, sentences: list[list[tuple[str, str]]]) -> Path:
    lines = []
    for words in sentences:
        lines += ["# a comment", "1-2\tdon't" + "\t_" * 8]
        lines += [f"{i}\t{form}\t_\t{tag}" + "\t_" * 6 for i, (form, tag) in enumerate(words, 1)] + [""]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


class Warned(NullReporter):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def test_every_figure_is_what_it_says() -> None:
    sums = HeadStatisticSums()
    sums.add(rows([0.5, 0.5, 0], [0.25, 0.25, 0.5], [0, 0.5, 0.5]), axes(3, 3, (2,)), ["A", "B", "A"])
    (found,) = sums.measures("encoder", 1)
    assert (found.kind, found.layer, found.head, found.queries) == ("encoder", 1, 1, 3)
    assert found.previous == pytest.approx((0.25 + 0.5) / 3, abs=1e-15)
    assert found.same == pytest.approx((0.5 + 0.25 + 0.5) / 3, abs=1e-15)
    assert found.next == pytest.approx((0.5 + 0.5) / 3, abs=1e-15)
    assert found.separators == pytest.approx((0.5 + 0.5) / 3, abs=1e-15)
    assert found.entropy == pytest.approx((1 + 1.5 + 1) / 3, abs=1e-15)
    assert found.of_maximum == pytest.approx(3.5 / (1 + np.log2(3) + 1), abs=1e-15)
    assert found.tags == pytest.approx({"A": (0.5 + 0.75 + 0.5) / 3, "B": (0.5 + 0.25 + 0.5) / 3}, abs=1e-15)


def test_each_token_that_asks_counts_once_however_long_its_sentence() -> None:
    sums = HeadStatisticSums()
    sums.add(rows([1.0]), axes(1, 1), None)
    sums.add(rows([0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]), axes(3, 4), None)
    (found,) = sums.measures("cross", 2)
    assert (found.queries, found.same, found.next, found.previous) == (4, 0.25, 0.5, 0.25)
    assert (found.entropy, found.of_maximum, found.tags) == (0, None, None)  # there was never a choice


@given(st.integers(1, 5), st.integers(1, 5), st.booleans(), st.randoms(use_true_random=False))
def test_attention_spread_evenly_has_the_largest_entropy(
    num_queries: int, num_keys: int, causal: bool, draw: Random
) -> None:
    logits = np.array([[[draw.uniform(-3, 3) for _ in range(num_keys)] for _ in range(num_queries)] for _ in "ab"])
    if causal:
        logits[:, np.arange(num_keys) > np.arange(num_queries)[:, None]] = -np.inf
    weights = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    heads, even = HeadStatisticSums(), HeadStatisticSums()
    heads.add(weights, axes(num_queries, num_keys), None)
    even.add(uniform_attention(weights), axes(num_queries, num_keys), None)
    (most,) = even.measures("decoder", None)
    assert (most.layer, most.head) == (None, None)
    for each in heads.measures("decoder", 1):
        assert each.entropy <= most.entropy + 1e-12
        assert (each.of_maximum is None) == (most.of_maximum is None)
        if each.of_maximum is not None and most.of_maximum is not None:
            assert most.of_maximum == pytest.approx(1, abs=1e-12)
            assert each.of_maximum == pytest.approx(each.entropy / most.entropy, abs=1e-12)


def test_a_corpus_gives_the_sums_of_its_sentences(tmp_path: Path) -> None:
    loaded = tiny_model(dtype=float64)
    (tmp_path / "a.txt").write_text("\n".join(LINES), encoding="utf-8")
    report = measure_heads(loaded, [tmp_path / "a.txt"], GREEDY, NullReporter())
    assert report.sentences == 3
    assert [(each.kind, each.layer, each.head) for each in report.measures] == [
        (kind, *of) for kind in ATTENTION_KIND_TITLES for of in ((None, None), (1, 1), (1, 2), (2, 1), (2, 2))
    ]
    queries, same = 0, 0.0
    for line in LINES:
        (_, second) = trace_text(loaded, line, None, GREEDY).layers("cross")
        queries += second.weights.shape[1]
        same += np.trace(second.weights[0].astype(np.float64))
    found = report.measures[-2]
    assert (found.queries, found.tags) == (queries, None)
    assert found.same == pytest.approx(same / queries, abs=1e-12)
    even = report.measures[0]
    assert even.of_maximum == pytest.approx(1, abs=1e-12)


def test_the_same_corpus_gives_the_same_figures_in_any_order(tmp_path: Path) -> None:
    loaded = tiny_model()
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for file, lines in zip(files, (LINES, LINES[::-1]), strict=True):
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    once, again, other = (
        measure_heads(loaded, each, GREEDY, NullReporter()) for each in (files[:1], files[:1], files[1:])
    )
    assert once == again
    for one, two in zip(once.measures, other.measures, strict=True):
        figures = [
            (*map(each.__getattribute__, (*RELATIVE_POSITIONS, "separators", "entropy")),) for each in (one, two)
        ]
        assert figures[0] == pytest.approx(figures[1], abs=1e-12)


def test_attention_by_tag_sums_to_all(tmp_path: Path) -> None:
    file = conllu(tmp_path / "a.conllu", TAGGED)
    report = measure_heads(tiny_model(dtype=float64), [file], GREEDY, NullReporter())
    tagged = [each for each in report.measures if each.tags is not None]
    assert {each.kind for each in tagged} == {"encoder", "cross"}
    for each in tagged:
        assert sum((each.tags or {}).values()) == pytest.approx(1, abs=finfo(float32).eps)
        assert set(each.tags or {}) == {"DET", "NOUN", "VERB", "PUNCT", "AUX", "ADP", "</s>"}
    places, tags = report.tables()
    assert places.columns[:3] == tags.columns[:3] == ("attention", "layer", "head")
    assert len(places.rows) == 15
    assert len(tags.rows) == 10
    assert tags.rows[0][:3] == ("encoder, evenly", "–", "–")


@pytest.mark.parametrize(
    ("settings", "kinds", "beside"),
    [
        ({"architecture": "decoder_only"}, {"decoder"}, {"<s>", "</s>", "target"}),
        ({"architecture": "decoder_only", "task": "language_model"}, {"decoder"}, {"<s>"}),
        ({"architecture": "encoder_only", "task": "tagging"}, {"encoder"}, {"</s>"}),
    ],
)
def test_models_of_one_stack_are_measured_too(
    settings: dict[str, str], kinds: set[str], beside: set[str], tmp_path: Path
) -> None:
    report = measure_heads(tiny_model(**settings), [conllu(tmp_path / "a.conllu", TAGGED)], GREEDY, NullReporter())
    assert {each.kind for each in report.measures} == kinds
    for each in report.measures:
        assert {tag for tag in each.tags or {} if not tag.isupper()} == beside
    if kinds == {"decoder"}:
        assert all(each.next == 0 for each in report.measures)


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "unigram", "char", "byte", "word"])
def test_a_piece_has_the_tag_of_its_word(kind: str, tmp_path: Path) -> None:
    """However words are cut: into characters, at punctuation, or not at all."""
    texts = [*TEXTS, *(" ".join(form for form, _ in words) for words in TAGGED)]
    tokenizer = train(texts, TokenizerConfig(kind=kind, vocab_size=300, min_frequency=1))  # type: ignore[arg-type]
    begins = tokenizer.word_start_mask()
    sentences = list(read_sentences([conllu(tmp_path / "a.conllu", TAGGED)]))
    for words, sentence, (ids, of) in zip(
        TAGGED, sentences, encode_with_word_indices(tokenizer, sentences), strict=True
    ):
        assert ids == tokenizer.encode(sentence.text)
        assert of is not None
        tags = [sentence.tags[each] for each in of]
        spelled: dict[int, str] = {}
        word = 0
        for number, (piece, tag) in enumerate(zip(ids, tags, strict=True)):
            word += number > 0 and begins[piece]
            spelled[word] = spelled.get(word, "") + tokenizer.surface(piece).strip()
            assert tag == words[word][1]
        assert list(spelled.values()) == [form for form, _ in words]


def test_what_the_model_cannot_read_is_left_out_and_said(tmp_path: Path) -> None:
    file, reporter = tmp_path / "a.txt", Warned()
    file.write_text("a dog .\n\n" + "dog " * 30 + "\n", encoding="utf-8")
    report = measure_heads(tiny_model(max_length=12), [file], GREEDY, reporter)
    assert report.sentences == 1
    assert reporter.warnings == [
        "left out of 3 sentences: 1 without pieces, 1 longer than the 11 pieces that the model reads"
    ]
    file.write_text("\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.txt: contains no sentence that the model can read"):
        measure_heads(tiny_model(), [file], GREEDY, NullReporter())


def test_what_cannot_be_measured_is_refused(tmp_path: Path) -> None:
    text, tagged = tmp_path / "a.txt", conllu(tmp_path / "b.conllu", TAGGED)
    text.write_text("a dog\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.txt: has no tags and .*b\.conllu has: give files of one kind"):
        measure_heads(tiny_model(), [tagged, text], GREEDY, NullReporter())
    with pytest.raises(DataError, match="no such file"):
        measure_heads(tiny_model(), [tmp_path / "c.txt"], GREEDY, NullReporter())
    with pytest.raises(RecipeError, match="has no attention"):
        measure_heads(tiny_model(architecture="recurrent", positions="none"), [text], GREEDY, NullReporter())


def test_words_are_those_of_the_text_whatever_the_tokenizer_makes_of_them() -> None:
    config = TokenizerConfig(kind="wordpiece", normalization="nfkc", vocab_size=40, min_frequency=1)
    tokenizer = train(["a b"], config)
    sentences = [TaggedSentence("a´b 日本 b", ("X", "Y", "Z")), TaggedSentence("a b")]
    (ids, words), (others, none) = encode_with_word_indices(tokenizer, sentences)
    assert len(ids) == len(words or ()) > 3
    assert list(dict.fromkeys(words or ())) == [0, 1, 2]
    assert (others, none) == (tokenizer.encode("a b"), None)


def test_tables_and_json_say_the_same() -> None:
    one = HeadMeasures("encoder", 1, 2, 5, 0.25, 0.5, 0.125, 0.0, 1.5, None, {"NOUN": 0.75})
    report = HeadReport(3, (one,))
    places, tags = report.tables()
    assert places.rows == [("encoder", 1, 2, "25.0", "50.0", "12.5", "0.0", "1.50", "–")]
    assert tags.rows == [("encoder", 1, 2, "75.0")]
    (found,) = report.as_json()["heads"]
    assert (found["head"], found["previous"], found["tags"]) == (2, 0.25, {"NOUN": 0.75})
