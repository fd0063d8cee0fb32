"""JSON that programs keep for themselves, such as settings, tokenizers and notebooks: named with what reads it."""

import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tfm.data.errors import format_names
from tfm.data.lines import open_maybe_compressed

DECODER = json.JSONDecoder()
MAX_HEAD_BYTES = 1 << 20
SPACE = re.compile(r"[\s]*")
MIN_ENTRIES = 4
Document = Mapping[str, Any]
NO_CORPUS = "and is no corpus"


def program_document_problem(path: Path) -> str | None:
    """Why a file with a single object is no corpus: a program keeps it for itself; None if none is known that does."""
    document = dict(_leading_items(read_head(path, MAX_HEAD_BYTES)))
    return next((problem for is_known, problem in PROBLEMS if is_known(document)), None) if document else None


def read_head(path: Path, max_bytes: int) -> str:
    """The first bytes of a document as text, without a byte order mark."""
    with open_maybe_compressed(path) as stream:
        return stream.read(max_bytes).removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")


def lone_object_problem(document: Document, *, spans_lines: bool) -> str | None:
    """Why an object alone in its file is no corpus: it has lines, of which none is a row, or holds no text. None if it
    may be a row, or has an array of rows.
    """
    arrays = [value for value in document.values() if isinstance(value, list)]
    has_rows = any(not array or isinstance(array[0], dict) for array in arrays)
    if not document or has_rows or (_holds_text(document) and not spans_lines):
        return None
    remedy = "rows are objects, one a line or in an array; if it is a row, write it in a line, as by jq -c . FILE"
    return f"is one object ({format_names(list(document)[:8])}): {remedy}"


def _holds_text(value: object) -> bool:
    if isinstance(value, dict | list):
        return any(map(_holds_text, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str)


def _leading_items(head: str) -> Iterator[tuple[str, Any]]:
    """The keys and values of the object with which a file begins, as far as it was read: the last may be None. Nothing
    where something else follows the object, as in JSON Lines.
    """
    items: dict[str, Any] = {}
    place = _skip_space(head, 0)
    try:
        while head[place] in "{,":
            name, place = DECODER.raw_decode(head, _skip_space(head, place + 1))
            place = _skip_space(head, place)
            if not isinstance(name, str) or head[place] != ":":
                return
            items[name] = None
            items[name], place = DECODER.raw_decode(head, _skip_space(head, place + 1))
            place = _skip_space(head, place)
        if head[place] != "}" or head[place + 1 :].strip():
            return
    except (ValueError, IndexError, RecursionError):
        if len(head) < MAX_HEAD_BYTES // 4:  # all of it was read: it is no JSON
            return
    yield from items.items()


def _skip_space(text: str, place: int) -> int:
    match = SPACE.match(text, place)
    return place if match is None else match.end()


def _has(*alternatives: str) -> Callable[[Document], bool]:
    """Whether a document has the keys of one of several alternatives, in each of which spaces stand between them."""
    return lambda document: any({*keys.split()} <= {*document} for keys in alternatives)


def _describes_dataset(document: Document) -> bool:
    descriptions = [document, *(value for value in document.values() if isinstance(value, dict))]
    return any(map(_has("features splits"), descriptions))


def _is_beside_tokenizer(document: Document) -> bool:
    are_special_tokens = all(name.endswith(("_token", "_tokens")) for name in document)
    return are_special_tokens or not {"tokenizer_class", "model_max_length"}.isdisjoint(document)


def _numbers_names(document: Document) -> bool:
    numbers = [*document.values()]
    last = numbers.pop()  # maybe not read to its end
    are_numbers = all(type(number) is int for number in numbers) and (last is None or type(last) is int)
    return len(numbers) + 1 >= MIN_ENTRIES and are_numbers and len({*numbers}) == len(numbers)


NOTEBOOK_TEXTS = """jq -r '.cells[].source | if type == "array" then add else . end' FILE"""
IMPORT = "`tfm import FOLDER` reads models of transformers"
BOTH = "`tfm tokenize --from FOLDER` reads both"
PROBLEMS: tuple[tuple[Callable[[Document], bool], str], ...] = (
    (_has("added_tokens truncation"), "is a tokenizer, which `tfm tokenize --from FILE` reads"),
    (_has("cells nbformat"), f"is a notebook of Jupyter: what its cells hold is written by {NOTEBOOK_TEXTS}"),
    (
        _describes_dataset,
        "describes a dataset of Hugging Face, with its rows in other files: set data.path to the folder",
    ),
    (_has("_data_files"), "lists the files of a dataset of Hugging Face: set data.path to its folder"),
    (_has("weight_map"), f"lists the weights of a model, {NO_CORPUS}: {IMPORT}"),
    (_has("model_type"), f"holds the settings of a model, {NO_CORPUS}: {IMPORT}"),
    (_has("transformers_version"), f"holds settings of transformers, {NO_CORPUS}"),
    (_has("log_history"), f"is the log of a training with transformers, {NO_CORPUS}"),
    (_is_beside_tokenizer, f"holds settings beside a tokenizer, {NO_CORPUS}: {BOTH}"),
    (_has("stage inputs versions"), f"is the manifest of an artifact, {NO_CORPUS}: see `tfm inspect FOLDER`"),
    (_numbers_names, f"numbers names, as vocabularies do, {NO_CORPUS}: `tfm tokenize --from FOLDER` reads GPT-2's"),
    (_has("name version dependencies", "name version scripts"), f"describes a package of a program, {NO_CORPUS}"),
    (_has("$schema"), f"is a schema, or settings that follow one, {NO_CORPUS}"),
    (_has("openapi"), f"describes an interface (OpenAPI), {NO_CORPUS}"),
    (_has("@context"), f"is JSON-LD, {NO_CORPUS} with a row for each text"),
    (
        lambda document: document.get("type") == "FeatureCollection",
        "holds places (GeoJSON): write their properties, one a line, as by jq -c '.features[].properties' FILE",
    ),
)
"""By what the keys of an object are, why it is no corpus."""
