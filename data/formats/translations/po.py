"""Catalogs of messages in PO, GNU gettext's format (www.gnu.org/software/gettext/manual/html_node/PO-Files.html)."""

import gettext
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
from tfm.data.formats.translations.units import TranslationUnit, WarningCallback, pairs_from_units
from tfm.data.lines import MAX_LINE_BYTES, open_lines

KEYWORD_PATTERN = re.compile(r'\s*(msgctxt|msgid|msgid_plural|msgstr|msgstr\[[0-9]{1,2}\])?\s*"((?:[^"\\]|\\.)*+)"\s*')
ESCAPE_PATTERN = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))")
ESCAPED_CHARACTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "v": "\v", "f": "\f", "\\": "\\", '"': '"'}
CHARSET_PATTERN = re.compile(r"charset=([\w.-]+)", re.IGNORECASE)
PLURAL_PATTERN = re.compile(r"plural\s*=\s*([^;]+)")
"""The rule in a header by which a number of things has a form."""
KNOWN_CHARSETS = ("utf-8", "utf8", "ascii", "us-ascii", "charset")
FUZZY_FLAG = "fuzzy"


@dataclass
class PoEntry:
    """A message while it is read: its strings by keyword, its flags, and the line where it begins."""

    line: int = 0
    strings: dict[str, list[str]] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    size: int = 0


def read_po(path: Path, corpus: CorpusConfig, on_warning: WarningCallback) -> Iterator[tuple[str, str]]:
    """The messages (`msgid`) of a file and their translations (`msgstr`); of one with plurals a pair for each form.

    Properties to filter by are `msgctxt` and flags (`fuzzy=yes`); fuzzy ones are left out unless a filter names them.
    Obsolete messages (`#~`) are not read. The form for one thing, by the rule in the header, goes with the message in
    the singular, and the others with that in the plural.
    """
    filters = corpus.filters or ()
    if not any(re.match(rf"{FUZZY_FLAG}!?=", each) for each in filters):
        corpus = corpus.model_copy(update={"filters": (*filters, f"{FUZZY_FLAG}!=yes")})
    return pairs_from_units(_read_units(path), path, corpus, on_warning)


def _read_units(path: Path) -> Iterator[TranslationUnit]:
    singular_form = 0
    for entry in _read_entries(path):
        texts = {keyword: "".join(parts) for keyword, parts in entry.strings.items()}
        forms = [text for keyword, text in texts.items() if keyword.startswith("msgstr")]
        if "msgid" not in texts or not forms:
            problem = f"its message has no {'translation (msgstr)' if 'msgid' in texts else 'msgid'}"
            raise DataError(problem, file=path, line=entry.line)
        if not texts["msgid"] and "msgctxt" not in texts:
            _check_charset(forms[0], path)
            singular_form = _singular_form(forms[0])
        else:
            yield from _units_of_message(entry, texts, forms, singular_form)


def _read_entries(path: Path) -> Iterator[PoEntry]:
    entry, keyword = PoEntry(), ""
    for number, line in enumerate(open_lines(path), 1):
        if not line.strip():
            continue
        match, is_comment = KEYWORD_PATTERN.fullmatch(line), line.startswith("#")
        if match is None and not is_comment:
            raise DataError("is no line of PO: a keyword and text in quotation marks", file=path, line=number)
        line_keyword = match[1] if match is not None else None
        if keyword.startswith("msgstr") and (is_comment or line_keyword in ("msgctxt", "msgid")):
            yield entry
            entry, keyword = PoEntry(), ""
        if line.startswith("#,"):
            entry.flags += [flag.strip() for flag in line[2:].split(",")]
        elif line.startswith("#~") and not entry.strings:
            entry.flags = []  # those above are of an obsolete message
        if match is None:
            continue
        entry.line = entry.line or number
        keyword = line_keyword or keyword
        if not keyword:
            raise DataError("is text without a keyword (msgid, msgstr) before it", file=path, line=number)
        if line_keyword in entry.strings:
            raise DataError(f"has {line_keyword} twice in one message", file=path, line=number)
        entry.size += len(line)
        if entry.size > MAX_LINE_BYTES:
            raise DataError(f"its message is longer than {MAX_LINE_BYTES:,} characters", file=path, line=number)
        entry.strings.setdefault(keyword, []).append(_unescape_text(match[2], path, number))
    if entry.strings:
        yield entry


def _unescape_text(text: str, path: Path, line_number: int) -> str:
    def unescape_match(match: re.Match[str]) -> str:
        octal, hexadecimal, letter = match.groups()
        code = int(octal, 8) if octal else int(hexadecimal or "0", 16)
        if (letter is not None and letter not in ESCAPED_CHARACTERS) or code > 0x7F:
            raise DataError(f"{match[0]!r} stands for no character", file=path, line=line_number)
        return ESCAPED_CHARACTERS[letter] if letter is not None else chr(code)

    return ESCAPE_PATTERN.sub(unescape_match, text) if "\\" in text else text


def _units_of_message(
    entry: PoEntry, texts: Mapping[str, str], forms: Sequence[str], singular_form: int
) -> Iterator[TranslationUnit]:
    """A unit for each form of a message. singular_form: the number of the form for one thing."""
    properties = dict.fromkeys(entry.flags, "yes") | {"msgctxt": texts.get("msgctxt", "")}
    plural = texts.get("msgid_plural", texts["msgid"])
    for number, form in enumerate(forms):
        message = texts["msgid"] if len(forms) > 1 and number == singular_form else plural
        yield TranslationUnit([(("source", "msgid"), message), (("target", "msgstr"), form or None)], properties)


def _singular_form(header: str) -> int:
    """The number of the form for one thing by the rule in a header: 0 in most languages, and if there is no rule."""
    rule = PLURAL_PATTERN.search(header)
    try:
        return int(gettext.c2py(rule[1])(1)) if rule is not None else 0
    except (ValueError, ArithmeticError, RecursionError):
        return 0


def _check_charset(header: str, path: Path) -> None:
    charset = CHARSET_PATTERN.search(header)
    if charset is not None and charset[1].lower() not in KNOWN_CHARSETS:
        remedy = "convert it to UTF-8 by `msgconv -t UTF-8`"
        raise DataError(f"is in {charset[1][:40]} by its header: {remedy}", file=path)
