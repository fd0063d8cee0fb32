"""Alignments from cross-attention: by word, from every head, against plain loops over the weights of one sentence."""

import json
import random
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import float64

from tests.tiny_model import TEXTS, tiny_model
from tfm.pipeline.alignment.extraction import AlignmentHead, SentencePair, WordAligner, align_chunks, link_by_argmax
from tfm.pipeline.alignment.gold_links import read_gold_links
from tfm.pipeline.alignment.head_agreement import rank_head_agreements
from tfm.pipeline.alignment.pharaoh import GoldLinks, format_links, parse_gold_links
from tfm.pipeline.alignment.symmetrization import (
    NEIGHBOURS,
    SYMMETRIZATIONS,
    align_both_ways,
    grow_diagonally,
    reverse_links,
)
from tfm.pipeline.alignment.word_pieces import NO_WORD, PieceToWordMapper, attention_between_words
from tfm.pipeline.alignment.word_trace import trace_words
from tfm.pipeline.attention_page.reading import trace_text
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.alignment.error_rate import LinkCounts
from tfm.pipeline.scoring.alignment.gold import read_pair_files
from tfm.pipeline.scoring.alignment.head_scores import score_heads
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

PAIRS = [
    SentencePair("two dogs sit by the sea", "a cat and a dog"),
    SentencePair("a dog runs", "the sea is cold ! asleep"),
    SentencePair("snow", "two dogs sit , asleep ."),
    SentencePair("", "a dog"),
    SentencePair("a  cat", "a cold cat"),
]
MODELS: dict[str, dict[str, Any]] = {
    "transformer": {},
    "bahdanau": {"architecture": "recurrent", "positions": "none", "recurrent": {"attention": "bahdanau"}},
    "luong": {"architecture": "recurrent", "positions": "none", "recurrent": {"attention": "luong"}},
}


def plain_weights(loaded: LoadedModel, pair: SentencePair, head: AlignmentHead) -> np.ndarray:
    """The attention between words of one pair, by the page's own reading and loops over pieces."""
    trace = trace_text(loaded, pair.source, pair.target, DecodingConfig())
    layer = trace.layers("cross")[head.layer - 1].weights.astype(np.float64)
    chosen = layer.mean(0) if head.head is None else layer[head.head - 1]
    words = [
        [len(tokenizer.decode(ids[: end + 1]).split()) - 1 for end in range(len(ids))]
        for tokenizer, text in ((loaded.source_tokenizer, pair.source), (loaded.target_tokenizer, pair.target))
        for ids in [tokenizer.encode(text)]
    ]
    found = np.zeros((len(pair.target.split()), len(pair.source.split())))
    for place, target in enumerate(words[1]):
        for key, source in enumerate(words[0]):
            found[target, source] += chosen[place + head.shifted, key] / words[1].count(target)
    return found


@pytest.mark.parametrize("name", MODELS)
def test_attention_between_words_is_the_sum_over_pieces(name: str) -> None:
    """Plain loops over each sentence of a batch alone, for every head and both rows."""
    loaded = tiny_model(dtype=float64, **MODELS[name])
    aligner = WordAligner(loaded)
    heads = aligner.heads()
    assert len(heads) == (12 if name == "transformer" else len(aligner.num_heads) * 4)
    for pair, matrices in zip(PAIRS, aligner.attention_weights(PAIRS, heads), strict=True):
        if not pair.source:
            assert all(not each.size for each in matrices)
            continue
        for head, weights in zip(heads, matrices, strict=True):
            expected = plain_weights(loaded, pair, head)
            assert np.abs(weights - expected).max() < 1e-6  # the page's are float32
            links = link_by_argmax(weights)
            assert links == {(int(row.argmax()), word) for word, row in enumerate(weights)}


def test_links_do_not_depend_on_the_batch() -> None:
    aligner = WordAligner(tiny_model(dtype=float64))
    head = aligner.choose_head(1, 2, shifted=True)
    together = [links for (links,) in aligner.align(PAIRS, [head])]
    assert together == list(align_chunks(aligner, iter(PAIRS), head, 2))
    assert together == [aligner.align([pair], [head])[0][0] for pair in PAIRS]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece", "word", "char", "byte"])
def test_each_piece_has_the_word_it_is_in(kind: Any) -> None:
    """The pieces of a word, decoded, are the word; numbers of words go up by one."""
    tokenizer = train(TEXTS, TokenizerConfig(kind=kind, vocab_size=300 if kind == "byte" else 80, min_frequency=1))
    words = PieceToWordMapper(tokenizer)
    draw = random.Random(3)
    for _ in range(30):
        chosen = draw.choices([*TEXTS[1].split(), "snow", "runs"], k=draw.randint(1, 9))
        text = " ".join(chosen)
        ids = tokenizer.encode(text)
        found = words.word_indices(ids, text)
        assert len(found) == len(ids)
        for place, word in enumerate(chosen):
            pieces = [number for number, of in zip(ids, found, strict=True) if of == place]
            assert tokenizer.decode(pieces).strip() == word


@pytest.mark.parametrize("form", ["nfc", "nfkc", "nfkd"])
@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece", "word", "char", "byte"])
def test_a_word_that_normalizing_divides_or_takes_away_stays_one(kind: Any, form: Any) -> None:
    """By the characters of the text that each piece stands for."""
    spelled = ["it´s a dog", "½ of ﷺ the sea", "¨ dog \u00a8a sea", "snow ´´ is cold"]
    size = 300 if kind == "byte" else 90
    tokenizer = train(
        [*TEXTS, *spelled], TokenizerConfig(kind=kind, vocab_size=size, min_frequency=1, normalization=form)
    )
    words = PieceToWordMapper(tokenizer)
    for text in [*spelled, "qqq ´q dog", "ﷺ ﷺ sea"]:
        ids, found = tokenizer.encode(text), words.word_indices(tokenizer.encode(text), text)
        for number, word, (_, start, end) in zip(ids, found, tokenizer.encode_spans(text), strict=True):
            if number == UNK_ID or tokenizer.surface(number).strip():  # a space is of no word
                assert word == len(text[: max(end, start + 1)].split()) - 1


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece", "word", "char", "byte"])
def test_tokens_before_a_text_are_no_words_of_it(kind: Any) -> None:
    """Tags of training pairs, and languages; also where a piece is unknown."""
    plain = train(TEXTS, TokenizerConfig(kind=kind, vocab_size=300 if kind == "byte" else 80, min_frequency=1))
    tagged = plain.with_tags("<BT>").select_tag("<BT>")
    spoken = plain.with_languages("deu", "eng").select_target_language("deu")
    for text in ("a dog runs", "a dog qzq asleep", "qzq"):
        ids, words = plain.encode(text), PieceToWordMapper(plain)
        marked = words.decode_marking_unknown(ids)
        expected = words.word_indices(ids, marked)
        for tokenizer in (tagged, spoken):
            mapper, longer = PieceToWordMapper(tokenizer), tokenizer.encode(text)
            assert mapper.decode_marking_unknown(longer) == marked
            assert mapper.word_indices(longer, marked) == [NO_WORD, *expected]


def test_an_invisible_word_has_no_piece_and_those_behind_keep_their_places() -> None:
    document = train(TEXTS, TokenizerConfig(kind="bpe", vocab_size=60, min_frequency=1)).document
    document["normalizer"] = {"type": "Replace", "pattern": {"String": "\u200b"}, "content": ""}
    tokenizer = Tokenizer.from_json(json.dumps(document))
    text = "a \u200b dog runs"
    ids = tokenizer.encode(text)
    found = PieceToWordMapper(tokenizer).word_indices(ids, text)
    letters = [(word, tokenizer.surface(number).strip()) for number, word in zip(ids, found, strict=True)]
    texts = ["".join(letter for word, letter in letters if word == place) for place in range(4)]
    assert texts == ["a", "", "dog", "runs"]


def test_attention_between_words_of_some_pieces() -> None:
    weights = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.0, 1.0, 0.0]])
    found = attention_between_words(weights, [0, 0, 1], [0, NO_WORD, 1])
    assert np.allclose(found, [[0.3, 0.45], [0.0, 0.0]])
    assert link_by_argmax(found) == {(1, 0)}


def test_error_rate_is_that_of_its_equation() -> None:
    """Against sets counted by hand, and random links counted one by one."""
    links, gold = {(0, 0), (1, 1), (2, 3), (5, 5)}, parse_gold_links("0-0 1-1 4-4 2p3")
    scores = LinkCounts.from_links(links, gold.sure, gold.possible).scores()
    assert scores["aer"].score == pytest.approx(100 * (1 - (2 + 3) / (4 + 3)))
    assert (scores["precision"].score, scores["recall"].score) == (75, pytest.approx(200 / 3))
    draw = random.Random(5)
    total, counts = LinkCounts(), [0, 0, 0, 0]
    for _ in range(50):
        some = [{(draw.randrange(3), draw.randrange(3)) for _ in range(4)} for _ in range(3)]
        total += LinkCounts.from_links(*some)
        for place in [(row, column) for row in range(3) for column in range(3)]:
            counts[0] += place in some[0]
            counts[1] += place in some[1]
            counts[2] += place in some[0] and place in some[1]
            counts[3] += place in some[0] and (place in some[1] or place in some[2])
    assert [total.links, total.sure, total.in_sure, total.in_possible] == counts
    assert total.scores()["aer"].score == pytest.approx(100 - 100 * (counts[2] + counts[3]) / (counts[0] + counts[1]))
    assert {name: each.score for name, each in LinkCounts().scores().items()} == {"aer": 0, "precision": 0, "recall": 0}


def test_scores_of_heads_come_in_order() -> None:
    aligner = WordAligner(tiny_model(dtype=float64))
    head = aligner.choose_head(2, 1)
    gold = [GoldLinks(links, links) for (links,) in aligner.align(PAIRS, [head])]
    scored = score_heads(aligner, PAIRS, gold, aligner.heads())
    assert scored[0].scores["aer"].score == 0
    rates = [each.scores["aer"].score for each in scored]
    assert rates == sorted(rates)
    assert next(each.scores["aer"].score for each in scored if each.head == head) == 0


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            ["9-0", "0-0"],
            "gold, line 1: links word 9 with word 0, counted from 0,.* 2 and 4 words: are the links of",
        ),
        (["0-0", "1-1 2-3"], "gold, line 2: links word 2 with word 3.* exchanged"),
        (["1-1 2-4", "1-1"], "gold, line 1: links word 2 with word 4.* does the file count from 1"),
        (["", " "], "gold: has no link"),
    ],
)
def test_gold_alignments_of_other_words_are_refused(lines: list[str], reason: str, tmp_path: Path) -> None:
    columns = {"source": ["a b", "a b c d"], "target": ["a b c d", "a b c"], "gold": lines}
    source, target, gold = (tmp_path / name for name in columns)
    for name, texts in columns.items():
        (tmp_path / name).write_text("".join(f"{each}\n" for each in texts), "utf-8")
    with pytest.raises(DataError, match=reason):
        read_pair_files(source, target, gold, NullReporter())


def test_pharaohs_form() -> None:
    assert format_links({(2, 1), (0, 3), (0, 0)}) == "0-0 0-3 2-1"
    assert parse_gold_links("") == GoldLinks(frozenset(), frozenset())
    for wrong in ("1", "1-", "-1-2", "1-2-3", "a-b", "1 - 2", "1x2"):
        with pytest.raises(ValueError, match="is no link"):
            parse_gold_links(wrong)


def test_a_trace_by_word_has_the_words() -> None:
    aligner = WordAligner(tiny_model())
    found = trace_words(aligner, PAIRS[0], aligner.choose_head())
    assert [each.text for each in found.axes["cross"].keys] == PAIRS[0].source.split()
    assert found.attentions[0].weights.shape == (1, 5, 6)


def test_models_without_alignments_are_refused() -> None:
    for changes in (
        {"architecture": "decoder_only"},
        {"architecture": "recurrent", "positions": "none", "recurrent": {"attention": "none"}},
    ):
        with pytest.raises(RecipeError, match="has no cross-attention"):
            WordAligner(tiny_model(**changes))
    with pytest.raises(RecipeError, match="only models that translate"):
        WordAligner(tiny_model(architecture="decoder_only", task="language_model"))
    aligner = WordAligner(tiny_model())
    for layer, head, reason in ((3, None, "layers 1 to 2"), (1, 9, "heads 1 to 2"), (None, 1, "give the layer too")):
        with pytest.raises(RecipeError, match=reason):
            aligner.choose_head(layer, head)
    with pytest.raises(DataError, match=r"^the target has"):
        aligner.align([SentencePair("a dog", "a dog " * 60)], [aligner.choose_head()], 8)
    of_files = WordAligner(tiny_model(), (Path("some.en"), Path("some.de")))
    for pair, problem in (
        (SentencePair("a dog", "a dog " * 60), r"^some\.de, line 8: the target has 120 pieces.* shorten it"),
        (SentencePair("a dog " * 60, "a dog"), r"^some\.en, line 8: the source has"),
    ):
        with pytest.raises(DataError, match=problem):
            of_files.align([pair], [aligner.choose_head()], 8)
    assert (
        len(aligner.align([SentencePair("a dog", "a dog " * 60)], [aligner.choose_head()], truncate=True)[0][0]) < 120
    )


@given(st.text(alphabet="0123456789-p \t,x", max_size=30))
def test_a_line_is_links_or_an_error(line: str) -> None:
    try:
        found = parse_gold_links(line)
    except ValueError as error:
        problem = str(error)
    else:
        problem = None
    if problem is not None:
        assert "is no link" in problem
        return
    assert found.sure <= found.possible
    assert len(found.possible) <= len(line.split())
    assert parse_gold_links(format_links(found.sure)).sure == found.sure


@given(content=st.binary(max_size=40))
def test_a_file_of_links_is_read_or_refused(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Any bytes: links, or an error with the file in it."""
    file = tmp_path_factory.getbasetemp() / "links.gold"
    file.write_bytes(content)
    problem = "links.gold"
    try:
        list(read_gold_links(file, 2))
    except DataError as error:
        problem = str(error)
    assert "links.gold" in problem


LINKS = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=8)


@given(LINKS, LINKS)
def test_links_of_both_directions_become_one(
    forward: frozenset[tuple[int, int]], back: frozenset[tuple[int, int]]
) -> None:
    """The grown ones lie between the intersection and the union, and do not depend on which direction is the first."""
    grown = grow_diagonally(forward, back)
    assert SYMMETRIZATIONS["intersection"](forward, back) <= grown <= SYMMETRIZATIONS["union"](forward, back)
    assert grown == grow_diagonally(back, forward)
    assert grow_diagonally(forward, forward) == forward
    assert reverse_links(grow_diagonally(reverse_links(forward), reverse_links(forward))) == forward
    shared = forward & back
    for source, target in grown - shared:  # each link that was added has a neighbour
        assert any((source + down, target + right) in grown for down, right in NEIGHBOURS)


def scan_and_grow(forward: frozenset[tuple[int, int]], back: frozenset[tuple[int, int]]) -> set[tuple[int, int]]:
    """grow-diag of the Moses manual: all places by target, then by source, again and again, until nothing is added."""
    union, found, size = forward | back, set(forward & back), -1
    while len(found) > size:
        size = len(found)
        for target, source in product(range(5), repeat=2):
            if (source, target) not in found:
                continue
            for down, right in ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)):
                link = source + right, target + down
                has_source, has_target = (any(each[side] == link[side] for each in found) for side in (0, 1))
                if link in union and not (has_source and has_target):
                    found.add(link)
    return found


@given(LINKS, LINKS)
def test_links_grow_in_the_order_of_moses(
    forward: frozenset[tuple[int, int]], back: frozenset[tuple[int, int]]
) -> None:
    assert grow_diagonally(forward, back) == scan_and_grow(forward, back)


@pytest.mark.parametrize(
    ("forward", "back", "grown"),
    [
        # by target, not by source: 1-0 is added beside 2-0, which comes before 0-2
        ({(0, 2), (1, 1), (2, 0)}, {(0, 2), (1, 0), (2, 0)}, {(0, 2), (1, 0), (1, 1), (2, 0)}),
        # 2-1 and 2-3 are added beside 3-2; the scan goes on with 2-3, and comes to 2-1 when it begins again
        ({(1, 1), (2, 1), (3, 0), (3, 2)}, {(1, 3), (2, 3), (3, 2)}, {(1, 3), (2, 1), (2, 3), (3, 0), (3, 2)}),
    ],
)
def test_the_order_decides_between_links_that_exclude_each_other(
    forward: set[tuple[int, int]], back: set[tuple[int, int]], grown: set[tuple[int, int]]
) -> None:
    assert grow_diagonally(frozenset(forward), frozenset(back)) == grown


def test_links_grow_along_the_diagonal() -> None:
    forward, back = frozenset({(0, 0), (1, 1), (3, 3)}), frozenset({(0, 0), (2, 1), (4, 4)})
    assert grow_diagonally(forward, back) == {(0, 0), (1, 1), (2, 1)}
    assert grow_diagonally(frozenset({(0, 0)}), frozenset({(1, 1)})) == frozenset()


def test_heads_that_agree_most_come_first() -> None:
    """Against plain sets of the links of each head of both models."""
    first, second = WordAligner(tiny_model(dtype=float64)), WordAligner(tiny_model(dtype=float64, positions="rotary"))
    found = rank_head_agreements(first, second, PAIRS, (first.heads(), second.heads()))
    assert len(found) == 144
    rates = [each.agreement for each in found]
    assert rates == sorted(rates, reverse=True)
    turned = [SentencePair(target, source) for source, target in PAIRS]
    for each in (found[0], found[70], found[-1]):
        there = {(row, link) for row, (some,) in enumerate(first.align(PAIRS, [each.head])) for link in some}
        back = {
            (row, (target, source))
            for row, (some,) in enumerate(second.align(turned, [each.back]))
            for source, target in some
        }
        assert each.agreement == pytest.approx(200 * len(there & back) / (len(there) + len(back)))
    assert "of their links agree" in found[0].describe()
    both = list(align_both_ways((first, second), (found[0].head, found[0].back), iter(PAIRS), grow_diagonally, 2))
    for row, links in enumerate(both):
        (there_links,), (back_links,) = (
            first.align([PAIRS[row]], [found[0].head])[0],
            second.align([turned[row]], [found[0].back])[0],
        )
        assert links == grow_diagonally(there_links, reverse_links(back_links))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "# Sentence pair (1) source length 2 target length 2 alignment score : 0.1",
            r"is GIZA\+\+'s form \(A3\): m",
        ),
        ("0-0 1-1 ||| -4.25", r"has a score behind its links: cut it, as by sed"),
        ("0-0:0.9 1-1:0.5", "has links with probabilities: cut these, as by sed"),
        ("0-0 1+1", r"'1\+1' is no link: write 3-4, or 3p4"),
    ],
)
def test_alignments_of_other_programs_are_named(line: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_gold_links(line)
