"""The result of a construction: a sentence in both languages and its parts."""

from collections.abc import Sequence
from typing import NamedTuple


class Sentence(NamedTuple):
    english: str
    german: str
    uses: frozenset[tuple[str, str]]  # (lexeme, the kind of clause it stands in)


ClauseLexemes = tuple[Sequence[str], str]  # lexemes, the kind of clause they stand in (grammar.CLAUSES)


def make_sentence(end_mark: str, english: str, german: str, *clause_lexemes: ClauseLexemes) -> Sentence:
    """Return a pair with a capital letter and its end mark.

    Args:
        end_mark: the end mark.
        english: the English words.
        german: the German words.
        *used: the lexemes and the construction that they are used in.
    """
    uses = frozenset((lexeme, construction) for lexemes, construction in clause_lexemes for lexeme in lexemes)
    return Sentence(english[0].upper() + english[1:] + end_mark, german[0].upper() + german[1:] + end_mark, uses)
