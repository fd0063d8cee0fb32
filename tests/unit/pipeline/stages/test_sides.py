"""Sides with a normalisation and case of their own: what each reads and writes, and what is refused."""

import unicodedata
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import TINY, tfm
from tfm.data.config import DataConfig
from tfm.data.corpus_config import CorpusConfig
from tfm.data.dataset.store import load_dataset
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages.preprocess import preprocess
from tfm.pipeline.stages.tokenize import tokenize
from tfm.tokenizer.code_points import load_pair
from tfm.tokenizer.config import TokenizerConfig

WORDS = ("한글", "É", "m² Ｗ", "ﬁ", "국물")
PHONES = ("h a n ɡ ɯ l", "ç Ｗ É", "m²", "ﬁ n", "k u ŋ m u l")
FORMS = ("nfc", "nfd", "nfkc", "nfkd", "none")
KOREAN = {"kind": "char", "shared": False, "source_normalization": "nfd", "target_kind": "word", "min_frequency": 1}


def written(folder: Path) -> DataConfig:
    for name, lines in ("words", WORDS), ("phones", PHONES):
        (folder / name).write_text("".join(f"{line}\n" for line in lines * 3), "utf-8")
    corpus = CorpusConfig(source=str(folder / "words"), target=str(folder / "phones"))
    return DataConfig(train=(corpus,), valid=corpus, tests={"test": corpus})


def learned(folder: Path, data: DataConfig, **settings: Any) -> Path:
    config = TokenizerConfig(**{"kind": "char", "shared": False, "min_frequency": 1, **settings})
    tokenize(config, data, folder, command=["tfm"], reporter=NullReporter())
    return folder


def expected(text: str, form: str, lowercase: bool) -> str:
    """By the standard library, beside the tokenizer's own normaliser."""
    for lower in (False, True) if lowercase else (False,):
        text = text.lower() if lower else text
        text = text if form == "none" else unicodedata.normalize(form.upper(), text)
    return " ".join(text.split())


@pytest.mark.parametrize("lowercase", [False, True])
def test_each_side_has_its_own_form_and_case(tmp_path: Path, lowercase: bool) -> None:
    data = written(tmp_path)
    for number, (one, other) in enumerate(product(FORMS, FORMS)):
        settings = {"source_normalization": one, "target_normalization": other, "target_lowercase": lowercase}
        source, target = load_pair(learned(tmp_path / str(number), data, **settings))
        assert [source.decode(source.encode(text)) for text in WORDS] == [expected(text, one, False) for text in WORDS]
        assert [target.decode(target.encode(text)) for text in PHONES] == [
            expected(text, other, lowercase) for text in PHONES
        ]


def test_a_side_without_its_own_has_that_of_both(tmp_path: Path) -> None:
    data = written(tmp_path)
    source, target = load_pair(learned(tmp_path / "one", data, normalization="nfd", source_lowercase=True))
    assert source.decode(source.encode("É")) == "e\u0301"
    assert target.decode(target.encode("É")) == "E\u0301"
    source, target = load_pair(learned(tmp_path / "two", data, lowercase=True, target_lowercase=False))
    assert (source.decode(source.encode("É")), target.decode(target.encode("É"))) == ("é", "É")


def test_jamo_on_the_source_and_phones_as_they_are(tmp_path: Path) -> None:
    data = written(tmp_path)
    folder = learned(tmp_path / "tokenizer", data, **KOREAN)
    preprocess(data, folder, tmp_path / "dataset", command=["tfm"], reporter=NullReporter())
    made = load_dataset(tmp_path / "dataset")
    source, target = load_pair(made.tokenizer_folder)
    sources = {source.decode(list(ids)) for ids in made.train.source.to_lists()}
    assert sources == {unicodedata.normalize("NFD", text) for text in WORDS}
    assert {target.decode(list(ids)) for ids in made.train.target.to_lists()} == {*PHONES}
    assert len(source.encode("한")) == 3 == len(unicodedata.normalize("NFD", "한"))


def test_the_form_of_a_side_is_part_of_the_fingerprint_and_none_changes_nothing(tmp_path: Path) -> None:
    data = written(tmp_path)
    settings: list[dict[str, Any]] = [{}, {"source_normalization": "nfd"}, {"target_normalization": "nfd"}]
    made = [open_artifact(learned(tmp_path / str(number), data, **each)) for number, each in enumerate(settings)]
    assert len({each.fingerprint for each in made}) == 3
    assert "source_normalization" not in made[0].config["tokenizer"]
    assert made[1].config["tokenizer"]["source_normalization"] == "nfd"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"shared": True, "source_normalization": "nfd"}, "`source_normalization` needs one vocabulary for each side"),
        ({"shared": True, "target_lowercase": False}, "`target_lowercase` needs one vocabulary for each side"),
        ({"file": "x.json", "source_normalization": "nfd"}, "remove source_normalization"),
        ({"source_from": "x", "source_lowercase": True}, "remove source_lowercase"),
        ({"target_kind": "label", "target_normalization": "nfd"}, "remove target_normalization"),
        ({"target_kind": "tags", "target_lowercase": True}, "remove target_lowercase"),
    ],
)
def test_what_a_side_cannot_have_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        TokenizerConfig(**{"shared": False, **settings})


RECIPE = """
[tokenizer]
kind = "char"
shared = false
min_frequency = 1
source_normalization = "nfd"
target_kind = "word"
[data]
valid = {{ source = "{0}/words", target = "{0}/phones" }}
tests.test = {{ source = "{0}/words", target = "{0}/phones" }}
[[data.train]]
source = "{0}/words"
target = "{0}/phones"
[model]
tie = "output"
"""


def test_a_key_that_both_sides_replace_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text(RECIPE.format(tmp_path), "utf-8")
    assert load_recipe(file).tokenizer.source_config.normalization == "nfd"
    assert load_recipe(file).tokenizer.target_config.normalization == "nfc"
    both = ["tokenizer.target_normalization=nfc", "tokenizer.normalization=nfkc"]
    with pytest.raises(Exception, match="source and target have their own"):
        load_recipe(file, both)


def test_a_recipe_can_say_none_of_a_side(tmp_path: Path) -> None:
    """The text "none" stands for no value where a value may be missing, and is a form of Unicode where it is one."""
    file = tmp_path / "recipe.toml"
    file.write_text(RECIPE.format(tmp_path), "utf-8")
    recipe = load_recipe(file, ["tokenizer.target_normalization=none"])
    assert recipe.tokenizer.target_config.normalization == "none"
    recipe = load_recipe(file, ["tokenizer.source_normalization=none", "tokenizer.target_lowercase=none"])
    assert recipe.tokenizer.source_config.normalization == "none"
    assert recipe.tokenizer.target_lowercase is None
    for key in ("source_normalization", "target_normalization"):
        for form in FORMS:
            assert getattr(load_recipe(file, [f"tokenizer.{key}={form}"]).tokenizer, key) == form


@pytest.mark.slow
def test_a_model_reads_and_writes_by_the_form_of_each_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both spellings of a source are one, in translate, in Python and in an exported folder."""
    import tfm as library

    written(tmp_path)
    file = tmp_path / "recipe.toml"
    file.write_text(RECIPE.format(tmp_path), "utf-8")
    run = ("run", file, *TINY, "--set", "training.max_steps=60", "--set", "name=sides", "--device", "cpu")
    monkeypatch.chdir(tmp_path)
    made = tfm(*run)
    assert made.code == 0, made.err
    for form in ("NFC", "NFD"):
        (tmp_path / form).write_text("".join(unicodedata.normalize(form, f"{word}\n") for word in WORDS), "utf-8")
    model = tmp_path / "runs" / "sides" / "model"
    said = [tfm("translate", model, tmp_path / form, "--device", "cpu").out for form in ("NFC", "NFD")]
    assert said[0] == said[1]
    assert library.load(model).translate(list(WORDS)) == said[0].splitlines()
    pieces = {piece for line in said[0].split("\n") for piece in line.split()}
    assert pieces
    assert pieces <= {phone for line in PHONES for phone in line.split()}, "as they stand in the corpus"
    exported = tfm("export", model, "--to", "onnx", "--out", tmp_path / "onnx")
    if exported.code == 0:
        import tokenizers

        kept = tokenizers.Tokenizer.from_file(str(tmp_path / "onnx" / "source.json"))
        assert kept.encode("한", add_special_tokens=False).ids == load_pair(model)[0].encode("한")
