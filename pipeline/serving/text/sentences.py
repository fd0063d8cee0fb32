"""Splits a text into sentences that a model reads one by one, without losing any character."""

from collections.abc import Callable, Iterator

import regex
import sentencex

from tfm.pipeline.serving.text.long_sentences import cut_sentence
from tfm.pipeline.serving.text.segments import TextSegments

LANGUAGE_CODES = dict(
    pair.split(":")
    for pair in (
        "amh:am ara:ar bul:bg ben:bn cat:ca ces:cs dan:da deu:de ell:el eng:en spa:es fin:fi fra:fr guj:gu hin:hi "
        "hye:hy ita:it jpn:ja kaz:kk kan:kn mal:ml mar:mr mya:my nld:nl pan:pa pol:pl por:pt rus:ru slk:sk tam:ta "
        "tel:te ukr:uk"
    ).split()
)
"""ISO 639-3 to ISO 639-1, of languages whose abbreviations sentencex has by the shorter code."""

_LINE_BREAK = regex.compile(r"[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
_SINGLE_LINE_BREAK = r"(?:\r\n|[\n\r\x85\u2028])"
_PARAGRAPH_BREAK = regex.compile(rf"{_SINGLE_LINE_BREAK}[^\S\n\r]*{_SINGLE_LINE_BREAK}\s*|[\v\f\x1c-\x1e\u2029]+")
_UNREAD = "".join(filter(str.isspace, map(chr, range(0x3001)))) + (
    "\N{ZERO WIDTH NO-BREAK SPACE}\N{ARABIC LETTER MARK}\N{LEFT-TO-RIGHT MARK}\N{RIGHT-TO-LEFT MARK}"
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
"""Around a sentence, and not read with it: white space, the mark of an encoding, those of direction."""
_SPACE = regex.compile(r"\s")
_LETTER_NUMBER_OR_SYMBOL = regex.compile(r"[\p{L}\p{N}\p{S}]")
_SURROGATE = regex.compile("[\ud800-\udfff]")


def split_text(
    text: str,
    language: str | None,
    *,
    fits: Callable[[str], bool] | None = None,
    has_wrapped_lines: bool = False,
) -> TextSegments:
    """Split a text into sentences; `join` of the result puts everything else back as it was.

    A line break ends a sentence, as in lists and menus, whose lines have no full stop.

    Args:
        text: any text.
        language: its ISO 639 code, for the abbreviations of the language; None: not known.
        fits: whether a model reads a sentence whole; longer ones are cut at clauses, else at spaces, else anywhere
            between characters.
        has_wrapped_lines: whether lines were broken to fit a page, so that empty lines alone end a sentence.
    """
    sentences: list[str] = []
    separators = [""]
    cuts: set[int] = set()
    for sentence in _find_sentences(text, language, _PARAGRAPH_BREAK if has_wrapped_lines else _LINE_BREAK):
        if not _LETTER_NUMBER_OR_SYMBOL.search(sentence):
            separators[-1] += sentence
            continue
        parts = [sentence] if fits is None else cut_sentence(sentence, fits)
        for number, part in enumerate(parts):
            bare = part.strip(_UNREAD)
            prefix, suffix = part[: len(part) - len(part.lstrip(_UNREAD))], part[len(part.rstrip(_UNREAD)) :]
            if not bare:
                separators[-1] += part
                continue
            separators[-1] += prefix
            sentences.append(bare)
            separators.append(suffix)
            if number < len(parts) - 1:
                cuts.add(len(sentences) - 1)
    return TextSegments(tuple(sentences), tuple(separators), frozenset(cuts))


def _find_sentences(text: str, language: str | None, line_break: "regex.Pattern[str]") -> Iterator[str]:
    """The sentences of a text with the spaces around them, and its line breaks; joined they are the text."""
    start = 0
    for match in line_break.finditer(text):
        yield from _split_line(text[start : match.start()], language)
        yield match.group()
        start = match.end()
    yield from _split_line(text[start:], language)


def _split_line(line: str, language: str | None) -> Iterator[str]:
    """The sentences of a line with the spaces around them."""
    # The library panics at some spaces that are no ASCII, and at halves of characters; borders stay where they are.
    plain = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", _SPACE.sub(" ", line))
    code = (language or "").replace("_", "-").split("-")[0].lower()
    try:
        sentences = sentencex.segment(LANGUAGE_CODES.get(code, code) or "en", plain)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        sentences = [plain]
    if sum(map(len, sentences)) != len(line):
        sentences = [plain]
    start = 0
    for sentence in sentences:
        yield line[start : start + len(sentence)]
        start += len(sentence)
