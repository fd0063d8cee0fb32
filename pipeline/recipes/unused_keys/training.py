"""Keys of [training] that have no effect."""

from tfm.pipeline.recipes.unused_keys.rule import (
    NO_TRANSLATION_CONDITION,
    WORD_VECTORS_CONDITION,
    UnusedKeysRule,
    is_none_of,
    is_one_of,
)
from tfm.pipeline.tasks.abilities import select_tasks
from tfm.pipeline.training_config import ALWAYS_MEASURED_FIGURES

DROPOUT_RATE_KEYS = ("residual", "embedding", "attention", "feed_forward", "depth")
RESEGMENTATION_KEYS = ("training.bpe_dropout", "training.unigram_alpha")

TRAINING_RULES = (
    UnusedKeysRule(
        WORD_VECTORS_CONDITION, ("training.r_drop",), "word vectors have no dropout, by which two passes would differ"
    ),
    UnusedKeysRule(
        {f"model.dropout.{rate}": is_one_of(0) for rate in DROPOUT_RATE_KEYS},
        ("training.r_drop",),
        "without dropout both passes over a batch are the same",
    ),
    UnusedKeysRule(
        {"model.task": is_one_of(*select_tasks(lambda each: each.predicts_per_word))},
        RESEGMENTATION_KEYS,
        "tags and word vectors belong to words, whose pieces stay as they are",
    ),
    UnusedKeysRule(
        {"model.block": is_none_of(None)},
        RESEGMENTATION_KEYS,
        "windows are of one running text, whose pieces stay as they are",
    ),
    UnusedKeysRule(
        {
            "tokenizer.kind": is_none_of("bpe"),
            "tokenizer.target_kind": is_none_of("bpe"),
            "tokenizer.file": is_one_of(None),
            "tokenizer.source_from": is_one_of(None),
        },
        ("training.bpe_dropout",),
        'it is for kind = "bpe"',
    ),
    UnusedKeysRule(
        {
            "tokenizer.kind": is_none_of("unigram"),
            "tokenizer.target_kind": is_none_of("unigram"),
            "tokenizer.file": is_one_of(None),
            "tokenizer.source_from": is_one_of(None),
        },
        ("training.unigram_alpha",),
        'it is for kind = "unigram"',
    ),
    UnusedKeysRule(
        NO_TRANSLATION_CONDITION,
        ("training.validation.bleu", "training.validation.beam"),
        'validation translates only with task = "translation"',
    ),
    UnusedKeysRule(
        {
            "training.validation.bleu": is_one_of(False),
            "training.validation.metrics": is_one_of(None, ()),
            "training.early_stopping.metric": is_one_of(*ALWAYS_MEASURED_FIGURES),
        },
        ("training.validation.beam",),
        "nothing is translated for scores",
    ),
    UnusedKeysRule(
        {"model.task": is_none_of(*select_tasks(lambda each: each.gives_hypotheses))},
        ("training.validation.metrics",),
        "a model of this task has no hypotheses to score",
    ),
    UnusedKeysRule(
        {"training.schedule.name": is_none_of("cosine", "linear", "warmup_stable_decay", "plateau")},
        ("training.schedule.final",),
        "only cosine, linear, warmup_stable_decay and plateau have a final rate",
    ),
    UnusedKeysRule(
        {"training.schedule.name": is_none_of("step", "warmup_stable_decay")},
        ("training.schedule.decay_steps",),
        "it is for step and warmup_stable_decay",
    ),
    UnusedKeysRule(
        {"training.schedule.name": is_none_of("step", "plateau")},
        ("training.schedule.factor",),
        "it is for step and plateau",
    ),
    UnusedKeysRule({"training.schedule.name": is_none_of("step")}, ("training.schedule.hold_steps",), "it is for step"),
    UnusedKeysRule(
        {"training.schedule.name": is_none_of("plateau")}, ("training.schedule.patience",), "it is for plateau"
    ),
    UnusedKeysRule(
        {"training.optimizer.name": is_none_of("sgd", "muon")},
        ("training.optimizer.momentum",),
        "it is for sgd and muon",
    ),
    UnusedKeysRule(
        {"training.optimizer.name": is_none_of("adam", "adamw", "muon")},
        ("training.optimizer.betas",),
        "they are for adam, adamw and muon",
    ),
    UnusedKeysRule(
        {"training.optimizer.name": is_one_of("sgd")},
        ("training.optimizer.eps",),
        "it is for adam, adamw, adagrad and muon",
    ),
)
