"""Lists of pieces that do not say how texts are cut are refused by what they are."""

import json
import pickle
from pathlib import Path

import pytest
import torch
from tokenizers.pre_tokenizers import ByteLevel

from tfm.data.errors import DataError
from tfm.data.foreign_tokenizers.loading import load_foreign_tokenizer
from tfm.tokenizer.config import TokenizerConfig


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            "</s>: 0\n<unk>: 1\n\"the\": 2\n'of': 3\nüb@@: 4\n",
            "is a vocabulary in YAML, as Marian's, with ids alone: give",
        ),
        (
            "the 123\nof 99\n, 98\nmadeupword0000 0\n",
            r"is a vocabulary with counts, as fairseq's dict\.txt: give the codes",
        ),
        ("the\t123\nof\t99\n<unk>\t1\n", "is a vocabulary with counts"),
        (
            "<unk>\t0\n<s>\t0\n\u2581the\t-3.21\ns\t-4\n1\t-10.5\n",
            "is the list of pieces that SentencePiece writes beside",
        ),
        ("2 the 123\n3 of 99\n4 and 80\n", r"is a vocabulary of GIZA\+\+, with ids and counts alone: give the codes"),
        ("5 3\n9601 4\n97 5\n98 6\n4 5 9\n1 0 2 3\n", "is a model of YouTokenToMe, which is not read: learn one on"),
        (
            '"bpe_simple_vocab_16e6.txt#version: 0.2\ni n\nt h\n',
            "has the merges of CLIP: load it with transf",
        ),
        ("<unk>\n<s>\n\u2581the\ns\n", r"is a list of pieces of SentencePiece: give the \.model"),
        (
            "1 '\\x00' 1\n34 ' ' 1\n257 b'\\xc2' 1\n300 \"'s\" 2\n",
            "is a vocabulary of RWKV, which is not read: learn one",
        ),
        ("\\data\\\nngram 1=5\n\n\\1-grams:\n", r"is a language model of n-grams \(ARPA\), as KenLM's"),
        ("the (9/12) The (3)\ncat (4/4)\nBerlin (5/5)\n", "is a model of Moses' truecaser, which cuts no texts"),
        ("<unk>\n<pad>\n<s>\n</s>\nthe\n", "is a list of words or pieces, a line each, as JoeyNMT's and OpenNMT's"),
        ('["<unk>", "<s>", "the"]', r"is a list of pieces in JSON, as CTranslate2's vocabulary\.json: give the"),
        ('{"<pad>": 0, "<unk>": 1, "the": 2}', "it numbers words or pieces, as Sockeye's and Nematus's vocabularies"),
        ("<unk>\nth@@\ne\n", "is a list of pieces of subword-nmt: give the codes that cut the texts, and this file as"),
    ],
)
def test_vocabularies_of_other_programs_are_named(content: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(content, "utf-8")
    with pytest.raises(DataError, match=problem):
        load_foreign_tokenizer(TokenizerConfig(file=str(tmp_path / "a.txt")))


def test_a_pickle_is_named_and_not_opened(tmp_path: Path) -> None:
    torch.save({"a": 1}, tmp_path / "vocab.pt")
    (tmp_path / "vocab.pkl").write_bytes(pickle.dumps({"a": 1}))
    for name in ("vocab.pt", "vocab.pkl"):
        with pytest.raises(DataError, match="is a pickle, as vocabularies of torchtext and OpenNMT are"):
            load_foreign_tokenizer(TokenizerConfig(file=str(tmp_path / name)))


def test_codes_are_none(tmp_path: Path) -> None:
    (tmp_path / "codes").write_text("#version: 0.2\n1 9\n1 0\nt h\nth e</w>\n")
    assert load_foreign_tokenizer(TokenizerConfig(file=str(tmp_path / "codes"))).form.startswith("codes")


def test_the_numbers_of_a_marian_are_answered_with_its_models(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text('{"</s>": 0, "<unk>": 1}')
    for name in ("source.spm", "target.spm"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match=r"numbers the pieces of SentencePiece models, as Marian's: give source\.spm"):
        load_foreign_tokenizer(TokenizerConfig(file=str(tmp_path)))


def test_half_a_character_in_a_piece_is_named(tmp_path: Path) -> None:
    """JSON can spell one, which Python's own message calls a codec's error."""
    letters = sorted(ByteLevel.alphabet())
    numbers = json.dumps({letter: number for number, letter in enumerate([*letters, "<|endoftext|>"])})
    content = f'{numbers[:-1]}, "ab\\ud800": {len(letters) + 1}}}'
    (tmp_path / "vocab.json").write_text(content, "utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n", "utf-8")
    document = {"model": {"type": "BPE", "vocab": json.loads(content), "merges": []}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(document), "utf-8")
    for name in ("vocab.json", "tokenizer.json"):
        with pytest.raises(DataError, match=r"half a character, which no UTF-8 spells") as refused:
            load_foreign_tokenizer(TokenizerConfig(file=str(tmp_path / name)))
        assert r"'ab\ud800'" in str(refused.value)
        assert "codec" not in str(refused.value)
