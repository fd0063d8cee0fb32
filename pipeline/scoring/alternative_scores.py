"""Shares of items whose right text is the likeliest, with intervals, by category, and the items that were missed.

For questions with choices (log p(choice) is that of the choice by itself, after the beginning of a text):

    sum         log p(choice | context)
    mean        log p(choice | context) / number of pieces
    difference  log p(choice | context) - log p(choice)      domain-conditional PMI (Holtzman et al. 2021)

For contrast sets (Sennrich 2017): the sum. By masked language models p is of each piece given all others, of context
and choice alike (Salazar et al. 2020).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import NormalDist, mean
from typing import Any

from tfm.data.errors import format_share
from tfm.pipeline.scoring.alternative_files import AlternativeItem, AlternativeKind, AlternativeSet

CONFIDENCE_LEVEL = 0.95
MIN_COUNT_FOR_WILSON = 5  # of fewer the exact interval is given
RULE_SIGNATURES = {"sum": "log-p", "mean": "log-p-a-piece", "difference": "log-p-less-log-p-alone"}
RULE_LABELS = {"sum": "sum", "mean": "mean a piece", "difference": "difference from log p alone"}
NO_UNCONDITIONAL_REASON = "a translation has no probability without its source"
JOIN_ADVICE = "texts are joined as they are written, so begin a choice with a space where a new word begins"


@dataclass(frozen=True)
class ScoredItem:
    """An item with the log-probabilities of its texts.

    Args:
        item: the item.
        log_probs: of each text after the context.
        pieces: the number of pieces of each text.
        log_probs_alone: log-probability of each text by itself.
        is_pseudo: whether these are pseudo-log-likelihoods, each piece given all others.
    """

    item: AlternativeItem
    log_probs: tuple[float, ...]
    pieces: tuple[int, ...]
    log_probs_alone: tuple[float, ...] | None = None
    is_pseudo: bool = False


@dataclass
class InputWarnings:
    """Problems of items that a user must know.

    Args:
        cut_lines: of items whose context is longer than the model reads.
        unknown_lines: of items with an unknown piece in a text.
        word_joins: an example of each item whose text goes on within the last word of its context.
    """

    cut_lines: set[int] = field(default_factory=set)
    unknown_lines: set[int] = field(default_factory=set)
    word_joins: list[str] = field(default_factory=list)

    @property
    def num_cut_contexts(self) -> int:
        """The number of contexts that were cut."""
        return len(self.cut_lines)

    @property
    def num_unknown(self) -> int:
        """The number of items with an unknown piece."""
        return len(self.unknown_lines)


SCORING_RULES: Mapping[str, Callable[[ScoredItem], Sequence[float]]] = {
    "sum": lambda item: item.log_probs,
    "mean": lambda item: [log_prob / pieces for log_prob, pieces in zip(item.log_probs, item.pieces, strict=True)],
    "difference": lambda item: [
        here - alone for here, alone in zip(item.log_probs, item.log_probs_alone or (), strict=True)
    ],
}


@dataclass(frozen=True)
class PercentWithInterval:
    """A share in percent with the limits of its 95 % interval.

    Args:
        score: the share, in percent.
        low: the lower limit.
        high: the upper limit.
        signature: by which it compares with others.
    """

    score: float
    low: float
    high: float
    signature: str


def tie_split_accuracy(values: Sequence[float], answer: int) -> float:
    """1 if the answer alone has the greatest value, 1 / k if k values tie for it, else 0."""
    best = max(values)
    return 1 / sum(value == best for value in values) if values[answer] == best else 0.0


def wilson_interval(successes: float, count: int, level: float = CONFIDENCE_LEVEL) -> tuple[float, float]:
    """Return the limits of Wilson's score interval (1927) of a share.

        (p + z² / 2n ± z √(p (1 - p) / n + z² / 4n²)) / (1 + z² / n)

    Args:
        successes: their number, p n; one that is no whole number makes the interval too wide.
        count: the number of trials (n).
        level: the probability that the interval holds the share.
    """
    p, z = successes / count, NormalDist().inv_cdf((1 + level) / 2)
    middle, half = p + z**2 / (2 * count), z * math.sqrt(p * (1 - p) / count + z**2 / (4 * count**2))
    denominator = 1 + z**2 / count
    return max(0.0, (middle - half) / denominator), min(1.0, (middle + half) / denominator)


def proportion_interval(successes: float, count: int) -> tuple[float, float]:
    """The limits of a share that hold it in 88 of 100 cases or more, whatever it is, and in 95 to 97 on average.

    From a count of 5 on Wilson's, whose lower limit for 1 to 3 successes (2 up to a count of 50) is that of a Poisson
    variable, and likewise at the other end (Brown, Cai and DasGupta 2001, section 4.1.1): Wilson's own holds shares
    near 0 and 1 in 83 of 100 cases. Below 5 Clopper's and Pearson's exact one (1934), which is wide.
    """
    from scipy.special import betaincinv, gammaincinv

    failures, half = count - successes, (1 - CONFIDENCE_LEVEL) / 2
    if count < MIN_COUNT_FOR_WILSON:
        low = 0.0 if successes == 0 else float(betaincinv(successes, failures + 1, half))
        return low, 1.0 if failures == 0 else float(betaincinv(successes + 1, failures, 1 - half))
    low, high = wilson_interval(successes, count)
    limit = 2 if count <= 50 else 3
    if 0 < successes <= limit:
        low = float(gammaincinv(successes, 1 - CONFIDENCE_LEVEL)) / count
    if 0 < failures <= limit:
        high = 1 - float(gammaincinv(failures, 1 - CONFIDENCE_LEVEL)) / count
    return low, high


def proportion_interval_name(count: int) -> str:
    """The name of `proportion_interval` in a signature."""
    return f"{'exact' if count < MIN_COUNT_FOR_WILSON else 'modified-wilson'}-{100 * CONFIDENCE_LEVEL:.0f}"


def alternatives_as_json(
    items: AlternativeSet, kind: AlternativeKind, results: Sequence[ScoredItem], warnings: InputWarnings
) -> dict[str, Any]:
    """Return all that is known of a set: shares in percent by rule, the same by category, and items missed by the sum.

    Args:
        items: the set.
        kind: of its items.
        results: its items with their log-probabilities.
        warnings: problems in reading them.
    """
    # a contrast set is judged by the sum alone
    rules = (
        ["sum"]
        if kind == "contrast"
        else ["sum", "mean"]
        if results[0].log_probs_alone is None
        else list(SCORING_RULES)
    )
    categories = sorted({result.item.category for result in results if result.item.category is not None})
    by_category = {name: [result for result in results if result.item.category == name] for name in categories}
    return {
        "name": items.name,
        **_scores_of_items_json(results, rules, kind, warnings),
        "missing": {} if kind == "contrast" or "difference" in rules else {"difference": NO_UNCONDITIONAL_REASON},
        "cut": warnings.num_cut_contexts,
        "unknown": warnings.num_unknown,
        "categories": {
            name: _scores_of_items_json(members, rules, kind, warnings) for name, members in by_category.items()
        },
        "failures": [
            _failure_json(result)
            for result in results
            if tie_split_accuracy(SCORING_RULES["sum"](result), result.item.answer) < 1
        ],
    }


def _scores_of_items_json(
    results: Sequence[ScoredItem], rules: Sequence[str], kind: AlternativeKind, warnings: InputWarnings
) -> dict[str, Any]:
    """The shares of some items by each rule; their signature counts the items that were not read as they are."""
    chance = 100 * mean(1 / len(each.item.alternatives) for each in results)
    reading = "end:no" if results[0].is_pseudo else "end:counted"
    if results[0].log_probs_alone is not None:
        reading = "end:no|pieces:of-joined-text"
    lines = {each.item.line for each in results}
    read_otherwise = {"cut": len(lines & warnings.cut_lines), "unknown": len(lines & warnings.unknown_lines)}
    reading_counts = "".join(f"{name}:{count}|" for name, count in read_otherwise.items() if count)
    shared = f"{reading}|count:{len(results)}|chance:{chance:.4g}|{reading_counts}ties:shared|stat:share*100"
    shared = f"{shared}|interval:{proportion_interval_name(len(results))}"
    shares = {}
    for name in rules:
        right = math.fsum(tie_split_accuracy(SCORING_RULES[name](each), each.item.answer) for each in results)
        low, high = proportion_interval(right, len(results))
        quantity = (
            RULE_SIGNATURES[name].replace("log-p", "pseudo-log-p") if results[0].is_pseudo else RULE_SIGNATURES[name]
        )
        signature = f"{kind}|compared:{quantity}|{shared}"
        shares[name] = asdict(PercentWithInterval(100 * right / len(results), 100 * low, 100 * high, signature))
    return {"count": len(results), "chance": chance, "accuracy": shares}


def comparable_scores(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Scores as `alternatives_as_json` has them, without what the name of the set and the order of its items decide."""
    keys = ("context", "right", "likeliest")
    failures = sorted([str(each[name]) for name in keys] for each in scores["failures"])
    return {**{name: value for name, value in scores.items() if name != "name"}, "failures": failures}


def _failure_json(result: ScoredItem) -> dict[str, Any]:
    item, log_probs = result.item, result.log_probs
    likelier = max(range(len(log_probs)), key=log_probs.__getitem__)
    if likelier == item.answer:  # the other text that is as likely as the right one
        likelier = next(n for n, each in enumerate(log_probs) if n != item.answer and each == log_probs[item.answer])
    return {
        "line": item.line,
        **{name: item.row[name] for name in ("id", "category") if name in item.row},
        "context": item.context,
        "right": item.alternatives[item.answer],
        "likeliest": item.alternatives[likelier],
        "log_probs": list(log_probs),
    }


def item_as_json(item: ScoredItem) -> dict[str, Any]:
    """An item as its file has it, with the figures of its texts."""
    unconditional = {} if item.log_probs_alone is None else {"log_probs_alone": list(item.log_probs_alone)}
    return {**item.item.row, "log_probs": list(item.log_probs), "pieces": list(item.pieces), **unconditional}


def score_table_rows(scores: Mapping[str, Any]) -> list[tuple[object, ...]]:
    """The table of a set, from its JSON: a row for each rule, then one for each category."""
    parts: list[tuple[str | None, Mapping[str, Any]]] = [(None, scores), *scores["categories"].items()]
    return [
        (
            RULE_LABELS[rule] if category is None else f"{RULE_LABELS[rule]}: {category}",
            part["count"],
            f"{part['chance']:.2f}",
            f"{share['score']:.2f}",
            f"{share['low']:.2f} to {share['high']:.2f}",
            share["signature"],
        )
        for category, part in parts
        for rule, share in part["accuracy"].items()
    ]


SCORE_TABLE_COLUMNS = ("likelier by", "count", "chance", "% right", "95 % interval", "signature")


def input_warning_messages(warnings: InputWarnings, items: Sequence[AlternativeItem]) -> list[str]:
    """Messages to the user on how the items were read."""
    messages, num = [], len(items)
    if warnings.num_cut_contexts:
        were = "was" if warnings.num_cut_contexts == 1 else "were"
        longer = format_share(warnings.num_cut_contexts, num, "context", "is", "are")
        messages.append(f"{longer} longer than the model reads, and {were} cut")
    if warnings.num_unknown:
        messages.append(
            f"{format_share(warnings.num_unknown, num, 'item', 'has', 'have')} a text with pieces that the tokenizer "
            "does not know"
        )
    if warnings.word_joins:
        ends = format_share(len(warnings.word_joins), num, "context", "ends", "end")
        messages.append(f'{ends} within a word that a choice goes on with ("{warnings.word_joins[0]}"): {JOIN_ADVICE}')
    return messages
