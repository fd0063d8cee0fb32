"""Keys of [tokenizer] and [data] that have no effect, of texts and of images."""

from tfm.data.corpora.paths.remote_files import is_url
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.recipes.unused_keys.rule import (
    IS_LABEL_TASK,
    IS_TRANSLATION_TASK,
    UnusedKeysRule,
    is_none_of,
    is_one_of,
)
from tfm.pipeline.tasks.abilities import select_tasks
from tfm.tokenizer.config import LEARNING_KEYS


def _reads_local_data(corpus: CorpusConfig) -> bool:
    """Whether a corpus is of files that are here already, or generated."""
    paths = [corpus.path, corpus.source, corpus.target, *(corpus.references or ())]
    return corpus.format != "huggingface" and not any(isinstance(path, str) and is_url(path) for path in paths)


TEXT_RULES = (
    UnusedKeysRule(
        {"tokenizer.kind": is_none_of("wordpiece"), "tokenizer.target_kind": is_none_of("wordpiece")},
        ("tokenizer.criterion", "tokenizer.min_score", "tokenizer.min_gain"),
        'they are for kind = "wordpiece"',
    ),
    UnusedKeysRule({"tokenizer.kind": is_none_of("unigram")}, ("tokenizer.clusters",), 'it is for kind = "unigram"'),
    UnusedKeysRule(
        {"tokenizer.kind": is_one_of("codepoint"), "tokenizer.target_kind": is_one_of("label", "tags")},
        ("tokenizer.vocab_size", "tokenizer.min_frequency"),
        "characters are numbered by Unicode, and all labels are known: nothing is learned",
    ),
    UnusedKeysRule(
        {"tokenizer.kind": is_one_of("codepoint"), "tokenizer.shared": is_one_of(True)},
        ("tokenizer.vocab_size", "tokenizer.min_frequency"),
        "characters are numbered by Unicode: nothing is learned",
    ),
    UnusedKeysRule(
        {"tokenizer.criterion": is_none_of("ratio")}, ("tokenizer.min_score",), 'it is for criterion = "ratio"'
    ),
    UnusedKeysRule(
        {"tokenizer.criterion": is_none_of("likelihood")}, ("tokenizer.min_gain",), 'it is for criterion = "likelihood"'
    ),
    UnusedKeysRule(
        {"tokenizer.source_from": is_none_of(None), "tokenizer.target_kind": is_one_of("label", "tags")},
        tuple(f"tokenizer.{name}" for name in LEARNING_KEYS),
        "the source's pieces are those of source_from, and labels are names",
    ),
    UnusedKeysRule(
        {"tokenizer.source_from": is_none_of(None), "tokenizer.target_kind": is_none_of(None)},
        ("tokenizer.kind",),
        "the source's pieces are those of source_from, the target's are of target_kind",
    ),
    *(
        UnusedKeysRule({**source, f"tokenizer.target_{name}": is_none_of(None)}, (f"tokenizer.{name}",), reason)
        for name in ("normalization", "lowercase")
        for source, reason in (
            ({f"tokenizer.source_{name}": is_none_of(None)}, "source and target have their own"),
            ({"tokenizer.source_from": is_none_of(None)}, "the source has that of source_from, the target its own"),
            ({"tokenizer.file": is_none_of(None)}, "the source has that of file, the target its own"),
        )
    ),
    UnusedKeysRule(
        {"model.task": is_one_of(*select_tasks(lambda task: task.labels == "tags"))},
        ("data.limits.cut_sources",),
        "each word of a sentence has its tag, so that none is cut",
    ),
    UnusedKeysRule(
        {"data.train": lambda corpora: len(corpora) < 2},
        ("data.temperature",),
        "there is one training corpus, which is seen as often whatever the temperature",
    ),
    UnusedKeysRule(
        {"data.path": is_one_of(None)}, ("data.source", "data.target"), "they are for data.path; a corpus has its own"
    ),
    UnusedKeysRule(
        {"data.path": is_one_of(None), "data.valid": is_none_of(()), "data.tests": is_none_of({})},
        ("data.ratios",),
        "validation and test sets are given, so nothing is split",
    ),
    UnusedKeysRule(
        {
            "data.path": is_one_of(None),
            "data.valid": is_none_of(()),
            "data.tests": is_none_of({}),
            "data.fold": is_one_of(None),
        },
        ("data.split_seed", "data.running_text"),
        "validation and test sets are given, so nothing is split",
    ),
    UnusedKeysRule(
        {"data.path": is_one_of(None), "data.train": lambda corpora: all(each.has_source for each in corpora)},
        ("data.running_text",),
        "it is for texts without a source",
    ),
    UnusedKeysRule(
        {"data.path": is_none_of(None), "data.source": is_none_of(None)},
        ("data.running_text",),
        "it is for texts without a source",
    ),
    UnusedKeysRule(
        {
            "data.path": is_one_of(None),
            "data.train": lambda corpora: all(map(_reads_local_data, corpora)),
            "data.valid": lambda corpora: all(map(_reads_local_data, corpora)),
            "data.tests": lambda corpora: all(map(_reads_local_data, corpora.values())),
        },
        ("data.online",),
        'nothing could be downloaded: no corpus is of format = "huggingface" or behind a URL',
    ),
    UnusedKeysRule(
        {"data.path": is_one_of(None), "data.train": lambda corpora: all(not each.has_source for each in corpora)},
        ("data.limits.max_ratio", "data.limits.cut_sources"),
        "texts without a source have one side",
    ),
    UnusedKeysRule(
        {"data.path": is_none_of(None), "data.source": is_one_of(None)},
        ("data.limits.max_ratio", "data.limits.cut_sources"),
        "texts without a source have one side",
    ),
)

HAS_IMAGES_CONDITION = {"data.images": is_none_of(None)}
"""The keys that a corpus of images makes idle: it has no source text."""
IMAGE_RULES = (
    UnusedKeysRule(
        {**HAS_IMAGES_CONDITION, "model.task": IS_TRANSLATION_TASK},
        ("tokenizer.shared", "tokenizer.source_from"),
        "an image has no pieces: the one vocabulary is that of the captions",
    ),
    UnusedKeysRule(
        {**HAS_IMAGES_CONDITION, "model.task": IS_LABEL_TASK},
        (*(f"tokenizer.{name}" for name in LEARNING_KEYS), "tokenizer.source_from", "tokenizer.file", "tokenizer.grow"),
        "an image has no pieces, and labels are names",
    ),
    UnusedKeysRule(
        {**HAS_IMAGES_CONDITION, "model.task": IS_LABEL_TASK},
        ("data.limits.max_length",),
        "an image has no pieces, and a label is one",
    ),
    UnusedKeysRule(
        HAS_IMAGES_CONDITION,
        ("data.limits.max_ratio", "data.limits.cut_sources", "decoding.max_ratio"),
        "an image has no pieces; decoding.max_length limits captions",
    ),
)
