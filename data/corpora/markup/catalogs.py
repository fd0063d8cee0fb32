"""Catalogs of the messages of programs in one language: named, and not read as a text a line."""

import re
from collections.abc import Mapping, Sequence

MIN_MESSAGES_JUDGED = 3
"""Fewer lines with a name before a mark may be texts."""
XML_BEGIN = r"\s*(<\?xml[^>]*>\s*)?(<!--(?:(?!-->)[\s\S])*-->\s*)?"
CONVERTERS_BY_BEGIN: Mapping[re.Pattern[str], tuple[str, str]] = {
    re.compile(rf"{XML_BEGIN}<resources\b"): ("strings of Android", "android2po"),
    re.compile(rf"{XML_BEGIN}<root>\s*(<!--|<xsd:schema|<resheader|<data name=)"): ("RESX", "resx2po"),
    re.compile(r'\s*\{\s*"@@?[a-z]*locale"'): ("ARB", "arb2po"),
    re.compile(r"\s*<\?php\b"): ("PHP", "php2po"),
}
"""By the beginning of a catalog: its name, and the program of translate-toolkit that makes PO of it and of its
translation.
"""
QT_PATTERN = re.compile(rf"{XML_BEGIN}(<!DOCTYPE TS[^>]*>\s*)?<TS\b")
MOZILLA_PATTERN = re.compile(r"(?:##.*\n|\s*\n)*(?:;.+\n(?!;).+(?:\n\s*|\Z)){2}")
FLUENT_PATTERN = re.compile(r"-?[A-Za-z][\w-]* =( .*)?|[ \t]+.*")
FLUENT_MARK = re.compile(r" \.[\w-]+ = |\{ [-$\"\w]|^-\w", re.MULTILINE)
"""An attribute, a variable or text in braces, or a term; properties of Java have none of these."""
SECTION_PATTERN = re.compile(r"\s*\[[^\]]+\]\s*")
STRING_PATTERN = re.compile(r'\s*"(?:[^"\\]|\\.)+"\s*=\s*"(?:[^"\\]|\\.)*"\s*;\s*')
PROPERTY_PATTERN = re.compile(r"\s*([A-Za-z][\w.-]{2,})\s*=\s*(.*)")
COMMENT_MARKS = ("#", "!", "/*", "//", "*")


def catalog_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no texts, but messages with their names or in elements; None if they are texts.

    lines: the first of a file.
    """
    head = "\n".join(lines)
    if QT_PATTERN.match(head):
        remedy = "make PO of it, as by `ts2po FILE OUT.po` of translate-toolkit"
        return f'is a catalog of Qt: {remedy}, and set format = "po"'
    if MOZILLA_PATTERN.match(head):
        remedy = "make PO of it, as by `mozlang2po FILE OUT.po` of translate-toolkit"
        return f'is messages and their translations as Mozilla had them (.lang): {remedy}, and set format = "po"'
    name, converter = next((entry for begin, entry in CONVERTERS_BY_BEGIN.items() if begin.match(head)), ("", ""))
    messages = [line for line in lines if line.strip() and not line.lstrip().startswith(COMMENT_MARKS)]
    if len(messages) >= MIN_MESSAGES_JUDGED and all(map(STRING_PATTERN.fullmatch, messages)):
        name, converter = "strings of Apple", "prop2po --personality=strings --encoding=utf-8"
    elif len(messages) >= MIN_MESSAGES_JUDGED and _are_fluent(messages):
        name, converter = "Fluent", "fluent2po"
    elif _are_properties(messages):
        name, converter = "properties of Java", "prop2po"
    elif messages and SECTION_PATTERN.fullmatch(messages[0]) and _have_properties(messages):
        name, converter = "INI", "ini2po"
    if not name:
        return None
    remedy = f"make PO of both, as by `{converter} -t SOURCE TARGET OUT.po` of translate-toolkit"
    return f'holds messages of one language with their names ({name}): {remedy}, and set format = "po"'


def _are_fluent(messages: Sequence[str]) -> bool:
    """Whether each line is a message of Fluent or goes on with one, and some has a variable, a term or an attribute."""
    if messages[0][0].isspace() or sum(not line[0].isspace() for line in messages) < 2:
        return False
    return all(map(FLUENT_PATTERN.fullmatch, messages)) and FLUENT_MARK.search("\n".join(messages)) is not None


def _have_properties(lines: Sequence[str]) -> bool:
    """Whether lines below the names of sections in brackets are properties."""
    return _are_properties([line for line in lines if SECTION_PATTERN.fullmatch(line) is None])


def _are_properties(messages: Sequence[str]) -> bool:
    """Whether each line has a name of its own and, behind =, a value, most of which have letters."""
    matches = [PROPERTY_PATTERN.fullmatch(line) for line in messages]
    properties = [match for match in matches if match is not None]
    if len(properties) < max(MIN_MESSAGES_JUDGED, len(messages)) or len({match[1] for match in properties}) < len(
        properties
    ):
        return False
    return 2 * sum(any(map(str.isalpha, match[2])) for match in properties) > len(properties)
