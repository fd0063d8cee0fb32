"""Keys of [tokenizer] and [data] that have no effect, of texts and of images."""

from typing import Any

from tfm.pipeline.recipes.unused_keys.row import LABELS, TRANSLATES, Unused, none_of, one_of
from tfm.pipeline.tasks.abilities import select_tasks
from tfm.tokenizer.config import LEARNING_KEYS


def _reads_files(corpus: Any) -> bool:
    return bool(corpus.format != "huggingface")


TEXT = (
    Unused(
        {"tokenizer.kind": none_of("wordpiece"), "tokenizer.target_kind": none_of("wordpiece")},
        ("tokenizer.criterion", "tokenizer.min_score", "tokenizer.min_gain"),
        'they are for kind = "wordpiece"',
    ),
    Unused({"tokenizer.kind": none_of("unigram")}, ("tokenizer.clusters",), 'it is for kind = "unigram"'),
    Unused(
        {"tokenizer.kind": one_of("codepoint"), "tokenizer.target_kind": one_of("label", "tags")},
        ("tokenizer.vocab_size", "tokenizer.min_frequency"),
        "characters are numbered by Unicode, and all labels are known: nothing is learned",
    ),
    Unused(
        {"tokenizer.kind": one_of("codepoint"), "tokenizer.shared": one_of(True)},
        ("tokenizer.vocab_size", "tokenizer.min_frequency"),
        "characters are numbered by Unicode: nothing is learned",
    ),
    Unused({"tokenizer.criterion": none_of("ratio")}, ("tokenizer.min_score",), 'it is for criterion = "ratio"'),
    Unused(
        {"tokenizer.criterion": none_of("likelihood")}, ("tokenizer.min_gain",), 'it is for criterion = "likelihood"'
    ),
    Unused(
        {"tokenizer.source_from": none_of(None), "tokenizer.target_kind": one_of("label", "tags")},
        tuple(f"tokenizer.{name}" for name in LEARNING_KEYS),
        "the source's pieces are those of source_from, and labels are names",
    ),
    Unused(
        {"tokenizer.source_from": none_of(None), "tokenizer.target_kind": none_of(None)},
        ("tokenizer.kind",),
        "the source's pieces are those of source_from, the target's are of target_kind",
    ),
    *(
        Unused({**source, f"tokenizer.target_{name}": none_of(None)}, (f"tokenizer.{name}",), why)
        for name in ("normalization", "lowercase")
        for source, why in (
            ({f"tokenizer.source_{name}": none_of(None)}, "source and target have their own"),
            ({"tokenizer.source_from": none_of(None)}, "the source has that of source_from, the target its own"),
            ({"tokenizer.file": none_of(None)}, "the source has that of file, the target its own"),
        )
    ),
    Unused(
        {"model.task": one_of(*select_tasks(lambda task: task.labels == "tags"))},
        ("data.limits.cut_sources",),
        "each word of a sentence has its tag, so that none is cut",
    ),
    Unused(
        {"data.train": lambda corpora: len(corpora) < 2},
        ("data.temperature",),
        "there is one training corpus, which is seen as often whatever the temperature",
    ),
    Unused({"data.path": one_of(None)}, ("data.source", "data.target"), "they are for data.path; a corpus has its own"),
    Unused(
        {"data.path": one_of(None), "data.valid": none_of(()), "data.tests": none_of({})},
        ("data.ratios",),
        "validation and test sets are given, so nothing is split",
    ),
    Unused(
        {
            "data.path": one_of(None),
            "data.valid": none_of(()),
            "data.tests": none_of({}),
            "data.fold": one_of(None),
        },
        ("data.split_seed", "data.running_text"),
        "validation and test sets are given, so nothing is split",
    ),
    Unused(
        {"data.path": one_of(None), "data.train": lambda corpora: all(each.has_source for each in corpora)},
        ("data.running_text",),
        "it is for texts without a source",
    ),
    Unused(
        {"data.path": none_of(None), "data.source": none_of(None)},
        ("data.running_text",),
        "it is for texts without a source",
    ),
    Unused(
        {
            "data.path": one_of(None),
            "data.train": lambda corpora: all(map(_reads_files, corpora)),
            "data.valid": lambda corpora: all(map(_reads_files, corpora)),
            "data.tests": lambda corpora: all(map(_reads_files, corpora.values())),
        },
        ("data.online",),
        'nothing could be downloaded: no corpus is of format = "huggingface"',
    ),
    Unused(
        {"data.path": one_of(None), "data.train": lambda corpora: all(not each.has_source for each in corpora)},
        ("data.limits.max_ratio", "data.limits.cut_sources"),
        "texts without a source have one side",
    ),
    Unused(
        {"data.path": none_of(None), "data.source": one_of(None)},
        ("data.limits.max_ratio", "data.limits.cut_sources"),
        "texts without a source have one side",
    ),
)

WITHOUT_IMAGES_TEST = {"data.images": none_of(None)}
"""The keys that a corpus of images makes idle: it has no source text."""
IMAGES = (
    Unused(
        {**WITHOUT_IMAGES_TEST, "model.task": TRANSLATES},
        ("tokenizer.shared", "tokenizer.source_from"),
        "an image has no pieces: the one vocabulary is that of the captions",
    ),
    Unused(
        {**WITHOUT_IMAGES_TEST, "model.task": LABELS},
        (*(f"tokenizer.{name}" for name in LEARNING_KEYS), "tokenizer.source_from", "tokenizer.file", "tokenizer.grow"),
        "an image has no pieces, and labels are names",
    ),
    Unused(
        {**WITHOUT_IMAGES_TEST, "model.task": LABELS},
        ("data.limits.max_length",),
        "an image has no pieces, and a label is one",
    ),
    Unused(
        WITHOUT_IMAGES_TEST,
        ("data.limits.max_ratio", "data.limits.cut_sources", "decoding.max_ratio"),
        "an image has no pieces; decoding.max_length limits captions",
    ),
)
