"""The tokens of a text in each metric, and sacrebleu's metrics with these tokenizers."""

import os
import re
import string
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, cast

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.ter import TER
from sacrebleu.utils import SACREBLEU_DIR

from tfm.data.lines import normalize
from tfm.data.scripts import SPACELESS_LETTERS, compile_pattern, is_chinese_or_japanese
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.scoring.metrics.bleu_tokenizer import MECAB_PACKAGES, is_installed

WordSplitter = Callable[[str], Sequence[str]]
FLORES_MODEL = os.path.join(SACREBLEU_DIR, "models", "flores200sacrebleuspm")

# Of bytes, as Perl reads: é is two of them, so that both hyphens of a-é-b have one of their own on each side.
_COMPOUND_PATTERN = re.compile(rb"(\S)-(\S)")
# Private characters that replace spaces at which Python splits words, and Perl, which reads bytes, does not.
_SPACES_OF_PYTHON_ALONE = "\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_FIRST_PRIVATE_CHARACTER = 0xF0000
_LETTERS_FOR_SPACES = {ord(space): _FIRST_PRIVATE_CHARACTER + n for n, space in enumerate(_SPACES_OF_PYTHON_ALONE)}
# The replacements of tokenizer 13a, but for that of a space by three.
_SYMBOL_PATTERN = re.compile(r"([!-&(-+:-@/\[-`{-~])")
_MARK_BEHIND_NO_DIGIT_PATTERN = re.compile(r"([^0-9])([.,])")
_MARK_BEFORE_NO_DIGIT_PATTERN = re.compile(r"([.,])([^0-9])")
_DASH_BEHIND_DIGIT_PATTERN = re.compile(r"([0-9])(-)")
# Joiners occur inside words of Persian and Indic scripts.
_JOINER_CHARACTERS = r"\u200C\u200D"
_WORD_PATTERN = (
    rf"(?={SPACELESS_LETTERS})\X|(?:(?!{SPACELESS_LETTERS})[\p{{L}}\p{{M}}\p{{N}}])"
    rf"(?:(?!{SPACELESS_LETTERS})[\p{{L}}\p{{M}}\p{{N}}{_JOINER_CHARACTERS}])*"
)


class UnicodeWordTokenizer:
    """ROUGE's tokenizer for every script, as `RougeScorer` takes one.

    Tokens are runs of letters, marks and digits of the text in lower case and NFC; in scripts that put no spaces
    between words, each letter with its marks (a grapheme) is one. Tokens of ASCII text are those of rouge-score.
    """

    def tokenize(self, text: str) -> Sequence[str]:
        return _unicode_words(text)


class RougeScoreTokenizer:
    """The tokenizer of the package rouge-score: runs of a-z and 0-9 of the text in lower case."""

    def tokenize(self, text: str) -> Sequence[str]:
        return _rouge_score_words(text)


@lru_cache(maxsize=2**14)
def _unicode_words(text: str) -> tuple[str, ...]:
    return tuple(compile_pattern(_WORD_PATTERN).findall(normalize("NFC", text.lower())))


@lru_cache(maxsize=2**14)
def _rouge_score_words(text: str) -> tuple[str, ...]:
    from rouge_score.tokenize import tokenize  # loads six: only where ROUGE is asked for

    return tuple(tokenize(text, None))


ROUGE_TOKENIZERS: Mapping[str, UnicodeWordTokenizer | RougeScoreTokenizer] = {
    "unicode": UnicodeWordTokenizer(),
    "rouge-score": RougeScoreTokenizer(),
}
"""ROUGE's tokenizers by the name in a recipe."""


def make_bleu(config: EvaluationConfig, *, effective_order: bool = False) -> BLEU:
    """sacrebleu's BLEU with the tokenizer of a resolved config.

    Raises RecipeError as `check_tokenizers_installed` does.
    """
    check_tokenizers_installed(config)
    # force: sacrebleu's own warning about tokenized text goes past the reporter; `looks_tokenized` replaces it
    metric = BLEU(
        lowercase=config.lowercase, tokenize=config.bleu_tokenize, force=True, effective_order=effective_order
    )
    return _with_fast_tokenizer(metric)


def _with_fast_tokenizer(metric: BLEU) -> BLEU:
    if metric.tokenizer_signature == "13a":
        metric.tokenizer = cast("Any", Tokenizer13a())
    return metric


class Tokenizer13a:
    """sacrebleu's tokenizer 13a in half the time: no space is replaced, and nothing is looked for that a text lacks."""

    def __call__(self, line: str) -> str:
        return _divide_as_13a(line)

    def signature(self) -> str:
        """The name in sacrebleu's signature."""
        return "13a"


@lru_cache(maxsize=2**16)
def _divide_as_13a(line: str) -> str:
    line = line.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    if "&" in line:
        line = line.replace("&quot;", '"').replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")
    line = _SYMBOL_PATTERN.sub(r" \1 ", f" {line} ")
    if "." in line or "," in line:
        line = _MARK_BEHIND_NO_DIGIT_PATTERN.sub(r"\1 \2 ", line)
        line = _MARK_BEFORE_NO_DIGIT_PATTERN.sub(r" \1 \2", line)
    if "-" in line:
        line = _DASH_BEHIND_DIGIT_PATTERN.sub(r"\1 \2 ", line)
    return " ".join(line.split())


class CompoundSplitter:
    """A tokenizer of sacrebleu's BLEU after which the parts of words with hyphens are tokens of their own; words end at
    ASCII's spaces alone, as for Perl.

    Args:
        tokenizer: that comes first.
        name: of that tokenizer in signatures.
    """

    def __init__(self, tokenizer: Callable[[str], str], name: str) -> None:
        self._tokenizer, self._name = tokenizer, name

    def __call__(self, line: str) -> str:
        words = self._tokenizer(line).translate(_LETTERS_FOR_SPACES)
        return _COMPOUND_PATTERN.sub(rb"\1 ##AT##-##AT## \2", words.encode("utf-8", "surrogatepass")).decode(
            "utf-8", "surrogatepass"
        )

    def signature(self) -> str:
        """The name in sacrebleu's signature."""
        return f"{self._name}+compounds"


class PaperBLEU(BLEU):
    """sacrebleu's BLEU, which leaves out spaces at the end of a line, as those that Perl knows."""

    def _preprocess_segment(self, segment: str) -> str:
        line: str = self.tokenizer((segment.lower() if self.lowercase else segment).rstrip(string.whitespace))
        return line


def make_paper_bleu(config: EvaluationConfig) -> BLEU:
    """sacrebleu's BLEU as multi-bleu.perl computes it, compounds split, with the tokenizer of a resolved config.

    Raises RecipeError as `check_tokenizers_installed` does.
    """
    check_tokenizers_installed(config)
    metric = PaperBLEU(lowercase=config.lowercase, tokenize=config.bleu_tokenize, force=True, smooth_method="none")
    _with_fast_tokenizer(metric)
    splitter: Any = CompoundSplitter(metric.tokenizer, metric.tokenizer.signature())
    metric.tokenizer, metric.tokenizer_signature = splitter, splitter.signature()
    return metric


def make_ter(references: Sequence[Sequence[str]]) -> TER:
    """Return sacrebleu's TER; Chinese and Japanese are split as by Tercom, which the signature has."""
    asian = is_chinese_or_japanese(references)
    return TER(normalized=asian, asian_support=asian)


def check_tokenizers_installed(config: EvaluationConfig) -> None:
    """Raise RecipeError if the tokenizer that BLEU is to use is not installed."""
    name = config.bleu_tokenize
    setting = f'evaluation.bleu_tokenize = "{name}"'
    if name in MECAB_PACKAGES and not is_installed(name):
        raise RecipeError(f"{setting} is not installed: {MECAB_PACKAGES[name][1]}")
    if name != "flores200":
        return
    if find_spec("sentencepiece") is None:
        raise RecipeError(f"{setting} needs a package: pip install sentencepiece")
    if not os.path.exists(FLORES_MODEL):
        fetch = "from sacrebleu.metrics.bleu import BLEU; BLEU(tokenize='flores200')"
        raise RecipeError(f'{setting} needs {FLORES_MODEL}, which\n  python -c "{fetch}"\ndownloads')
