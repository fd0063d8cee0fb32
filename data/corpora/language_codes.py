"""The languages and the tag that the sources of a corpus begin with, as a tokenizer has them."""

from tfm.data.corpora.portions import Corpus
from tfm.data.corpora.sources import describe_corpus
from tfm.data.errors import DataError
from tfm.tokenizer.languages import match_languages
from tfm.tokenizer.special import language_token
from tfm.tokenizer.tokenizer import Tokenizer


def language_codes(corpus: Corpus, source: Tokenizer) -> tuple[str, ...]:
    """Return the codes for `Tokenizer.select_target_language` of a corpus; none if it has no languages.

    Raises DataError if the tokenizer of the sources has no such language, or several.
    """
    if corpus.languages is None:
        return ()
    source_language, target_language = corpus.languages
    codes = [
        match_languages(name, source.languages)
        for name in ((target_language, source_language) if source.has_source_language else (target_language,))
    ]
    for language, matches in zip((target_language, source_language), codes, strict=False):
        if len(matches) > 1:
            problem = f"the tokenizer has {len(matches)} languages {language}: say which, {' or '.join(matches)}"
            raise DataError(problem, file=describe_corpus(corpus))
        if not matches:
            problem = (
                f"the tokenizer has no token {language_token(language)}: make one with a recipe that has this language"
            )
            raise DataError(problem, file=describe_corpus(corpus))
    return tuple(code for (code,) in codes)


def select_source_tokenizer(source: Tokenizer, codes: tuple[str, ...], tag: str | None) -> Tokenizer:
    """Return the tokenizer of the sources of a corpus.

    Args:
        source: the tokenizer of all sources.
        codes: of the languages that they begin with, as `language_codes` gives them.
        tag: the tag that they begin with behind them; None for none.

    Raises:
        DataError: it has no such tag.
    """
    source = source.select_target_language(*codes) if codes else source
    if tag is not None and tag not in source.tags:
        raise DataError(f"the tokenizer has no tag {tag}: make one with a recipe whose data.train has it")
    return source if tag is None else source.select_tag(tag)
