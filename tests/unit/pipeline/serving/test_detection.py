"""The languages of texts, by the library that finds them."""

import pytest

from tfm.pipeline.serving.detection import MAX_DETECTED_CHARS, find_detector

pytest.importorskip("lingua", reason="no lingua-language-detector (extra: detect)")
SENTENCES = {
    "en": "The old dog sleeps in front of the house.",
    "de": "Der alte Hund schläft vor dem Haus.",
    "fr": "Le vieux chien dort devant la maison.",
    "cs": "Starý pes spí před domem.",
}


@pytest.mark.slow
def test_each_language_is_found() -> None:
    detect = find_detector([*SENTENCES, "und"])
    assert detect is not None
    for code, text in SENTENCES.items():
        found = detect(text)
        assert found[0][0] == code
        assert sum(share for _, share in found) == pytest.approx(1.0)
    assert detect("12 + 3 = 15") == []
    assert detect("") == []


def test_a_long_text_is_told_by_its_beginning() -> None:
    detect = find_detector([*SENTENCES])
    assert detect is not None
    beginning = (SENTENCES["de"] + " ") * MAX_DETECTED_CHARS
    assert detect(SENTENCES["fr"] * MAX_DETECTED_CHARS + beginning)[0][0] == "fr"
    assert detect(beginning + SENTENCES["fr"] * 9 * MAX_DETECTED_CHARS)[0][0] == "de"


@pytest.mark.parametrize("codes", [[], ["und"], ["en"], ["en", "xx"]])
def test_there_is_nothing_to_tell_of_less_than_two_languages(codes: list[str]) -> None:
    assert find_detector(codes) is None
