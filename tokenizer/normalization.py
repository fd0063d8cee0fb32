"""Normalized text: the form in which a tokenizer splits text, and which decoding returns."""

import re

from tokenizers import Regex, normalizers
from tokenizers.normalizers import Normalizer

from tfm.tokenizer.config import Normalization, TokenizerConfig

UNICODE_NORMALIZERS: dict[Normalization, type[Normalizer] | None] = {
    "none": None,
    "nfc": normalizers.NFC,
    "nfd": normalizers.NFD,
    "nfkc": normalizers.NFKC,
    "nfkd": normalizers.NFKD,
}

# Unicode's White_Space, spelled out so that it is what Rust's `is_whitespace` strips at the ends.
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
SPACE_PATTERN = r"[\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}]"
# A single plain space is left alone: a replacement costs far more than a look.
_UNEVEN_SPACE_PATTERN = rf"{SPACE_PATTERN}{{2,}}|(?! ){SPACE_PATTERN}"

# Lower-casing looks at each character by itself, and Σ at the end of a word is ς.
FINAL_SIGMA_NORMALIZER = normalizers.Replace(Regex(r"(?<=[\p{L}\p{M}])Σ(?![\p{L}\p{M}])"), "ς")

# What every normalizer ends with.
SPACE_NORMALIZERS = (normalizers.Replace(Regex(_UNEVEN_SPACE_PATTERN), " "), normalizers.Strip())

_SURROGATE_PATTERN = re.compile("[\ud800-\udfff]")


def make_normalizer(config: TokenizerConfig) -> Normalizer:
    """Unicode normal form, lower case if asked for, runs of whitespace to one space, none at the ends."""
    form = UNICODE_NORMALIZERS[config.normalization]
    steps: list[Normalizer] = [] if form is None else [form()]
    if config.lowercase:
        # Lower-casing can leave the normal form: İ̧ becomes i with two marks in the wrong order.
        steps += [FINAL_SIGMA_NORMALIZER, normalizers.Lowercase(), *steps]
    return normalizers.Sequence([*steps, *SPACE_NORMALIZERS])


def replace_surrogates(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which no UTF-8 can spell (JSON's \\ud800 makes one)."""
    return _SURROGATE_PATTERN.sub("\ufffd", text)
