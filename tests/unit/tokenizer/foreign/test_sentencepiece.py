"""SentencePiece's models read without that package give its pieces."""

import io
import json
from collections.abc import Sequence
from typing import Any
from unicodedata import normalize

import pytest

from tests.ten_scripts import lines_of
from tests.tiny_model import TEXTS
from tfm.tokenizer.foreign.renumbered import FILLER_PREFIX, document_pieces, renumber
from tfm.tokenizer.foreign.sentencepiece import (
    SentencePieceModel,
    add_unnumbered_model_pieces,
    build_tokenizer_json,
    build_tokenizer_json_with_model_ids,
    parse_sentencepiece_model,
)
from tfm.tokenizer.foreign.sentencepiece_files import have_same_ids, is_from_sentencepiece
from tfm.tokenizer.growth.trainer import growth_problem
from tfm.tokenizer.special import BOS, EOS, PAD, UNK
from tfm.tokenizer.tokenizer import Tokenizer

HARD = ("a dog  runs", " ﬁne ①½ Ｄｏｇ ", "the\u00a0sea\tis cold!", "e\u0301t\u00e9 snow", "", "   ", "dogs▁and")


def trained(texts: Sequence[str] = (), **settings: Any) -> tuple[bytes, Any]:
    package: Any = pytest.importorskip("sentencepiece", reason="needs the extra `dev`")
    made = io.BytesIO()
    package.SentencePieceTrainer.train(
        sentence_iterator=iter(texts or TEXTS * 4),
        model_writer=made,
        **{"vocab_size": 60, "hard_vocab_limit": False, "minloglevel": 2} | settings,
    )
    return made.getvalue(), package.SentencePieceProcessor(model_proto=made.getvalue())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"normalization_rule_name": "identity"},
        {"add_dummy_prefix": False, "normalization_rule_name": "nfkc_cf"},
        {"model_type": "bpe", "vocab_size": 90},
        {"model_type": "bpe", "normalization_rule_name": "nfkc_cf"},
    ],
)
def test_its_pieces_are_ours(settings: dict[str, Any]) -> None:
    data, theirs = trained(**settings)
    model = parse_sentencepiece_model(data)
    pieces = [PAD, UNK, "<s>", EOS, *(theirs.id_to_piece(i) for i in range(3, theirs.get_piece_size()))]
    for number, piece in enumerate(pieces[4:], 3):
        assert model.scores[piece] == pytest.approx(theirs.get_score(number))
    roles = {each: each for each in pieces[:4]}
    ours = Tokenizer.from_json(json.dumps(build_tokenizer_json(model, pieces, roles)))
    for text in (*TEXTS, *HARD):
        unknown = theirs.unk_id()
        wanted = [
            "<unk>" if theirs.piece_to_id(each) == unknown else each for each in theirs.encode(text, out_type=str)
        ]
        assert ours.pieces(text) == wanted, text
        assert ours.decode(ours.encode(TEXTS[0])) == theirs.decode(theirs.encode(TEXTS[0]))


def test_pieces_that_the_model_does_not_have_are_in_no_text_and_decoded_as_they_are() -> None:
    data, theirs = trained()
    own = [theirs.id_to_piece(i) for i in range(3, theirs.get_piece_size())]
    pieces = [PAD, UNK, "<s>", EOS, *own, "▁Meer", "Q"]
    roles = {each: each for each in pieces[:4]}
    ours = Tokenizer.from_json(json.dumps(build_tokenizer_json(parse_sentencepiece_model(data), pieces, roles)))
    other = build_tokenizer_json(SentencePieceModel({"Q": -1.0, "▁Meer": -2.0}, b"", True), pieces, roles)
    assert have_same_ids(ours, Tokenizer.from_json(json.dumps(other)))
    other = build_tokenizer_json(parse_sentencepiece_model(data), [*pieces[:-1], "R"], roles)
    assert not have_same_ids(ours, Tokenizer.from_json(json.dumps(other)))
    assert not have_same_ids(
        ours, Tokenizer.from_json(json.dumps(build_tokenizer_json(parse_sentencepiece_model(data), pieces[:-1], roles)))
    )
    assert ours.decode([len(pieces) - 2, len(pieces) - 1]) == "MeerQ"
    assert ours.piece(len(pieces) - 1) == FILLER_PREFIX + "Q"
    assert len(pieces) - 1 not in ours.encode("Q a Meer Q")


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_pieces_that_the_vocabulary_lacks_cut_texts_and_are_unknown(kind: str) -> None:
    data, theirs = trained(model_type=kind, vocab_size=90)
    model = parse_sentencepiece_model(data)
    own = [theirs.id_to_piece(i) for i in range(3, theirs.get_piece_size())]
    kept = [piece for place, piece in enumerate(own) if place % 3]
    pieces = [PAD, UNK, "<s>", EOS, *kept]
    document = build_tokenizer_json(model, pieces, {each: each for each in pieces[:4]}, len(pieces) + 2)
    ours = Tokenizer.from_json(json.dumps(add_unnumbered_model_pieces(document, model)))
    assert ours.vocab_size == len(pieces) + 2
    cut = [theirs.encode(text, out_type=str) for text in (*TEXTS, *HARD, "<unnumbered> <unused:5>")]
    assert len({piece for text in cut for piece in text} & {*own} - {*kept}) > 3
    for text, wanted in zip((*TEXTS, *HARD, "<unnumbered> <unused:5>"), cut, strict=True):
        assert ours.pieces(text) == [piece if piece in kept else UNK for piece in wanted], text
        ids, lengths = ours.encode_flat([text, text])
        assert [*ids] == 2 * ours.encode(text)
        assert [*lengths] == 2 * [len(ours.encode(text))]
        assert all(number < ours.vocab_size for words in ours.encode_words([text]) for word in words for number in word)
    with pytest.raises(ValueError, match="more languages"):
        ours.with_languages("deu")
    assert growth_problem(ours) is not None


def test_damage_and_other_kinds_are_refused() -> None:
    data, _ = trained()
    for wrong in (b"", b"not a model", data[:-3], data[:50], b"\xff" * 30):
        with pytest.raises(ValueError, match="is no SentencePiece model"):
            parse_sentencepiece_model(wrong)
    with pytest.raises(ValueError, match="of words, has bytes for unknown words: train one of another kind"):
        parse_sentencepiece_model(trained(model_type="word", byte_fallback=True, vocab_size=400)[0])
    with pytest.raises(ValueError, match="spaces behind words"):
        parse_sentencepiece_model(trained(treat_whitespace_as_suffix=True)[0])


BYTES = {"byte_fallback": True, "character_coverage": 0.985, "vocab_size": 900}
KEPT = {"remove_extra_whitespaces": False}
SYMBOLS = {"user_defined_symbols": ["don", "世界", "</s>x", "<sep>"]}
IDENTITY = {"normalization_rule_name": "identity"}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"model_type": "bpe"},
        {"model_type": "char"},
        {"model_type": "word", "vocab_size": 300},
        {"model_type": "word", "add_dummy_prefix": False},
        SYMBOLS | KEPT | {"model_type": "word"},
        BYTES,
        BYTES | {"model_type": "bpe"},
        BYTES | KEPT | IDENTITY | {"model_type": "bpe"},  # as Llama's
        KEPT | {"add_dummy_prefix": False},
        {"split_by_whitespace": False, "model_type": "bpe"},
        SYMBOLS,
        SYMBOLS | {"model_type": "bpe"},
        {"control_symbols": ["<mask>"], "unk_piece": "[UNK]", "pad_id": 3, "bos_id": 0, "unk_id": 1, "eos_id": 2},
    ],
)
@pytest.mark.few(5)
def test_ids_of_a_whole_model_are_its_own_in_ten_scripts(settings: dict[str, Any]) -> None:
    data, theirs = trained(lines_of(800, seed=1), **({"vocab_size": 700, "character_coverage": 0.999} | settings))
    document = build_tokenizer_json_with_model_ids(parse_sentencepiece_model(data))
    size = theirs.get_piece_size()
    assert [*document_pieces(document)] == [*range(size)]
    control = {PAD: theirs.pad_id(), UNK: theirs.unk_id(), BOS: theirs.bos_id(), EOS: theirs.eos_id()}
    found = renumber(document, {role: number for role, number in control.items() if number >= 0}, size)
    ours = Tokenizer.from_json(json.dumps(found.document))
    spaces = ("", " ", "  a", "a  b   c ", "<0x41> <sep>don")
    for line in (*lines_of(1000, seed=2), *spaces):
        wanted = theirs.encode(line)
        assert [found.rows[number] for number in ours.encode(line)] == wanted, line
        assert control[UNK] in wanted or ours.decode(ours.encode(line)) == theirs.decode(wanted)


DECOMPOSED = ("Tiếng Việt Ệ", "ẹ̀kọ́ ọ̀rọ̀ Yorùbá", "한국어 조선말", "がぎぐ プ", "ἀρχή Ὅμηρος", "क़ שׁ Å", "x\u0301y")


@pytest.mark.parametrize("rule", ["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "identity"])
def test_letters_and_their_marks_are_composed_as_there(rule: str) -> None:
    """The tones of Vietnamese in decomposed form were lost: the first of two marks alone was read."""
    lines = [normalize(form, line) for line in DECOMPOSED for form in ("NFC", "NFD")]
    data, theirs = trained(lines, vocab_size=200, normalization_rule_name=rule, character_coverage=1.0)
    document = build_tokenizer_json_with_model_ids(parse_sentencepiece_model(data))
    found = renumber(document, {UNK: theirs.unk_id()}, theirs.get_piece_size())
    ours = Tokenizer.from_json(json.dumps(found.document))
    for line in lines:
        assert [found.rows[number] for number in ours.encode(line)] == theirs.encode(line), line


@pytest.mark.parametrize("settings", [{}, {"model_type": "bpe"}, {"model_type": "char", "add_dummy_prefix": False}])
def test_only_spaces_are_stripped(settings: dict[str, Any]) -> None:
    lines = ["\ta dog", "a dog\t", " \t a \t dog \t ", "\u2028a\u3000", "\ta b\x0b"]
    data, theirs = trained(lines * 9, **({"normalization_rule_name": "identity"} | settings))
    document = build_tokenizer_json_with_model_ids(parse_sentencepiece_model(data))
    found = renumber(document, {UNK: theirs.unk_id()}, theirs.get_piece_size())
    ours = Tokenizer.from_json(json.dumps(found.document))
    for line in lines:
        assert [found.rows[number] for number in ours.encode(line)] == theirs.encode(line), line


def test_words_are_whole_and_several_unknown_ones_are_one_piece() -> None:
    data, theirs = trained(["a dog runs", "the dog sleeps"] * 9, model_type="word")
    document = build_tokenizer_json_with_model_ids(parse_sentencepiece_model(data))
    found = renumber(document, {UNK: theirs.unk_id()}, theirs.get_piece_size())
    ours = Tokenizer.from_json(json.dumps(found.document))
    for line in ("dogs run", "the dogdog dog", "zoo bar a", "a\ue001 dog\ue001the", "do g", "a▁dog"):
        assert [found.rows[number] for number in ours.encode(line)] == theirs.encode(line), line
    assert ours.decode(ours.encode("the dog runs")) == "the dog runs"
    assert growth_problem(ours) == "its pieces are the words of a SentencePiece model"
    assert not is_from_sentencepiece(ours)
    with pytest.raises(ValueError, match="is of words, and its vocabulary lacks some"):
        add_unnumbered_model_pieces(document, parse_sentencepiece_model(data))


def test_a_model_without_one_unknown_piece_is_refused() -> None:
    with pytest.raises(ValueError, match="has 0 pieces for what is unknown"):
        build_tokenizer_json_with_model_ids(SentencePieceModel({"a": 0.0}, b"", True, types={"a": 1}))


@pytest.mark.parametrize("rule", ["nmt_nfkc", "nmt_nfkc_cf", "nfkc", "nfkc_cf"])
def test_letters_keep_their_marks_whatever_stands_before_these(rule: str) -> None:
    """The sound of half-width kana, and marks of what a model maps or folds, were left out."""
    marked = ["ｶﾞｷﾞﾊﾟｳﾞ", "Ọ́ṣun Ọ̀rọ̀", "Ŋ́ B̆ Ṱ́", "ｚ̂ ﳁ̌ ㎏̈", "～〜", "İstanbul I", "ẞ ß ŉ", "Σίσυφος ΟΔΟΣ ᾼ", "①Ⅷ½"]
    characters = sorted({character for text in marked for character in normalize("NFKC", text)})
    theirs: Any
    data, theirs = trained(
        [*TEXTS * 4, *marked, *characters], normalization_rule_name=rule, vocab_size=300, character_coverage=1.0
    )
    pieces = [PAD, UNK, "<s>", EOS, *(theirs.id_to_piece(i) for i in range(3, theirs.get_piece_size()))]
    document = build_tokenizer_json(parse_sentencepiece_model(data), pieces, {each: each for each in pieces[:4]})
    ours = Tokenizer.from_json(json.dumps(document))
    for text in (*marked, *HARD, *lines_of(100, seed=4)):
        assert ours.encode(text) == [max(number + 1, 1) for number in theirs.encode(text)], text
