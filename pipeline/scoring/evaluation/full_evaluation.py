"""All scores of a set of hypotheses: of texts, of their probability under a model, and of external metrics."""

from typing import TYPE_CHECKING, Any

from tfm.data.dataset.directions import target_languages
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.evaluation.assess import evaluate_segments
from tfm.pipeline.scoring.evaluation.evaluation import Evaluation
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics.external.scores import external_metric_inputs, external_scores
from tfm.pipeline.scoring.metrics.registry import Score
from tfm.pipeline.scoring.metrics.tokenization import check_tokenizers_installed
from tfm.pipeline.scoring.metrics.wordnet import check_wordnet_folder, wordnet_fingerprint, wordnet_folder
from tfm.pipeline.scoring.metrics.wrong_language import LanguageIdentifier, wrong_language
from tfm.pipeline.tasks.abilities import TASK_SPECS

if TYPE_CHECKING:
    from tfm.pipeline.artifacts.manifest import Input
    from tfm.pipeline.model_io.loaded_model import LoadedModel


def check_metrics(config: EvaluationConfig) -> None:
    """Raise before anything is translated: RecipeError if BLEU's tokenizer is not installed, DataError if METEOR's
    WordNet folder is invalid.
    """
    if "bleu" in config.metrics:
        check_tokenizers_installed(config)
    if folder := wordnet_folder(config):
        check_wordnet_folder(folder)


def score_relevant_config(config: EvaluationConfig) -> dict[str, Any]:
    """Return the settings that determine scores, without the time of evaluation and defaults that old scores lack."""
    new = {
        name
        for name in ("words", "entities", "rouge_stemmer")
        if getattr(config, name) == EvaluationConfig.model_fields[name].default
    }
    return {"evaluation": config.model_dump(mode="json", exclude={"tests", *new})}


def metric_inputs(config: EvaluationConfig) -> "dict[str, Input]":
    """The files that the metrics read: METEOR's WordNet, and the files that external commands name."""
    from tfm.pipeline.artifacts.manifest import Input  # here, as scores that are not published have no inputs

    folder = wordnet_folder(config)
    wordnet = {} if folder is None else {"wordnet": Input.from_value(wordnet_fingerprint(folder), str(folder))}
    return wordnet | external_metric_inputs(config.external)


def evaluate_with_model(
    segments: Segments,
    config: EvaluationConfig,
    loaded: "LoadedModel | None",
    wants_perplexity: bool,
    *,
    seed: int,
    reporter: Reporter,
    identifier: LanguageIdentifier | None = None,
    with_details: bool = True,
) -> Evaluation:
    """Compute all scores of a test set: also perplexity where there is a model and a source, and external metrics.

    Args:
        segments: the texts of the test set.
        config: settings of the evaluation.
        loaded: the model, if there is one.
        wants_perplexity: whether perplexity was requested, so that its absence is reported.
        seed: of the samples.
        reporter: shows progress, and warnings.
        identifier: tells the languages of hypotheses, where the segments have some.
        with_details: whether scores by length and samples are found, as `evaluate_segments` has it.
    """
    extra: dict[str, Score] = {}
    if identifier is not None:
        extra["wrong_language"] = wrong_language(segments.hypotheses, target_languages(segments.directions), identifier)
    missing: dict[str, str] = {}
    likelihoods = None
    if "perplexity" in config.metrics:
        if loaded is not None and not TASK_SPECS[loaded.config.task].translates:
            missing["perplexity"] = f"does not apply to references: the model was trained for {loaded.config.task}"
        elif loaded is not None and segments.sources is not None:
            # here, not at the top: scoring files alone needs no torch
            from tfm.pipeline.scoring.perplexity import perplexity

            images = segments.images
            inputs = (
                segments.sources if images is None else images.with_image_transform(loaded.require_image_transform())
            )
            of_model, likelihoods = perplexity(
                loaded, inputs, segments.references, reporter=reporter, directions=segments.directions
            )
            extra |= of_model
        elif wants_perplexity:
            missing["perplexity"] = "needs a model and a source: give --model DIR and --source FILE"
    texts = segments.sources, segments.hypotheses, segments.references
    external = external_scores(config.external, segments.name, *texts, reporter)
    return evaluate_segments(
        segments,
        config,
        seed=seed,
        reporter=reporter,
        extra=extra | external.scores,
        missing_reasons=missing | external.missing,
        likelihoods=likelihoods,
        external_numbers=external.numbers,
        with_details=with_details,
    )
