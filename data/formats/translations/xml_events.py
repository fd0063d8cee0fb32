"""XML files from somebody else as events: read block by block, without entities of their own, in bounded memory."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from tfm.data.errors import DataError
from tfm.data.lines import MAX_LINE_BYTES, open_maybe_compressed

ENCODING_REMEDY = "convert it to UTF-8, as by iconv -f ENCODING -t UTF-8 FILE, and declare that in its first line"
CHARACTERS_REMEDY = (
    "it has a character that XML cannot hold (a control character, a bare & or <), which tr -d "
    "'\\000-\\010\\013\\014\\016-\\037' < FILE removes, or is in another encoding than it declares"
)
REFERENCES_REMEDY = (
    "remove references to control characters (&#x1F;), as by "
    "sed -E 's/&#(x[01]?[0-9A-Fa-f]|[12]?[0-9]|3[01]);/ /g' FILE"
)
ENTITIES_REMEDY = "write the character in place of an entity of HTML (&nbsp;), as by sed 's/&nbsp;/\\xc2\\xa0/g' FILE"
DAMAGE_REMEDY = "write it again by the program that it comes from, or mend it by hand (xmllint FILE shows the place)"
REMEDIES_BY_ERROR: Mapping[str, str] = {
    expat.errors.XML_ERROR_INVALID_TOKEN: CHARACTERS_REMEDY,
    expat.errors.XML_ERROR_BAD_CHAR_REF: REFERENCES_REMEDY,
    expat.errors.XML_ERROR_UNDEFINED_ENTITY: ENTITIES_REMEDY,
    expat.errors.XML_ERROR_NO_ELEMENTS: "is it complete?",
    expat.errors.XML_ERROR_UNCLOSED_TOKEN: "is it complete?",
}
"""By the words of expat."""
READ_BLOCK_BYTES = 2**16
MAX_DEPTH = 100
MAX_DISTINCT_NAMES = 10_000
"""Different names of elements and attributes."""


class Element(NamedTuple):
    """An element: its name without a prefix, and its attributes with theirs."""

    name: str
    attributes: Mapping[str, str]


class Event(NamedTuple):
    """An element that begins (start) or ends (end), or a piece of text.

    element: that begins or ends; of text the one around it. ancestors: the elements around it, from the outermost; the
    list changes when the next event is read. text: is empty for elements.
    """

    kind: str
    element: Element
    ancestors: Sequence[Element]
    text: str = ""


def read_events(path: Path) -> Iterator[Event]:
    """The events of an XML file, which may be in any encoding that it declares.

    Raises:
        DataError: naming the line; it is no XML, declares entities, or is nested or named without end.
    """
    buffered: list[tuple[str, str | Element]] = []
    names: dict[str, str] = {}
    parser = expat.ParserCreate(intern=names)
    parser.buffer_text = True

    def begin_element(name: str, attributes: dict[str, str]) -> None:
        buffered.append(("start", Element(name.rpartition(":")[2], attributes)))

    def refuse_declaration(name: str, *_: object) -> None:
        raise ValueError(f"declares or uses the entity {name[:40]!r}, which is not read: write its text in its place")

    parser.StartElementHandler = begin_element
    parser.EndElementHandler = lambda _: buffered.append(("end", ""))
    parser.CharacterDataHandler = lambda text: buffered.append(("text", text))
    parser.EntityDeclHandler = refuse_declaration
    parser.SkippedEntityHandler = refuse_declaration
    ancestors: list[Element] = []
    num_bytes = 0
    with open_maybe_compressed(path) as stream:
        while True:
            block = stream.read(READ_BLOCK_BYTES)
            num_bytes += len(block)
            try:
                parser.Parse(block, not block)
            except expat.ExpatError as error:
                problem = expat.ErrorString(error.code)
                remedy = ENCODING_REMEDY if "encoding" in problem else REMEDIES_BY_ERROR.get(problem, DAMAGE_REMEDY)
                raise DataError(f"not XML: {problem}; {remedy}", file=path, line=error.lineno) from None
            except (ValueError, LookupError) as error:
                remedy = f"; {ENCODING_REMEDY}" if "encoding" in str(error) else ""
                raise DataError(f"{error}{remedy}", file=path, line=parser.CurrentLineNumber) from None
            if num_bytes - parser.CurrentByteIndex > MAX_LINE_BYTES:
                raise DataError(f"has a tag or comment longer than {MAX_LINE_BYTES:,} bytes", file=path)
            if len(names) > MAX_DISTINCT_NAMES:
                raise DataError(f"has more than {MAX_DISTINCT_NAMES:,} different names of elements", file=path)
            for kind, content in buffered:
                if isinstance(content, Element):
                    if len(ancestors) >= MAX_DEPTH:
                        problem = f"its elements are nested more than {MAX_DEPTH} deep"
                        raise DataError(problem, file=path, line=parser.CurrentLineNumber)
                    yield Event(kind, content, ancestors)
                    ancestors.append(content)
                elif kind == "end":
                    yield Event(kind, ancestors.pop(), ancestors)
                else:
                    yield Event(kind, ancestors[-1], ancestors, content)
            buffered.clear()
            if not block:
                return
