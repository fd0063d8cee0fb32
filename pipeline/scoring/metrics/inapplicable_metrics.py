"""Metrics that do not apply to a text, and why: it is too long for them, or their tokens or weights say nothing of it.

Otherwise they would be 0.00 next to an exact match of 94 %, or take hours.
"""

from collections.abc import Mapping, Sequence

from tfm.data.errors import format_count
from tfm.data.scripts import SPACELESS_LETTERS, compile_pattern, has_spaceless_script
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.metrics.bleu_tokenizer import resolve_tokenizer
from tfm.pipeline.scoring.metrics.cider import zero_weights_reason
from tfm.pipeline.scoring.metrics.entities.scores import ENTITY_F1, no_entities_reason
from tfm.pipeline.scoring.metrics.error_rates import ERROR_RATES, unit_splitter
from tfm.pipeline.scoring.metrics.tokenization import (
    ROUGE_TOKENIZERS,
    UnicodeWordTokenizer,
    WordSplitter,
    make_bleu,
    make_paper_bleu,
    make_ter,
)

# What a metric can compare, in characters (BLEU, chrF) or tokens of a segment: what it takes grows with the square of a
# segment's length, or is hundreds of bytes a character, so that one line of a million would take hours or gigabytes.
MAX_SEGMENT_LENGTH: Mapping[str, int] = {
    "bleu": 200_000,
    "bleu_paper": 200_000,
    "chrf": 200_000,
    "chrf++": 200_000,
    "ter": 1000,
    "rougeL": 5000,
    "rougeLsum": 5000,
    "meteor": 5000,
    "cider_d": 50_000,
    **dict.fromkeys(ERROR_RATES, 50_000),
}
CHARACTER_METRICS = ("bleu", "bleu_paper", "chrf", "chrf++")
METRICS_UNDEFINED_WHERE_BLANK = (*CHARACTER_METRICS, "ter")
"""Metrics that count over the whole corpus, to which a segment without references adds nothing."""

NGRAM_ORDERS: Mapping[str, int] = {
    "bleu": 4,
    "bleu_paper": 4,
    "rouge1": 1,
    "rouge2": 2,
    "rougeL": 1,
    "rougeLsum": 1,
    "meteor": 1,
    "cider_d": 1,
}
"""The most tokens in a row that a metric compares; with fewer in every reference it can only be 0."""
WORD_ERROR_RATE = "wer"
MIN_WORD_COVERAGE = 0.2
"""The share of the references' letters that a metric's tokens must hold."""
MAX_WORD_LETTERS = 8
"""Letters of scripts without spaces that a token holds at most, if it is to be a word and not a stretch of text."""


def inapplicable_metrics(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    config: EvaluationConfig,
    lines: Sequence[int] | None = None,
) -> dict[str, str]:
    """Return the metrics of `config.metrics` that cannot be computed for some texts, each with the reason.

    Args:
        hypotheses: one for each segment.
        references: one or more lists as long.
        config: settings of the metrics.
        lines: the numbers of the texts in reasons; None: 1, 2, ...
    """
    config = resolve_tokenizer(config, references)
    reasons = {**coverage_reasons(references, config), **too_long_reasons(hypotheses, references, config, lines)}
    return {name: reasons[name] for name in config.metrics if name in reasons}


def coverage_reasons(references: Sequence[Sequence[str]], config: EvaluationConfig) -> dict[str, str]:
    """Return the metrics of `config.metrics` that say nothing of some references, each with the reason.

    Args:
        references: one or more lists of texts.
        config: settings of the metrics.
    """
    config = resolve_tokenizer(config, references)
    too_long = too_long_reasons((), references, config)
    metric_names = [name for name in config.metrics if name not in too_long]
    reasons = {name: _coverage_problem(name, references, config) for name in metric_names}
    if "cider_d" in metric_names and reasons["cider_d"] is None:
        reasons["cider_d"] = zero_weights_reason(references)
    return {name: why for name, why in reasons.items() if why is not None}


def too_long_reasons(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    config: EvaluationConfig,
    lines: Sequence[int] | None = None,
) -> dict[str, str]:
    """Return the metrics of `config.metrics` for which a segment exceeds MAX_SEGMENT_LENGTH, each with the reason.

    Args:
        hypotheses: one for each segment.
        references: one or more lists as long.
        config: settings of the metrics.
        lines: the numbers of the texts in reasons; None: 1, 2, ...
    """
    limit = min(MAX_SEGMENT_LENGTH.values())
    long = [
        (lines[index] if lines else index + 1, text)
        for column in (hypotheses, *references)
        for index, text in enumerate(column)
        if len(text) > limit
    ]
    reasons: dict[str, str] = {}
    for name in config.metrics:
        if name not in MAX_SEGMENT_LENGTH or not long:
            continue
        split = list if name in CHARACTER_METRICS else _metric_splitter(name, references, config)[0]
        for line, text in long:
            length = len(split(text))
            if length > MAX_SEGMENT_LENGTH[name]:
                unit = "characters" if name in CHARACTER_METRICS else "units" if name in ERROR_RATES else "words"
                reasons[name] = f"line {line} has {length:,} {unit}; compared are at most {MAX_SEGMENT_LENGTH[name]:,}"
                break
    return reasons


def _coverage_problem(name: str, references: Sequence[Sequence[str]], config: EvaluationConfig) -> str | None:
    """The reason why a metric's tokens cannot hold the references; None if they can.

    Either no reference has as many tokens as the metric compares in a row (NGRAM_ORDERS), or of all letters less than
    MIN_WORD_COVERAGE are held by its tokens. A letter is held where it is in a token, and in one that has at most
    MAX_WORD_LETTERS letters of scripts without spaces: a token with more of them is no word but a stretch of text.
    """
    if name == ENTITY_F1:
        return no_entities_reason(references[0], config)
    is_blank = len(references) > 0 and not any(text.strip() for column in references for text in column)
    if name in ERROR_RATES:
        return "all references are blank: there is no unit to count errors in" if is_blank else None
    if is_blank and name in METRICS_UNDEFINED_WHERE_BLANK:
        return "all references are blank: they have nothing that it counts"
    if name not in (*NGRAM_ORDERS, "ter", "chrf++"):
        return None
    split, tokenizer = _metric_splitter(name, references, config)
    texts = [text for column in references for text in column if text.strip()]
    order = NGRAM_ORDERS.get(name, 1)
    if texts and not any(len(split(text)) >= order for text in texts):
        return f"no reference has {format_count(order, 'token')} ({tokenizer}): it could only be 0"
    if all(text.isascii() for text in texts) or not (
        name.startswith(("rouge", "meteor", "cider_d")) or has_spaceless_script(texts)
    ):
        return None
    held_share = _held_share(texts, split)
    if held_share >= MIN_WORD_COVERAGE:
        return None
    return f"its tokens ({tokenizer}) hold {100 * held_share:.0f} % of the references' letters as words"


def word_error_rate_warning(references: Sequence[Sequence[str]], config: EvaluationConfig) -> str | None:
    """A warning that WER counts stretches of text, since no spaces divide words; None if it counts words.

    Args:
        references: one or more lists of texts.
        config: `metrics` and `words` are read.
    """
    texts = [text for column in references for text in column if text.strip()]
    if WORD_ERROR_RATE not in config.metrics or config.words == "line" or not has_spaceless_script(texts):
        return None
    held_share = _held_share(texts, str.split)
    if held_share >= MIN_WORD_COVERAGE:
        return None
    return (
        f"wer counts what stands between white space, which holds {100 * held_share:.0f} % of the references' letters "
        "as words: take cer, or put spaces between the words of both files"
    )


def _held_share(texts: Sequence[str], split: WordSplitter) -> float:
    """The share of the letters of texts that their words hold."""
    num_letters = sum(map(_count_letters, texts))
    num_held = sum(_count_letters("".join(word for word in split(text) if not _is_stretch(word))) for text in texts)
    return num_held / num_letters if num_letters else 1.0


def _count_letters(text: str) -> int:
    return len(compile_pattern(r"\P{L}+").sub("", text))


def _is_stretch(token: str) -> bool:
    """Whether a token is no word but a stretch of a text without spaces."""
    return len(token) > MAX_WORD_LETTERS and len(compile_pattern(SPACELESS_LETTERS).findall(token)) > MAX_WORD_LETTERS


def _metric_splitter(
    name: str, references: Sequence[Sequence[str]], config: EvaluationConfig
) -> tuple[WordSplitter, str]:
    """The function that splits a text into the tokens of a metric, and its name as signatures have it."""
    if name == "bleu":
        bleu = make_bleu(config)
        return (lambda text: bleu.tokenizer(text).split()), f"tok:{config.bleu_tokenize}"
    if name == "bleu_paper":
        of_paper = make_paper_bleu(config)
        return (lambda text: of_paper.tokenizer(text).split()), f"tok:{of_paper.tokenizer.signature()}"
    if name == "ter":
        ter = make_ter(references)
        return (lambda text: ter.tokenizer(text).split()), f"tok:tercom, asian:{'yes' if ter.asian_support else 'no'}"
    if name == "chrf++":
        return str.split, "between spaces"
    if name in ERROR_RATES:
        return unit_splitter(name, references, config), name
    if name in ("meteor", "cider_d"):
        return UnicodeWordTokenizer().tokenize, "tok:unicode-words"
    return ROUGE_TOKENIZERS[config.rouge_tokenize].tokenize, f"tok:{config.rouge_tokenize}"
