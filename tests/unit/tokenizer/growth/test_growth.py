"""A tokenizer with more pieces: old ids stay, old texts are cut as before, and what is learned is what was to be."""

import json
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tfm.tokenizer.code_points import CodePoints
from tfm.tokenizer.config import Kind, TokenizerConfig
from tfm.tokenizer.growth.extension import is_extension, segment_new_pieces_by_old
from tfm.tokenizer.growth.trainer import GrowthTrainer
from tfm.tokenizer.normalization import make_normalizer
from tfm.tokenizer.special import EOS_ID, SPECIAL_TOKENS, UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import make_label_tokenizer, train

OLD = ["the cat sat on the mat", "a dog ran to the sea", "two cats and a dog sat there", "Übermut tut selten gut"]
NEW = ["the heathen gathered at the theatre", "a moth, a moth and another moth", "no mother ran there", "Übung tut gut"]
LETTERS = ["ein Γ und noch ein Γ, 漢"]
KINDS: tuple[Kind, ...] = ("bpe", "byte", "wordpiece", "unigram", "char", "word")


def first(kind: Kind, **changes: Any) -> Tokenizer:
    size = 290 if kind == "byte" else 70
    return train(OLD * 3, TokenizerConfig(kind=kind, vocab_size=size, min_frequency=1, **changes))


def grown(old: Tokenizer, texts: list[str], count: int = 25, min_frequency: int = 1) -> Tokenizer:
    trainer = GrowthTrainer(old, count, min_frequency)
    for text in texts:
        trainer.add(text)
    new = trainer.learn()
    assert trainer.num_new == new.vocab_size - old.vocab_size <= count
    return new


def texts(num: int) -> list[str]:
    """Lines of both, and words of their letters put together by chance."""
    draw, letters = random.Random(3), "".join({*"".join([*OLD, *NEW])} - {" "})
    made = [
        " ".join("".join(draw.choices("thea" + letters, k=draw.randint(1, 8))) for _ in range(5)) for _ in range(num)
    ]
    return [*OLD, *NEW, *made]


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_without_a_new_piece_has_the_ids_it_had(kind: Kind) -> None:
    old = first(kind, sentinels=3 if kind != "byte" else 0).with_languages("deu")
    new = grown(old, NEW + LETTERS)
    assert [new.piece(number) for number in range(old.vocab_size)] == [old.piece(n) for n in range(old.vocab_size)]
    assert (new.languages, new.sentinels) == (old.languages, old.sentinels)
    assert is_extension(new, old)
    without = 0
    for text in texts(300):
        before, after = old.encode(text), new.encode(text)
        assert new.decode(after) == text or UNK_ID in after
        if max(after) < old.vocab_size:
            without += 1
            assert after == before, text
    assert without > 10
    if kind not in ("char", "byte"):
        assert sum(map(len, new.encode_batch(NEW))) < sum(map(len, old.encode_batch(NEW))) or kind == "word"
        assert not any(UNK_ID in ids for ids in new.encode_batch(LETTERS if kind != "word" else ["mother moth"]))
    for control in (*new.languages.values(), *new.sentinels, EOS_ID):
        assert control not in new.encode(new.piece(control))


@pytest.mark.parametrize("kind", ["bpe", "byte"])
def test_merged_pieces_written_out_are_the_old_ids_of_every_text(kind: Kind) -> None:
    old = first(kind)
    new = grown(old, NEW)
    stands_for = dict(enumerate(segment_new_pieces_by_old(new, old), old.vocab_size))
    changed = 0
    for text in texts(500):
        after = new.encode(text)
        assert [each for number in after for each in stands_for.get(number, [number])] == old.encode(text)
        changed += max(after) >= old.vocab_size
    assert changed > 50


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_what_is_joined_is_the_most_frequent_pair_that_makes_a_new_piece(kind: Kind) -> None:
    """Counted anew for each piece."""
    old, learned = first(kind), [text.replace(",", "").replace("Übung", "") for text in NEW]
    new = grown(old, learned, count=12)
    words = Counter(tuple(old.piece(number) for number in old.encode(word)) for word in " ".join(learned).split())
    assert not any("<unk>" in word for word in words)
    known = {old.piece(number) for number in range(old.vocab_size)}
    expected = []
    for _ in range(12):
        pairs = Counter[tuple[str, str]]()
        for word, times in words.items():
            for pair in zip(word, word[1:], strict=False):
                pairs[pair] += times * (pair[0] + pair[1].removeprefix("##") not in known)
        left, right = min(pairs, key=lambda pair: (-pairs[pair], pair))
        expected.append(left + right.removeprefix("##"))
        known.add(expected[-1])
        words = Counter({joined(word, left, right, expected[-1]): times for word, times in words.items()})
    assert [new.piece(number) for number in range(old.vocab_size, new.vocab_size)] == expected


def test_no_merge_makes_an_old_piece_in_another_way() -> None:
    """Merges of other programs may be in an order by which a piece is never made: `abc` from `ab` and `c` is none here,
    for `bc` comes first."""
    document, pieces = first("bpe").document, ["a", "b", "c", " ", "bc", "ab", "abc"]
    document["model"]["vocab"] = {piece: number for number, piece in enumerate([*SPECIAL_TOKENS, *pieces])}
    document["model"]["merges"] = [["b", "c"], ["a", "b"], ["ab", "c"]]
    old = Tokenizer.from_json(json.dumps(document))
    assert old.pieces("abc") == [" ", "a", "bc"]
    new = grown(old, ["babc cabc"], count=2)  # where `a` and `bc` are the most frequent neighbours
    assert [new.piece(number) for number in range(old.vocab_size, new.vocab_size)] == [" b", " c"]
    assert is_extension(new, old)
    stands_for = dict(enumerate(segment_new_pieces_by_old(new, old), old.vocab_size))
    for text in ("abc", "cab abcabc", "bcabc a"):
        parts = [each for number in new.encode(text) for each in stands_for.get(number, [number])]
        assert parts == old.encode(text)


def joined(word: tuple[str, ...], left: str, right: str, made: str) -> tuple[str, ...]:
    found: list[str] = []
    for piece in word:
        if found and (found[-1], piece) == (left, right):
            found[-1] = made
        else:
            found.append(piece)
    return tuple(found)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_new_piece_takes_the_place_of_spells_it(kind: Kind) -> None:
    old = first(kind)
    new = grown(old, NEW + LETTERS)
    for number, parts in enumerate(segment_new_pieces_by_old(new, old), old.vocab_size):
        spelled = "".join(old.piece(each).removeprefix("##") for each in parts)
        unknown = kind == "word" or (kind != "byte" and {*new.piece(number)} - {*"".join(OLD), "#"})
        assert UNK_ID in parts if unknown else spelled == new.piece(number).removeprefix("##")
        assert max(parts) < old.vocab_size


def test_each_new_piece_of_a_unigram_model_is_more_probable_than_its_parts() -> None:
    old = first("unigram")
    new = grown(old, NEW)
    scores = dict(new.document["model"]["vocab"])
    added = [new.piece(number) for number in range(old.vocab_size, new.vocab_size)]
    assert len(added) > 10
    for piece, parts in zip(added, segment_new_pieces_by_old(new, old), strict=True):
        if UNK_ID not in parts:
            assert scores[piece] > sum(scores[old.piece(each)] for each in parts)
    known = old.document["model"]["vocab"]
    assert new.document["model"]["vocab"][: len(known)] == known
    assert min(scores.values()) == min(score for _, score in known)  # from which the cost of unknown letters follows


def test_rare_pieces_are_not_learned_and_letters_come_first() -> None:
    old = first("bpe")
    assert grown(old, ["Γ Γ 漢 ran ran"], count=1, min_frequency=2).piece(old.vocab_size) == "Γ"
    assert grown(old, ["qwx"], min_frequency=2).vocab_size == old.vocab_size
    more = grown(old, ["moth Γ"], min_frequency=1)
    assert "漢" not in more.document["model"]["vocab"]


def test_what_grew_grows_again_and_has_one_more_language() -> None:
    old = first("bpe", sentinels=2).with_languages("deu")
    once = grown(old, NEW, count=5)
    twice = grown(once, ["zebra zebra"], count=5).with_languages("deu", "fra")
    assert is_extension(twice, once)
    assert is_extension(twice, old)
    assert twice.languages == {"deu": old.languages["deu"], "fra": twice.vocab_size - 1}
    assert segment_new_pieces_by_old(twice, old)[-1] == [old.languages["deu"]]
    alone = first("bpe")
    assert segment_new_pieces_by_old(alone.with_languages("fra"), alone) == [alone.encode(">>fra<<")]


def changed(old: Tokenizer, what: str) -> Tokenizer:
    document = grown(old, NEW).document
    model = document["model"]
    if what == "merges":
        model["merges"] = [model["merges"][-1], *model["merges"][:-1]]
    if what == "a merge that makes an old piece":
        own = old.document["model"]["merges"]
        pairs = [[made[:n], made[n:]] for made in map("".join, own) for n in range(1, len(made))]
        model["merges"].append(next(pair for pair in pairs if pair not in own and {*pair} <= model["vocab"].keys()))
    if what == "normalizer":
        document["normalizer"]["normalizers"].insert(0, {"type": "Lowercase"})
    if what == "ids":
        one, other = (old.piece(number) for number in (8, 9))
        model["vocab"] |= {one: 9, other: 8}
    if what == "a score":
        model["vocab"][7][1] -= 0.5
    return Tokenizer.from_json(json.dumps(document))


@pytest.mark.parametrize("what", ["merges", "a merge that makes an old piece", "normalizer", "ids"])
def test_what_would_cut_old_texts_otherwise_is_no_extension(what: str) -> None:
    old = first("bpe")
    assert is_extension(changed(old, "nothing"), old)
    assert not is_extension(changed(old, what), old)


def test_neither_is_a_changed_score_nor_itself_nor_a_smaller_one() -> None:
    old = first("unigram")
    assert is_extension(changed(old, "nothing"), old)
    assert not is_extension(changed(old, "a score"), old)
    assert not is_extension(old, old)
    assert not is_extension(old, grown(old, NEW))
    points = CodePoints(make_normalizer(TokenizerConfig()))
    assert not is_extension(points, old)


def unspelled(kind: str) -> Tokenizer:
    """One that cannot grow."""
    if kind == "codepoint":
        return CodePoints(make_normalizer(TokenizerConfig()))
    if kind == "labels":
        return make_label_tokenizer(["yes", "no"], "label")
    document = first("unigram" if kind == "control" else "bpe", sentinels=2).document
    if kind == "control":  # as other programs split texts
        document["pre_tokenizer"] = {
            "type": "Metaspace",
            "replacement": " ",
            "prepend_scheme": "always",
            "split": True,
        }
    else:
        document["model"]["end_of_word_suffix"] = "</w>"
    return Tokenizer.from_json(json.dumps(document))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("codepoint", "every character of Unicode"),
        ("labels", "names of labels"),
        ("control", "a text that spells <extra_id_0>"),
        ("suffix", "end_of_word_suffix = '</w>'"),
    ],
)
def test_what_cannot_grow_says_why(kind: str, reason: str) -> None:
    with pytest.raises(ValueError, match="cannot grow") as raised:
        GrowthTrainer(unspelled(kind), 5, 1)
    assert reason in str(raised.value)


@pytest.mark.parametrize("given", [{"bpe_dropout": 0.4}, {"unigram_alpha": 0.2}])
def test_other_pieces_of_a_text_are_drawn_behind_control_tokens_too(given: dict[str, float]) -> None:
    """Control tokens are then in the middle of the vocabulary."""
    kind: Kind = "bpe" if "bpe_dropout" in given else "unigram"
    new = grown(first(kind, sentinels=2).with_languages("deu"), NEW).with_languages("fra")
    sampler = new.sampler(**given)
    assert sampler is not None
    seen = set()
    for language, line in (("deu", NEW[0]), ("fra", NEW[2])):
        ids = np.array(new.select_target_language(language).encode(line), np.int32)
        for key in range(40):
            found, lengths = sampler(ids, np.array([len(ids)]), np.array([key], np.uint64))
            assert found[0] == new.languages[language]
            assert lengths.tolist() == [len(found)]
            assert new.decode(found.tolist()) == line
            seen |= {*found.tolist()}
    assert max(seen - {*new.languages.values()}) > first(kind, sentinels=2).vocab_size
