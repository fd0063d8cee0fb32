"""The language of a text, by a library for that where one is installed (lingua)."""

from collections.abc import Callable, Sequence

Detector = Callable[[str], list[tuple[str, float]]]
"""Text -> codes of languages, each with its probability, the likeliest first."""


def find_detector(codes: Sequence[str]) -> Detector | None:
    """Return what tells languages apart; None where no library for that is installed, or there is nothing to tell.

    codes: those of two letters that a text may be in.
    """
    try:
        from lingua import IsoCode639_1, LanguageDetectorBuilder
    except ImportError:
        return None
    known = [getattr(IsoCode639_1, code.upper()) for code in codes if hasattr(IsoCode639_1, code.upper())]
    if len(known) < 2:
        return None
    detector = LanguageDetectorBuilder.from_iso_codes_639_1(*known).build()

    def detect(text: str) -> list[tuple[str, float]]:
        found = detector.compute_language_confidence_values(text)
        return [(each.language.iso_code_639_1.name.lower(), float(each.value)) for each in found]

    return detect
