"""JSON that holds other things than rows of texts: conversations, questions by paragraph, answers that annotators
rejected, messages of a program, whole columns. Named with what makes rows of them, and not read.

A file is asked by its first row (`row_problem`) before it is read as one document (`whole_document_problem`), whose
rules would take columns of numbered cells for messages; documents of programs come before all others.
"""

import codecs
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from io import BufferedIOBase
from pathlib import Path

from tfm.data.corpora.markup.catalogs import MIN_MESSAGES_JUDGED
from tfm.data.corpora.tables.program_documents import lone_object_problem, program_document_problem
from tfm.data.errors import format_names
from tfm.data.formats.conll.spans import spans_problem
from tfm.data.lines import open_maybe_compressed

DECODER = json.JSONDecoder()
MAX_DOCUMENT_BYTES = 1 << 24
CAPTION_KEY = b'"caption"'
AUDIO_ENDINGS = "wav|mp3|flac|ogg|opus|m4a"
AUDIO_NAME_PATTERN = re.compile(rf"\S+\.(?:{AUDIO_ENDINGS})", re.IGNORECASE)
COCO_PATTERN = re.compile(rb'\s*\{\s*"(?:info|images|annotations|licenses|type)"\s*:\s*[\[{"]')
TURN_KEYS = (("role", "content"), ("from", "value"), ("speaker", "text"), ("speaker", "utterance"))
"""The keys of a turn of a conversation: who speaks, and what is said."""
KEY_PATTERN, DIGIT_PATTERN = re.compile(r"[A-Za-z_]\w*"), re.compile(r"[0-9]")
TRAIN_KEY = "train"
UNDECIDED_LABEL, LABEL_OF_ANNOTATORS = "-", "gold_label"
UNDECIDED_REMARK = (
    f"{LABEL_OF_ANNOTATORS!r} is - where annotators did not agree, which is read as a class: remove these rows"
)
WORD_KEYS = frozenset({"tokens", "words"})
"""Usual keys of a list of words, beside which other lists are of their tags."""
COLUMNS_PROBLEM = (
    "is a table by columns, one array each: write its rows, by pandas.DataFrame(...).to_json(FILE, "
    'orient="records", lines=True); if it is one row of words, join them, as by jq -c \'map_values(join(" "))\' FILE'
)
OWN_ROW_KEYS = ("translation", "text", "source", "target", "label", "id")
"""Keys of rows, which messages of a program are not called."""
NAMES_OF_TEXTS = frozenset({"document", "summary", "article", "text", "question", "answer", "source", "target"})
"""Usual keys of texts, of which a row has two."""


def value_problem(column: str, value: object) -> str | None:
    """Why a value of a row is no text, with what to do; None if nothing is known of it.

    column: its key.
    """
    if (problem := spans_problem(value)) is not None:
        return problem
    first = value[0] if isinstance(value, list) and value else None
    if not isinstance(first, dict):
        return None
    for speaker_key, text_key in TURN_KEYS:
        if speaker_key in first and text_key in first:
            turns = f"{{source: .[-2].{text_key}, target: .[-1].{text_key}}}"
            rows = f"jq -c '.. | arrays | select(.[0].{speaker_key}?) | {turns}' FILE"
            return f"holds turns of conversations: write what is read and the answer as two texts, as by {rows}"
    if "qas" in first:
        rows = (
            "jq -c '.data[].paragraphs[] | .context as $context | .qas[] | {question, context: $context, "
            'answer: (.answers[0].text // "")}\' FILE'
        )
        return f"holds questions by paragraph, as SQuAD: write a row for each, as by {rows}"
    if "result" in first:
        return "holds answers of Label Studio: export them as JSON-MIN or CSV, a row for each text"
    return None


def row_problem(row: object) -> str | None:
    """Why an object has no texts for a source and a target: it holds facts, and several texts that say them, as of DART
    and WebNLG, or is a whole table, as pandas writes one by columns or in parts; None if it may be a row.
    """
    if not isinstance(row, dict) or not row:
        return None
    if {"tripleset", "annotations"} <= {*row}:
        facts = '.tripleset | map(join(" | ")) | join(" && ")'
        rows = f"jq -c '.[] | ({facts}) as $facts | .annotations[] | {{source: $facts, target: .text}}' FILE"
        return f"holds facts with texts that say them, as DART: write a row for each text, as by {rows}"
    entry = next(iter(row.values()))
    if isinstance(entry, dict) and {"modifiedtripleset", "lexicalisations"} <= {*entry}:
        facts = '.modifiedtripleset | map([.subject, .property, .object] | join(" | ")) | join(" && ")'
        rows = f"({facts}) as $facts | .lexicalisations[] | {{source: $facts, target: .lex}}"
        rows = f"jq -c '.entries[] | .[] | {rows}' FILE"
        return f"holds facts with texts that say them, as WebNLG: write a row for each text, as by {rows}"
    are_by_number = all(isinstance(value, dict) and value and all(map(str.isdecimal, value)) for value in row.values())
    if are_by_number or {*row} in ({"columns", "index", "data"}, {"schema", "data"}):
        return (
            'is a table as pandas writes it by to_json: write its rows, by to_json(FILE, orient="records", lines=True)'
        )
    return None


def rejected_problem(row: object) -> str | None:
    """Why a row is no example: an annotator rejected or skipped it in prodigy; None if none did."""
    if not isinstance(row, dict) or "_task_hash" not in row or row.get("answer") not in ("reject", "ignore"):
        return None
    remedy = "keep the accepted ones, as by jq -c 'select(.answer == \"accept\")' FILE"
    return f"its answer in prodigy is {row['answer']!r}, so that its label is not that of the text: {remedy}"


def is_undecided(column: str, cell: object) -> bool:
    """Whether a cell is the mark of SNLI and MultiNLI for a pair on whose label annotators did not agree."""
    return column == LABEL_OF_ANNOTATORS and cell == UNDECIDED_LABEL


def array_item_problem(text: str, place: int, number: int, begin: int | None) -> str:
    """Why an item of an array is no row.

    Args:
        text: with the item.
        place: where it begins.
        number: of the item.
        begin: where the array around it begins, if in the text; if more follows it, each line is one.
    """
    try:
        item, _ = DECODER.raw_decode(text, place)
        if isinstance(item, list):
            return f"item {number} {_array_problem(item, is_line=False)}"
        line, end = DECODER.raw_decode(text, place if begin is None else begin)
        if isinstance(line, list) and text[end:].strip():
            return f"line 1 {_array_problem(line, is_line=True)}"
    except (ValueError, RecursionError):
        pass
    remedy = "a text alone, one a line, is written by jq -r '.[]' FILE"
    return f"item {number} is a text, and a row must be an object with a name for each value; {remedy}"


def audio_remark(source: str) -> str | None:
    """A remark on a source that is the name of a recording, which is read as a text; None if it is none."""
    if AUDIO_NAME_PATTERN.fullmatch(source) is None:
        return None
    return f"its first source is the name of a recording ({source:.60}), read as text: tfm reads no sound"


def _array_problem(values: Sequence[object], *, is_line: bool) -> str:
    """Why an array is no row of a table, with what to do.

    Args:
        values: what is in it.
        is_line: whether each line of the file has one; else they are in an array around them.
    """
    prefix = "" if is_line else ".[] | "
    if (problem := next(filter(None, map(spans_problem, values)), None)) is not None:
        return problem
    if len(values) == 2 and isinstance(values[1], dict) and "cats" in values[1]:
        rows = f"jq -c '{prefix}{{text: .[0], label: (.[1].cats | to_entries | max_by(.value) | .key)}}' FILE"
        return f"holds texts with scores of categories, as spaCy: write texts and labels, as by {rows}"
    rows = f"jq -c '{prefix}{{source: .[0], target: .[1]}}' FILE"
    return f"is an array, and a row must be an object with a name for each value, as by {rows}"


def whole_document_problem(path: Path) -> str | None:
    """Why a file with a single object over several or all lines is no table; None if it is a table, or too long to
    tell.
    """
    if (problem := program_document_problem(path)) is not None:
        return problem
    with open_maybe_compressed(path) as stream:
        head = stream.read(MAX_DOCUMENT_BYTES)
        has_captions = COCO_PATTERN.match(head) is not None and _has_captions(head, stream)
    if has_captions:
        rows = "{file_name: $files[.image_id | tostring], text: .caption}"
        rows = f"(.images | INDEX(.id) | map_values(.file_name)) as $files | .annotations[] | {rows}"
        return f"holds captions of pictures, as COCO: write metadata.jsonl beside these, as by jq -c '{rows}' FILE"
    if len(head) == MAX_DOCUMENT_BYTES:
        return None
    return _document_problem(head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace"))


def _has_captions(head: bytes, stream: BufferedIOBase) -> bool:
    """Whether the key of captions stands in a file, behind its pictures; stream: what follows the head of it."""
    block = head
    while block:
        if CAPTION_KEY in block:
            return True
        overlap = block[-len(CAPTION_KEY) :]
        block = stream.read(MAX_DOCUMENT_BYTES)
        block = overlap + block if block else b""
    return False


def _document_problem(text: str) -> str | None:
    """Why a file is no table whose rows are objects: it is a single object with the columns or messages of a program;
    None if it is none, or a row.

    text: all of the file.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    if has_columns(document):
        return COLUMNS_PROBLEM
    if not {*document}.isdisjoint(OWN_ROW_KEYS):
        return None
    if (problem := _inner_rows_problem(document)) is not None:
        return problem
    leaves = list(_leaves(document))
    if len(leaves) < MIN_MESSAGES_JUDGED or not all(isinstance(leaf, str) for leaf in leaves):
        return lone_object_problem(document, spans_lines="\n" in text.strip())
    if 2 * sum(" " in key.strip() for key in document) > len(document):
        remedy = "jq -c 'to_entries[] | {source: .key, target: .value}' FILE"
        return f"is one object, whose keys seem to be texts: write a row for each of them, as by {remedy}"
    remedy = "make PO of both, as by `json2po -t SOURCE TARGET OUT.po` of translate-toolkit"
    return f'holds messages of one language with their names (one object of JSON): {remedy}, and set format = "po"'


def _inner_rows_problem(document: Mapping[str, object]) -> str | None:
    """Why an object is no row: it holds a row at each key, or arrays of pairs, one of each split; None if not."""
    values = list(document.values())
    rows = [value for value in values if isinstance(value, dict)]
    are_alike = len(rows) == len(values) > 1 and all({*row} == {*rows[0]} for row in rows)
    if are_alike and (not {*rows[0]}.isdisjoint(OWN_ROW_KEYS) or all(DIGIT_PATTERN.search(key) for key in document)):
        return "is one object with a row at each key: write the rows, one a line, as by jq -c '.[]' FILE"
    inner_rows = [row for each in rows for row in each.values()] if len(rows) == len(values) else []
    if len(inner_rows) > 1 and all(isinstance(row, dict) and len(NAMES_OF_TEXTS & {*row}) > 1 for row in inner_rows):
        return "is one object with rows at keys of its keys: write the rows, one a line, as by jq -c '.[][]' FILE"
    splits = [name for name, value in document.items() if isinstance(value, list) and _is_pair(next(iter(value), None))]
    if not splits:
        return None
    name = TRAIN_KEY if TRAIN_KEY in splits else splits[0]
    return (
        f"holds arrays of pairs ({format_names(splits)}): write a row for each, a split a file, as by "
        f"jq -c '{jq_path(name)}[] | {{source: .[0], target: .[1]}}' FILE"
    )


def jq_path(name: str) -> str:
    """The path of jq to a key of an object."""
    return f".{name}" if KEY_PATTERN.fullmatch(name) else f".[{json.dumps(name)}]"


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(each, str) for each in value)


def has_columns(document: object) -> bool:
    """Whether the only object of a file is a table by columns: lists as long as each other, of several cells. Words and
    their tags, by their usual names, are a row.
    """
    if not isinstance(document, dict) or not all(isinstance(value, list) for value in document.values()):
        return False
    are_alike = len(document) > 1 and len({*map(len, document.values())}) == 1
    cells = [cell for column in document.values() for cell in column]
    if not are_alike or len(cells) == len(document) or any(isinstance(cell, list | dict) for cell in cells):
        return False
    has_words = not WORD_KEYS.isdisjoint(document)
    return not has_words or any(isinstance(cell, str) and " " in cell.strip() for cell in cells)


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    else:
        yield value
