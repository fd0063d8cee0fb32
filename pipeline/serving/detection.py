"""The language of a text, by a library for that if it is installed (lingua; extra: detect)."""

from collections.abc import Callable, Sequence

MAX_DETECTED_CHARS = 1_000
"""The characters of a text that are looked at: more tell no more, and take long."""
Detector = Callable[[str], list[tuple[str, float]]]
"""Text -> codes of languages, each with its probability, the likeliest first; none of a text without their words."""


def find_detector(codes: Sequence[str]) -> Detector | None:
    """Return the detector of languages; None if no library for it is installed, or if there is only one language.

    codes: those of requests that a text may be in; of two letters, or of these with a script.
    """
    try:
        from lingua import IsoCode639_1, LanguageDetectorBuilder
    except ImportError:
        return None
    names = dict.fromkeys(code.partition("-")[0].upper() for code in codes)
    languages = [getattr(IsoCode639_1, name) for name in names if hasattr(IsoCode639_1, name)]
    if len(languages) < 2:
        return None
    detector = LanguageDetectorBuilder.from_iso_codes_639_1(*languages).build()

    def detect(text: str) -> list[tuple[str, float]]:
        confidences = detector.compute_language_confidence_values(text[:MAX_DETECTED_CHARS])
        return [
            (each.language.iso_code_639_1.name.lower(), float(each.value)) for each in confidences if each.value > 0
        ]

    return detect
