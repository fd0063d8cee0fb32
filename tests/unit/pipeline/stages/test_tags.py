"""A tag of a training corpus: before its sources alone, behind their language, whatever makes the dataset."""

from pathlib import Path
from typing import Any

import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.language_codes import select_source_tokenizer
from tfm.data.corpus_config import CorpusConfig
from tfm.data.dataset.examples import encode_chunk
from tfm.data.dataset.split import Dataset
from tfm.data.dataset.store import load_dataset
from tfm.data.errors import DataError
from tfm.pipeline.artifacts.artifact import Input, stale_reason
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.cluster.encoding import encode_columns, read_columns
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages.clean import clean
from tfm.pipeline.stages.preprocess import preprocess
from tfm.pipeline.stages.tokenize import plan_tokenizer, tokenize
from tfm.tokenizer.code_points import load_pair
from tfm.tokenizer.config import TokenizerConfig

NO_ONE: dict[str, Any] = {"command": ["test"], "reporter": NullReporter()}


def corpus(size: int = 10, *, languages: bool = False, **given: object) -> CorpusConfig:
    about = {"format": "generated", "path": "languages", "split": "train", "source": "eng", "target": "deu"}
    named = {"source_language": "eng", "target_language": "deu"} if languages else {}
    return CorpusConfig.model_validate({**about, "size": size, **named, **given})


def config(*, languages: bool = False, **given: object) -> DataConfig:
    train = (corpus(languages=languages), corpus(5, languages=languages, skip=10, tag="<BT>", **given))
    valid, test = (corpus(split=split, languages=languages) for split in ("valid", "test"))
    return DataConfig(train=train, valid=(valid,), tests={"test": test})


def dataset_of(data: DataConfig, folder: Path, settings: TokenizerConfig, kept: Path | None = None) -> Dataset:
    tokenize(settings, data, folder / "tokenizer", clean=kept, **NO_ONE)
    preprocess(data, folder / "tokenizer", folder / "dataset", clean=kept, **NO_ONE)
    return load_dataset(folder / "dataset")


@pytest.mark.few(2)
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("languages", [True, False])
def test_the_tag_is_before_the_sources_of_its_corpus_alone(tmp_path: Path, shared: bool, languages: bool) -> None:
    data = dataset_of(config(languages=languages), tmp_path, TokenizerConfig(vocab_size=200, shared=shared))
    source, target = load_pair(data.tokenizer_folder)
    assert [*source.tags] == ["<BT>"]
    assert [*target.tags] == (["<BT>"] if shared else [])
    assert source.vocab_size <= 200, "it is counted too"
    tag, place = source.tags["<BT>"], 1 if languages else 0
    rows = data.train.source.to_lists()
    assert [row.count(tag) for row in rows] == [0] * 10 + [1] * 5
    assert all(row[place] == tag for row in rows[10:])
    others = data.train.target.to_lists() if shared else []
    others += [*data.valid.source.to_lists(), *data.tests["test"].source.to_lists()]
    assert not [row for row in others if tag in row]


def test_cleaned_text_keeps_its_tag(tmp_path: Path) -> None:
    clean(CleanConfig(), config(), tmp_path / "clean", **NO_ONE)
    data = dataset_of(config(), tmp_path, TokenizerConfig(vocab_size=200), tmp_path / "clean")
    tag = load_pair(data.tokenizer_folder)[0].tags["<BT>"]
    assert [row[0] == tag for row in data.train.source.to_lists()] == [False] * 10 + [True] * 5


def test_a_taken_tokenizer_gets_the_tag_and_one_without_it_is_refused(tmp_path: Path) -> None:
    plain = config().model_copy(update={"train": (corpus(),)})
    tokenize(TokenizerConfig(vocab_size=200), plain, tmp_path / "plain", **NO_ONE)
    with pytest.raises(DataError, match="has no tag <BT>"):
        preprocess(config(), tmp_path / "plain", tmp_path / "dataset", **NO_ONE)
    taken = TokenizerConfig(file=str(tmp_path / "plain" / "tokenizer.json"))
    made = dataset_of(config(), tmp_path, taken)
    before, after = (load_pair(folder)[0] for folder in (tmp_path / "plain", made.tokenizer_folder))
    assert after.tags == {"<BT>": before.vocab_size}
    assert "settings" not in str(stale_reason(plan_tokenizer(taken, config(), tmp_path / "tokenizer")))
    other = config().model_copy(update={"train": (corpus(), corpus(5, skip=10, tag="<FT>"))})
    assert "tags" in str(stale_reason(plan_tokenizer(taken, other, tmp_path / "tokenizer")))


def test_kind_codepoint_has_no_tags(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"remove `tag` from data\.train"):
        tokenize(TokenizerConfig(kind="codepoint"), config(), tmp_path / "tokenizer", **NO_ONE)


def test_a_node_of_a_cluster_encodes_the_tag_too(tmp_path: Path) -> None:
    tokenize(TokenizerConfig(vocab_size=200), config(), tmp_path / "tokenizer", **NO_ONE)
    made, rows = (
        Input.from_artifact(tmp_path / "tokenizer"),
        [("a dog", "ein Hund"), ("", ""), ("the cat", "die Katze")],
    )
    columns = ([source for source, _ in rows], [target for _, target in rows])
    pair = load_pair(tmp_path / "tokenizer")
    ((source, _),) = read_columns(
        encode_columns(str(made.path), made.fingerprint, (), "<BT>", [columns]),
        [3],
        (pair[0].vocab_size, pair[1].vocab_size),
        counts_words=False,
    )
    expected = encode_chunk(rows, 0, select_source_tokenizer(pair[0], (), "<BT>"), pair[1], multi_reference=False)
    assert source[0].tolist() == expected.source.ids.tolist()
    assert source[1].tolist() == expected.source.lengths.tolist()
    assert source[0][0] == pair[0].tags["<BT>"]
