"""Tokenizers of other programs from `tfm tokenize --from` to a trained and exported model."""

import json
from pathlib import Path

import pytest
import tokenizers
from safetensors.torch import load_file

from tests.cli.user import RECIPE, tfm, write_corpora
from tests.foreign_tokenizers import document_of, write
from tfm.data.artifact_tokenizers import load_tokenizer_pair

TEXT = "train.de"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_corpora(tmp_path)
    plain = RECIPE.format(folder=tmp_path).replace('kind = "word"\nvocab_size = 40\n', "")
    Path("tiny.toml").write_text(plain, encoding="utf-8")


def bert_of_corpus() -> tokenizers.Tokenizer:
    """A WordPiece of both languages as BERT's, whose file does not name the type of its model."""
    whole = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    whole.normalizer, whole.pre_tokenizer = (
        tokenizers.normalizers.BertNormalizer(),
        tokenizers.pre_tokenizers.BertPreTokenizer(),
    )
    whole.decoder = tokenizers.decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=90, special_tokens=special, show_progress=False)
    whole.train(["train.de", "train.en"], trainer)
    return whole


def test_a_published_tokenizer_json_trains_and_is_exported_with_its_own_ids() -> None:
    theirs = bert_of_corpus()
    document = document_of(theirs)
    del document["model"]["type"]
    write(Path("bert"), document, special_tokens_map={"sep_token": "[SEP]", "cls_token": "[CLS]"})
    done = tfm("tokenize", "--from", "bert", TEXT, "--out", "alone")
    assert done.code == 0, done.err
    assert "bert is a tokenizer.json; <pad> is [PAD]; <unk> is [UNK]; <s> is [CLS]; </s> is [SEP]" in done.err
    done = tfm("run", "tiny.toml", "--set", "tokenizer.file=bert")
    assert done.code == 0, done.err
    ours, target = load_tokenizer_pair(Path("runs/tiny/model"))
    assert ours is target
    done = tfm("export", "runs/tiny", "--to", "huggingface", "--out", "out")
    assert done.code == 0, done.err
    ids = json.loads(Path("out/original_ids.json").read_text("utf-8"))["tokenizer.json"]
    assert ids == list(ours.original_ids)
    weights = load_file("out/model.safetensors")
    assert len(weights["model.shared.weight"]) == len(ids) == theirs.get_vocab_size()
    exported = tokenizers.Tokenizer.from_file("out/tokenizer.json")
    for line in Path(TEXT).read_text("utf-8").splitlines():
        found = exported.encode(line, add_special_tokens=False).ids
        assert [ids[number] for number in found] == theirs.encode(line, add_special_tokens=False).ids


def test_codes_with_a_vocabulary_train() -> None:
    Path("codes").write_text("#version: 0.2\ne i\nz w\nei n\nein s</w>\n")
    letters = sorted(
        {letter for file in ("train.de", "train.en") for letter in Path(file).read_text("utf-8")} - {"\n", " "}
    )
    entries = ["eins", "ein@@", "zw@@", *(f"{letter}@@" for letter in letters), *letters]
    Path("vocab").write_text("".join(f"{entry} 1\n" for entry in entries))
    keys = ("--set", "tokenizer.file=codes", "--set", "tokenizer.codes_vocabulary=vocab")
    done = tfm("run", "tiny.toml", *keys)
    assert done.code == 0, done.err
    assert "codes is codes of subword-nmt or fastBPE" in done.err
    ours, _ = load_tokenizer_pair(Path("runs/tiny/tokenizer"))
    assert [ours.original_ids[number] for number in ours.encode("eins zwei")] == [
        0,
        2,
        entries.index("e@@"),
        entries.index("i"),
    ]
    again = tfm("run", "tiny.toml", *keys)
    assert "tokenizer: up to date" in again.err
    Path("vocab").write_text("".join(f"{entry}\n" for entry in reversed(entries)))
    assert "input codes_vocabulary changed" in tfm("run", "tiny.toml", *keys).err


def test_a_tokenizer_that_is_not_there_is_named() -> None:
    done = tfm("tokenize", "--from", "nowhere", TEXT, "--out", "out")
    assert done.code == 65
    assert "nowhere: no such file" in done.err
