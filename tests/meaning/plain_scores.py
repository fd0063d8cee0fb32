"""Metrics from their papers' definitions, by loops over lists and dicts. Nothing of `tfm` is imported here."""

import math
import string
from collections.abc import Sequence

Tokens = list[str]
Lines = Sequence[str]


def ngrams(tokens: Sequence[str], order: int) -> dict[tuple[str, ...], int]:
    """How often each run of so many tokens comes up."""
    found: dict[tuple[str, ...], int] = {}
    for begin in range(len(tokens) - order + 1):
        run = tuple(tokens[begin : begin + order])
        found[run] = found.get(run, 0) + 1
    return found


def bleu(
    hypotheses: Sequence[Tokens], references: Sequence[Sequence[Tokens | None]], *, effective_order: bool = False
) -> float:
    """Papineni et al. 2002 for a corpus, orders 1 to 4; an order without a match counts 1/2, 1/4, ... of a match.

    references: lists as long as `hypotheses`, one or more; none where a segment has fewer than others. effective_order:
    only orders that the hypotheses have.
    """
    right, total, length, wanted = [0] * 4, [0] * 4, 0, 0
    for number, hypothesis in enumerate(hypotheses):
        of_segment = [each for reference in references if (each := reference[number]) is not None]
        length += len(hypothesis)
        wanted += min((abs(len(each) - len(hypothesis)), len(each)) for each in of_segment)[1]
        for order in range(1, 5):
            allowed: dict[tuple[str, ...], int] = {}
            for each in of_segment:
                for run, count in ngrams(each, order).items():
                    allowed[run] = max(allowed.get(run, 0), count)
            mine = ngrams(hypothesis, order)
            right[order - 1] += sum(min(count, allowed.get(run, 0)) for run, count in mine.items())
            total[order - 1] += sum(mine.values())
    if sum(right) == 0 or (min(total) == 0 and not effective_order):
        return 0.0
    logs, halves = [], 0
    for matches, count in zip(right, [each for each in total if each], strict=False):
        halves += matches == 0
        logs.append(math.log(matches / count if matches else 1 / (2**halves * count)))
    brevity = 1.0 if length >= wanted else math.exp(1 - wanted / length)
    return 100 * brevity * math.exp(sum(logs) / len(logs))


def chrf(hypotheses: Lines, references: Sequence[Sequence[str | None]], *, word_order: int = 0) -> float:
    """Popović 2015 (2017 with words): F2 of the mean precision and recall of orders 1 to 6 of characters (and words).

    Orders that either side lacks are left out. Of several references of a segment the best one counts.
    """
    orders = 6 + word_order
    sums = [[0, 0, 0] for _ in range(orders)]
    for number, hypothesis in enumerate(hypotheses):
        of_segment = [each for reference in references if (each := reference[number]) is not None]
        candidates = [_counts(hypothesis, each, word_order) for each in of_segment]
        best = max(candidates, key=_f2)
        sums = [[a + b for a, b in zip(one, other, strict=True)] for one, other in zip(sums, best, strict=True)]
    return 100 * _f2(sums)


def _counts(hypothesis: str, reference: str, word_order: int) -> list[list[int]]:
    """For each order the runs of the hypothesis, of the reference, and those in both."""
    found = []
    sides = [["".join(text.split()) for text in (hypothesis, reference)]]
    pairs = [(side, order) for side in sides for order in range(1, 7)]
    words = [_words(text) for text in (hypothesis, reference)]
    columns: list[tuple[Sequence[Sequence[str]], int]] = [
        *pairs,
        *((words, order) for order in range(1, word_order + 1)),
    ]
    for (one, other), order in columns:
        mine, wanted = ngrams(one, order), ngrams(other, order)
        both = sum(min(count, wanted.get(run, 0)) for run, count in mine.items())
        found.append([sum(mine.values()) if wanted else 0, sum(wanted.values()), both])
    return found


def _words(text: str) -> Tokens:
    """Words, a mark of ASCII at the end (or else at the beginning) of one apart."""
    found: Tokens = []
    for word in text.split():
        if len(word) > 1 and word[-1] in string.punctuation:
            found += [word[:-1], word[-1]]
        elif len(word) > 1 and word[0] in string.punctuation:
            found += [word[0], word[1:]]
        else:
            found.append(word)
    return found


def _f2(counts: list[list[int]]) -> float:
    both_sides = [(mine, wanted, both) for mine, wanted, both in counts if mine and wanted]
    if not both_sides:
        return 0.0
    precision = sum(both / mine for mine, _, both in both_sides) / len(both_sides)
    recall = sum(both / wanted for _, wanted, both in both_sides) / len(both_sides)
    return 5 * precision * recall / (4 * precision + recall) if precision + recall else 0.0


def rouge(order: int | None, hypotheses: Sequence[Tokens], references: Sequence[Tokens]) -> float:
    """Mean F1 of Lin 2004: of shared runs of `order` tokens, or (none) of the longest common subsequence."""
    return rouge_parts(order, hypotheses, references)[0]


def rouge_parts(
    order: int | None, hypotheses: Sequence[Tokens], references: Sequence[Tokens]
) -> tuple[float, float, float]:
    """The means of F1, of recall (the share of the reference's) and of precision (the share of the hypothesis's); of
    no token where none is wanted all three are 100."""
    f1, recall, precision = 0.0, 0.0, 0.0
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        if not hypothesis and not reference:
            f1, recall, precision = f1 + 1, recall + 1, precision + 1
            continue
        if order is None:
            both, mine, wanted = longest_common(hypothesis, reference), len(hypothesis), len(reference)
        else:
            given, asked = ngrams(hypothesis, order), ngrams(reference, order)
            both = sum(min(count, asked.get(run, 0)) for run, count in given.items())
            mine, wanted = sum(given.values()), sum(asked.values())
        if both:
            f1, recall, precision = f1 + 2 * both / (mine + wanted), recall + both / wanted, precision + both / mine
    share = 100 / len(references)
    return share * f1, share * recall, share * precision


def cider_d(hypotheses: Sequence[Tokens], segments: Sequence[Sequence[Tokens]]) -> list[float]:
    """CIDEr-D of Vedantam et al. 2015 of each segment; a reference without tokens is none.

    Raw counts, ln(documents / documents with it), σ = 6; what would be 0 / 0 is 0. Nothing is right where nothing is
    wanted.
    """
    documents = [[each for each in references if each] for references in segments]
    num_documents = len([1 for references in documents if references])
    runs = [{run for each in texts for order in range(1, 5) for run in ngrams(each, order)} for texts in documents]
    values = []
    for hypothesis, references in zip(hypotheses, documents, strict=True):
        sum_of_orders = 0.0 if references or hypothesis else 4.0
        for order in range(1, 5):
            for reference in references:
                mine, wanted = ngrams(hypothesis, order), ngrams(reference, order)
                product, square, other_square = 0.0, 0.0, 0.0
                for run in {*mine, *wanted}:
                    num_with = sum(run in each for each in runs)
                    weight = math.log(num_documents) - math.log(num_with if num_with > 0 else 1)
                    g_c, g_s = mine.get(run, 0) * weight, wanted.get(run, 0) * weight
                    product += min(g_c, g_s) * g_s
                    square, other_square = square + g_c**2, other_square + g_s**2
                if square * other_square > 0:
                    apart = len(hypothesis) - len(reference)
                    cosine = product / (math.sqrt(square) * math.sqrt(other_square))
                    sum_of_orders += math.e ** (-(apart**2) / 72) * cosine / len(references)
        values.append(10 * sum_of_orders / 4)
    return values


def longest_common(one: Tokens, other: Tokens) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for token in one:
        above = row[:]
        for place, wanted in enumerate(other, 1):
            row[place] = above[place - 1] + 1 if token == wanted else max(above[place], row[place - 1])
    return row[-1]


def edits(one: Tokens, other: Tokens) -> int:
    """Levenshtein's distance: what TER is where no run of words could be moved to a better place."""
    row = list(range(len(other) + 1))
    for number, token in enumerate(one, 1):
        above = row[:]
        row[0] = number
        for place, wanted in enumerate(other, 1):
            row[place] = min(above[place - 1] + (token != wanted), above[place] + 1, row[place - 1] + 1)
    return row[-1]


def exact_match(hypotheses: Lines, references: Lines) -> float:
    """Percentage of lines that are the same but for white space at both ends."""
    pairs = zip(hypotheses, references, strict=True)
    return 100 * sum(one.strip() == other.strip() for one, other in pairs) / len(hypotheses)


def accuracy(given: Tokens, wanted: Tokens) -> float:
    """Percentage of labels that are right."""
    return 100 * sum(one == other for one, other in zip(given, wanted, strict=True)) / len(wanted)


def by_class(given: Tokens, wanted: Tokens) -> dict[str, tuple[float, float, float]]:
    """Precision, recall and F1 in 0..1 of every label given or wanted; 0 where there is nothing to divide by."""
    found = {}
    for label in {*given, *wanted}:
        both = sum(one == other == label for one, other in zip(given, wanted, strict=True))
        said, right = given.count(label), wanted.count(label)
        found[label] = (both / said if said else 0.0, both / right if right else 0.0, 2 * both / (said + right))
    return found


def macro_f1(given: Tokens, wanted: Tokens) -> float:
    """Mean F1 of the labels that are given or wanted, as scikit-learn has it, in 0..100."""
    values = [f1 for _, _, f1 in by_class(given, wanted).values()]
    return 100 * sum(values) / len(values)
