"""The files and built-in corpora that corpora consist of, as the inputs of an artifact."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from tfm.data.corpora.portions import Corpus, Portion
from tfm.data.corpora.sources import content_fingerprints
from tfm.data.corpus_config import CorpusConfig
from tfm.data.corpus_keys.table_keys import drop_unset_keys
from tfm.pipeline.artifacts.artifact import Input
from tfm.pipeline.artifacts.canonical_json import JSON

SYNTHESIZE_STAGE = "synthesize"


def synthetic_corpus_folder(corpus: Corpus) -> str | None:
    """The folder of text that a model made, of a corpus that is such text."""
    return corpus.synthetic if isinstance(corpus, CorpusConfig) else None


def corpus_inputs(splits: Mapping[str, Sequence[Corpus]], *, online: bool) -> dict[str, Input]:
    """The inputs of some splits by "SPLIT: LABEL"; text that a model made is one, an artifact.

    Corpora that share a label, as two columns of one dataset do, and are not of the same texts, are numbered. Raises
    DataError where a corpus is not there.
    """
    inputs: dict[str, Input] = {}
    for name, corpora in splits.items():
        for corpus in corpora:
            if (folder := synthetic_corpus_folder(corpus)) is not None:
                inputs[f"{name}: {folder}"] = Input.from_artifact(Path(folder), SYNTHESIZE_STAGE)
                continue
            for label, path, fingerprint in content_fingerprints(corpus, online=online):
                corpus_input = Input.from_value(fingerprint, None if path is None else str(path))
                key, number = f"{name}: {label}", 1
                while inputs.setdefault(key, corpus_input) != corpus_input:
                    number += 1
                    key = f"{name}: {label} ({number})"
    return inputs


def text_changing_settings(corpus: Corpus) -> JSON:
    """Return the settings of a corpus that change the texts it gives."""
    if isinstance(corpus, Portion):
        return {**asdict(corpus.part), "corpora": [text_changing_settings(each) for each in corpus.corpora]}
    settings: dict[str, JSON] = drop_unset_keys(corpus.model_dump(mode="json", exclude={"weight", "epochs"}))
    return settings
