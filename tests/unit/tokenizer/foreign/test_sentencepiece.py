"""SentencePiece's models read without that package give its pieces."""

import io
import json
from typing import Any

import pytest

from tests.tiny_model import TEXTS
from tfm.tokenizer.foreign.renumbered import OTHER
from tfm.tokenizer.foreign.sentencepiece import (
    SentencePiece,
    as_document,
    have_same_ids,
    read_model,
    with_whole_model,
)
from tfm.tokenizer.growth.trainer import growth_problem
from tfm.tokenizer.special import EOS, PAD, UNK
from tfm.tokenizer.tokenizer import Tokenizer

HARD = ("a dog  runs", " ﬁne ①½ Ｄｏｇ ", "the\u00a0sea\tis cold!", "e\u0301t\u00e9 snow", "", "   ", "dogs▁and")


def trained(**settings: Any) -> tuple[bytes, Any]:
    package: Any = pytest.importorskip("sentencepiece", reason="needs the extra `dev`")
    made = io.BytesIO()
    package.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS * 4),
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
    model = read_model(data)
    pieces = [PAD, UNK, "<s>", EOS, *(theirs.id_to_piece(i) for i in range(3, theirs.get_piece_size()))]
    for number, piece in enumerate(pieces[4:], 3):
        assert model.scores[piece] == pytest.approx(theirs.get_score(number))
    roles = {each: each for each in pieces[:4]}
    ours = Tokenizer.from_json(json.dumps(as_document(model, pieces, roles)))
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
    ours = Tokenizer.from_json(json.dumps(as_document(read_model(data), pieces, roles)))
    other = as_document(SentencePiece({"Q": -1.0, "▁Meer": -2.0}, b"", True), pieces, roles)
    assert have_same_ids(ours, Tokenizer.from_json(json.dumps(other)))
    other = as_document(read_model(data), [*pieces[:-1], "R"], roles)
    assert not have_same_ids(ours, Tokenizer.from_json(json.dumps(other)))
    assert not have_same_ids(ours, Tokenizer.from_json(json.dumps(as_document(read_model(data), pieces[:-1], roles))))
    assert ours.decode([len(pieces) - 2, len(pieces) - 1]) == "MeerQ"
    assert ours.piece(len(pieces) - 1) == OTHER + "Q"
    assert len(pieces) - 1 not in ours.encode("Q a Meer Q")


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_pieces_that_the_vocabulary_lacks_cut_texts_and_are_unknown(kind: str) -> None:
    data, theirs = trained(model_type=kind, vocab_size=90)
    model = read_model(data)
    own = [theirs.id_to_piece(i) for i in range(3, theirs.get_piece_size())]
    kept = [piece for place, piece in enumerate(own) if place % 3]
    pieces = [PAD, UNK, "<s>", EOS, *kept]
    document = as_document(model, pieces, {each: each for each in pieces[:4]}, len(pieces) + 2)
    ours = Tokenizer.from_json(json.dumps(with_whole_model(document, model)))
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
            read_model(wrong)
    with pytest.raises(ValueError, match="of kind unigram or BPE"):
        read_model(trained(model_type="char")[0])
    with pytest.raises(ValueError, match="several spaces"):
        read_model(trained(remove_extra_whitespaces=False)[0])
    with pytest.raises(ValueError, match="bytes for unknown"):
        read_model(trained(byte_fallback=True, vocab_size=330)[0])
