"""Scores of hypotheses against references: each metric is a function that returns a number and its signature.

A number without its signature is not a result: BLEU of lower-cased or tokenized text is a different BLEU.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sacrebleu.metrics.chrf import CHRF

from tfm.data.errors import DataError, format_count
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.metrics.bleu_tokenizer import resolve_tokenizer
from tfm.pipeline.scoring.metrics.cider import cider_d
from tfm.pipeline.scoring.metrics.entities.scores import ENTITY_F1, entity_f1
from tfm.pipeline.scoring.metrics.error_rates import ERROR_RATES, error_rate
from tfm.pipeline.scoring.metrics.inapplicable_metrics import MAX_SEGMENT_LENGTH, inapplicable_metrics
from tfm.pipeline.scoring.metrics.labels import accuracy, macro_f1
from tfm.pipeline.scoring.metrics.meteor import meteor
from tfm.pipeline.scoring.metrics.references import drop_blank_references, num_references_signature
from tfm.pipeline.scoring.metrics.rouge import rouge
from tfm.pipeline.scoring.metrics.sacrebleu_statistics import SacrebleuMetric, corpus_score, segment_statistics
from tfm.pipeline.scoring.metrics.score import Score as Score
from tfm.pipeline.scoring.metrics.tokenization import make_bleu, make_paper_bleu, make_ter

SACREBLEU_METRICS = ("bleu", "bleu_paper", "chrf", "chrf++", "ter")
"""Metrics whose statistics and scores are sacrebleu's."""
Metric = Callable[[Sequence[str], Sequence[Sequence[str]], EvaluationConfig], Score]


def bleu(hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """Compute BLEU of the corpus in 0..100 (Papineni et al. 2002), as `sacrebleu` does.

    Args:
        hypotheses: one for each segment.
        references: one or more lists as long; a blank line stands for a reference that a segment lacks.
        config: `bleu_tokenize` and `lowercase` are read.
    """
    return _sacrebleu_score(sacrebleu_metric("bleu", references, config), hypotheses, references)


def bleu_of_papers(hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """Compute BLEU in 0..100 as Vaswani et al. 2017 report it: of tokens, compounds split at hyphens, not smoothed.

    It is what multi-bleu.perl prints for tokenized files in which `(\\S)-(\\S)` became `\\1 ##AT##-##AT## \\2`.

    Args:
        hypotheses: one for each segment.
        references: one or more lists as long; a blank line stands for a reference that a segment lacks.
        config: `bleu_tokenize` and `lowercase` are read; "none" for texts that are tokenized already.
    """
    return _sacrebleu_score(sacrebleu_metric("bleu_paper", references, config), hypotheses, references)


def bleu_effective_order(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig
) -> Score:
    """Compute BLEU of n-grams as long as the hypotheses have at most (effective order), for few or short segments.

    Args:
        hypotheses: one for each segment.
        references: one or more lists as long; a blank line stands for a reference that a segment lacks.
        config: `bleu_tokenize` and `lowercase` are read.
    """
    metric = make_bleu(resolve_tokenizer(config, references), effective_order=True)
    return _sacrebleu_score(metric, hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """Compute chrF2 of the corpus in 0..100 (Popović 2015): F-score of character 1- to 6-grams.

    Args:
        hypotheses: one for each segment.
        references: one or more lists as long; a blank line stands for a reference that a segment lacks.
        config: `lowercase` is read.
    """
    return _sacrebleu_score(sacrebleu_metric("chrf", references, config), hypotheses, references)


def chrf_with_words(hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """Compute chrF2++ of the corpus in 0..100 (Popović 2017): chrF of characters, and of words and pairs of words.

    Args:
        hypotheses: one for each segment.
        references: one or more lists as long; a blank line stands for a reference that a segment lacks.
        config: `lowercase` is read.
    """
    return _sacrebleu_score(sacrebleu_metric("chrf++", references, config), hypotheses, references)


def ter(hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """Compute the translation edit rate in percent (Snover et al. 2006), lower is better; caseless, as in Tercom.

    Chinese and Japanese are split by characters, with Tercom's normalization and support of Asian scripts.

    Args:
        hypotheses: one for each segment.
        references: one or more lists as long; a blank line stands for a reference that a segment lacks.
        config: not read.
    """
    return _sacrebleu_score(sacrebleu_metric("ter", references, config), hypotheses, references)


def sacrebleu_metric(name: str, references: Sequence[Sequence[str]], config: EvaluationConfig) -> SacrebleuMetric:
    """Return sacrebleu's metric as it is set up for some references.

    Args:
        name: bleu, bleu_paper, chrf, chrf++ or ter.
        references: one or more lists, by whose language the tokenizer is chosen.
        config: `bleu_tokenize` and `lowercase` are read.
    """
    if name == "bleu":
        return make_bleu(resolve_tokenizer(config, references))
    if name == "bleu_paper":
        return make_paper_bleu(resolve_tokenizer(config, references))
    if name == "ter":
        return make_ter(references)
    return CHRF(lowercase=config.lowercase, word_order=2 if name == "chrf++" else 0)


def _sacrebleu_score(metric: SacrebleuMetric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    return Score(*corpus_score(metric, hypotheses, references))


def exact_match(hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """Compute the percentage of hypotheses that equal one of their references, but for white space at both ends.

    Args:
        hypotheses: one for each segment.
        references: one or more lists as long; a blank line stands for a reference that a segment lacks.
        config: `lowercase` is read.
    """
    num_equal = sum(exact_matches(hypotheses, references, config))
    case = "lc" if config.lowercase else "mixed"
    signature = f"nrefs:{num_references_signature(references)}|case:{case}|space:stripped|stat:share*100"
    return Score(100 * num_equal / len(hypotheses), signature)


def exact_matches(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig
) -> list[bool]:
    """Test whether each hypothesis equals one of its references, but for white space at both ends.

    Args:
        hypotheses: one for each segment.
        references: one or more lists as long; a blank line stands for a reference that a segment lacks.
        config: `lowercase` is read.
    """

    def strip_spaces(text: str) -> str:
        return (text.lower() if config.lowercase else text).strip()

    return [
        strip_spaces(hypothesis) in map(strip_spaces, drop_blank_references(segment))
        for hypothesis, *segment in zip(hypotheses, *references, strict=True)
    ]


METRIC_FUNCTIONS: Mapping[str, Metric] = {
    "bleu": bleu,
    "bleu_paper": bleu_of_papers,
    "chrf": chrf,
    "chrf++": chrf_with_words,
    "ter": ter,
    "rouge1": partial(rouge, "rouge1"),
    "rouge2": partial(rouge, "rouge2"),
    "rougeL": partial(rouge, "rougeL"),
    "rougeLsum": partial(rouge, "rougeLsum"),
    "meteor": meteor,
    "cider_d": cider_d,
    "exact_match": exact_match,
    **{name: partial(error_rate, name) for name in ERROR_RATES},
    "accuracy": accuracy,
    "macro_f1": macro_f1,
    ENTITY_F1: entity_f1,
}


def score_texts(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    config: EvaluationConfig,
    on_done: Callable[[str], None] | None = None,
    skip_reasons: Mapping[str, str] | None = None,
) -> dict[str, Score]:
    """Compute every metric of `config.metrics`, in that order.

    Perplexity, which needs a model, and `inapplicable_metrics` are left out.

    Args:
        hypotheses: one for each segment.
        references: one or more full lists, each as long.
        config: settings of the metrics.
        on_done: called with the name of each metric that is done.
        skip_reasons: the `inapplicable_metrics`, if they are known.

    Raises:
        DataError: nothing is given, or the lengths differ.
    """
    if not hypotheses or not references:
        raise DataError("there is nothing to score: no hypothesis or no reference was given")
    for number, reference in enumerate(references, 1):
        if len(reference) != len(hypotheses):
            raise DataError(
                f"{format_count(len(hypotheses), 'hypothesis', 'hypotheses')} but "
                f"{format_count(len(reference), 'line')} in reference {number}: "
                "give one line of each for every segment"
            )
    scores: dict[str, Score] = {}
    config = resolve_tokenizer(config, references)
    if skip_reasons is None:
        skip_reasons = inapplicable_metrics(hypotheses, references, config)
    for name in config.metrics:
        if name in METRIC_FUNCTIONS and name not in skip_reasons:
            scores[name] = METRIC_FUNCTIONS[name](hypotheses, references, config)
            if on_done is not None:
                on_done(name)
    return scores


def count_segments(
    systems: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    config: EvaluationConfig,
    on_done: Callable[[str], None],
) -> None:
    """Count what sacrebleu's metrics of `config.metrics` add up, for `score_texts` of each system to find counted.

    References are those of all systems, so that their n-grams are counted once.

    Args:
        systems: the hypotheses of each system, one for each segment.
        references: one or more full lists, each as long.
        config: settings of the metrics.
        on_done: called with the name of each metric that is done.
    """
    hypotheses = [text for system in systems for text in system]
    repeated = [[*texts] * len(systems) for texts in references]
    for name in config.metrics:
        if name in SACREBLEU_METRICS:
            segment_statistics(sacrebleu_metric(name, references, config), hypotheses, repeated)
            on_done(name)


def sentence_chrf(hypothesis: str, references: Sequence[str], config: EvaluationConfig) -> float:
    """Compute chrF2 of one segment in 0..100, by which the report ranks samples (BLEU says little about one sentence).

    Only the beginnings of texts longer than chrF compares count. A blank text is right where one is wanted; sacrebleu,
    which counts n-grams, gives it 0.

    Args:
        hypothesis: the text.
        references: one or more texts.
        config: `lowercase` is read.
    """
    if not hypothesis.strip() and not any(text.strip() for text in references):
        return 100.0
    limit = MAX_SEGMENT_LENGTH["chrf"]
    metric = CHRF(lowercase=config.lowercase)
    return corpus_score(metric, [hypothesis[:limit]], [[text[:limit]] for text in references])[0]


def looks_tokenized(hypotheses: Sequence[str]) -> bool:
    """Whether enough lines end in " ." (100 or more, sacrebleu's own limit) that detokenizing was forgotten."""
    return sum(hypothesis.endswith(" .") for hypothesis in hypotheses) >= 100
