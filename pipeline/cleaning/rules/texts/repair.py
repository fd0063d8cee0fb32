"""Repair of text that was decoded by the wrong encoding ("schÃ¶n"), and its normal form, by ftfy."""

from collections.abc import Callable, Sequence

from tfm.data.lines import NormalForm, sort_long_mark_runs
from tfm.pipeline.cleaning.rules.packages import missing_package_error
from tfm.pipeline.cleaning.rules.texts.config import RepairConfig

UNICODE_FORM_BY_NAME: dict[str, NormalForm | None] = {"none": None, "nfc": "NFC", "nfkc": "NFKC"}


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
    form = UNICODE_FORM_BY_NAME[config.normal_form]
    settings = ftfy.TextFixerConfig(
        uncurl_quotes=config.quotes,
        normalization=form,
        fix_character_width=config.normal_form == "nfkc",
        remove_terminal_escapes=False,
        remove_control_chars=False,  # the rule `controls` counts them
        fix_line_breaks=False,
        explain=False,
    )

    def repair(texts: Sequence[str]) -> list[str]:
        # ftfy's normal form takes time in the square of the marks of a character, unless they are in order
        ordered = texts if form is None else [sort_long_mark_runs(form, each) for each in texts]
        return [ftfy.fix_text(each, settings) for each in ordered]

    return repair
