"""The scripts of texts, and which of them put no spaces between words."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

# Marks of repetition and length, which Unicode counts to no single script, stand among kana.
KANA_CHARACTERS = r"\p{sc=Hiragana}\p{sc=Katakana}\u3006\u3031-\u3035\u303C\u30FC\uFF70\uFF9E\uFF9F"
SPACELESS_SCRIPTS = {
    "Han": r"\p{sc=Han}\p{sc=Bopomofo}",
    "kana": KANA_CHARACTERS,
    **{
        name: rf"\p{{sc={name}}}"
        for name in (
            *("Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Javanese", "Balinese"),
            *("Tai_Le", "New_Tai_Lue", "Tai_Tham", "Tai_Viet", "Yi"),
        )
    },
}
"""Scripts that put no spaces between words: name -> set of their characters for a regular expression."""
SPACELESS_LETTERS = f"[[{''.join(SPACELESS_SCRIPTS.values())}]&&\\p{{L}}]"
"""A letter of these scripts, as a regular expression (V1)."""
MIN_SCRIPT_SHARE = 0.25
"""The share of letters from which a script that 13a cannot read decides the tokenizer."""

_CANDIDATES_PATTERN = re.compile("[^\0-\u0e00\u1c00-\u2e7f]")
"""Characters among which all letters of SPACELESS_SCRIPTS and Hangul are, and no Latin, Greek, Cyrillic or Arabic ones,
nor dashes and quotation marks.
"""
_SCRIPT_CHARACTERS = {**SPACELESS_SCRIPTS, "Hangul": r"\p{sc=Hangul}"}
_SCRIPT_PATTERN = "|".join(f"(?P<{name}>[{each}])" for name, each in _SCRIPT_CHARACTERS.items())
_WORD_PATTERN = rf"(?={SPACELESS_LETTERS})\X|(?:(?!{SPACELESS_LETTERS})\S)+"


@cache
def compile_pattern(pattern: str) -> "regex.Pattern[str]":
    """Compile a pattern of the package regex (V1) when it is first needed: that takes as long as the BLEU of 500 lines.

    Args:
        pattern: with scripts or categories of Unicode, as SPACELESS_LETTERS.
    """
    import regex

    return regex.compile(pattern, flags=regex.V1)


def may_have_spaceless_letters(text: str) -> bool:
    """Whether a text has characters among which the letters of SPACELESS_SCRIPTS are: a test without the patterns."""
    return not text.isascii() and _CANDIDATES_PATTERN.search(text) is not None


def letters_by_script(texts: Iterable[str]) -> Counter[str]:
    """The number of letters of each script in SPACELESS_SCRIPTS, of "Hangul", and of "others"."""
    characters: Counter[str] = Counter()
    for text in texts:
        characters.update(text)
    letters: Counter[str] = Counter()
    for character, count in characters.items():
        category = unicodedata.category(character)
        # the package regex knows letters of newer versions of Unicode, which have no category here
        if category[0] != "L" and not (category == "Cn" and compile_pattern(r"\p{L}").match(character)):
            continue
        is_candidate = may_have_spaceless_letters(character)
        match = compile_pattern(_SCRIPT_PATTERN).match(character) if is_candidate else None
        letters[(match and match.lastgroup) or "others"] += count
    return letters


def has_spaceless_script(texts: Iterable[str]) -> bool:
    """Whether a letter stands in a script without spaces between words."""
    return any(may_have_spaceless_letters(text) and compile_pattern(SPACELESS_LETTERS).search(text) for text in texts)


def find_untokenized_script(texts: Iterable[str]) -> tuple[str, float] | None:
    """Return the most frequent of the scripts that 13a cannot read, and its share of the letters of some texts.

    None if these have less than MIN_SCRIPT_SHARE of the letters. Han beside kana is Japanese ("kana"), if a tenth or
    more of the two are kana.
    """
    letters = letters_by_script(texts)
    total, num_others = letters.total(), letters.pop("others", 0)
    if total - num_others < MIN_SCRIPT_SHARE * max(total, 1):
        return None
    east = letters["Han"] + letters["kana"]
    if letters["kana"] >= 0.1 * east:
        letters["kana"], letters["Han"] = east, 0  # Japanese is written in both
    script, count = max(letters.items(), key=lambda entry: entry[1])
    return script, count / total


def is_chinese_or_japanese(references: Sequence[Sequence[str]]) -> bool:
    """Whether Han and kana have a share of MIN_SCRIPT_SHARE or more of the letters."""
    letters = letters_by_script(text for column in references for text in column)
    return letters["Han"] + letters["kana"] >= MIN_SCRIPT_SHARE * max(letters.total(), 1) and letters.total() > 0


def num_words(text: str) -> int:
    """Stretches between white space; in scripts without spaces, characters with their marks."""
    return len(compile_pattern(_WORD_PATTERN).findall(text)) if has_spaceless_script([text]) else len(text.split())


def split_words(text: str) -> list[tuple[str, bool]]:
    """The words that `num_words` counts, each with whether white space follows it; it counts as following the last."""
    if not has_spaceless_script([text]):
        return [(word, True) for word in text.split()]
    matches = [*compile_pattern(_WORD_PATTERN).finditer(text)]
    is_spaced = [text[match.end()].isspace() for match in matches[:-1]]
    return [(match[0], spaced) for match, spaced in zip(matches, [*is_spaced, all(is_spaced)], strict=True)]
