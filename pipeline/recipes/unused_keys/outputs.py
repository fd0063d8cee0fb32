"""Keys of [decoding] and [evaluation] that have no effect."""

from typing import get_args

from tfm.pipeline.config import NUM_INITIAL_REFERENCES, DecodingConfig, EvaluationConfig, EvaluationMetric
from tfm.pipeline.recipes.unused_keys.rule import (
    IS_LABEL_TASK,
    IS_TRANSLATION_TASK,
    UnusedKeysRule,
    is_at_most,
    is_none_of,
    is_one_of,
    unused_without_metrics,
)
from tfm.pipeline.tasks.abilities import select_tasks

NON_LABEL_EVALUATION_KEYS = ("stride", "tests")
"""The keys of [evaluation] that are for models without hypotheses too."""
LABEL_EVALUATION_METRICS = ("accuracy", "macro_f1", "entity_f1")
NO_HYPOTHESES_CONDITION = {"model.task": is_none_of(*select_tasks(lambda task: task.gives_hypotheses))}

DECODING_RULES = (
    UnusedKeysRule(
        {"model.task": IS_LABEL_TASK},
        tuple(f"decoding.{name}" for name in DecodingConfig.model_fields if name != "n_best"),
        "labels need no search",
    ),
    UnusedKeysRule(
        {"model.task": is_one_of(*select_tasks(lambda task: task.continues_text))},
        ("decoding",),
        "a run of this task decodes nothing; `tfm generate` takes --set decoding... itself",
    ),
    UnusedKeysRule(
        NO_HYPOTHESES_CONDITION,
        ("decoding",),
        "a run of this task decodes nothing",
    ),
    UnusedKeysRule(
        {
            "tokenizer.kind": is_none_of("word"),
            "tokenizer.target_kind": is_none_of("word"),
            "tokenizer.file": is_one_of(None),
            "tokenizer.source_from": is_one_of(None),
        },
        ("decoding.replace_unknown",),
        'it is for vocabularies of words: kind = "word"',
    ),
    UnusedKeysRule(
        {"data.images": is_none_of(None)}, ("decoding.shortlist",), "it takes pieces of a source, and images have none"
    ),
    UnusedKeysRule({"decoding.strategy": is_one_of("search")}, ("decoding.seed",), 'it is for strategy = "sample"'),
    UnusedKeysRule({"decoding.strategy": is_one_of("sample")}, ("decoding.beam",), 'it is for strategy = "search"'),
    UnusedKeysRule(
        {"decoding.strategy": is_one_of("mbr"), "decoding.mbr_candidates": is_one_of("sample")},
        ("decoding.beam", "decoding.length_norm", "decoding.alpha"),
        'it is for mbr_candidates = "search"',
    ),
    UnusedKeysRule(
        {
            "decoding.strategy": is_one_of("mbr"),
            "decoding.mbr_candidates": is_one_of("search"),
            "decoding.mbr_pruning": is_one_of(None),
        },
        ("decoding.seed",),
        "nothing is drawn at random",
    ),
    UnusedKeysRule(
        {"decoding.strategy": is_one_of("mbr"), "decoding.mbr_size": is_at_most(NUM_INITIAL_REFERENCES)},
        ("decoding.mbr_pruning",),
        f"translations are left out after {NUM_INITIAL_REFERENCES} references, of more",
    ),
    UnusedKeysRule(
        {"decoding.strategy": is_one_of("search", "sample")},
        ("decoding.mbr_candidates", "decoding.mbr_size", "decoding.mbr_utility", "decoding.mbr_pruning"),
        'it is for strategy = "mbr"',
    ),
    UnusedKeysRule(
        {"decoding.strategy": is_one_of("sample"), "decoding.temperature": is_one_of(0)},
        ("decoding.top_k", "decoding.top_p", "decoding.seed"),
        "temperature 0 always takes the most probable piece",
    ),
    UnusedKeysRule(
        {"decoding.strategy": is_one_of("sample"), "decoding.top_k": is_one_of(1)},
        ("decoding.temperature", "decoding.top_p", "decoding.seed"),
        "top_k 1 always takes the most probable piece",
    ),
    UnusedKeysRule(
        {"decoding.length_norm": is_one_of("none")}, ("decoding.alpha",), "scores are not normalised by length"
    ),
    UnusedKeysRule(
        {"decoding.max_length": is_none_of(None)}, ("decoding.max_ratio",), "max_length is the limit if it is given"
    ),
)

SINGLE_HYPOTHESIS_RULES = (
    UnusedKeysRule(
        {"decoding.strategy": is_one_of("sample"), "decoding.n_best": is_one_of(1)},
        ("decoding.length_norm", "decoding.alpha"),
        "a line has one sample, which is ranked with no other",
    ),
    UnusedKeysRule(
        {"decoding.strategy": is_one_of("search"), "decoding.beam": is_one_of(1)},
        ("decoding.length_norm", "decoding.alpha"),
        "greedy search has one hypothesis, which is ranked with no other",
    ),
)
"""The rules of a search whose hypotheses are ranked, while their scores are not normalised by length."""

SYNTHESIS_RULES = tuple(
    UnusedKeysRule(
        {f"synthesis.{key}": test for key, test in rule.conditions.items()},
        tuple(f"synthesis.{key}" for key in rule.keys),
        rule.reason,
    )
    for rule in (*DECODING_RULES, *SINGLE_HYPOTHESIS_RULES)
    if all(key.startswith("decoding.") for key in rule.conditions)
)
"""The rules of the search for translations that `tfm synthesize` makes."""

EVALUATION_RULES = (
    UnusedKeysRule(
        NO_HYPOTHESES_CONDITION,
        tuple(f"evaluation.{name}" for name in EvaluationConfig.model_fields if name not in NON_LABEL_EVALUATION_KEYS),
        "such a model is scored by how probable it finds the test sets, and has no hypotheses",
    ),
    UnusedKeysRule(
        {"model.task": is_none_of(*select_tasks(lambda task: task.continues_text))},
        ("evaluation.stride",),
        "it is for language models, which read long texts in windows",
    ),
    UnusedKeysRule(
        {"model.task": IS_LABEL_TASK, "evaluation.metrics": is_one_of(EvaluationConfig().metrics)},
        ("evaluation.bleu_tokenize", "evaluation.rouge_tokenize", "evaluation.rouge_stemmer"),
        "labels are scored by accuracy, macro_f1 and exact_match",
    ),
    unused_without_metrics(
        tuple(name for name in get_args(EvaluationMetric) if name.startswith("rouge")),
        ("evaluation.rouge_tokenize", "evaluation.rouge_stemmer"),
        "no ROUGE is among them",
    ),
    unused_without_metrics(
        tuple(name for name in get_args(EvaluationMetric) if name not in LABEL_EVALUATION_METRICS),
        ("evaluation.lowercase",),
        "accuracy, macro_f1 and entity_f1 tell labels apart by their case",
        {"model.task": IS_LABEL_TASK},
    ),
    unused_without_metrics(("wer",), ("evaluation.words",), "no WER is among them"),
    unused_without_metrics(("entity_f1",), ("evaluation.entities",), "no entity F1 is among them"),
    unused_without_metrics(("meteor",), ("evaluation.wordnet",), "no METEOR is among them"),
    unused_without_metrics(
        ("bleu", "bleu_paper"), ("evaluation.bleu_tokenize",), "no BLEU is among them", {"model.task": IS_LABEL_TASK}
    ),
    unused_without_metrics(
        ("accuracy", "macro_f1"),
        ("evaluation.labels",),
        "it is for accuracy and macro_f1",
        {"model.task": IS_TRANSLATION_TASK},
    ),
)

OUTPUT_RULES = {"decoding": DECODING_RULES, "synthesis": SYNTHESIS_RULES, "evaluation": EVALUATION_RULES}
"""By the part of a recipe whose keys they are about."""
