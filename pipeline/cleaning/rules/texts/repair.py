"""Repair of text that was decoded by the wrong encoding ("schÃ¶n"), and its normal form, by ftfy."""

from collections.abc import Callable, Sequence

from tfm.pipeline.cleaning.rules.packages import missing_package_error
from tfm.pipeline.cleaning.rules.texts.config import RepairConfig

UNICODE_FORM_BY_NAME = {"none": None, "nfc": "NFC", "nfkc": "NFKC"}


def make_repair(config: RepairConfig) -> Callable[[Sequence[str]], Sequence[str]]:
    """Return the function that repairs texts.

    Line breaks and HTML entities within tags stay; what a language needs to be invisible stays too, and so do the wide
    marks and spaces of Chinese and Japanese, but with NFKC.

    Raises:
        DataError: ftfy is not installed.
    """
    try:
        import ftfy
    except ImportError:
        raise missing_package_error("repair", "ftfy") from None
    settings = ftfy.TextFixerConfig(
        uncurl_quotes=config.quotes,
        normalization=UNICODE_FORM_BY_NAME[config.normal_form],  # type: ignore[arg-type]
        fix_character_width=config.normal_form == "nfkc",
        remove_terminal_escapes=False,
        remove_control_chars=False,  # the rule `controls` counts them
        fix_line_breaks=False,
        explain=False,
    )
    return lambda texts: [ftfy.fix_text(each, settings) for each in texts]
