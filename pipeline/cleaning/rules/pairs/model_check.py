"""Checks of the models of rules, before any pair is measured: what they read and write, and in which vocabulary."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from pydantic import ValidationError

from tfm.data.corpora.portions import Corpus
from tfm.data.corpora.sources import read_pairs
from tfm.data.errors import DataError, format_count, validation_problem
from tfm.data.json_documents import read_json
from tfm.model.config import ModelConfig
from tfm.pipeline.artifacts.manifest import Manifest, read_artifact
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.cleaning.corpora import has_two_sides
from tfm.pipeline.cleaning.recipe_check import MODEL_RULES
from tfm.pipeline.cleaning.rules.pairs.config import CrossEntropyConfig, TranslationModelsConfig
from tfm.pipeline.inference.source_problems import SourceProblems
from tfm.pipeline.model_io.language_selection import needs_languages
from tfm.pipeline.model_io.model_folder import resolve_model_folder
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.code_points import load_pair
from tfm.tokenizer.tokenizer import Tokenizer

NUM_VOCABULARY_PAIRS = 128
"""Pairs at the beginning of a corpus by which vocabularies are judged."""


def check_rule_models(config: CleanConfig, corpora: Sequence[Corpus], reporter: Reporter, *, online: bool) -> None:
    """Check that the models of rules translate texts in one direction; warn where they can hardly be of these texts.

    Args:
        config: the [clean] part of a recipe.
        corpora: the training corpora.
        reporter: receives a warning of a vocabulary that lacks most of the texts.
        online: whether a Hugging Face dataset may be downloaded.

    Raises:
        DataError: a model is damaged, is of another task, reads images, or has to be told languages.
    """
    corpus = next(filter(has_two_sides, corpora), None)
    pairs = [] if corpus is None else list(islice(read_pairs(corpus, online=online), NUM_VOCABULARY_PAIRS))
    sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))
    for rule in MODEL_RULES:
        rule_config: TranslationModelsConfig | None = getattr(config, rule)
        if rule_config is None:
            continue
        if isinstance(rule_config, CrossEntropyConfig) and rule_config.limits[0].low == 0:
            reporter.warn(f"clean.{rule}: no score is below 0, and min = 0 drops no pair: set `min` or `percentile`")
        for name, model, sides in (
            ("forward", rule_config.forward, (sources, targets)),
            ("backward", rule_config.backward, (targets, sources)),
        ):
            tokenizers = _read_tokenizers(rule, model)
            for verb, tokenizer, texts in zip(("reads", "writes"), tokenizers, sides, strict=True):
                if (problem := _vocabulary_problem(tokenizer, texts)) is not None:
                    reporter.warn(f"clean.{rule}.{name}: {model} lacks {problem} that it {verb}: is it of these texts?")


def _read_tokenizers(rule: str, model: str) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of a model's source and target, if it is one for a rule."""

    def read(manifest: Manifest) -> tuple[ModelConfig, tuple[Tokenizer, Tokenizer]]:
        file = manifest.path / "config.json"
        try:
            config = ModelConfig.model_validate(read_json(manifest.folder / "config.json", displayed_path=file))
        except ValidationError as error:
            raise DataError(f"not a model: {validation_problem(error)}", file=file) from error
        if not TASK_SPECS[config.task].translates:
            raise DataError(f"clean.{rule} needs translation models, and this is one for {config.task}", file=model)
        if config.vision is not None:
            raise DataError(f"clean.{rule} needs translation models, and this one reads images", file=model)
        return config, load_pair(manifest.folder)

    config, tokenizers = read_artifact(resolve_model_folder(Path(model)), read, "train")
    if needs_languages(tokenizers[0], config.languages):
        problem = "translates between several languages, and has to be told which"
        raise DataError(f"{problem}: give a model of one direction", file=model)
    return tokenizers


def _vocabulary_problem(tokenizer: Tokenizer, texts: list[str]) -> str | None:
    """In how many texts half or more of the pieces are unknown; None where these are the smaller part of the texts."""
    problems = SourceProblems(lines=len(texts))
    problems.count_unknown_pieces(tokenizer, texts, tokenizer.encode_batch(texts))
    if problems.strange <= len(texts) / 2:
        return None
    return f"half or more of the pieces of {problems.strange} of the first {format_count(len(texts), 'text')}"
