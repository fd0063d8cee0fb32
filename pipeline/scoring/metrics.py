"""Scores of hypotheses against references: each metric is a function that returns a number and its signature.

A number without its signature is no result: BLEU over lower-cased or tokenised text is another BLEU.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from itertools import zip_longest

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from data.errors import DataError
from pipeline.config import EvaluationConfig


@dataclass(frozen=True)
class Score:
    """A number and everything one must know to compute it again."""

    score: float
    signature: str


Metric = Callable[[Sequence[str], Sequence[Sequence[str]], EvaluationConfig], Score]


def bleu(hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """BLEU of the corpus in 0..100 (Papineni et al. 2002), as `sacrebleu` computes it."""
    # force: sacrebleu's own warning about tokenised text goes past the reporter; `looks_tokenized` replaces it
    metric = BLEU(lowercase=config.lowercase, tokenize=config.bleu_tokenize, force=True)
    return _sacrebleu(metric, hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """chrF2 of the corpus in 0..100 (Popović 2015): F-score of character 1- to 6-grams."""
    return _sacrebleu(CHRF(lowercase=config.lowercase), hypotheses, references)


def ter(hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """Translation edit rate in percent (Snover et al. 2006), lower is better; caseless, as Tercom has it."""
    return _sacrebleu(TER(), hypotheses, references)


def _sacrebleu(metric: BLEU | CHRF | TER, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    score = metric.corpus_score(hypotheses, references)
    return Score(float(score.score), metric.get_signature().format())


def rouge(kind: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """Mean F1 of a ROUGE (Lin 2004) over the segments in 0..100; with several references, the best one of each segment.

    rouge-score keeps only a-z and 0-9: letters such as "ü" separate words there, as the signature says.
    """
    # here, not at the top: it loads nltk, which validation during training does not need
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer([kind], use_stemmer=False, split_summaries=False)
    values = [
        scorer.score_multi(segment, hypothesis)[kind].fmeasure
        for hypothesis, *segment in zip(hypotheses, *references, strict=True)
    ]
    of_several = "|refs:best-f1" if len(references) > 1 else ""
    signature = (
        f"nrefs:{len(references)}{of_several}|case:lc|tok:[a-z0-9]+|stem:no|split:newline|stat:mean-f1*100"
        f"|version:rouge-score-{_rouge_version()}"
    )
    return Score(100 * math.fsum(values) / len(values), signature)


@cache
def _rouge_version() -> str:
    return version("rouge_score")


def exact_match(hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """Percentage of hypotheses that equal one of their references, but for white space at both ends."""

    def plain(text: str) -> str:
        return (text.lower() if config.lowercase else text).strip()

    num_equal = sum(
        plain(hypothesis) in map(plain, segment) for hypothesis, *segment in zip(hypotheses, *references, strict=True)
    )
    case = "lc" if config.lowercase else "mixed"
    signature = f"nrefs:{len(references)}|case:{case}|space:stripped|stat:share*100"
    return Score(100 * num_equal / len(hypotheses), signature)


def accuracy(hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """Percentage of labels, those between spaces in the lines, that are right; with several references, of the first.

    One that is missing or too many counts as wrong.
    """
    pairs = _labels(hypotheses, references[0])
    num_right = sum(given == wanted for given, wanted in pairs)
    signature = f"unit:label|count:{len(pairs)}|stat:share*100"
    return Score(100 * num_right / max(len(pairs), 1), signature)


def macro_f1(hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig) -> Score:
    """Mean over the labels of the (first) reference of their F1, 2 TP / (2 TP + FP + FN), in 0..100."""
    pairs = _labels(hypotheses, references[0])
    given, wanted = (Counter(side) for side in zip(*pairs, strict=True)) if pairs else (Counter(), Counter())
    right = Counter(one for one, other in pairs if one == other)
    labels = sorted(label for label in wanted if label)
    values = [2 * right[label] / (given[label] + wanted[label]) for label in labels]
    return Score(100 * math.fsum(values) / max(len(values), 1), f"labels:{len(labels)}|stat:mean-f1*100")


def _labels(hypotheses: Sequence[str], references: Sequence[str]) -> list[tuple[str, str]]:
    """Each label with what it should be; the empty text where one side has none."""
    lines = zip(hypotheses, references, strict=True)
    return [pair for given, wanted in lines for pair in zip_longest(given.split(), wanted.split(), fillvalue="")]


METRICS: Mapping[str, Metric] = {
    "bleu": bleu,
    "chrf": chrf,
    "ter": ter,
    "rouge1": partial(rouge, "rouge1"),
    "rouge2": partial(rouge, "rouge2"),
    "rougeL": partial(rouge, "rougeL"),
    "rougeLsum": partial(rouge, "rougeLsum"),
    "exact_match": exact_match,
    "accuracy": accuracy,
    "macro_f1": macro_f1,
}


# What a metric can compare, in characters (BLEU, chrF) or words of a segment: what it takes grows with the square of a
# segment's length, or is hundreds of bytes a character, so that one line of a million would take hours or gigabytes.
LONGEST: Mapping[str, int] = {"bleu": 200_000, "chrf": 200_000, "ter": 1000, "rougeL": 5000, "rougeLsum": 5000}
BY_CHARACTERS = ("bleu", "chrf")


def too_long(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], config: EvaluationConfig
) -> dict[str, str]:
    """Metrics of `config.metrics` that cannot be computed, as a segment exceeds LONGEST: name -> why."""
    long = _longer_than(min(LONGEST.values()), (hypotheses, *references))
    reasons: dict[str, str] = {}
    for name in config.metrics:
        for line, text in long if name in LONGEST else ():
            length = _length(name, text)
            if length > LONGEST[name]:
                unit = "characters" if name in BY_CHARACTERS else "words"
                reasons[name] = f"line {line} has {length:,} {unit}; compared are at most {LONGEST[name]:,}"
                break
    return reasons


def _longer_than(limit: int, columns: Sequence[Sequence[str]]) -> list[tuple[int, str]]:
    """The texts that have more characters, each with its line, from 1."""
    return [(line, text) for column in columns for line, text in enumerate(column, 1) if len(text) > limit]


def _length(name: str, text: str) -> int:
    """What LONGEST limits: characters for BLEU and chrF, words for TER, and for ROUGE the runs of a-z and 0-9."""
    if name in BY_CHARACTERS:
        return len(text)
    return len(text.split() if name == "ter" else re.findall("[a-z0-9]+", text.lower()))


def score_texts(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    config: EvaluationConfig,
    on_done: Callable[[str], None] | None = None,
) -> dict[str, Score]:
    """Every metric of `config.metrics` but perplexity, which needs a model, and those `too_long` names, in that order.

    `references` holds one or more full lists, each as long as `hypotheses`. `on_done` hears the name of each metric
    that is done. Raises DataError where nothing is given or the lengths differ.
    """
    if not hypotheses or not references:
        raise DataError("there is nothing to score: no hypothesis or no reference was given")
    for number, reference in enumerate(references, 1):
        if len(reference) != len(hypotheses):
            raise DataError(
                f"{len(hypotheses)} hypotheses but {len(reference)} lines in reference {number}: "
                "give one line of each for every segment"
            )
    scores: dict[str, Score] = {}
    left_out = too_long(hypotheses, references, config)
    for name in config.metrics:
        if name in METRICS and name not in left_out:
            scores[name] = METRICS[name](hypotheses, references, config)
            if on_done is not None:
                on_done(name)
    return scores


def sentence_chrf(hypothesis: str, references: Sequence[str]) -> float:
    """chrF2 of one segment in 0..100, by which the report ranks samples (BLEU says little about one sentence).

    Of longer texts than chrF compares, their beginnings count.
    """
    limit = LONGEST["chrf"]
    return float(_SENTENCE_CHRF.sentence_score(hypothesis[:limit], [text[:limit] for text in references]).score)


_SENTENCE_CHRF = CHRF()


def looks_tokenized(hypotheses: Sequence[str]) -> bool:
    """Whether so many lines end in " ." (100 or more, sacrebleu's own limit) that detokenising was forgotten."""
    return sum(hypothesis.endswith(" .") for hypothesis in hypotheses) >= 100
