"""The vocabulary of M2M100: the pieces of vocab.json, and behind them a token for each language."""

from collections.abc import Iterable

LANGUAGE_CODES = {
    "m2m100": "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi "
    "hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns "
    "oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh "
    "zu",
    "wmt21": "en ha is ja cs ru zh de",
}
"""By what tokenizer_config.json calls them: codes of the languages, in the order of their ids."""


def append_languages(pieces: Iterable[str], codes: str) -> list[str]:
    """The pieces with the tokens of languages behind them. Raises ValueError if there are no such codes."""
    if codes not in LANGUAGE_CODES:
        raise ValueError(f"language_codes = {codes!r} is not known, only {', '.join(LANGUAGE_CODES)}")
    return [*pieces, *(f"__{code}__" for code in LANGUAGE_CODES[codes].split())]
