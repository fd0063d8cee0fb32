"""Corpora of several languages: what stands before their sources, how often each is seen, and what is refused."""

from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from pydantic import ValidationError

from tfm.data.config import DataConfig
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.dataset.directions import target_languages, temperature_sampling_weights
from tfm.data.dataset.split import Dataset
from tfm.data.dataset.store import load_dataset
from tfm.data.errors import DataError
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.alignment.gold import read_dataset_pairs
from tfm.pipeline.stages.preprocess import preprocess
from tfm.pipeline.stages.tokenize import tokenize, tokenize_files
from tfm.tokenizer.code_points import load_pair
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.train import train


def corpus(source: str, target: str, size: int = 12, split: str = "train", **given: object) -> CorpusConfig:
    about = {"format": "generated", "path": "languages", "split": split, "size": size, "source": source}
    languages = {"source_language": source, "target_language": target}
    return CorpusConfig.model_validate({**about, "target": target, **languages, **given})


def config(**given: Any) -> DataConfig:
    train = (corpus("eng", "deu", 40), corpus("eng", "hin", 10), corpus("deu", "eng", 20))
    tests = {"eng-hin": corpus("eng", "hin", split="test"), "deu-hin": corpus("deu", "hin", split="test")}
    return DataConfig(**{"train": train, "valid": corpus("deu", "eng", split="valid"), "tests": tests, **given})


def dataset_of(data: DataConfig, folder: Path, **tokenizer: Any) -> Dataset:
    settings = TokenizerConfig(**(tokenizer if "file" in tokenizer else {"vocab_size": 200, **tokenizer}))
    tokenize(settings, data, folder / "tokenizer", command=["test"], reporter=NullReporter())
    preprocess(data, folder / "tokenizer", folder / "dataset", command=["test"], reporter=NullReporter())
    return load_dataset(folder / "dataset")


@pytest.mark.parametrize("shared", [True, False])
def test_each_source_begins_with_the_language_of_its_target(tmp_path: Path, shared: bool) -> None:
    data = dataset_of(config(), tmp_path, shared=shared, kind="word")
    source, target = load_pair(data.tokenizer_folder)
    assert source.languages.keys() == {"deu", "eng", "hin"}
    assert source.vocab_size <= 200, "the languages are counted too"
    assert (target.languages == source.languages) == shared
    for name, split in {"train": data.train, "valid": data.valid, **data.tests}.items():
        asked = target_languages(data.directions[name])
        assert [ids[0] for ids in split.source.to_lists()] == [source.languages[code] for code in asked]
        assert not {number for ids in split.target.to_lists() for number in ids} & set(source.languages.values())
    assert [each.language_pair for each in data.directions["train"]] == [("eng", "deu"), ("eng", "hin"), ("deu", "eng")]
    assert target_languages(data.directions["deu-hin"]) == ["hin"] * 12
    texts = data.tests["deu-hin"].texts()[0]
    assert data.tests["deu-hin"].source.to_lists() == source.select_target_language("hin").encode_batch(texts)


def test_training_pairs_of_several_directions_are_not_aligned_as_one(tmp_path: Path) -> None:
    dataset_of(config(), tmp_path, kind="word")
    with pytest.raises(DataError, match=r"its training pairs have 3 directions \(eng-deu, eng-hin, deu-eng\)"):
        next(read_dataset_pairs(tmp_path / "dataset"))
    one = {"train": (corpus("eng", "deu"),), "valid": corpus("eng", "deu", split="valid"), "tests": {}}
    made = dataset_of(config(**one), tmp_path / "one", kind="word")
    assert len(list(read_dataset_pairs(tmp_path / "one" / "dataset"))) == len(made.train) > 0


def test_a_tokenizer_that_names_languages_stays_as_it_is(tmp_path: Path) -> None:
    """As that of an imported NLLB: both languages stand before a source."""
    texts = [text for pair in read_pairs(corpus("eng", "deu", 40)) for text in pair]
    train(texts, TokenizerConfig(vocab_size=150)).save(file := tmp_path / "tokenizer.json")
    whole = tokenizers.Tokenizer.from_file(str(file))
    whole.add_special_tokens([tokenizers.AddedToken(each, special=True) for each in ("deu_Latn", "eng_Latn")])
    whole.save(str(file))
    data = config(
        train=(corpus("eng", "deu", 40), corpus("deu", "eng", 40)), valid=corpus("deu", "eng", split="valid"), tests={}
    )
    made = dataset_of(data, tmp_path, file=str(file))
    source, _ = load_pair(made.tokenizer_folder)
    codes = source.languages
    assert codes.keys() == {"deu_Latn", "eng_Latn"}
    german, english = codes["deu_Latn"], codes["eng_Latn"]
    begun = [tuple(ids[:2]) for ids in made.train.source.to_lists()]
    assert [first for first, _ in groupby(begun)] == [(german, english), (english, german)]
    assert {tuple(ids[:2]) for ids in made.valid.source.to_lists()} == {(english, german)}


def test_a_new_language_of_the_training_text_makes_a_taken_tokenizer_anew(tmp_path: Path) -> None:
    train(["eins zwei"] * 3, TokenizerConfig(vocab_size=60)).save(file := tmp_path / "tokenizer.json")
    settings, valid = TokenizerConfig(file=str(file)), corpus("eng", "deu", split="valid")
    for languages in (("deu",), ("deu", "hin")):
        data = config(train=tuple(corpus("eng", each) for each in languages), valid=valid, tests={})
        tokenize(settings, data, tmp_path / "out", command=["test"], reporter=NullReporter())
        assert load_pair(tmp_path / "out")[0].languages.keys() == {*languages}


def test_a_tokenizer_of_clusters_is_measured_by_language(tmp_path: Path) -> None:
    data = config(train=(corpus("eng", "deu", 200), corpus("eng", "hin", 40)), tests={}, valid=corpus("eng", "hin"))
    made = dataset_of(data, tmp_path, kind="unigram", clusters=2, min_frequency=1)
    about: Any = open_artifact(tmp_path / "tokenizer", "tokenize")
    source, _ = load_pair(made.tokenizer_folder)
    assert source.vocab_size <= 200
    assert sorted(name for each in about.figures["clusters"] for name in each["languages"]) == ["deu", "eng", "hin"]
    assert about.config["tokenizer"]["clusters"] == 2
    by_language = about.figures["shared"]["languages"]
    assert by_language.keys() == {"eng", "hin"}, "of the validation texts"
    for language, texts in zip(("eng", "hin"), made.valid.texts(), strict=True):
        tokens = sum(len(source.encode(text)) for text in texts)
        words = sum(len(text.split()) for text in texts)
        assert by_language[language]["tokens_a_word"] == pytest.approx(tokens / words)


def test_clusters_need_languages(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("Anna\n")
    settings = TokenizerConfig(kind="unigram", clusters=2)
    with pytest.raises(RecipeError, match="needs the language of each text"):
        tokenize_files(settings, [tmp_path / "a"], tmp_path / "out", command=["test"], reporter=NullReporter())
    with pytest.raises(RecipeError, match="clusters = 9 is more than the 3 languages there are: deu, eng, hin"):
        dataset_of(config(), tmp_path, kind="unigram", clusters=9)


def test_what_is_cut_from_training_keeps_its_languages(tmp_path: Path) -> None:
    same = (corpus("eng", "deu", 40), corpus("eng", "hin", 40))
    data = dataset_of(config(train=same, valid=None, tests={}, ratios=(0.5, 0.25, 0.25)), tmp_path, kind="word")
    source, _ = load_pair(data.tokenizer_folder)
    for name, split in {"train": data.train, "valid": data.valid, **data.tests}.items():
        asked = target_languages(data.directions[name])
        assert len(set(asked)) > 1
        assert [ids[0] for ids in split.source.to_lists()] == [source.languages[code] for code in asked]


def test_pairs_of_another_language_are_no_duplicates(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("Anna\nPaul\n")
    same = [
        CorpusConfig(source=f"{tmp_path}/a", target=f"{tmp_path}/a", source_language="eng", target_language=code)
        for code in ("deu", "fra")
    ]
    data = DataConfig(train=(*same, same[0]), valid=same[0], tests={"t": same[0]}, limits={"duplicates": "drop"})
    made = dataset_of(data, tmp_path, kind="char", min_frequency=1)
    assert [each.rows for each in made.directions["train"]] == [2, 2, 0]


@pytest.mark.parametrize("temperature", [1.0, 2.0, 5.0, 1000.0])
def test_temperature_sees_corpora_by_a_power_of_their_sizes(tmp_path: Path, temperature: float) -> None:
    data = dataset_of(config(temperature=temperature), tmp_path, kind="word")
    sizes = np.array([each.rows for each in data.directions["train"]], float)
    seen = np.array([each.sum() for each in np.split(data.train.weights, np.cumsum(sizes).astype(int)[:-1])])
    assert seen.sum() == pytest.approx(sizes.sum()), "an epoch is as long as it was"
    np.testing.assert_allclose(np.log(seen / seen[0]), np.log(sizes / sizes[0]) / temperature, atol=1e-12)
    if temperature == 1:
        assert data.train.weights_in_epoch(0) is None


def test_temperature_of_an_empty_corpus() -> None:
    assert temperature_sampling_weights([4, 0, 4], 2) == [1.0, 1.0, 1.0]


BILINGUAL = CorpusConfig(source="a", target="b")
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "one of several": ({"valid": BILINGUAL}, "valid has no source_language and target_language, and others have"),
    "never trained": (
        {"tests": {"x": corpus("eng", "hin")}, "train": (corpus("eng", "deu"),), "valid": None},
        "no train",
    ),
    "both": (
        {"temperature": 2, "train": (corpus("eng", "hin"), corpus("deu", "eng", weight=2.0)), "tests": {}},
        "give either `temperature` or a `weight`",
    ),
    "below one": ({"temperature": 0.5}, "greater than or equal to 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name: str) -> None:
    given, problem = REFUSED[name]
    with pytest.raises(ValidationError, match=problem):
        config(**given)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"source_language": None}, "give both"),
        ({"target_language": "de"}, "is no code of ISO 639-3"),
        ({"target_language": "DEU"}, "is no code of ISO 639-3"),
        ({"source_language": "fra"}, '`source_language` is "fra", but `source` is "eng"'),
    ],
)
def test_languages_that_a_corpus_cannot_have(given: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        corpus("eng", "deu", **given)


def test_texts_alone_have_no_languages() -> None:
    with pytest.raises(ValidationError, match="texts without a source are not translated"):
        CorpusConfig(source=None, target="a", source_language="eng", target_language="deu")


def test_a_tokenizer_without_the_language_is_refused(tmp_path: Path) -> None:
    tokenize(TokenizerConfig(kind="char"), config(), tmp_path / "tokenizer", command=["test"], reporter=NullReporter())
    french = CorpusConfig.model_validate(
        {"source": f"{tmp_path}/a", "target": f"{tmp_path}/a", "source_language": "eng", "target_language": "fra"}
    )
    (tmp_path / "a").write_text("Anna\n")
    data = DataConfig(train=(french,), valid=french, tests={"t": french})
    with pytest.raises(DataError, match=">>fra<<"):
        preprocess(data, tmp_path / "tokenizer", tmp_path / "dataset", command=["test"], reporter=NullReporter())
