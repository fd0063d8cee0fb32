"""Each reader of corpora on generated files: what it gives is what they were made of, written by other code."""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from xml.etree import ElementTree

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tfm.data.corpora.sources import read_pairs, with_lists_of
from tfm.data.corpus_config import CorpusConfig
from tfm.data.lines import PROBLEMS_BY_MAGIC, PROBLEMS_BY_PATTERN
from tfm.pipeline.scoring.metrics.entities.schemes import extract_entities
from tfm.tokenizer.labels import SPACE_WITHIN_WORD

Pairs: TypeAlias = list[tuple[str, str]]
Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]
NUM_QUICK = 15
SPACES = "".join(filter(str.isspace, map(chr, range(0x3001))))
XZ_CHECKS = (lzma.CHECK_NONE, lzma.CHECK_CRC32, lzma.CHECK_CRC64, lzma.CHECK_SHA256)
NASTY = "ab ü語_-&<>'#:{}[]\u2028\x85\U0001f469\ufeff" + "\t\r,;|" * 2 + '\n"\\' * 6


@dataclass(frozen=True)
class Case:
    """A file, how it is read, and its pairs. tagged: the same pairs by words, where these may hold spaces."""

    name: str
    content: bytes
    config: dict[str, Any]
    expected: Pairs
    tagged: Pairs | None = None
    blocks: dict[str, int] = field(default_factory=dict)


def texts(without: str = "", max_size: int = 8, min_size: int = 0) -> st.SearchStrategy[str]:
    """Short texts, most of them of the letters that formats give a meaning to."""
    nasty = st.text(
        st.sampled_from([each for each in NASTY if each not in without]), min_size=min_size, max_size=max_size
    )
    any_letters = st.characters(codec="utf-8", exclude_characters=without, exclude_categories=["Cs"])
    return st.one_of(nasty, nasty, st.text(any_letters, min_size=min_size, max_size=max_size))


def one_line(text: str | None) -> str:
    return re.sub(r"\r*\n", " ", text or "")


# Cells between delimiters


@st.composite
def tables(draw: Draw) -> Case:
    """CSV and TSV as `csv` writes them; those with quotation marks doubled also as pandas reads them."""
    delimiter = draw(st.sampled_from(",;\t|"))
    ending = "tsv" if delimiter == "\t" and draw(st.booleans()) else "csv"
    style = draw(st.sampled_from(["double", "backslash", "raw"]))
    is_headed, is_found = draw(st.booleans()), draw(st.booleans())
    without = "\ufeff" + ({"raw": f"\n{delimiter}", "double": ""}.get(style, "") + ("\\\t\n" if is_found else ""))
    if is_found and (style == "raw" or ending == "tsv"):
        style, without = "double", without + "\r"
    row = st.tuples(texts(without), texts(without), texts("\ufeff\r\n\\\t" + delimiter))
    rows = draw(st.lists(row, min_size=1, max_size=5))
    config: dict[str, Any] = {"format": ending, "source": "second", "target": "one"}
    if not is_headed:
        config |= {"source": 1, "target": 0}
    if not is_found or not is_headed:
        config |= {"quoting": style} | ({"delimiter": delimiter} if ending == "csv" else {})
    content = _table(draw, delimiter, style, [["one", "second", "3"]] * is_headed + [[*each] for each in rows])
    assume(content.count("\n") > 1 or content.count("\r") < 2)  # one line of CR alone is refused
    expected = [(one_line(second), one_line(first)) for first, second, _ in rows]
    if style == "double" and "\r" not in content:
        frame = pd.read_csv(
            io.StringIO(content), sep=delimiter, header=None, dtype=str, na_filter=False, encoding="utf-8"
        )
        theirs = [(one_line(b), one_line(a)) for a, b, _ in frame.itertuples(index=False)][is_headed:]
        assert theirs == expected, "pandas"
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return Case(f"a.{ending}", (mark + content).encode(), config, expected)


def _table(draw: Draw, delimiter: str, style: str, rows: list[list[str]]) -> str:
    end = draw(st.sampled_from(["\n", "\r\n"]))
    if style == "raw":
        lines = [delimiter.join(row) for row in rows]
    else:
        lines = []
        modes = [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, *([csv.QUOTE_NONE] if style == "backslash" else [])]
        how: dict[str, Any] = {"quoting": draw(st.sampled_from(modes)), "delimiter": delimiter}
        if style == "backslash":
            how |= {"doublequote": False, "escapechar": "\\"}
        for row in rows:
            stream = io.StringIO()
            csv.writer(stream, lineterminator=end, **how).writerow(row)
            lines.append(stream.getvalue().removesuffix(end))
    blank = draw(st.lists(st.sampled_from(["", end]), min_size=len(lines), max_size=len(lines)))
    return "".join(before + line + end for before, line in zip(blank, lines, strict=True))


# JSON


def nested(path: list[str], value: object) -> dict[str, Any]:
    return {path[0]: nested(path[1:], value) if path[1:] else value}


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Two objects in one, whose common keys hold objects."""
    both = one.keys() & other.keys()
    return one | other | {key: merged(one[key], other[key]) for key in both}


@st.composite
def json_files(draw: Draw) -> Case:
    """Objects at any depth, one a line, in an array, or in one that is in an object."""
    first = draw(st.sampled_from(["source", "a.b.c", "a.d", "translation.en", "en"]))
    second = draw(st.sampled_from(["x y", "a.b.d", "a.e.f", "translation.de"]))
    paths = [f"translation.{name}".split(".") if name == "en" else name.split(".") for name in (first, second)]
    rows = draw(st.lists(st.tuples(st.none() | texts(), st.none() | texts()), min_size=1, max_size=6))
    more = draw(st.dictionaries(st.sampled_from(["id", "]}", "n"]), st.none() | st.integers() | texts()))
    objects = [
        more | merged(nested(paths[0], a), nested(paths[1], b)) | ({"l": [{"z": 1}]} if more else {}) for a, b in rows
    ]
    how: dict[str, Any] = {"ensure_ascii": draw(st.booleans())}
    kind = draw(st.sampled_from(["lines", "array", "wrapped"]))
    if kind == "lines":
        blank = draw(st.sampled_from(["\n", "\r\n", "\n \n"]))
        content = "".join(json.dumps(each, **how) + blank for each in objects)
    else:
        how["indent"] = draw(st.sampled_from([None, 0, 2]))
        before = draw(st.dictionaries(st.sampled_from(["version", 'a"[{']), st.none() | st.floats(0, 9) | texts()))
        after = draw(st.dictionaries(st.sampled_from(["end", "licence"]), st.none() | st.lists(st.integers())))
        name = draw(st.sampled_from(["data", "rows", "x"]))
        document = objects if kind == "array" else {**before, name: objects, **after}
        content = json.dumps(document, **how)
    config = {"format": "jsonl", "source": first, "target": second}
    blocks = {"READ_BLOCK_CHARACTERS": draw(st.sampled_from([8, 64, 2**20]))} if kind == "array" else {}
    mark = draw(st.sampled_from(["", "\ufeff"]))
    expected = [(one_line(a), one_line(b)) for a, b in rows]
    return Case("a.json", (mark + content).encode(), config, expected, blocks=blocks)


# Parquet


def make_array(kind: str, cells: list[Any]) -> pa.Array:
    """The cells as a column of a type of Arrow."""
    if kind.startswith("dictionary"):
        index = pa.int8() if kind.endswith("8") else pa.int32()
        return pa.array(cells, pa.string()).cast(pa.dictionary(index, pa.string()))
    text = {"view": pa.string_view(), "large": pa.large_string()}.get(kind.partition(" ")[0], pa.string())
    lists = {"list": pa.list_, "large list": pa.large_list, "view list": pa.list_view}
    if kind in lists:
        return pa.array(cells, lists[kind](pa.string()))
    return pa.array(cells, pa.list_(pa.string(), 2) if kind == "fixed list" else text)


@st.composite
def parquet_files(draw: Draw) -> Case:
    """Columns of every type of text and of lists of texts, in structs at any depth."""
    count = draw(st.integers(1, 12))
    columns, names, sides, kinds = {}, [], [], []
    for side in ("one", "two"):
        kind = draw(st.sampled_from(TYPES))
        length = {"min_size": 2, "max_size": 2} if kind == "fixed list" else {"max_size": 3}
        cell: st.SearchStrategy[Any] = st.lists(texts(), **length) if "list" in kind else texts()
        cells = draw(st.lists(st.none() | cell, min_size=count, max_size=count))
        column = make_array(kind, cells)
        kinds.append(kind)
        within = draw(st.sampled_from([[], ["in"], ["in", "a"], ["in", "a", "b"]]))
        for name in reversed(within):
            column = pa.StructArray.from_arrays([column], [name])
        columns[side] = column
        names.append(".".join([side, *within]))
        sides.append([one_line(" ".join(each or ()) if "list" in kind else each) for each in cells])
    table = pa.table({"other": list(range(count)), **columns})
    how = {
        "compression": draw(st.sampled_from(["none", "snappy", "zstd"])),
        "use_dictionary": draw(st.booleans()),
        "row_group_size": 12 if "view" in " ".join(kinds) else draw(st.integers(1, 12)),  # pyarrow cannot cut views
        "data_page_version": draw(st.sampled_from(["1.0", "2.0"])),
        "store_schema": draw(st.booleans()),
    }
    stream = io.BytesIO()
    pq.write_table(table, stream, **how)
    config = {"format": "parquet", "source": names[0], "target": names[1], "lists": "join"}
    return Case("a.parquet", stream.getvalue(), config, list(zip(*sides, strict=True)))


# A word a line


def words_of(without: str = "") -> st.SearchStrategy[str]:
    """Words without white space, which do not begin a comment."""
    return texts(SPACES + "#\ufeff" + without, min_size=1)


def spans(draw: Draw) -> list[tuple[str, int]]:
    """Entities of a sentence and what lies between: a type, or none, and a number of words."""
    return draw(st.lists(st.tuples(st.sampled_from(["", "PER", "B-x"]), st.integers(1, 3)), min_size=1, max_size=4))  # type: ignore[no-any-return]


def tags_of(found: list[tuple[str, int]], scheme: str) -> list[str]:
    tags: list[str] = []
    for kind, length in found:
        letters = "B" + "I" * (length - 1)
        if scheme == "IOBES":
            letters = "S" if length == 1 else letters[:-1] + "E"
        tags += [f"{letter}-{kind}" if kind else "O" for letter in letters]
    return tags


@st.composite
def conll_files(draw: Draw) -> Case:
    """Columns of words and tags; what seqeval reads as entities are the spans that the tags were made of."""
    scheme = draw(st.sampled_from(["IOB2", "IOBES"]))
    is_tabbed = draw(st.booleans())
    separator = "\t" if is_tabbed else draw(st.sampled_from([" ", "  "]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    lines, expected, tagged = [], [], []
    for _ in range(draw(st.integers(1, 3))):
        found = spans(draw)
        tags = tags_of(found, scheme)
        assert [*map(tuple, extract_entities(tags, scheme))] == seqeval(tags, scheme), tags
        parts = st.lists(words_of(SPACE_WITHIN_WORD), min_size=1, max_size=2 if is_tabbed else 1)
        words = [draw(parts) for _ in tags]
        more = [draw(words_of()) for _ in tags]
        lines += [*draw(st.sampled_from([[], ["# text = a b c d"], [separator.join(["-DOCSTART-", "-X-", "O"]), ""]]))]
        rows = zip(words, more, tags, strict=True)
        lines += [separator.join([" ".join(word), *rest]) for word, *rest in rows]  # type: ignore[list-item]
        lines += [""] * draw(st.integers(1, 2))
        expected.append((" ".join(map(" ".join, words)), " ".join(tags)))
        tagged.append((" ".join(map(SPACE_WITHIN_WORD.join, words)), " ".join(tags)))
    content = end.join(lines + [""] * draw(st.integers(0, 1)))
    # a first column of one value, throughout or in each sentence, is refused: it names documents
    assume(any(len({*source.split()}) > 1 for source, _ in expected))
    return Case("a.conll", content.encode(), {"format": "conll"}, expected, tagged)


def seqeval(tags: list[str], scheme: str) -> list[tuple[int, int, str]]:
    """The entities by the rules of seqeval (`end_of_chunk`, `start_of_chunk`), for tags that keep to their scheme."""
    found, begin = [], 0
    for place, (tag, after) in enumerate(zip(tags, [*tags[1:], "O"], strict=True)):
        if tag[0] in "BS":
            begin = place
        if tag != "O" and after[0] not in "IE":
            found.append((begin, place + 1, tag[2:]))
    return found


COLUMNS = {"form": 1, "lemma": 2, "upos": 3, "xpos": 4, "deprel": 7}


@st.composite
def conllu_files(draw: Draw) -> Case:
    """Treebanks with words of several parts, multiword tokens, empty nodes and `_`, as a few plain lines read them."""
    column = draw(st.sampled_from(["lemma", "upos", "xpos", "deprel"]))
    label, free = (
        words_of("_"),
        st.lists(words_of(SPACE_WITHIN_WORD), min_size=1, max_size=2).map(" ".join) | st.just("_"),
    )
    blocks = []
    for _ in range(draw(st.integers(1, 3))):
        lines = draw(st.sampled_from([[], ["# text = x", "#"]]))
        for number in range(1, draw(st.integers(1, 4)) + 1):
            rest = ["_"] * 8
            if draw(st.integers(0, 4)) == 0:
                lines.append("\t".join([f"{number}-{number + 1}", draw(free), *rest]))
            cells = [str(number), draw(free), draw(free), draw(label), draw(label), "A=b", "0", draw(label), "_", "_"]
            lines.append("\t".join(cells))
            if draw(st.integers(0, 4)) == 0:
                lines.append("\t".join([f"{number}.1", draw(free), *rest]))
        blocks.append("\n".join(lines))
    content = "\n\n".join(blocks) + draw(st.sampled_from(["", "\n", "\n\n"]))
    expected, tagged = [], []
    for block in content.strip("\n").split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if re.match(r"\d+\t", line)]
        sides = [[row[place] for row in rows] for place in (1, COLUMNS[column])]
        expected.append((" ".join(sides[0]), " ".join(sides[1])))
        within = [" ".join(word.replace(" ", SPACE_WITHIN_WORD) for word in side) for side in sides]
        tagged.append((within[0], within[1]))
    words = [line.split("\t") for line in content.split("\n") if re.match(r"\d+\t", line)]
    assume(all({row[place] for row in words} != {"_"} for place in (1, 2)))  # a treebank without its text is refused
    config = {"format": "conllu", "source": "form", "target": column}
    return Case("a.conllu", content.encode(), config, expected, tagged)


@st.composite
def labelled_files(draw: Draw) -> Case:
    """A label and a text a line, in all lines with fastText's mark, or in none."""
    label = words_of().filter(lambda word: not word.startswith("_"))
    plain = texts("\n\r\ufeff").map(lambda text: text.strip(" \t"))
    rows, mark = (
        draw(st.lists(st.tuples(label, plain), min_size=1, max_size=5)),
        draw(st.sampled_from(["", "__label__"])),
    )
    content = "".join(f"{mark}{name} {text}\n" for name, text in rows)
    return Case("a.txt", content.encode(), {"format": "labelled"}, [(text, name) for name, text in rows])


# Translations


def xml_text(draw: Draw) -> str:
    """A text that XML can hold, with CR and CRLF as the line breaks that it reads."""
    allowed = texts("\r").map(lambda text: re.sub("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "x", text))
    return draw(allowed)  # type: ignore[no-any-return]


def add_segment(draw: Draw, parent: ElementTree.Element, codes: list[str], marks: list[str], depth: int = 2) -> str:
    """Fill an element with text, tags around text (`marks`) and codes (`codes`); the text without these."""
    parent.text = said = xml_text(draw)
    for _ in range(draw(st.integers(0, 2)) if depth else 0):
        name = draw(st.sampled_from([*codes, *marks]))
        child = ElementTree.SubElement(parent, name, {"id": draw(st.sampled_from(["1", '"<']))})
        inner = add_segment(draw, child, codes, marks, depth - 1)
        child.tail = xml_text(draw)
        said += ("" if name in codes else inner) + child.tail
    return said


def xml_bytes(draw: Draw, root: ElementTree.Element, doctype: str = "") -> bytes:
    encoding = draw(st.sampled_from(["utf-8", "utf-16", "iso-8859-1", "us-ascii"]))
    text = ElementTree.tostring(root, "unicode")
    return f'<?xml version="1.0" encoding="{encoding}"?>\n{doctype}{text}'.encode(encoding, "xmlcharrefreplace")


LANG = "{http://www.w3.org/XML/1998/namespace}lang"


@st.composite
def tmx_files(draw: Draw) -> Case:
    """Memories of several languages, in any order, some without one of the two; with tags, codes and properties."""
    root = ElementTree.Element("tmx", version="1.4")
    ElementTree.SubElement(root, "header", srclang="en")
    body = ElementTree.SubElement(root, "body")
    expected: Pairs = []
    is_filtered = draw(st.booleans())
    for _ in range(draw(st.integers(1, 4))):
        unit = ElementTree.SubElement(body, "tu", draw(st.sampled_from([{}, {"creationid": "MT"}])))
        if is_final := draw(st.booleans()):
            ElementTree.SubElement(unit, "prop", type="state").text = "final"
        said: dict[str, str] = {}
        for code in draw(st.permutations(["en", "de", "fr"]))[: draw(st.integers(2, 3))]:
            written = draw(st.sampled_from([code, code.upper(), f"{code}-XX"]))
            variant = ElementTree.SubElement(unit, "tuv", {draw(st.sampled_from([LANG, "lang"])): written})
            if draw(st.booleans()):
                ElementTree.SubElement(variant, "prop", type="state").text = "no"
            said[code] = add_segment(
                draw, ElementTree.SubElement(variant, "seg"), ["bpt", "ept", "ph", "it"], ["hi", "sub"]
            )
        is_wanted = not is_filtered or (is_final and unit.get("creationid") != "MT")
        if is_wanted and {"en", "de"} <= said.keys():
            expected.append((unindented(said["en"]), unindented(said["de"])))
    add_pair(body, expected)
    config: dict[str, Any] = {"format": "tmx", "source": "en", "target": "de"}
    config |= {"filters": ["state=final", "creationid!=MT"]} if is_filtered else {}
    doctype = draw(st.sampled_from(["", '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n', "<!-- <tu/> -->"]))
    return Case("a.tmx", xml_bytes(draw, root, doctype), config, expected)


def add_pair(body: ElementTree.Element, expected: Pairs) -> None:
    """A unit in both languages, without which a memory is refused."""
    unit = ElementTree.SubElement(body, "tu")
    ElementTree.SubElement(unit, "prop", type="state").text = "final"
    for code in ("en", "de"):
        ElementTree.SubElement(ElementTree.SubElement(unit, "tuv", {LANG: code}), "seg").text = code
    expected.append(("en", "de"))


def unindented(text: str) -> str:
    """A segment of XML on one line, without the layout of its lines."""
    if "\n" not in text:
        return text
    first, *inner, last = text.split("\n")
    parts = [first.rstrip(" \t\r"), *(line.strip(" \t\r") for line in inner), last.lstrip(" \t\r")]
    return " ".join(filter(None, parts))


@st.composite
def xliff_files(draw: Draw) -> Case:
    """Files of both versions, with groups, notes, alternatives, and units that are not translated."""
    is_old = draw(st.booleans())
    space = "urn:oasis:names:tc:xliff:document:" + ("1.2" if is_old else "2.0")
    codes, marks = (["bpt", "ept", "ph", "it"], ["g", "mrk"]) if is_old else (["ph"], ["pc", "mrk"])
    root = ElementTree.Element(f"{{{space}}}xliff", version=space[-3:])
    file = ElementTree.SubElement(root, f"{{{space}}}file")
    (file if is_old else root).attrib.update({"source-language": "en"} if is_old else {"srcLang": "en"})
    (file if is_old else root).attrib.update({"target-language": "de"} if is_old else {"trgLang": "de"})
    parent = ElementTree.SubElement(file, f"{{{space}}}{'body' if is_old else 'unit'}")
    if is_old and draw(st.booleans()):
        parent = ElementTree.SubElement(parent, f"{{{space}}}group")
    expected: Pairs = []
    states = draw(st.sampled_from([None, "final"]))
    for _ in range(draw(st.integers(1, 4))):
        unit = ElementTree.SubElement(parent, f"{{{space}}}{'trans-unit' if is_old else 'segment'}")
        said = []
        state = draw(st.sampled_from(["final", "new"]))
        for side in ["source", "target"][: draw(st.integers(1, 2))]:
            element = ElementTree.SubElement(unit, f"{{{space}}}{side}")
            said.append(
                add_segment(
                    draw, element, [f"{{{space}}}{each}" for each in codes], [f"{{{space}}}{each}" for each in marks]
                )
            )
            if side == "target":
                (element if is_old else unit).set("state", state)
        if is_old and draw(st.booleans()):
            other = ElementTree.SubElement(unit, f"{{{space}}}alt-trans")
            ElementTree.SubElement(other, f"{{{space}}}target").text = "another"
        if len(said) == 2 and all(map(str.strip, said)) and states in (None, state):
            expected.append((unindented(said[0]), unindented(said[1])))
    config: dict[str, Any] = {"format": "xliff"} | ({"filters": [f"state={states}"]} if states else {})
    config |= draw(st.sampled_from([{}, {"source": "en", "target": "de"}]))
    return Case("a.xlf", xml_bytes(draw, root), config, expected)


ESCAPED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\", "\x07": "\\a", "\x0b": "\\v", "\x0c": "\\f"}


def po_string(draw: Draw, keyword: str, text: str) -> str:
    """A keyword and a text as gettext writes it, in one piece or in several."""
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=2)))
    parts = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    quoted = ['"' + "".join(ESCAPED.get(letter, letter) for letter in part) + '"' for part in parts]
    return f"{keyword} " + "\n".join(quoted) + "\n"


@st.composite
def po_files(draw: Draw) -> Case:
    """Catalogs with contexts, plurals, flags, comments and obsolete messages."""
    content = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    expected: Pairs = []
    for _ in range(draw(st.integers(1, 4))):
        message, plural = draw(texts(min_size=1)), draw(texts(min_size=1))
        forms = draw(st.lists(texts(), min_size=1, max_size=3))
        has_plural, has_context = draw(st.booleans()), draw(st.booleans())
        flags = draw(st.sampled_from(["", "#, fuzzy\n", "#, c-format\n", "#, c-format, fuzzy\n"]))
        content += draw(st.sampled_from(["", "# msgid\n", "#: a.c:1\n", "#. x\n"])) + flags
        content += draw(st.sampled_from(["", '#| msgid "old"\n']))
        content += po_string(draw, "msgctxt", draw(texts())) if has_context else ""
        content += po_string(draw, "msgid", message)
        if has_plural:
            content += po_string(draw, "msgid_plural", plural)
            content += "".join(po_string(draw, f"msgstr[{number}]", form) for number, form in enumerate(forms))
        else:
            forms = forms[:1]
            content += po_string(draw, "msgstr", forms[0])
        content += draw(st.sampled_from(["\n", "\n\n", '\n#~ msgid "x"\n#~ msgstr "y"\n\n']))
        names = [message, *[plural] * (len(forms) - 1)] if len(forms) > 1 or not has_plural else [plural]
        if "fuzzy" not in flags:
            expected += [(one_line(a), one_line(b)) for a, b in zip(names, forms, strict=True) if b]
    if draw(st.booleans()):
        content = content.replace("\n", "\r\n")
    return Case("a.po", content.encode(), {"format": "po"}, expected)


# Compressed


def zipped(draw: Draw, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))) as archive:
        archive.comment = draw(st.binary(max_size=30))
        if draw(st.booleans()):
            archive.writestr("folder/", b"")
            archive.writestr("__MACOSX/._a", b"x")
        with archive.open(draw(st.sampled_from(["a", "folder/b.txt", "../c", "/d", "ü"])), "w") as member:
            member.write(content)
    return stream.getvalue()


@st.composite
def compressed_files(draw: Draw) -> Case:
    """Lines in each kind of compressed file, in one stream or several, under a name that says so or not."""
    parts = draw(st.lists(st.binary(max_size=40) | texts(max_size=40).map(str.encode), min_size=1, max_size=4))
    parts = [part.decode("utf-8", "replace").translate({0xFEFF: None, 0: None, 0x1A: None}).encode() for part in parts]
    ending = draw(st.sampled_from([".gz", ".bz2", ".xz", ".zst", ".zip"]))
    pack: dict[str, Callable[[bytes], bytes]] = {
        ".gz": lambda part: gzip.compress(part, draw(st.integers(0, 9))),
        ".bz2": lambda part: bz2.compress(part, draw(st.integers(1, 9))),
        ".xz": lambda part: lzma.compress(part, check=draw(st.sampled_from(XZ_CHECKS)), preset=0),
        ".zst": lambda part: pa.compress(part, codec="zstd", asbytes=True),
    }  # fmt: skip
    whole = b"".join(parts)
    assume(b"\r\r" not in whole and (b"\n" in whole or whole.count(b"\r") < 2))  # other ends of lines are refused
    assume(not whole.startswith(tuple(PROBLEMS_BY_MAGIC)))  # files of other programs are named
    assume(not any(pattern.match(whole) for pattern in PROBLEMS_BY_PATTERN))
    content = zipped(draw, whole) if ending == ".zip" else b"".join(map(pack[ending], parts))
    lines = [line.removesuffix("\r") for line in whole.decode().split("\n")]
    lines = lines if lines[-1] or whole.endswith(b"\r") else lines[:-1]
    name = draw(st.sampled_from(["text" + ending, "text"]))
    config = {"format": "text", "source": None, "target": name}
    return Case(name, content, config, [("", line) for line in lines], blocks={"BLOCK_BYTES": draw(st.integers(1, 9))})


TYPES = ("string", "large", "view", "dictionary 8", "dictionary 32", "list", "large list", "fixed list", "view list")
READERS = {
    "csv and tsv": tables(),
    "json": json_files(),
    "parquet": parquet_files(),
    "conll": conll_files(),
    "conllu": conllu_files(),
    "labelled": labelled_files(),
    "tmx": tmx_files(),
    "xliff": xliff_files(),
    "po": po_files(),
    "compressed": compressed_files(),
}


def check(name: str, folder: Path, num_cases: int) -> None:
    """Read so many generated files."""

    @settings(max_examples=num_cases)
    @given(case=READERS[name])
    def read(case: Case) -> None:
        file = folder / case.name
        file.write_bytes(case.content)
        config = {
            key: str(file) if key == "target" and value == case.name else value for key, value in case.config.items()
        }
        corpus = CorpusConfig.model_validate(config | ({} if config["format"] == "text" else {"path": str(file)}))
        with pytest.MonkeyPatch.context() as patch:
            for constant, value in case.blocks.items():
                module = "tfm.data.lines" if constant == "BLOCK_BYTES" else "tfm.data.corpora.tables.json_items"
                patch.setattr(f"{module}.{constant}", value)
            assert list(read_pairs(corpus)) == case.expected
            if case.tagged is not None:
                assert list(read_pairs(with_lists_of(corpus, "tags"))) == case.tagged

    read()


@pytest.mark.promise("bytes")
@pytest.mark.parametrize("name", READERS)
@pytest.mark.few(4)
def test_a_reader_gives_what_a_file_was_made_of(name: str, tmp_path: Path) -> None:
    num_of_profile = settings.default.max_examples  # type: ignore[union-attr]
    check(name, tmp_path, NUM_QUICK if num_of_profile <= 50 else num_of_profile)


@pytest.mark.slow
@pytest.mark.promise("bytes")
@pytest.mark.parametrize("name", READERS)
def test_a_reader_gives_what_many_files_were_made_of(name: str, tmp_path: Path) -> None:
    check(name, tmp_path, 500)
