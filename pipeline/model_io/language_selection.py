"""The languages that a model is asked for, by codes of its own or of ISO 639-3."""

from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from tfm.data.errors import DataError
from tfm.model.config import LanguageMarking
from tfm.tokenizer.languages import match_languages
from tfm.tokenizer.tokenizer import Tokenizer

MAX_LANGUAGES_SHOWN = 8
SEVERAL_LANGUAGES_MESSAGE = "translates into several languages"


def needs_languages(tokenizer: Tokenizer, languages: LanguageMarking) -> bool:
    """Whether a model has to be told the languages of a text; `tokenizer_for_languages` explains the arguments."""
    return bool(tokenizer.languages) and not (tokenizer.has_source_language and languages == "source")


def tokenizer_for_languages(
    tokenizer: Tokenizer, languages: LanguageMarking, to: str | None, source_language: str | None, folder: Path
) -> Tokenizer:
    """Return the tokenizer of sources in a language that are to be translated into another.

    Args:
        tokenizer: of the sources.
        languages: the config's `languages`: the place of language tokens in texts.
        to: the language of the targets; None: not named.
        source_language: the language of the sources; None: not named.
        folder: of the model, for messages.

    Raises:
        DataError: the model has no such language, is not told one that it needs, or is told one that it does not read.
    """
    codes = list(tokenizer.languages)
    if source_language is not None and not tokenizer.has_source_language:
        raise DataError("takes no source language: remove --from", file=folder)
    if not codes and to is not None:
        raise DataError(f"was not trained with languages, so it cannot translate into {to}: remove --to", file=folder)
    if to is None and source_language is None and not needs_languages(tokenizer, languages):
        return tokenizer  # of the latter it has no more than the pieces
    missing_option = "--to" if to is None else "--from"
    if to is None or (tokenizer.has_source_language and source_language is None):
        problem = (
            "is told the languages of source and target" if tokenizer.has_source_language else SEVERAL_LANGUAGES_MESSAGE
        )
        raise DataError(f"{problem}: say which, {missing_option} {format_codes(codes, ' or ')}", file=folder)
    target = resolve_language_code(to, codes, "into", folder)
    if source_language is None:
        return tokenizer.select_target_language(target)
    return tokenizer.select_target_language(target, resolve_language_code(source_language, codes, "from", folder))


def resolve_language_code(language: str, codes: Collection[str], side: Literal["into", "from"], folder: Path) -> str:
    """Return the model's code of a language.

    Args:
        language: the code that was asked for.
        codes: the codes of the model.
        side: "into" or "from", for messages.
        folder: of the model, for messages.

    Raises:
        DataError: the model has no such language, or several.
    """
    matches = match_languages(language, codes)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise DataError(
            f"has {len(matches)} languages {language}: say which, {format_codes(matches, ' or ')}", file=folder
        )
    suggestions = (
        get_close_matches(language, codes, MAX_LANGUAGES_SHOWN, 0) if len(codes) > MAX_LANGUAGES_SHOWN else codes
    )
    raise DataError(
        f"does not translate {side} {language}; it translates {side} {format_codes(suggestions, ', ')}", file=folder
    )


def format_codes(codes: Collection[str], separator: str) -> str:
    """Return some of the codes, and the number of the others, in words."""
    first_codes, num_remaining = [*codes][:MAX_LANGUAGES_SHOWN], len(codes) - MAX_LANGUAGES_SHOWN
    return separator.join(first_codes) + (f" (and {num_remaining} more)" if num_remaining > 0 else "")
