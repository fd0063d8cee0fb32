import unicodedata

import pytest

from tfm.data.dataset.examples import EncodedSide
from tfm.data.dataset.unwritable import UnwritableCharacterCounts
from tfm.pipeline.reports.dataset_tables import _unwritable_table
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.train import train

# Sentences of ten scripts with what normal forms change: ำ, full-width marks, ligatures, half-width kana, ª, ½, …
SCRIPTS = {
    "latin": "Die ﬂinke Füchsin ißt ½ Apfel… 10 m² № 5",
    "cyrillic": "Ёжик съел №5 ещё… й",
    "greek": "Ἡ ταχεῖα ἀλώπηξ µ ΐ ᾳ",
    "arabic": "السَّلامُ ﻋليكم ١٢٣ ؟",
    "hebrew": "שָׁלוֹם עוֹלָם ﭏ",
    "devanagari": "क़लम ज़रा हिन्दी १२",
    "thai": "คำถามทำไมน้ำ",
    "han": "你好，世界！（测试）：１２３",
    "kana": "ｶﾞラス、がぎぐ㌔",
    "hangul": "각하 한국어 ㈜ ｋ",
}


def tokenizer_of(text, **config):
    return train([text] * 4, TokenizerConfig(vocab_size=400, **config))


def found(references, tokenizer):
    count = UnwritableCharacterCounts(tokenizer)
    count.add(EncodedSide.encode(references, tokenizer))
    return count.as_json()


def test_of_no_references_nothing_is_counted():
    assert found([], tokenizer_of("ab"))["segments"] == 0


@pytest.mark.parametrize("script", SCRIPTS)
def test_with_the_defaults_every_script_is_written_as_it_stands(script):
    text = unicodedata.normalize("NFC", SCRIPTS[script])
    tokenizer = tokenizer_of(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert found([text, f"  {text}\u00a0"], tokenizer)["segments"] == 0


@pytest.mark.parametrize("form", ["nfkc", "nfkd", "nfd"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_what_a_normal_form_changes_is_told_character_by_character(script, form):
    text = unicodedata.normalize("NFC", SCRIPTS[script])
    normal = unicodedata.normalize(form.upper(), text)
    told = found([text, "", text], tokenizer_of(text, normalization=form))
    assert told["segments"] == told["changed_by_normalization"] == (2 if normal != text else 0)
    assert told["with_unknown_pieces"] == 0
    assert {each["character"] for each in told["characters"]} == {
        each for each in text if text.count(each) > normal.count(each) and not each.isspace()
    }
    for each in told["characters"]:
        assert each["times"] == 2 * (text.count(each["character"]) - normal.count(each["character"]))
        assert each["code_point"] == f"U+{ord(each['character']):04X}"


def test_capitals_are_told_where_they_are_lost():
    told = found(["The The", "the"], tokenizer_of("the", lowercase=True))
    assert told["segments"] == 1
    assert told["characters"] == [{"character": "T", "code_point": "U+0054", "times": 2}]


def test_references_in_another_normal_form_cannot_be_written_either():
    told = found(["e\u0301"], tokenizer_of("é e"))
    assert [each["character"] for each in told["characters"]] == ["e", "\u0301"]


def test_of_unknown_words_only_characters_that_no_piece_has_are_told():
    told = found(["cat dog", "tac Zoo", "cat"], tokenizer_of("cat dog", kind="word"))
    assert (told["segments"], told["changed_by_normalization"], told["with_unknown_pieces"]) == (1, 0, 1)
    assert told["characters"] == [{"character": "Z", "code_point": "U+005A", "times": 1}]


def test_of_a_tokenizer_of_words_the_unknown_words_are_told():
    """Phones, which are spelled by letters that other phones have too."""
    phones = tokenizer_of("HH AH L OW", kind="word")
    told = found(["HH OW HO", "AH HO", "L ZH", "L OW"], phones)
    assert told["words"] == [{"word": "HO", "times": 2}, {"word": "ZH", "times": 1}]
    assert "words" not in found(["zoo"], tokenizer_of("cat"))
    _, columns, rows = _unwritable_table({"test": {"rows": 4, "unwritable": told}})[0]
    assert columns[-1] == "words, how often"
    assert rows[0][-1] == "HO 2, ZH 1"
