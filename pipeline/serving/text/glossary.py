"""The terms of a glossary that occur in a sentence, and so the terms that its translation must contain."""

import unicodedata
from collections.abc import Mapping

import regex

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
            spaced = _normalize(source)
            if spaced and spaced == spaced.lower():
                self._folded[spaced.casefold()] = target.strip()
            elif spaced:
                self._exact[spaced] = target.strip()
        self._patterns = (_term_pattern(self._exact, regex.V0), _term_pattern(self._folded, regex.IGNORECASE))

    def target_terms(self, sentence: str) -> list[str]:
        """The target terms of the source terms that occur in a sentence, in the order of these, each once."""
        text = _normalize(sentence)
        exact, folded = (pattern.finditer(text) for pattern in self._patterns)
        found = [(place.start(), -place.end(), self._exact[place.group()]) for place in exact]
        found += [(place.start(), -place.end(), self._folded[place.group().casefold()]) for place in folded]
        terms: list[str] = []
        covered = 0
        for start, end, target in sorted(found):
            if start >= covered:
                covered = -end
                if target not in terms:
                    terms.append(target)
        return terms


def _normalize(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _term_pattern(terms: Mapping[str, str], case: int) -> "regex.Pattern[str]":
    """The pattern of all terms, which prefers the longest."""
    longest_first = sorted(terms, key=lambda term: (-len(term), term))
    either = "|".join(map(regex.escape, longest_first)) or r"(?!)"
    return regex.compile(rf"\b(?:{either})\b", regex.V0 | regex.WORD | case)
