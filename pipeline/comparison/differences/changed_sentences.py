"""The segments that gained and lost most from one system to another, and the words in which the two differ."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby, zip_longest

import regex

from tfm.data.scripts import SPACELESS_LETTERS
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.breakdown import has_label_metrics
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics.labels import line_accuracy
from tfm.pipeline.scoring.metrics.registry import sentence_chrf

# Of scripts without spaces a letter with its marks; else a run of letters, digits and joiners, or another sign.
_WORD_PATTERN = regex.compile(
    rf"(?={SPACELESS_LETTERS})\X|(?:(?!{SPACELESS_LETTERS})[\p{{L}}\p{{M}}\p{{N}}\u200C\u200D])+|(?!\s)\X",
    flags=regex.V1,
)
_LABEL_PATTERN = regex.compile(r"\S+")
MAX_DIFF_WORDS = 2000  # of a text are matched; what comes after them is not marked


@dataclass(frozen=True)
class TextSpan:
    """A part of a text, and whether the other text lacks it."""

    text: str
    differs: bool


@dataclass(frozen=True)
class SentenceChange:
    """A segment in the output of two systems.

    Args:
        line: from 1.
        source: the source, if it is known.
        references: the references.
        before: spans of the first output.
        after: spans of the second.
        scores: in 0..100, chrF of the first and of the second or, of labels, the share that is right.
    """

    line: int
    source: str | None
    references: tuple[str, ...]
    before: Sequence[TextSpan]
    after: Sequence[TextSpan]
    scores: tuple[float, float]

    @property
    def gain(self) -> float:
        """The score of the second system minus that of the first."""
        return self.scores[1] - self.scores[0]


@dataclass(frozen=True)
class SentenceChanges:
    """Changes from one system to a second on the same texts.

    Args:
        metric_name: the figure by which sentences are compared, in words.
        num_better: the number of segments with a higher score.
        num_worse: the number with a lower score.
        num_as_good: the number with the same score and another text.
        num_same: the number with the same text.
        gained: the segments with the largest gains, the largest first.
        lost: the segments with the largest losses, the largest first.
    """

    metric_name: str
    num_better: int
    num_worse: int
    num_as_good: int
    num_same: int
    gained: Sequence[SentenceChange]
    lost: Sequence[SentenceChange]


def find_sentence_changes(
    before: Segments, after: Segments, config: EvaluationConfig, max_sentences: int, on_done: Callable[[int], None]
) -> SentenceChanges:
    """Count the segments that differ between two systems on the same texts, and find the largest gains and losses.

    Among equal gains, the earlier line comes first.

    Args:
        before: the texts of the first system.
        after: those of the second.
        config: settings by which segments are scored.
        max_sentences: the number of gains, and of losses, to return.
        on_done: called after each segment, with 1.
    """
    has_labels = has_label_metrics(config)
    score = _count_correct_labels if has_labels else sentence_chrf
    changes: list[SentenceChange] = []
    for row, (first_text, second_text) in enumerate(zip(before.hypotheses, after.hypotheses, strict=True)):
        if first_text != second_text:
            references = tuple(each[row] for i, each in enumerate(before.references) if each[row] or not i)
            scores = score(first_text, references, config), score(second_text, references, config)
            source = None if before.sources is None else before.sources[row]
            changes.append(
                SentenceChange(
                    row + 1, source, references, [TextSpan(first_text, False)], [TextSpan(second_text, False)], scores
                )
            )
        on_done(1)
    better = sorted((each for each in changes if each.gain > 0), key=lambda each: -each.gain)
    worse = sorted((each for each in changes if each.gain < 0), key=lambda each: each.gain)
    num_as_good, num_same = len(changes) - len(better) - len(worse), len(before.hypotheses) - len(changes)

    def mark_change(change: SentenceChange) -> SentenceChange:
        mark = changed_label_spans if has_labels else changed_word_spans
        first_spans, second_spans = mark(before.hypotheses[change.line - 1], after.hypotheses[change.line - 1])
        return replace(change, before=first_spans, after=second_spans)

    gained, lost = (
        [mark_change(each) for each in sorted_changes[:max_sentences]] for sorted_changes in (better, worse)
    )
    metric_name = "share of right labels" if has_labels else "chrF"
    return SentenceChanges(metric_name, len(better), len(worse), num_as_good, num_same, gained, lost)


def _count_correct_labels(hypothesis: str, references: Sequence[str], config: EvaluationConfig) -> float:
    return 100 * line_accuracy(hypothesis, references[0], config)


def changed_word_spans(first_text: str, second_text: str) -> tuple[list[TextSpan], list[TextSpan]]:
    """Split both texts into spans, marked where they differ: words and signs that difflib leaves unmatched.

    Only the beginnings of texts of more than MAX_DIFF_WORDS are matched.
    """
    first_words, second_words = (
        list(_WORD_PATTERN.finditer(text))[:MAX_DIFF_WORDS] for text in (first_text, second_text)
    )
    matcher = SequenceMatcher(
        None, [each[0] for each in first_words], [each[0] for each in second_words], autojunk=False
    )
    edits = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    first_indexes = {i for _, begin, end, _, _ in edits for i in range(begin, end)}
    second_indexes = {i for _, _, _, begin, end in edits for i in range(begin, end)}
    return _mark_spans(first_text, first_words, first_indexes), _mark_spans(second_text, second_words, second_indexes)


def changed_label_spans(first_text: str, second_text: str) -> tuple[list[TextSpan], list[TextSpan]]:
    """Split both lines of labels into spans, marked where the label at the same place is another."""
    first_labels, second_labels = (list(_LABEL_PATTERN.finditer(text)) for text in (first_text, second_text))
    indexes = {
        i for i, (a, b) in enumerate(zip_longest(first_labels, second_labels)) if a is None or b is None or a[0] != b[0]
    }
    return _mark_spans(first_text, first_labels, indexes), _mark_spans(second_text, second_labels, indexes)


def _mark_spans(text: str, words: "Sequence[regex.Match[str]]", marked: set[int]) -> list[TextSpan]:
    """The text, cut where marked words begin and end; neighbors and the space between them are one stretch."""
    spans, end = [], 0
    for differs, run in groupby(range(len(words)), key=marked.__contains__):
        if differs:
            rows = list(run)
            begin, stop = words[rows[0]].start(), words[rows[-1]].end()
            spans += [TextSpan(text[end:begin], False), TextSpan(text[begin:stop], True)]
            end = stop
    return [each for each in [*spans, TextSpan(text[end:], False)] if each.text]
