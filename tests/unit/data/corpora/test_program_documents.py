"""JSON that programs keep for themselves is named, whether a recipe names its columns or not; rows are no such."""

import json
import subprocess
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from tests.foreign_tokenizers import bert
from tfm.data.corpora.paths.single_files import suggest_corpus_table
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError, ExportableFileError

NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# A title\n", "and text"]},
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": "import this"},
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}
FEATURES = {"features": {"text": {"dtype": "string", "_type": "Value"}}, "splits": {"train": {"num_examples": 3}}}
TOKENS = {"unk_token": "[UNK]", "pad_token": {"content": "[PAD]"}, "additional_special_tokens": ["<x>"]}
DOCUMENTS: dict[str, tuple[Any, str]] = {
    "tokenizer.json": (json.loads(bert().to_str()), "is a tokenizer, which `tfm tokenize --from FILE` reads"),
    "a.ipynb": (NOTEBOOK, "is a notebook of Jupyter"),
    "config.json": ({"architectures": ["BertModel"], "model_type": "bert", "vocab_size": 9}, "the settings of a model"),
    "generation_config.json": ({"eos_token_id": 2, "transformers_version": "4.6.0"}, "settings of transformers"),
    "tokenizer_config.json": ({"do_lower_case": True, "tokenizer_class": "BertTokenizer"}, "beside a tokenizer"),
    "special_tokens_map.json": (TOKENS, "settings beside a tokenizer"),
    "vocab.json": ({"<pad>": 0, "a": 1, "the": 2, "dog</w>": 3}, "numbers names, as vocabularies do"),
    "index.json": ({"metadata": {"total_size": 1}, "weight_map": {"a": "b"}}, "lists the weights of a model"),
    "dataset_infos.json": (
        {"default": {"description": "Text", **FEATURES}},
        "a dataset of Hugging Face, with its rows",
    ),
    "dataset_info.json": ({"description": "Text", **FEATURES}, "a dataset of Hugging Face, with"),
    "state.json": ({"_data_files": [{"filename": "data.arrow"}], "_split": "train"}, "lists the files of a dataset"),
    "trainer_state.json": ({"epoch": 1.0, "log_history": [{"epoch": 1.0, "loss": 2.0}]}, "is the log of a training"),
    "package.json": ({"name": "x", "version": "1.0", "scripts": {"test": "jest"}}, "describes a package"),
    "schema.json": ({"$schema": "http://json-schema.org", "title": "X", "type": "object"}, "is a schema"),
    "openapi.json": ({"openapi": "3.0.0", "info": {"title": "x"}}, "describes an interface"),
    "croissant.json": ({"@context": {"@language": "en"}, "name": "x"}, "is JSON-LD"),
    "a.geojson": ({"type": "FeatureCollection", "features": [{"type": "Feature"}]}, "holds places"),
    "results.json": ({"epoch": 3.0, "eval_loss": 0.5}, r"is one object \(epoch, eval_loss\): rows are objects"),
}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_of_a_program_is_named(name: str, indent: int | None, tmp_path: Path) -> None:
    document, problem = DOCUMENTS[name]
    (tmp_path / name).write_text(json.dumps(document, indent=indent) + "\n", "utf-8")
    with pytest.raises(ExportableFileError, match=problem) as error:
        suggest_corpus_table(tmp_path / name, ["en"], "de")
    assert "\n" not in str(error.value)
    keys = {"format": "jsonl", "path": str(tmp_path / name), "source": "en", "target": "de"}
    with pytest.raises(DataError, match=problem):
        list(read_pairs(CorpusConfig.model_validate(keys)))


@pytest.mark.parametrize(
    "text",
    [
        '{"translation": {"en": "a", "de": "b"}}\n',
        '{"source": "a", "target": "b"}\n',
        '{\n "version": 1,\n "data": [{"foo": "a b", "bar": "c d"}]\n}\n',
        '{"model_type": "bert", "text": "a dog"}\n{"model_type": "gpt2", "text": "a cat"}\n',
        '{"id": 1, "label": 2, "score": 3, "rank": 4, "text": "a"}\n',
        '[{"model_type": "bert", "text": "a dog"}]\n',
    ],
)
def test_rows_are_no_documents_of_programs(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text, "utf-8")
    assert 'format = "jsonl"' in suggest_corpus_table(tmp_path / "a.json", ["en"], "de")


@pytest.mark.skipif(which("jq") is None, reason="needs jq")
def test_the_command_for_a_notebook_writes_its_cells(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(json.dumps(NOTEBOOK, indent=1), "utf-8")
    with pytest.raises(ExportableFileError) as error:
        suggest_corpus_table(tmp_path / "a.ipynb", [], "text")
    command = str(error.value).split("is written by ")[1].replace("FILE", str(tmp_path / "a.ipynb"))
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout == "# A title\nand text\nimport this\n"
