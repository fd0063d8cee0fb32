"""Heads against syntax: figures by hand, by loops over pieces and words, and of planted heads."""

from pathlib import Path

import numpy as np
import pytest
from torch import float64

from tests.tiny_model import tiny_model
from tfm.pipeline.attention_page.attended import AttendedToken, AttentionAxes
from tfm.pipeline.attention_page.head_report import HeadReport
from tfm.pipeline.attention_page.head_statistics import measure_heads
from tfm.pipeline.attention_page.head_syntax import (
    MIN_RELATION_COUNT,
    RELATION_COLUMNS,
    SyntaxAccuracyCounts,
    relation_rows,
    syntax_probe_targets,
    word_attention,
)
from tfm.pipeline.attention_page.reading import trace_text
from tfm.pipeline.attention_page.tagged_corpus import TaggedSentence, encode_with_word_indices, read_sentences
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import DataError
from tfm.pipeline.runtime.progress import NullReporter

GREEDY = DecodingConfig(beam=1, max_length=9)
# form, HEAD, DEPREL
SENTENCES = [
    [("a", 2, "det"), ("dog", 3, "nsubj"), ("runs", 0, "root"), ("by", 6, "case"), ("a", 6, "det"), ("sea", 3, "obl")],
    [("собака", 2, "nsubj"), ("ест", 0, "root"), ("MEAT", 2, "obj"), ("FISH", 2, "obj"), (".", 2, "punct")],
    [("cold", 0, "root")],
]  # fmt: skip


def conllu(file: Path, sentences: list[list[tuple[str, int, str]]]) -> Path:
    lines = []
    for words in sentences:
        for number, (form, head, relation) in enumerate(words, 1):
            lines.append(f"{number}\t{form}\t_\tX\t_\t_\t{head}\t{relation}\t_\t_")
            if number == 1:
                lines.append("1.1\tempty" + "\t_" * 8)  # an empty node is no word: no HEAD counts it
        lines.append("")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def sentence(words: list[tuple[str, int, str]]) -> TaggedSentence:
    governors = tuple(None if head == 0 else head - 1 for _, head, _ in words)
    return TaggedSentence(
        " ".join(form for form, *_ in words), ("X",) * len(words), governors, tuple(r for *_, r in words)
    )


def axes(pieces: int) -> AttentionAxes:
    tokens = (*(AttendedToken(str(place), False, place) for place in range(pieces)), AttendedToken("</s>", True))
    return AttentionAxes(tokens, tokens, ("",) * len(tokens))


def test_the_columns_of_a_file_are_read(tmp_path: Path) -> None:
    assert list(read_sentences([conllu(tmp_path / "a.conllu", SENTENCES)])) == [sentence(each) for each in SENTENCES]


def test_the_built_in_sentences_are_read_by_their_name_and_a_file_of_that_name_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = list(read_sentences([Path("it"), conllu(tmp_path / "a.conllu", SENTENCES)]))
    assert len(found) == 1003
    words = found[0].text.split()
    assert len(words) == len(found[0].tags) == len(found[0].governors) == len(found[0].relations)
    assert [words[each] for each in found[0].governors if each is not None] == ["cat"] * 4
    assert found[0].text == "The donkey chased the cat because it was very weak."
    Path("it").write_text("a dog runs\n")
    assert list(read_sentences([Path("it")])) == [TaggedSentence("a dog runs")]


def test_each_dependent_asks_once_and_each_governor_once_a_relation() -> None:
    assert list(syntax_probe_targets(sentence(SENTENCES[1]))) == [
        (("nsubj", "governor"), 0, {1}),
        (("obj", "governor"), 2, {1}),
        (("obj", "governor"), 3, {1}),
        (("punct", "governor"), 4, {1}),
        (("nsubj", "dependent"), 1, {0}),
        (("obj", "dependent"), 1, {2, 3}),
        (("punct", "dependent"), 1, {4}),
    ]


def test_attention_between_words_is_summed_over_keys_and_averaged_over_queries() -> None:
    """Words "ab c": pieces a, b, c and the end token."""
    weights = np.array([[[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.1, 0.3], [0.2, 0.3, 0.4, 0.1], [1.0, 0, 0, 0]]])
    found = word_attention(weights, axes(3), [0, 0, 1], 2)
    assert found == pytest.approx(np.array([[[-1, (0.3 + 0.1) / 2], [0.2 + 0.3, -1]]]), abs=1e-15)
    without_pieces = word_attention(weights, axes(3), [0, 0, 2], 3)
    assert (without_pieces[0, :, 1] == -1).all()  # the word between them has no piece: nobody attends to it
    assert without_pieces[0, 0] == pytest.approx([-1, -1, 0.2], abs=1e-15)


def planted(of: TaggedSentence, towards: str) -> np.ndarray:
    """Attention (1, W, W) of a head that knows the syntax."""
    attention = np.full((1, len(of.tags), len(of.tags)), 0.01)
    for (_, direction), word, right in syntax_probe_targets(of):
        if direction == towards:
            attention[0, word, min(right)] += 1
    return attention


def test_a_head_that_knows_the_syntax_is_found_and_the_best_offset_stands_beside_it() -> None:
    sums = SyntaxAccuracyCounts()
    for each in map(sentence, SENTENCES[:2]):
        sums.count_offset_hits(each)
        uniform = np.full((1, len(each.tags), len(each.tags)), 0.1)
        sums.count_head_hits(each, "encoder", 1, np.concatenate([uniform, uniform]))
        sums.count_head_hits(each, "encoder", 2, np.concatenate([uniform, planted(each, "governor")]))
    found = {(each.name, each.towards): each for each in sums.relations()}
    for (name, towards), each in found.items():
        if towards == "governor":
            assert (each.share, each.heads["encoder 2.2"]) == (1, 1), name
    assert found["det", "governor"].words == 2
    assert (found["det", "governor"].offset, found["det", "governor"].offset_share) == (1, 1.0)
    assert (found["obj", "governor"].offset, found["obj", "governor"].offset_share) == (-1, 0.5)
    # one governor with two objects asks once, and either is right
    assert (found["obj", "dependent"].words, found["obj", "dependent"].offset_share) == (1, 1.0)
    assert not any(name == "root" for name, _ in found)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"architecture": "encoder_only", "task": "tagging"},
        {"architecture": "decoder_only", "task": "language_model"},
    ],
)
def test_a_model_is_measured_as_by_loops(settings: dict[str, str], tmp_path: Path) -> None:
    loaded = tiny_model(dtype=float64, **settings)
    file = conllu(tmp_path / "a.conllu", SENTENCES)
    report = measure_heads(loaded, [file], GREEDY, NullReporter())
    tokenizer = loaded.target_tokenizer if settings.get("task") == "language_model" else loaded.source_tokenizer
    kind = "decoder" if settings.get("architecture") == "decoder_only" else "encoder"
    right: dict[tuple[str, str, str], int] = {}
    for each in map(sentence, SENTENCES):
        ((_, words),) = encode_with_word_indices(tokenizer, [each])
        assert words is not None
        read = trace_text(loaded, each.text, None, GREEDY)
        of = read.axes[kind]  # type: ignore[index]
        for attention in read.layers(kind):  # type: ignore[arg-type]
            for head, weights in enumerate(attention.weights, 1):
                for (relation, towards), asks, answers in syntax_probe_targets(each):
                    scores: dict[int, float] = {}
                    for t, query in enumerate(of.queries):
                        for s, key in enumerate(of.keys):
                            if (
                                query.source_index is None
                                or key.source_index is None
                                or words[query.source_index] != asks
                            ):
                                continue
                            if words[key.source_index] != asks:
                                scores[words[key.source_index]] = scores.get(words[key.source_index], 0) + float(
                                    weights[t][s]
                                )
                    most = max(scores, key=lambda word: scores[word])
                    hit = scores[most] > 0 and most in answers
                    place = (relation, towards, f"{kind} {attention.layer}.{head}")
                    right[place] = right.get(place, 0) + hit
    assert report.relations
    for found in report.relations:
        for head_name, share in found.heads.items():
            expected = right[found.name, found.towards, head_name] / found.words
            assert share == pytest.approx(expected, abs=1e-12), (found.name, found.towards, head_name)
        assert found.share == max(found.heads.values())
        assert found.heads[f"{found.kind} {found.layer}.{found.head}"] == found.share


def test_the_table_has_frequent_relations_in_the_better_direction(tmp_path: Path) -> None:
    file = conllu(tmp_path / "a.conllu", SENTENCES[:1] * MIN_RELATION_COUNT)
    report = measure_heads(tiny_model(architecture="encoder_only", task="tagging"), [file], GREEDY, NullReporter())
    table = report.tables()[-1]
    assert table.columns == RELATION_COLUMNS
    named = {row[0]: row for row in table.rows}
    assert set(named) == {"det", "nsubj", "case", "obl"}
    for name, row in named.items():
        both = [each for each in report.relations if each.name == name]
        assert float(str(row[6])) == pytest.approx(100 * max(each.share for each in both), abs=0.05)
    assert report.as_json()["relations"][0]["words"] == 2 * MIN_RELATION_COUNT
    assert relation_rows(report.relations[:0]) == []


def test_a_corpus_without_syntax_has_no_table_of_it(tmp_path: Path) -> None:
    file = tmp_path / "a.conllu"
    file.write_text("1\tdogs\t_\tNOUN" + "\t_" * 6 + "\n\n", encoding="utf-8")
    report: HeadReport = measure_heads(tiny_model(), [file], GREEDY, NullReporter())
    assert report.relations == ()
    assert len(report.tables()) == 2


def test_a_governor_that_is_no_word_is_refused(tmp_path: Path) -> None:
    file = conllu(tmp_path / "a.conllu", [[("dogs", 7, "nsubj"), ("run", 0, "root")]])
    with pytest.raises(
        DataError, match=r"a\.conllu: the HEAD of word 1 is 7, which is no word of the sentence 'dogs run'"
    ):
        list(read_sentences([file]))
