"""A tokenizer from elsewhere gives the same pieces under other numbers; a control token is never in a text."""

import json
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from tfm.tokenizer.foreign.renumbered import RenumberedTokenizer, document_pieces, renumber
from tfm.tokenizer.special import BOS, EOS, PAD, SPECIAL_TOKENS, UNK
from tfm.tokenizer.tokenizer import Tokenizer

LETTERS = "abcdefghs<>/▁"


def unigram(*first: str) -> dict[str, Any]:
    """A tokenizer of letters and of whole control tokens, which score best; the last piece is added behind."""
    pieces = [*((each, 0.0) for each in first), *((each, -2.0) for each in LETTERS), ("cab", -1.0)]
    whole = tokenizers.Tokenizer(models.Unigram(pieces, first.index("<unk>"), False))
    whole.pre_tokenizer = pre_tokenizers.Metaspace()
    whole.decoder = decoders.Metaspace()
    whole.add_special_tokens([*first, "<mask>"])
    document: dict[str, Any] = json.loads(whole.to_str())
    return document


def checked(document: dict[str, Any], roles: dict[str, int], size: int) -> tuple[RenumberedTokenizer, Tokenizer]:
    """Every piece has the number that `rows` says."""
    found = renumber(document, roles, size)
    made, there = Tokenizer.from_json(json.dumps(found.document)), document_pieces(document)
    assert made.vocab_size == len(found.rows)
    assert [made.piece(number) for number in range(4)] == [*SPECIAL_TOKENS]
    for number in range(4, made.vocab_size):
        assert made.piece(number) in (
            there.get(found.rows[number]),
            f"{there.get(found.rows[number])}:{found.rows[number]}",
        ) or (found.rows[number] not in there)
    assert sorted(row for number, row in enumerate(found.rows) if number not in found.unmapped_ids) == list(range(size))
    return found, made


def test_each_role_has_its_own_token_and_pieces_keep_their_order() -> None:
    document = unigram("<s>", "<pad>", "</s>", "<unk>")
    found, made = checked(document, {BOS: 0, PAD: 1, EOS: 2, UNK: 3}, 20)
    assert found.rows == [1, 3, 0, 2, *range(4, 20)]
    assert found.unmapped_ids == []
    before = tokenizers.Tokenizer.from_str(json.dumps(document))
    for text in ("cab", "a bad cab", "ggg", "hab!cab ñ"):
        theirs = before.encode(text, add_special_tokens=False).ids
        assert [found.rows[number] for number in made.encode(text)] == theirs
        assert made.decode(made.encode("cab a")) == "cab a"


def test_of_several_roles_one_keeps_the_token_and_the_others_are_nowhere() -> None:
    found, made = checked(unigram("<eot>", "<unk>"), {BOS: 0, EOS: 0, UNK: 1}, 17)
    assert found.rows[:4] == [0, 1, 0, 0]
    assert found.unmapped_ids == [0, 2]
    assert made.vocab_size == 19
    # begin and padding alike, as in Pegasus
    found, _ = checked(unigram("<pad>", "</s>", "<unk>"), {BOS: 0, PAD: 0, EOS: 1, UNK: 2}, 18)
    assert found.rows[:4] == [0, 2, 0, 1]
    assert found.unmapped_ids == [0]


def test_a_piece_that_is_called_as_ours_and_is_another_keeps_its_place_under_another_name() -> None:
    found, made = checked(unigram("<s>", "</s>", "<unk>"), {BOS: 1, EOS: 1, UNK: 2}, 18)
    assert made.piece(found.rows.index(0)) == "<s>:0"
    assert found.rows[2] == 1


@pytest.mark.parametrize("text", ["</s>", "a<s>b", "<pad><unk>", " </s> <s>"])
def test_a_text_that_spells_a_control_token_is_text(text: str) -> None:
    _, made = checked(unigram("<s>", "<pad>", "</s>", "<unk>"), {BOS: 0, PAD: 1, EOS: 2, UNK: 3}, 19)
    assert not {0, 2, 3} & {*made.encode(text)}


def test_rows_without_a_piece_have_a_name_and_more_pieces_than_rows_are_refused() -> None:
    document = unigram("<s>", "<pad>", "</s>", "<unk>")
    roles = {BOS: 0, PAD: 1, EOS: 2, UNK: 3}
    _, made = checked(document, roles, 25)
    assert made.piece(24) == "<unused:24>"
    with pytest.raises(ValueError, match="its tokenizer has 19 pieces and its embedding 18"):
        renumber(document, roles, 18)
    with pytest.raises(ValueError, match="kind that is not known"):
        renumber({"model": {"type": "New"}, "added_tokens": []}, roles, 18)


def test_what_we_wrote_stays_as_it_is() -> None:
    document = unigram(*SPECIAL_TOKENS)
    found, _ = checked(document, {EOS: 3, BOS: 2, UNK: 1, PAD: 2}, 19)
    assert found.rows == list(range(19))
    assert found.unmapped_ids == []


def test_pieces_that_are_called_as_ours_have_the_roles_that_they_have_there() -> None:
    document = unigram(*SPECIAL_TOKENS)
    found, made = checked(document, {EOS: 3, BOS: 0, UNK: 1, PAD: 0}, 19)  # padding begins a target
    assert found.rows == [0, 1, 0, 3, 2, *range(4, 19)]
    assert found.unmapped_ids == [0]
    assert made.piece(4) == "<s>:2"
    assert checked(document, {EOS: 5, BOS: 2, UNK: 1}, 19)[0].rows[:4] == [5, 1, 2, 5]
    assert renumber(document, {EOS: 3, BOS: 19, UNK: 1}, 19).rows == list(range(19))  # our Marian: it has no row


def test_merges_and_words_are_renumbered() -> None:
    whole = tokenizers.Tokenizer(models.BPE({"a": 0, "b": 1, "ab": 2, "</s>": 3}, [("a", "b")]))
    whole.add_special_tokens(["</s>", "<new>"])
    found, made = checked(json.loads(whole.to_str()), {EOS: 3, BOS: 3}, 5)
    assert found.rows == [3, 3, 3, 3, 0, 1, 2, 4]
    assert found.unmapped_ids == [0, 1, 2]
    assert made.encode("abba") == [6, 5, 4]
