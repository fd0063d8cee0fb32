"""The files and built-in corpora that corpora consist of, as the inputs of an artifact."""

from collections.abc import Mapping, Sequence

from tfm.data.corpora.portions import Corpus
from tfm.data.corpora.sources import content_fingerprints
from tfm.pipeline.artifacts.artifact import Input


def corpus_inputs(splits: Mapping[str, Sequence[Corpus]], *, online: bool) -> dict[str, Input]:
    """The inputs of some splits by "SPLIT: LABEL". Corpora that share a label, as two columns of one dataset do, and
    are not of the same texts, are numbered. Raises DataError where a corpus is not there."""
    found: dict[str, Input] = {}
    for name, corpora in splits.items():
        for corpus in corpora:
            for label, path, fingerprint in content_fingerprints(corpus, online=online):
                made = Input.from_value(fingerprint, None if path is None else str(path))
                key, number = f"{name}: {label}", 1
                while found.setdefault(key, made) != made:
                    number += 1
                    key = f"{name}: {label} ({number})"
    return found
