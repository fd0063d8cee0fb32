"""BERT's, GPT-2's and SentencePiece's files are read as transformers and sentencepiece read them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.foreign_tokenizers import LINES, bert, gpt2
from tests.ten_scripts import lines_of
from tfm.data.errors import DataError
from tfm.data.foreign_tokenizers.loading import load_foreign_tokenizer
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import BOS, EOS, PAD, UNK
from tfm.tokenizer.tokenizer import Tokenizer

TEST = lines_of(1000, seed=2)


def taken(place: Path, **keys: Any) -> Tokenizer:
    return load_foreign_tokenizer(TokenizerConfig(file=str(place), **keys)).tokenizer


def there(ours: Tokenizer, line: str) -> list[int | None]:
    return [ours.original_ids[number] for number in ours.encode(line)]


def in_order(vocab: Mapping[str, int]) -> list[str]:
    return sorted(vocab, key=vocab.__getitem__)


def test_a_vocab_txt_is_read_as_transformers_reads_it(tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in in_order(bert().get_vocab())), "utf-8")
    theirs = transformers.BertTokenizer.from_pretrained(str(tmp_path))
    for place in (tmp_path, tmp_path / "vocab.txt"):
        ours = taken(place)
        assert ours.original_ids[:4] == (0, 1, 2, 3)
        for line in TEST:
            assert there(ours, line) == theirs.encode(line, add_special_tokens=False), line


def test_a_vocabulary_with_capitals_is_not_lower_cased_unless_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nBerlin\nberlin\n")
    assert there(taken(tmp_path), "Berlin berlin") == [4, 5]
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert there(taken(tmp_path), "Berlin berlin") == [5, 5]
    for said, reason in (
        ({"do_lower_case": 1}, "do_lower_case = 1 beside it is not true or false"),
        ({"tokenizer_class": "BertJapaneseTokenizer"}, "is of the class BertJapaneseTokenizer: load it"),
        ({"added_tokens_decoder": {"9": {}}}, "has added tokens: load it"),
    ):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(said))
        with pytest.raises(DataError, match=reason):
            taken(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "vocab.txt").write_text("a\nb\n")
    with pytest.raises(DataError, match=r"lacks \[UNK\]: name the piece for what is unknown \(tokenizer\.unk_token\)"):
        taken(tmp_path)
    assert there(taken(tmp_path, unk_token="b"), "a x") == [0, 1]


def test_a_vocab_json_with_merges_is_read_as_transformers_reads_it(tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
    whole = json.loads(gpt2().to_str())
    vocab = whole["model"]["vocab"] | {"<|endoftext|>": 600}
    (tmp_path / "vocab.json").write_text(json.dumps(vocab))
    for name in ("vocab.json", ""):
        with pytest.raises(
            DataError, match=r"one of the two files vocab\.json and merges\.txt: put merges\.txt beside it"
        ):
            taken(tmp_path / name)
    merges = "".join(f"{left} {right}\n" for left, right in whole["model"]["merges"])
    (tmp_path / "merges.txt").write_text(f"#version: 0.2\n{merges}", "utf-8")
    theirs = transformers.GPT2Tokenizer.from_pretrained(str(tmp_path))
    for place in (tmp_path, tmp_path / "vocab.json", tmp_path / "merges.txt"):
        ours = taken(place)
        assert ours.original_ids[:4] == (None, None, None, 600)
        for line in TEST:
            assert there(ours, line) == theirs.encode(line), line
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b</w>\n")
    with pytest.raises(DataError, match=r"ends words with </w>, as those of CLIP"):
        taken(tmp_path)
    (tmp_path / "merges.txt").write_text("é ж\n", "utf-8")
    with pytest.raises(DataError, match=r"merges\.txt has 'ж', which is not a letter"):
        taken(tmp_path)


def test_a_vocab_json_of_llama_s_size_is_not_cut_as_gpt_2_cuts(tmp_path: Path) -> None:
    """Its two files have the form of GPT-2's, and its pattern of words is another."""
    vocab = json.loads(gpt2().to_str())["model"]["vocab"]
    vocab |= {f"piece {number}": number for number in range(len(vocab), 128_000)}
    (tmp_path / "vocab.json").write_text(json.dumps(vocab))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    with pytest.raises(DataError, match="it has 128,000 pieces, as llama3 has, which cuts texts by another pattern"):
        taken(tmp_path)


LETTERS_IN_PARTS = ("cafe\u0301 12345 it's WE'LL\t  x\n\n y", "2024-01-02 a\r\n b", "नमस्ते 42")


def write_qwen(folder: Path, **settings: Any) -> dict[str, int]:
    """Write the two files of a byte-level vocabulary, with settings of Qwen's class."""
    whole = json.loads(gpt2().to_str())["model"]
    (folder / "vocab.json").write_text(json.dumps(whole["vocab"]))
    merges = "".join(f"{left} {right}\n" for left, right in whole["merges"])
    (folder / "merges.txt").write_text(f"#version: 0.2\n{merges}", "utf-8")
    settings = {
        "tokenizer_class": "Qwen2Tokenizer",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        **settings,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return dict(whole["vocab"])


def test_qwen_s_two_files_are_read_as_transformers_reads_them(tmp_path: Path) -> None:
    """They were refused. Texts are in NFC, digits alone, and control tokens behind the vocabulary."""
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
    size = len(write_qwen(tmp_path))
    flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    names = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    decoder = {str(size + number): {"content": name, **flags} for number, name in enumerate(names)}
    write_qwen(tmp_path, added_tokens_decoder=decoder)
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    found = load_foreign_tokenizer(TokenizerConfig(file=str(tmp_path)))
    assert found.control_tokens == {PAD: "<|endoftext|>", EOS: "<|im_end|>"}
    assert found.tokenizer.original_ids[:4] == (size, None, None, size + 2)
    for line in (*TEST, *LETTERS_IN_PARTS):
        assert there(found.tokenizer, line) == theirs.encode(line, add_special_tokens=False), line
    write_qwen(tmp_path)
    (tmp_path / "added_tokens.json").write_text(json.dumps({name: size + at for at, name in enumerate(names)}))
    assert taken(tmp_path).original_ids == found.tokenizer.original_ids


@pytest.mark.parametrize(
    ("settings", "added", "reason"),
    [
        ({"added_tokens_decoder": {"900": {}}}, None, "added_tokens_decoder beside it has '900' without a token"),
        ({"added_tokens_decoder": {"x": {"content": "a"}}}, None, "has 'x' without a token"),
        ({"added_tokens_decoder": [1]}, None, "added_tokens_decoder beside it is not an object"),
        ({"added_tokens_decoder": {"5": {"content": "<|a|>"}}}, None, r"'<\|a\|>' .* has the id of another piece"),
        ({}, {"<|im_end|>": "9"}, "has not a number for each token"),
        ({}, {"<|im_end|>": -1}, "has not a number for each token"),
        ({"tokenizer_class": "GPT2Tokenizer"}, {"<|im_end|>": 900}, "has added tokens: load it"),
    ],
)
def test_added_tokens_that_are_none_are_refused(
    settings: dict[str, Any], added: dict[str, Any] | None, reason: str, tmp_path: Path
) -> None:
    write_qwen(tmp_path, **settings)
    if added is not None:
        (tmp_path / "added_tokens.json").write_text(json.dumps(added))
    with pytest.raises(DataError, match=reason):
        taken(tmp_path)


# SentencePiece


def test_a_sentencepiece_model_is_taken_with_its_control_tokens(tmp_path: Path) -> None:
    package: Any = pytest.importorskip("sentencepiece", reason="needs the extra `dev`")
    package.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_prefix=str(tmp_path / "m"),
        vocab_size=500,
        hard_vocab_limit=False,
        minloglevel=2,
        pad_id=3,
        unk_piece="[UNK]",
    )
    (tmp_path / "m.vocab").unlink()
    theirs = package.SentencePieceProcessor(model_file=str(tmp_path / "m.model"))
    found = load_foreign_tokenizer(TokenizerConfig(file=str(tmp_path)))
    assert found.form == "a SentencePiece model"
    assert found.control_tokens == {PAD: "<pad>", UNK: "[UNK]", BOS: "<s>", EOS: "</s>"}
    for line in TEST:
        assert there(found.tokenizer, line) == theirs.encode(line), line


@pytest.mark.parametrize(
    "name", ["XLMRobertaTokenizer", "XLMRobertaTokenizerFast", "NllbTokenizer", "CamembertTokenizer"]
)
def test_ids_of_a_class_that_numbers_as_fairseq_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    """The file of XLM-R and mBART has <unk>, <s>, </s> first, and their models <s>, <pad>, </s>, <unk>."""
    package: Any = pytest.importorskip("sentencepiece", reason="needs the extra `dev`")
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
    file = tmp_path / "sentencepiece.bpe.model"
    prefix, lines = str(tmp_path / "m"), iter(LINES)
    package.SentencePieceTrainer.train(
        sentence_iterator=lines, model_prefix=prefix, vocab_size=500, hard_vocab_limit=False, minloglevel=2
    )
    (tmp_path / "m.vocab").unlink()
    (tmp_path / "m.model").rename(file)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    ours = taken(tmp_path)
    theirs = getattr(transformers, name.removesuffix("Fast")).from_pretrained(tmp_path)
    for number in (number for number in range(ours.vocab_size) if ours.original_ids[number] is not None):
        piece = theirs.convert_ids_to_tokens(ours.original_ids[number])
        assert piece == (ours.piece(number) if number else "<pad>")
    assert ours.original_ids[:4] == ((1, 3, 5, 6) if name == "CamembertTokenizer" else (1, 3, 0, 2))
    (tmp_path / "tokenizer_config.json").unlink()
    model = package.SentencePieceProcessor(model_file=str(file))
    assert there(taken(tmp_path), LINES[0]) == model.encode(LINES[0])


@pytest.mark.parametrize("magic", [b"\x1f\x8b", b"PK\x03\x04", b"BZh9", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ"])
def test_a_compressed_file_is_named_as_such(magic: bytes, tmp_path: Path) -> None:
    (tmp_path / "codes").write_bytes(magic + b"\x00" * 20)
    with pytest.raises(DataError, match="is compressed: unpack it"):
        taken(tmp_path / "codes")


@pytest.mark.parametrize("times", [1, 2])
def test_a_tokenizer_of_keras_is_named_as_such(times: int, tmp_path: Path) -> None:
    """`Tokenizer.to_json()` is a text, and many write it by `json.dump`, which makes it a text of a text."""
    text = json.dumps({"class_name": "Tokenizer", "config": {"num_words": 5, "word_counts": "{}"}})
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps(text) if times == 2 else text, encoding="utf-8")
    with pytest.raises(DataError, match=r"is a tokenizer of Keras: .*`tfm tokenize --kind word`"):
        taken(file)


def test_a_byte_order_mark_is_no_part_of_the_first_piece(tmp_path: Path) -> None:
    """The first piece of a vocab.txt that an editor saved with one was lost as padding."""
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n", "utf-8-sig")
    assert taken(tmp_path).original_ids[:4] == (0, 1, 2, 3)


def test_the_end_of_a_file_of_dos_is_no_piece(tmp_path: Path) -> None:
    for name, text in {
        "vocab.txt": "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n",
        "codes": "#version: 0.2\na b\nab c</w>\n",
    }.items():
        (tmp_path / name).write_text(text)
        plain = taken(tmp_path / name)
        (tmp_path / name).write_text(f"{text}\x1a")
        ended = taken(tmp_path / name)
        pieces = [[each.piece(number) for number in range(each.vocab_size)] for each in (plain, ended)]
        assert pieces[0] == pieces[1]


@pytest.mark.parametrize("name", ["tokenizer_config.json", "special_tokens_map.json"])
def test_settings_in_place_of_a_tokenizer_are_named(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text('{"tokenizer_class": "BertTokenizer", "unk_token": "[UNK]"}')
    with pytest.raises(DataError, match="has settings beside a tokenizer: give the folder, or the tokenizer's file"):
        taken(tmp_path / name)
