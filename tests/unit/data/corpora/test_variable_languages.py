"""Translations whose languages vary from row to row, as `TranslationVariableLanguages` of `datasets` writes them."""

import json
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfm.data.corpora.paths.single_files import suggest_corpus_table
from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.sources import read_rows
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError

ROWS: list[dict[str, str | list[str]]] = [
    {"de": "Hund", "en": "dog", "fr": "chien"},
    {"de": "Katze", "fr": ["chat", "chatte"]},
    {"en": "tree", "de": "Baum"},
]
DOCUMENTS = [
    {"language": ["de", "en", "fr"], "translation": ["Hund", "dog", "chien"]},
    {"language": ["de", "fr", "fr"], "translation": ["Katze", "chat", "chatte"]},
    {"language": ["de", "en"], "translation": ["Baum", "tree"]},
]


def write(folder: Path, kind: str, column: str) -> Path:
    rows: list[dict[str, Any]] = [{column: document} for document in DOCUMENTS]
    file = folder / f"a.{kind}"
    if kind == "jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    else:
        pq.write_table(pa.Table.from_pylist(rows), file)
    return file


def read(file: Path, source: str, target: str, **keys: Any) -> list[tuple[str, ...]]:
    format_ = "parquet" if file.suffix == ".parquet" else "jsonl"
    settings = {"format": format_, "path": str(file), "source": source, "target": target, **keys}
    return list(read_rows(CorpusConfig.model_validate(settings)))


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
@pytest.mark.parametrize(("column", "prefix"), [("translation", ""), ("translations", "translations.")])
def test_languages_are_columns(kind: str, column: str, prefix: str, tmp_path: Path) -> None:
    """A row without a language has an empty text in it; several texts are refused, or references."""
    file = write(tmp_path, kind, column)
    en, de, fr = (prefix + language for language in ("en", "de", "fr"))
    assert read(file, en, de) == [("dog", "Hund"), ("", "Katze"), ("tree", "Baum")]
    assert read(file, de, f"{column}.en") == [("Hund", "dog"), ("Katze", ""), ("Baum", "tree")]
    with pytest.raises(DataError, match=r"line 2: there are 2 translations in 'fr': keep one or"):
        read(file, de, fr)
    with pytest.raises(DataError, match=r"line 2: there are 2 translations in 'fr': keep one or"):
        read(file, fr, de, lists="join")
    assert read(file, de, fr, lists="references") == [("Hund", "chien"), ("Katze", "chat", "chatte"), ("Baum", "")]
    with collect_remarks() as remarks:
        assert read(file, prefix + "eng", de) == [("", "Hund"), ("", "Katze"), ("", "Baum")]
    assert "its first row has no text in 'eng' (it has de, en, fr)" in " ".join(map(str, remarks))
    advice = suggest_corpus_table(file, ["source"], "target")
    assert f'source = "{prefix}de", target = "{prefix}en"' in advice


def test_they_are_what_datasets_writes(tmp_path: Path) -> None:
    feature = datasets.TranslationVariableLanguages(languages=["de", "en", "fr"])
    written = datasets.Dataset.from_list(
        [{"translation": row} for row in ROWS], features=datasets.Features({"translation": feature})
    )
    written.to_parquet(tmp_path / "a.parquet")
    written.save_to_disk(tmp_path / "saved")
    assert read(tmp_path / "a.parquet", "en", "de") == [("dog", "Hund"), ("", "Katze"), ("tree", "Baum")]
    saved = CorpusConfig.model_validate(
        {"format": "huggingface", "path": str(tmp_path / "saved"), "source": "en", "target": "de"}
    )
    assert list(read_rows(saved)) == [("dog", "Hund"), ("", "Katze"), ("tree", "Baum")]
