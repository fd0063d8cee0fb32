"""`tokenizer.grow`: a tokenizer that is there gets pieces of the training text, by a recipe and from text files."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.recording_reporter import Listening
from tests.unit.pipeline.stages.test_images import config as of_images
from tfm.data.config import DataConfig
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.stages.tokenize import tokenize, tokenize_files
from tfm.tokenizer.code_points import load_pair
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.growth.extension import is_extension
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

SOURCES, TARGETS = ["a moth sat", "the moth ran"] * 8, ["die Motte saß", "die Motte lief"] * 8


@pytest.fixture
def old(tmp_path: Path) -> Tokenizer:
    made = train(["the cat sat on the mat", "die Katze saß da"] * 3, TokenizerConfig(vocab_size=60))
    made.save(tmp_path / "tokenizer.json")
    return made


@pytest.fixture
def data(tmp_path: Path) -> DataConfig:
    for name, lines in (("en", SOURCES), ("de", TARGETS)):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    corpus = CorpusConfig(source=str(tmp_path / "en"), target=str(tmp_path / "de"))
    return DataConfig(train=(corpus,), valid=corpus, tests={"test": corpus})


def config_of(folder: Path, **more: Any) -> TokenizerConfig:
    return TokenizerConfig(file=str(folder / "tokenizer.json"), **more)


def test_a_recipe_grows_what_file_names(old: Tokenizer, data: DataConfig, tmp_path: Path) -> None:
    out, heard = tmp_path / "out", Listening()
    config = config_of(tmp_path, grow=12)
    tokenize(config, data, out, command=["test"], reporter=heard)
    new, target = load_pair(out)
    assert new is target
    assert is_extension(new, old)
    assert new.vocab_size == old.vocab_size + 12
    assert new.pieces("the moth") == [" the", " moth"]
    assert f"tokenizer: 12 pieces beside its {old.vocab_size}" in heard.lines
    made = open_artifact(out, "tokenize")
    assert made.figures["new_pieces"] == 12
    assert made.figures["shared"]["vocabulary_size"] == new.vocab_size
    assert made.config["tokenizer"] == {"grow": 12, "min_frequency": 2, "shared": True, "target_kind": None}
    tokenize(config, data, out, command=["test"], reporter=heard)
    assert "up to date" in heard.lines[-1]
    tokenize(config_of(tmp_path, grow=12, min_frequency=9), data, out, command=["test"], reporter=heard)
    assert open_artifact(out).figures["new_pieces"] < 12
    assert any(line.startswith("tokenizer: ") and "of 12 asked for" in line for line in heard.lines)
    (tmp_path / "en").write_text("another text\n" * 16, encoding="utf-8")  # which is learned from
    tokenize(config, data, out, command=["test"], reporter=heard)
    assert len(load_pair(out)[0].encode("another")) < len(new.encode("another"))


def test_that_of_captions_grows(old: Tokenizer, tmp_path: Path) -> None:
    data = DataConfig.model_validate(of_images(tmp_path / "images"))
    tokenize(config_of(tmp_path, grow=5), data, tmp_path / "out", command=["test"], reporter=Listening())
    new = load_pair(tmp_path / "out")[1]
    assert is_extension(new, old)
    assert new.vocab_size == old.vocab_size + 5


def test_the_source_alone_grows_where_sides_have_their_own(old: Tokenizer, data: DataConfig, tmp_path: Path) -> None:
    tokenize(
        config_of(tmp_path, grow=5, shared=False, target_kind="char"),
        data,
        tmp_path / "out",
        command=["test"],
        reporter=Listening(),
    )
    source, target = load_pair(tmp_path / "out")
    assert is_extension(source, old)
    assert target.pieces("lief") == [*"lief"]
    assert source.pieces("moth") != old.pieces("moth")
    assert source.pieces("lief") == old.pieces("lief")


def test_text_files_grow_it_too(old: Tokenizer, data: DataConfig, tmp_path: Path) -> None:
    tokenize_files(
        config_of(tmp_path, grow=3), [tmp_path / "en"], tmp_path / "out", command=["test"], reporter=Listening()
    )
    assert is_extension(load_pair(tmp_path / "out")[0], old)


def test_what_cannot_be_grown_is_said(old: Tokenizer, data: DataConfig, tmp_path: Path) -> None:
    def grow(config: TokenizerConfig, data: DataConfig = data) -> None:
        tokenize(config, data, tmp_path / "out", command=["test"], reporter=Listening())

    with pytest.raises(ValidationError, match="name its `file`"):
        TokenizerConfig(grow=3)
    with pytest.raises(ValidationError, match="`file` says how it is learned: remove kind, vocab_size"):
        config_of(tmp_path, grow=3, kind="bpe", vocab_size=99, min_frequency=3)
    with pytest.raises(DataError, match=r"no new piece of it occurs tokenizer\.min_frequency = 99 times"):
        grow(config_of(tmp_path, grow=3, min_frequency=99))
    (tmp_path / "points").mkdir()
    train([], TokenizerConfig(kind="codepoint")).save(tmp_path / "points" / "tokenizer.json")
    with pytest.raises(DataError, match=r"points/tokenizer\.json: cannot grow: it has every character"):
        grow(config_of(tmp_path / "points", grow=3))
    for name in ("source.json", "target.json"):  # as imported Marian models have them
        old.save(tmp_path / "points" / name)
    (tmp_path / "points" / "tokenizer.json").unlink()
    with pytest.raises(DataError, match=r"tokenizers there are two, source\.json and target\.json"):
        grow(config_of(tmp_path / "points", grow=3))
    assert not (tmp_path / "out").exists()
