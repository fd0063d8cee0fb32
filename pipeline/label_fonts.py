"""Fonts for the labels of drawn pictures: those installed that have the characters, and the warning if none has."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tfm.data.errors import format_names

DEFAULT_FONT = "DejaVu Sans"  # comes with matplotlib
MAX_FONTS = 5  # a picture is seldom of more scripts


def font_rc_params(texts: Iterable[str]) -> dict[str, Any]:
    """The settings for matplotlib's `rc_context` with which texts are drawn; none if its own font has them all."""
    families, _ = _choose_fonts(frozenset("".join(texts)))
    return {"font.family": list(families)} if len(families) > 1 else {}


def missing_glyphs_warning(file: Path, texts: Iterable[str]) -> str | None:
    """Return the warning that characters of the texts in a picture are drawn as boxes; None if none is.

    An SVG holds its texts, and the program that shows it chooses the fonts.
    """
    _, missing = _choose_fonts(frozenset("".join(texts)))
    if not missing or file.suffix.lower() == ".svg":
        return None
    glyphs = format_names(sorted(missing), " ", max_chars=40)
    return (
        f"{file}: no installed font has {glyphs}, drawn as boxes; install one, such as Noto Sans CJK, or draw an .svg"
    )


@cache
def _choose_fonts(characters: frozenset[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """The usual font and, in turn, the one that has most of the missing characters; and those that none has."""
    from matplotlib.font_manager import findfont

    families: tuple[str, ...] = (DEFAULT_FONT,)
    missing = {each for each in characters if each.isprintable() and not each.isspace()}
    missing -= _characters_of_font(findfont(DEFAULT_FONT))
    while missing and len(families) <= MAX_FONTS:
        name, covered_characters = max(
            ((name, missing & _characters_of_font(file)) for name, file in _installed_fonts().items()),
            key=lambda each: len(each[1]),
            default=("", set[str]()),
        )
        if not covered_characters:
            break
        families, missing = (*families, name), missing - covered_characters
    return families, frozenset(missing)


@cache
def _installed_fonts() -> dict[str, str]:
    """The file of each family, in its plain shape, in the order of their names."""
    from matplotlib.font_manager import fontManager

    plain = [each for each in fontManager.ttflist if each.style == "normal" and "Last Resort" not in each.name]
    sorted_fonts = sorted(plain, key=lambda each: (each.name, each.weight == 400, each.fname))
    return {each.name: each.fname for each in sorted_fonts}  # the last of a name counts


@cache
def _characters_of_font(file: str) -> frozenset[str]:
    from matplotlib.font_manager import get_font

    try:
        return frozenset(map(chr, get_font(file).get_charmap()))
    except (OSError, RuntimeError):  # removed since matplotlib listed it, or damaged
        return frozenset()
