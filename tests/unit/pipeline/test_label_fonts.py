"""Labels of pictures are drawn with fonts that have their characters, or it is said that they are boxes."""

from pathlib import Path

import pytest

from tfm.pipeline import label_fonts
from tfm.pipeline.label_fonts import font_rc_params, missing_glyphs_warning


@pytest.fixture(autouse=True)
def _fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three fonts beside the usual one, which has Latin letters."""
    has = {"a.ttf": "中文", "b.ttf": "中文日本", "c.ttf": "한"}
    label_fonts._choose_fonts.cache_clear()
    monkeypatch.setattr(label_fonts, "_installed_fonts", lambda: {"A": "a.ttf", "B": "b.ttf", "C": "c.ttf"})
    monkeypatch.setattr(label_fonts, "_characters_of_font", lambda file: frozenset(has.get(file, "abc")))


def test_fonts_with_the_most_missing_characters_stand_behind_the_usual_one() -> None:
    assert font_rc_params(["ab", "c"]) == {}
    assert font_rc_params(["a中", "日 文"]) == {"font.family": [label_fonts.DEFAULT_FONT, "B"]}
    assert font_rc_params(["中日", "한"]) == {"font.family": [label_fonts.DEFAULT_FONT, "B", "C"]}


def test_what_no_font_has_is_said_of_a_png_alone() -> None:
    warning = missing_glyphs_warning(Path("x.png"), ["中", "ก", "ข"])
    assert warning is not None
    assert warning.startswith("x.png: no installed font has ก ข, drawn as boxes; install one")
    assert missing_glyphs_warning(Path("x.svg"), ["ก"]) is None
    assert missing_glyphs_warning(Path("x.png"), ["中", "a"]) is None
