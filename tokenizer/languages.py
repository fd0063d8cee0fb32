"""Languages that a model translates into: each is a control token, which stands before a source.

The tokens are spelled as OPUS-MT spells them: `>>deu<<`, with the code of ISO 639-3: "translate this into German". In
the vocabularies of NLLB, mBART and M2M100 a token names the language of a text, of a source or a target: `deu_Latn`,
`de_DE`, `__de__`. There two stand before a source: that of the target, and its own.

No text can spell one: as with all control tokens, a text of these characters is encoded as any other text.
"""

import re
from collections.abc import Collection, Iterable, Sequence

import tokenizers

from tfm.tokenizer.special import LANGUAGE_CODE_PATTERN, language_token


def add_languages(backend: tokenizers.Tokenizer, languages: Iterable[str]) -> None:
    """Add the tokens of these languages behind all other pieces, in the order of their codes."""
    tokens = [language_token(language) for language in sorted(set(languages))]
    backend.add_special_tokens([tokenizers.AddedToken(each, special=True, normalized=False) for each in tokens])


def is_language_list(value: object) -> bool:
    """Whether a value that was read is a list of codes of ISO 639-3, each once."""
    return (
        isinstance(value, list)
        and all(isinstance(each, str) and re.fullmatch(LANGUAGE_CODE_PATTERN, each) for each in value)
        and len({*value}) == len(value)
    )


TARGET_LANGUAGE_TOKEN_PATTERN = f">>{LANGUAGE_CODE_PATTERN}<<"
TEXT_LANGUAGE_TOKEN_PATTERN = r"[a-z]{3}_[A-Z][a-z]{3}|[a-z]{2}_[A-Z]{2}|__[a-z]{2,3}__"
"""Tokens of languages: of OPUS-MT and of tfm; of NLLB, mBART and M2M100."""


def language_ids(backend: tokenizers.Tokenizer) -> dict[str, int]:
    """The languages of a tokenizer: their ids by their codes, in the order of the ids."""
    return _language_token_ids(backend, TARGET_LANGUAGE_TOKEN_PATTERN) or _language_token_ids(
        backend, TEXT_LANGUAGE_TOKEN_PATTERN
    )


def has_source_language(backend: tokenizers.Tokenizer) -> bool:
    """Whether a tokenizer's languages are named of texts, sources and targets alike, and not asked for."""
    return bool(_language_token_ids(backend, TEXT_LANGUAGE_TOKEN_PATTERN)) and not _language_token_ids(
        backend, TARGET_LANGUAGE_TOKEN_PATTERN
    )


def is_language_token(token: str) -> bool:
    """Whether a token names the language of texts."""
    return re.fullmatch(TEXT_LANGUAGE_TOKEN_PATTERN, token) is not None


def _language_token_ids(backend: tokenizers.Tokenizer, token_pattern: str) -> dict[str, int]:
    added_tokens = sorted(backend.get_added_tokens_decoder().items())
    pattern = re.compile(token_pattern)
    tokens = ((number, token.content) for number, token in added_tokens if token.special)
    return {content.strip("<>_"): number for number, content in tokens if pattern.fullmatch(content)}


# Codes

_ISO_639_PAIRS = """
af:afr am:amh ar:ara az:aze ba:bak be:bel bg:bul bn:ben br:bre bs:bos ca:cat cs:ces cy:cym da:dan de:deu el:ell en:eng
eo:epo es:spa et:est eu:eus fa:fas ff:ful fi:fin fr:fra fy:fry ga:gle gd:gla gl:glg gn:grn gu:guj ha:hau he:heb hi:hin
hr:hrv ht:hat hu:hun hy:hye id:ind ig:ibo is:isl it:ita ja:jpn jv:jav ka:kat kk:kaz km:khm kn:kan ko:kor ku:kur ky:kir
la:lat lb:ltz lg:lug ln:lin lo:lao lt:lit lv:lav mg:mlg mi:mri mk:mkd ml:mal mn:mon mr:mar ms:msa mt:mlt my:mya ne:nep
nl:nld nn:nno no:nor ns:nso oc:oci or:ori pa:pan pl:pol ps:pus pt:por qu:que ro:ron ru:rus sa:san sd:snd si:sin sk:slk
sl:slv sn:sna so:som sq:sqi sr:srp ss:ssw st:sot su:sun sv:swe sw:swa ta:tam te:tel tg:tgk th:tha ti:tir tk:tuk tl:tgl
tn:tsn tr:tur ts:tso tt:tat ug:uig uk:ukr ur:urd uz:uzb vi:vie wo:wol xh:xho yi:yid yo:yor zh:zho zu:zul
"""
ISO_639_3 = dict(pair.split(":") for pair in _ISO_639_PAIRS.split())
"""The codes of ISO 639-3 by those of ISO 639-1, of two letters; `ns`, Northern Sotho, is M2M100's own."""


def to_iso_639_3(code: str) -> str | None:
    """Return the code of ISO 639-3 of a model's own code such as deu, deu_Latn, de_DE or de; None if not known."""
    language = code.partition("_")[0]
    return language if len(language) == 3 else ISO_639_3.get(language)


def match_languages(requested: str, model_codes: Collection[str]) -> list[str]:
    """The languages of a model that a code means: the model's own code, or all of one code of ISO 639-3."""
    return (
        [requested] if requested in model_codes else [code for code in model_codes if to_iso_639_3(code) == requested]
    )


SCRIPTS_BY_REGION = {"cn": "hans", "sg": "hans", "tw": "hant", "hk": "hant", "mo": "hant"}
"""The script in which Chinese is written there, by the region that browsers name in its place."""


def match_request_languages(requested: str, model_codes: Collection[str]) -> list[str]:
    """The languages of a model that the code of a request means, such as en, eng, en-GB, zh-Hant or zh-TW.

    The model's own code means itself alone; a script or region tells apart those of one code of ISO 639-3.
    """
    if requested in model_codes:
        return [requested]
    base, *subtags = requested.replace("_", "-").lower().split("-")
    language = to_iso_639_3(base)
    matches = [] if language is None else [code for code in model_codes if to_iso_639_3(code) == language]
    scripts = {SCRIPTS_BY_REGION.get(subtag, subtag) for subtag in subtags}
    return [code for code in matches if code.partition("_")[2].lower() in scripts] or matches


def request_code(model_code: str, model_codes: Collection[str]) -> str:
    """The code of a model's language in requests: that of two letters if there is one, as browsers and clients have it.

    The script is named too if the code means several of the model's languages: zh-Hant.
    """
    language = to_iso_639_3(model_code)
    short = next((short for short, code in ISO_639_3.items() if code == language), None)
    if short is None:
        return model_code
    script = model_code.partition("_")[2]
    is_shared = bool(script) and len([code for code in model_codes if to_iso_639_3(code) == language]) > 1
    return f"{short}-{script}" if is_shared else short


def ambiguity_problem(
    pairs: Sequence[tuple[str, str]], source: str | None, target: str | None, *, is_source_told: bool
) -> str | None:
    """The reason why a request does not say which of a model's languages are meant; None if it does.

    Args:
        pairs: the languages that its codes mean, source and target.
        source: the code of the source, if it has one.
        target: that of the target.
        is_source_told: whether the model is told the language of its source.
    """
    sources, targets = map(dict.fromkeys, zip(*pairs, strict=True))
    for code, own_codes in ((source, sources), (target, targets)):
        if code is not None and len(own_codes) > 1:
            return f"{code:.20} means {' and '.join(own_codes)} here: say which"
    if source is None and is_source_told and len(sources) > 1:
        return f"the model is told the language of the text: name it as source, one of {', '.join(sources)[:200]}"
    return None
