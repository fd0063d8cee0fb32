"""Markup of a sentence put into its translation: each tag once, nested as it was, between words.

An element takes the stretch of words whose source lies most inside of it: the stretch with the largest sum of
(share inside - share outside), which no other stretch can better (as Zenkel et al. 2021 project markup).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeGuard

import numpy as np

from tfm.pipeline.serving.text.alignment import AlignedWords, Floats, is_punctuation
from tfm.pipeline.serving.text.inline_markup import Element, InlineMarkup, UnpairedTag, VerbatimUnit

WordRange = tuple[int, int]
"""The first of some neighbouring words, and the one after the last."""


@dataclass(frozen=True)
class _PlacedMarkup:
    """Markup that replaces the characters `start` to `end` of a translation."""

    start: int
    end: int
    raw: str


@dataclass(frozen=True)
class _TargetArea:
    """Words `first` to `last` (exclusive), and characters `start` to `end`, of a translation."""

    first: int
    last: int
    start: int
    end: int


class MarkupPlacement:
    """Puts the markup of one sentence into its translation.

    source: the sentence as it was translated. words: of the translation, aligned with it. is_aligned: whether a model
    aligned them, so that a unit may take the place of words that stand for it.
    """

    def __init__(self, source: str, words: AlignedWords, *, is_aligned: bool) -> None:
        self._source, self._words, self._is_aligned = source, words, is_aligned

    def render(self, markup: Sequence[InlineMarkup]) -> str:
        """The translation as HTML, with the markup of the sentence."""
        area = _TargetArea(0, len(self._words.spans), 0, len(self._words.text))
        texts = []
        siblings: list[InlineMarkup] = []
        for item in markup:
            if not isinstance(item, UnpairedTag):
                siblings.append(item)
                continue
            word, character = self._best_word_boundary(area, item.position, range(area.first, area.last + 1))
            texts += [self._render_siblings(siblings, _TargetArea(area.first, word, area.start, character)), item.raw]
            area = _TargetArea(word, area.last, character, area.end)
            siblings = []
        return "".join(texts) + self._render_siblings(siblings, area)

    def _render_siblings(self, siblings: Sequence[InlineMarkup], area: _TargetArea) -> str:
        """The text of an area with markup of one level, in any order."""
        stretches = self._choose_word_ranges(siblings, area)
        inner_words = {word for first, last in stretches.values() for word in range(first + 1, last)}
        borders = [word for word in range(area.first, area.last + 1) if word not in inner_words]
        placements = []
        for number, sibling in enumerate(siblings):
            if number in stretches:
                first, last = stretches[number]
                start, end = self._words.spans[first][0], self._words.spans[last - 1][1]
            else:
                first, start = self._best_word_boundary(area, first_source_character(sibling), borders)
                last, end = first, start
            placements.append(
                _PlacedMarkup(start, end, self._render_markup(sibling, _TargetArea(first, last, start, end)))
            )
        texts, position = [], area.start
        for mark in sorted(placements, key=lambda mark: (mark.start, mark.end)):
            texts += [self._escape(position, mark.start), mark.raw]
            position = mark.end
        return "".join(texts) + self._escape(position, area.end)

    def _render_markup(self, markup: InlineMarkup, area: _TargetArea) -> str:
        """Render an element around an area, or other markup at its position."""
        if isinstance(markup, Element):
            return markup.opening + self._render_siblings(markup.content, area) + markup.closing
        return markup.raw

    def _choose_word_ranges(self, siblings: Sequence[InlineMarkup], area: _TargetArea) -> dict[int, WordRange]:
        """The words of each element and unit, by its number; none for one that finds no words left."""
        scores = {
            number: (
                gains := self._alignment_gains(sibling.start, sibling.end),
                best_word_range(gains, [(area.first, area.last)])[0],
            )
            for number, sibling in enumerate(siblings)
            if has_text(sibling)
        }
        free_ranges: list[WordRange] = [(area.first, area.last)]
        range_by_number: dict[int, WordRange] = {}
        for number in sorted(scores, key=lambda number: -scores[number][1]):
            sibling, (gains, _) = siblings[number], scores[number]
            word_range = self._choose_word_range(sibling, gains, free_ranges) if has_text(sibling) else None
            if word_range is None:
                continue
            range_by_number[number] = word_range
            free_ranges = [part for stretch in free_ranges for part in _subtract_word_range(stretch, word_range)]
        return range_by_number

    def _choose_word_range(
        self, markup: Element | VerbatimUnit, gains: Floats, free_ranges: Sequence[WordRange]
    ) -> WordRange | None:
        """The words of an element or unit among those that are free."""
        if (
            isinstance(markup, VerbatimUnit)
            and (identical_words := self._find_identical_words(markup, gains, free_ranges)) is not None
        ):
            return identical_words
        score, word_range = best_word_range(gains, free_ranges)
        if isinstance(markup, VerbatimUnit) and not (self._is_aligned and score > 0):
            return None
        if score <= 0:
            words = [word for first, last in free_ranges for word in range(first, last)]
            if not words:
                return None
            shares = self._words.source_shares(markup.start, markup.end)
            is_mark = is_punctuation(self._source[markup.start : markup.end])
            # No word is mostly of this source: the one with most of it, a mark only for marks.
            word = max(words, key=lambda word: (self._words.is_punctuation(word) == is_mark, shares[word]))
            word_range = (word, word + 1)
        return self._fit_to_punctuation(
            markup, word_range, next(each for each in free_ranges if each[0] <= word_range[0] < each[1])
        )

    def _find_identical_words(
        self, unit: VerbatimUnit, gains: Floats, free_ranges: Sequence[WordRange]
    ) -> WordRange | None:
        """The words that spell a unit, if the translation has them."""
        spelling = self._source[unit.start : unit.end]
        spans = self._words.spans
        word_ranges = [
            (first, last)
            for low, high in free_ranges
            for first in range(low, high)
            for last in range(first + 1, min(high, first + len(spelling)) + 1)
            if self._words.text[spans[first][0] : spans[last - 1][1]] == spelling
        ]
        return max(word_ranges, key=lambda each: gains[each[0] : each[1]].sum(), default=None)

    def _fit_to_punctuation(
        self, markup: Element | VerbatimUnit, word_range: WordRange, free_range: WordRange
    ) -> WordRange:
        """The stretch, which begins and ends with punctuation only where its source does."""
        text, is_mark = self._source[markup.start : markup.end].strip(), self._words.is_punctuation
        first, last = word_range
        if not text or is_punctuation(text):
            return word_range
        if not is_punctuation(text[0]):
            while first < last - 1 and is_mark(first):
                first += 1
        elif first > free_range[0] and is_mark(first - 1):
            first -= 1
        if not is_punctuation(text[-1]):
            while last - 1 > first and is_mark(last - 1):
                last -= 1
        elif last < free_range[1] and is_mark(last):
            last += 1
        return first, last

    def _alignment_gains(self, start: int, end: int) -> Floats:
        """The gain that each word adds to a stretch that stands for these characters of the source."""
        gains: Floats = self._words.strengths * (2 * self._words.source_shares(start, end) - 1)
        return gains

    def _best_word_boundary(self, area: _TargetArea, index: int, borders: Sequence[int]) -> tuple[int, int]:
        """The border between words, and the character, with most of what stands before a place before it."""
        gains = np.concatenate([[0.0], self._alignment_gains(0, index)[area.first : area.last].cumsum()])
        word = max(borders, key=lambda border: gains[border - area.first])
        spans = self._words.spans
        if index == 0 or self._source[index - 1].isspace():
            return word, spans[word][0] if word < area.last else area.end
        return word, spans[word - 1][1] if word > area.first else area.start

    def _escape(self, start: int, end: int) -> str:
        """The text of the translation between two characters, as HTML."""
        return escape(self._words.text[start:end], quote=False)


def has_text(markup: InlineMarkup) -> TypeGuard[Element | VerbatimUnit]:
    """Whether markup stands for words."""
    return isinstance(markup, Element | VerbatimUnit) and markup.end > markup.start


def first_source_character(markup: InlineMarkup) -> int:
    """The character of the source before which markup begins."""
    return markup.start if isinstance(markup, Element | VerbatimUnit) else markup.position


def best_word_range(gains: Floats, free_ranges: Sequence[WordRange]) -> tuple[float, WordRange]:
    """Return the largest sum of gains of neighbouring words, and these words (Kadane's algorithm).

    Args:
        gains: (W,).
        free_ranges: the stretches of words that may be taken.
    """
    best_score, best_range = 0.0, (0, 0)
    for low, high in free_ranges:
        total, first = 0.0, low
        for word in range(low, high):
            if total <= 0:
                total, first = 0.0, word
            total += float(gains[word])
            if total > best_score:
                best_score, best_range = total, (first, word + 1)
    return best_score, best_range


def _subtract_word_range(word_range: WordRange, removed_range: WordRange) -> list[WordRange]:
    """The parts that are left of a stretch."""
    if removed_range[1] <= word_range[0] or removed_range[0] >= word_range[1]:
        return [word_range]
    parts = [(word_range[0], removed_range[0]), (removed_range[1], word_range[1])]
    return [(first, last) for first, last in parts if first < last]
