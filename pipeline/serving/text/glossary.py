"""The terms of a glossary that occur in a sentence, and so the terms that its translation must contain."""

from collections.abc import Mapping

import regex

from tfm.data.lines import normalize

MAX_GLOSSARY_TERMS = 1000
MAX_TERM_CHARS = 200


def glossary_problem(glossary: Mapping[str, str]) -> str | None:
    """Return the reason why a glossary cannot be used, or None."""
    if len(glossary) > MAX_GLOSSARY_TERMS:
        return f"glossary: has {len(glossary)} terms and may have {MAX_GLOSSARY_TERMS}: send those of this text alone"
    for source, target in glossary.items():
        for side, term in (("source", source), ("target", target)):
            if not term.strip():
                return f"glossary: a {side} term is empty ({source[:40]!r} → {target[:40]!r}): remove it"
            if len(term) > MAX_TERM_CHARS:
                return f"glossary: a {side} term has {len(term)} characters and may have {MAX_TERM_CHARS}: shorten it"
            if "\t" in term or len(term.splitlines()) > 1:
                return f"glossary: a {side} term has a tab or line break ({term[:40]!r}): remove it"
    return _contradiction_problem(glossary)


def _contradiction_problem(glossary: Mapping[str, str]) -> str | None:
    """Why two terms that differ only in spelling have different translations; None if there are no such terms."""
    source_by_key: dict[tuple[bool, str], str] = {}
    for source, target in glossary.items():
        first_source = source_by_key.setdefault(_term_key(source), source)
        if _normalize(glossary[first_source]) != _normalize(target):
            return f"glossary: {first_source[:40]!r} and {source[:40]!r} are one term with two translations: remove one"
    return None


class Glossary:
    """The terms of a glossary, to be looked for in many sentences.

    A term occurs where it stands between borders of words (Unicode's, UAX 29). One that is written without capitals
    occurs in any case, one with capitals only as it is written. If terms overlap, the first counts, of those that
    begin together the longest. Any white space may stand between the words of a term.
    """

    def __init__(self, terms: Mapping[str, str]) -> None:
        self._exact: dict[str, str] = {}
        self._folded: dict[str, str] = {}
        for source, target in terms.items():
            is_lowercase, spelling = _term_key(source)
            if spelling:
                (self._folded if is_lowercase else self._exact)[spelling] = target.strip()
        self._patterns = _term_pattern(self._exact), _term_pattern(self._folded)

    def target_terms(self, sentence: str) -> list[str]:
        """The target terms of the source terms that occur in a sentence, in the order of these, each once."""
        text = _normalize(sentence)
        folded_characters = [_fold(character) for character in text]
        positions = [position for position, characters in enumerate(folded_characters) for _ in characters]
        exact_pattern, folded_pattern = self._patterns
        # of two matches at one position the one in the exact spelling comes first
        matches = [
            (match.start(), -match.end(), 0, self._exact[match.group()]) for match in exact_pattern.finditer(text)
        ]
        matches += [
            (positions[match.start()], -positions[match.end() - 1] - 1, 1, self._folded[match.group()])
            for match in folded_pattern.finditer("".join(folded_characters))
        ]
        terms: list[str] = []
        end_of_last = 0
        for start, end, _, target in sorted(matches):
            if start >= end_of_last:
                end_of_last = -end
                if target not in terms:
                    terms.append(target)
        return terms


def _normalize(text: str) -> str:
    return " ".join(normalize("NFC", text).split())


def _fold(text: str) -> str:
    """A text by which those that differ in case alone are the same, character by character."""
    text_without_case = normalize("NFD", normalize("NFD", text).casefold())
    return text_without_case.replace("i\N{COMBINING DOT ABOVE}", "i")  # Turkish capital I with a dot


def _term_key(term: str) -> tuple[bool, str]:
    """Whether a term is looked for in any case, and as what: folded, or as it is written."""
    spelling = _normalize(term)
    is_lowercase = spelling == spelling.lower()
    return is_lowercase, "".join(map(_fold, spelling)) if is_lowercase else spelling


def _term_pattern(terms: Mapping[str, str]) -> "regex.Pattern[str]":
    """The pattern of all terms, which prefers the longest."""
    longest_first = sorted(terms, key=lambda term: (-len(term), term))
    alternatives = "|".join(map(regex.escape, longest_first)) or r"(?!)"
    return regex.compile(rf"\b(?:{alternatives})\b", regex.V0 | regex.WORD)
