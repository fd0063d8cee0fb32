"""Whatever bytes a reader is given: what it says is right, or an error of ours that names the file."""

import ast
import bz2
import gzip
import io
import json
import lzma
import random
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from tests.tiny_training import write_dataset
from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.compression.files import COMPRESSIONS
from tfm.data.corpora.sources import content_fingerprints, read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.dataset.metadata import read_metadata
from tfm.data.dataset.store import load_split
from tfm.data.errors import ExportableFileError
from tfm.data.lines import count_lines, open_lines
from tfm.pipeline.artifacts.manifest import read_manifest
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.model_io.vector_files import read_vectors
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.reports.training_curves import read_metrics
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints

NASTY = (
    b"\r\n", b"\r", b"\n", b"\0", b"\x0c", b"\x1c", b"\xc2\x85", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\xff", b"\t", b",",
    b"\xed\xa0\x80", b"\xf0\x9f\x91\xa9", b"\\", b'"', b"{", b"}",
    b"[[[[", b"null", b"1e999", b"\x1f\x8b", b"PAR1", b"a" * 300, b"\x1a",
)  # fmt: skip
TEXT = 'ein Haus\t\na house\n\nüber, "alles"\nNaïve\u2028 text\n'
CONLLU = """# text = d'accord
1-2	d'accord	_	_	_	_	_	_	_	_
1	d'	de	ADP	_	_	2	case	_	_
2	accord	accord	NOUN	_	_	0	root	_	_

1	Über	über	ADV	_	_	0	root	_	_
"""
TMX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
<tu tuid="1"><prop type="x">y</prop><tuv xml:lang="EN"><seg>A <bpt i="1">&lt;b&gt;</bpt>dog<ept i="1"/>.</seg></tuv>
<tuv xml:lang="de-AT"><seg>Ein <hi>Hund</hi>
&amp; so.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>alone</seg></tuv></tu><tu><tuv lang="de"><seg>ü</seg></tuv><tuv lang="en"><seg/></tuv></tu>
</body></tmx>
"""
XLIFF = """<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en" target-language="de">
<body><trans-unit id="1" approved="yes"><source>A <g id="1">dog</g><x id="2"/></source><target>Ein Hund</target>
<alt-trans><source>no</source><target>nein</target></alt-trans></trans-unit>
<trans-unit id="2"><source>new</source></trans-unit>
<trans-unit id="3" approved="yes"><source>ü</source><target>x</target>
</trans-unit></body></file></xliff>
"""
PO = """msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

#: a.c:1
msgid "A \\"dog\\"\\n"
msgstr ""
"Ein Hund"
"e\\t"

#, c-format, fuzzy
msgid "b"
msgstr "B"

msgctxt "menu"
msgid "über"
msgstr "over"
#~ msgid "old"
#~ msgstr "alt"
"""
ROWS = [{"source": "ein Haus", "target": "a house"}, {"source": "über", "target": "über, all"}] * 3


def mutated(valid: bytes, draw: random.Random) -> bytes:
    """The bytes with a few changes; now and then something else altogether."""
    if draw.random() < 0.1:
        return b"".join(draw.choices(NASTY, k=draw.randrange(12)))
    changed = bytearray(valid)
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(len(changed) + 1)
        kind = draw.randrange(4)
        if kind == 0 and place < len(changed):
            changed[place] ^= 1 << draw.randrange(8)
        elif kind == 1:
            changed[place:place] = draw.choice(NASTY)
        elif kind == 2:
            del changed[place : place + draw.choice((1, 2, 7, 50))]
        elif kind == 3 and draw.random() < 0.3:
            del changed[place:]
    return bytes(changed)


# Corpora: what they give is held against a plainer reading of the same bytes


def lines_of(content: bytes) -> list[str]:
    """The lines of a text by the rule as it is stated."""
    found = content.decode("utf-8").split("\n")
    found[-1] = found[-1].rstrip("\x1a")
    if found[-1] == "":
        found.pop()
    if found:
        found[0] = found[0].removeprefix("\ufeff")
    return [line.removesuffix("\r") for line in found]


def check_text(file: Path, content: bytes, found: list[tuple[str, str]]) -> None:
    assert [source for source, _ in found] == lines_of(content)
    assert count_lines(file) == len(found)


def check_tsv(file: Path, content: bytes, found: list[tuple[str, str]]) -> None:
    assert found == [tuple(line.split("\t")[:2]) for line in lines_of(content) if line]


def check_jsonl(file: Path, content: bytes, found: list[tuple[str, str]]) -> None:
    rows = [json.loads(line) for line in lines_of(content) if line.strip()]
    assert [row["source"] is None or row["source"].replace("\n", " ") == source for row, (source, _) in zip(
        rows, found, strict=True)] == [True] * len(rows)  # fmt: skip


def check_csv(file: Path, content: bytes, found: list[tuple[str, str]]) -> None:
    assert len(found) < len(lines_of(content))  # a header, and at least a line a row


def check_parquet(file: Path, content: bytes, found: list[tuple[str, str]]) -> None:
    assert len(found) == pq.ParquetFile(pa.BufferReader(content)).metadata.num_rows


def check_labelled(file: Path, content: bytes, found: list[tuple[str, str]]) -> None:
    lines = [line.strip(" \t") for line in lines_of(content) if line.strip()]
    assert len(found) == len(lines)
    for line, (text, label) in zip(lines, found, strict=True):
        assert line.removeprefix("__label__").startswith(label)
        assert line.endswith(text)
        assert label


def check_conllu(file: Path, content: bytes, found: list[tuple[str, str]]) -> None:
    cells = [line.split("\t") for line in lines_of(content) if line and not line.startswith("#")]
    words = [row for row in cells if row[0].isdecimal()]
    assert [word for source, _ in found for word in source.split(" ")] == [
        form for row in words for form in row[1].split()
    ]
    assert [tag for _, target in found for tag in target.split(" ")] == [row[3] for row in words]


def check_conll(file: Path, content: bytes, found: list[tuple[str, str]]) -> None:
    lines = [line for line in lines_of(content) if line.strip() and not line.startswith("-DOCSTART-")]
    unmarked = [line for line in lines if not line.startswith("#")]
    first = next(iter(unmarked), "")
    in_tabs, by_blanks = lambda line: line.rstrip("\t").split("\t"), lambda line: re.split("[ \t]+", line.strip(" \t"))
    usual = in_tabs if "\t" in first else by_blanks
    # where the usual separator gives rows of several widths, the next that gives one of two columns or more
    splits = (split for split in (usual, by_blanks, str.split) if len({len(split(line)) for line in unmarked}) == 1)
    split = next((split for split in splits if len(split(first)) > 1), usual)
    rows, width = [split(line) for line in lines], len(split(first))
    words = [row for row in rows if len(row) == width or not row[0].startswith("#")]
    assert " ".join(source for source, _ in found).split() == [part for row in words for part in row[0].split()]
    assert " ".join(target for _, target in found).split() == [part for row in words for part in row[-1].split()]


LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


def xml_text(element: ElementTree.Element) -> str:
    """The text of a segment without its codes."""
    parts = [element.text or ""]
    for child in element:
        is_code = child.tag.rpartition("}")[2] in ("bpt", "ept", "ph", "it", "ut")
        parts += ["" if is_code else xml_text(child), child.tail or ""]
    return "".join(parts)


def elements(content: bytes, name: str) -> list[ElementTree.Element] | None:
    """All elements of a name; None of XML that is well formed but for its namespaces, which our readers do not read."""
    try:
        return ElementTree.fromstring(content).findall(f".//{{*}}{name}")
    except ElementTree.ParseError:
        expat.ParserCreate().Parse(content, True)
        return None


def one_line(text: str) -> str:
    """A text without the layout of indented elements: a break and what surrounds it is a space, at the ends nothing."""
    parts = [part if place == 0 else part.lstrip(" \t\r") for place, part in enumerate(text.split("\n"))]
    stripped = [part.rstrip(" \t\r") for part in parts[:-1]]
    return " ".join(part for part in [*stripped, parts[-1]] if part)


def check_tmx(file: Path, content: bytes, found: list[tuple[str, str]]) -> None:
    expected: list[tuple[str, ...]] = []
    if (units := elements(content, "tu")) is None:
        return
    for unit in units:
        segments = []
        for each in unit.findall("{*}tuv"):
            code = each.get(LANGUAGE) if LANGUAGE in each.attrib else each.get("lang", "")
            segments += [((code or "").lower().replace("_", "-"), segment) for segment in each.findall("{*}seg")]
        of_code = {code: [segment for said, segment in segments if said == code] for code in ("en", "de")}
        longer = {code: [seg for said, seg in segments if said.startswith(f"{code}-")] for code in of_code}
        if all(of_code[code] or longer[code] for code in of_code):
            expected.append(tuple(one_line(xml_text((of_code[code] or longer[code])[0])) for code in of_code))
    assert found == expected


def check_xliff(file: Path, content: bytes, found: list[tuple[str, str]]) -> None:
    expected: list[tuple[str, ...]] = []
    if (units := elements(content, "trans-unit")) is None:
        return
    for unit in units:
        source, target = (unit.findall(f"{{*}}{side}")[-1:] for side in ("source", "target"))
        texts = [one_line(xml_text(side[0])) if side else "" for side in (source, target)]
        if all(texts) and unit.get("approved") == "yes":
            expected.append(tuple(texts))
    assert found == expected


def check_po(file: Path, content: bytes, found: list[tuple[str, str]]) -> None:
    text = "\n".join(lines_of(content))
    entries: list[dict[str, str]] = [{}]
    keyword = ""
    if {"\r", "\0"} & {*text.replace("\r\n", "\n")}:  # Python's literals hold neither, files of PO may
        return
    for flags, said, quoted in re.findall(r'^(#.*)$|^\s*?(msg\w+)?\s*?(".*")\s*?$', text, re.MULTILINE):
        if "msgstr" in entries[-1] and (flags or said in ("msgid", "msgctxt")):
            entries.append({})
        if flags.startswith("#,"):
            entries[-1]["flags"] = entries[-1].get("flags", "") + flags[2:] + ","
        elif not flags:
            keyword = said or keyword
            entries[-1][keyword] = entries[-1].get(keyword, "") + ast.literal_eval(quoted)
    assert found == [
        tuple(re.sub(r"\r*\n", " ", entry[side]) for side in ("msgid", "msgstr"))
        for entry in entries
        if entry.get("msgstr")
        and (entry["msgid"] or "msgctxt" in entry)
        and "fuzzy" not in map(str.strip, entry.get("flags", "").split(","))
    ]


def parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(ROWS), sink)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Format:
    """A valid file, how it is read, and what its pairs are held against."""

    ending: str
    valid: bytes
    config: dict[str, Any]
    check: Callable[[Path, bytes, list[tuple[str, str]]], None]


FORMATS = {
    "text": Format("txt", TEXT.encode(), {}, check_text),
    "tsv": Format("tsv", b"eins\tone\t1\nzwei\ttwo\t2\n", {"source": "0", "target": "1", "quoting": "raw"}, check_tsv),
    "quoted": Format("tsv", b'source\ttarget\n"a ""b"""\t"a\nhouse"\n\nzwei\ttwo\n', {"format": "tsv"}, check_csv),
    "escaped": Format("csv", b'source;target\n"a \\"b\\"";"a;\nhouse"\n\nzwei;two\n', {"format": "csv"}, check_csv),
    "csv": Format("csv", b'source,target\n"ein ""Haus""","a\nhouse"\nzwei,two\n', {}, check_csv),
    "jsonl": Format("jsonl", "".join(json.dumps(row) + "\n" for row in ROWS).encode(), {}, check_jsonl),
    "tmx": Format("tmx", TMX.encode(), {"source": "en", "target": "de"}, check_tmx),
    "xliff": Format("xlf", XLIFF.encode(), {"filters": ["approved=yes"]}, check_xliff),
    "po": Format("po", PO.encode(), {}, check_po),
    "parquet": Format("parquet", parquet(), {}, check_parquet),
    "labelled": Format("txt", b"1 ein Haus\n__label__gut so , so\n\n0\n", {}, check_labelled),
    "conll": Format("txt", "-DOCSTART- O\n\nAnna B-PER\nBerg I-PER\n. O\n\n\nÜber O\n".encode(), {}, check_conll),
    "conllu": Format("conllu", CONLLU.encode(), {}, check_conllu),
}


def zipped(content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("corpus", content)
    return stream.getvalue()


def only_member(content: bytes) -> bytes:
    archive = zipfile.ZipFile(io.BytesIO(content))
    return archive.read(*archive.namelist())


def from_zstd(content: bytes) -> bytes:
    return pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()  # type: ignore[no-any-return]


PACK: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    ".gz": (gzip.compress, gzip.decompress),
    ".bz2": (bz2.compress, bz2.decompress),
    ".xz": (lzma.compress, lambda content: lzma.decompress(content.rstrip(b"\0")) if content else b""),
    ".zst": (lambda content: pa.compress(content, codec="zstd", asbytes=True), from_zstd),
    ".zip": (zipped, only_member),
}


def read_corpus(name: str, content: bytes, folder: Path, *, packed: str = "") -> None:
    """Read bytes as a corpus: its pairs are right, or the error is ours and names the file."""
    form = FORMATS[name]
    file = folder / f"corpus.{form.ending}{packed}"
    file.write_bytes(content)
    places = {"source": str(file), "target": str(file)} if name == "text" else {"path": str(file), **form.config}
    error = None
    try:
        found = list(read_pairs(CorpusConfig.model_validate({"format": name} | places)))
    except DataError as caught:
        error = str(caught)
    if error is not None:
        assert file.name in error
        assert len(error.splitlines()) == 1
        assert len(error) < 800
        return
    assert all("\n" not in text for pair in found for text in pair)
    form.check(file, PACK[packed][1](content) if packed else content, found)


@pytest.mark.promise("bytes")
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.few(5)
def test_a_corpus_is_read_rightly_or_refused(name: str, tmp_path: Path, record_property: Any) -> None:
    draw = random.Random(name)
    for _ in range(150):
        read_corpus(name, mutated(FORMATS[name].valid, draw), tmp_path)
        ending = draw.choice([*PACK])
        read_corpus(name, mutated(PACK[ending][0](FORMATS[name].valid), draw), tmp_path, packed=ending)
    record_property("inputs", 300)


@pytest.mark.slow
@pytest.mark.promise("bytes")
@pytest.mark.parametrize("packed", ["", *PACK])
@pytest.mark.parametrize("name", FORMATS)
def test_a_corpus_of_any_bytes(name: str, packed: str, tmp_path: Path, record_property: Any) -> None:
    draw, valid = random.Random(f"{name} {packed}"), FORMATS[name].valid
    for _ in range(10_000):
        read_corpus(name, mutated(PACK[packed][0](valid) if packed else valid, draw), tmp_path, packed=packed)
    record_property("inputs", 10_000)


@pytest.mark.promise("bytes")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.sampled_from(NASTY) | st.binary(max_size=5), max_size=12), block=st.integers(1, 9))
def test_lines_are_those_of_the_rule_whatever_the_blocks(
    parts: list[bytes], block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, file = b"".join(parts), tmp_path / "text"
    assume(not any(re.match(each.magic, content) for each in COMPRESSIONS.values()))  # no text, but a compressed one
    file.write_bytes(content)
    monkeypatch.setattr("tfm.data.lines.BLOCK_BYTES", block)
    try:
        list(open_lines(file))
    except ExportableFileError:
        reject()  # it begins as a file of another program, or in UTF-16
    except DataError:
        pass  # as is asserted below
    try:
        expected = lines_of(content)
    except UnicodeDecodeError as error:
        line = 1 + content.count(b"\n", 0, error.start)
        byte = error.start - content.rfind(b"\n", 0, error.start)
        for read in (lambda: list(open_lines(file)), lambda: count_lines(file)):
            with pytest.raises(DataError, match=rf"text, line {line}, byte {byte}: not UTF-8"):
                read()
    else:
        assert list(open_lines(file)) == expected
        assert count_lines(file) == len(expected)


# Datasets as `datasets` saves them: several files, any of which may be damaged


def read_saved(num_inputs: int, folder: Path) -> None:
    columns = {side: [row[side] for row in ROWS] for side in ("source", "target")}
    datasets.DatasetDict(train=datasets.Dataset.from_dict(columns)).save_to_disk(str(folder))
    valid = {file: file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
    corpus = CorpusConfig(format="huggingface", path=str(folder), split="train")
    assert len(list(read_pairs(corpus))) == len(ROWS)
    draw = random.Random("saved")
    for _ in range(num_inputs):
        file = draw.choice(list(valid))
        file.write_bytes(mutated(valid[file], draw))
        found, error = [], None
        try:
            content_fingerprints(corpus)
            found = list(read_pairs(corpus))
        except DataError as caught:
            error = str(caught)
        assert error is None or (len(error.splitlines()) == 1 and str(folder) in error)
        assert all("\n" not in text for pair in found for text in pair)
        file.write_bytes(valid[file])


@pytest.mark.promise("bytes")
def test_a_saved_dataset_is_read_or_refused(tmp_path: Path, record_property: Any) -> None:
    read_saved(100, tmp_path / "saved")
    record_property("inputs", 100)


@pytest.mark.slow
@pytest.mark.promise("bytes")
def test_a_saved_dataset_of_any_bytes(tmp_path: Path, record_property: Any) -> None:
    read_saved(10_000, tmp_path / "saved")
    record_property("inputs", 10_000)


# What stages wrote: read as it is, or an error of ours


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset").resolve()


def documents(dataset: Path, folder: Path) -> Iterator[tuple[str, Path, bytes, Callable[[], object]]]:
    """(what, the file to write, valid content, how it is read)."""
    checkpoints = Checkpoints(folder / "checkpoints")
    if not checkpoints.steps():
        checkpoints.write(1, {}, {"step": 1})
    (folder / "train").mkdir(exist_ok=True)
    state = checkpoints.checkpoint_folder(1) / "state.json"
    arrow = folder / "train" / "data-00000-of-00001.arrow"
    metrics = b'{"event": "train", "step": 5, "loss": 1.5}\n' * 3
    recipe = b'seed = 2\n[data]\npath = "x"\n[training]\nmax_steps = 5\n'
    tokenizer = (dataset / "tokenizer" / "tokenizer.json").read_bytes()
    yield "tokenizer", folder / "tokenizer.json", tokenizer, lambda: load_tokenizer_pair(folder)
    yield "manifest", folder / "manifest.json", (dataset / "manifest.json").read_bytes(), lambda: read_manifest(
        folder, folder)  # fmt: skip
    yield "about", folder / "dataset.json", (dataset / "dataset.json").read_bytes(), lambda: read_metadata(folder)
    yield "split", arrow, (dataset / "train" / arrow.name).read_bytes(), lambda: load_split(folder / "train")
    yield "checkpoint", state, state.read_bytes(), lambda: checkpoints.read(1)
    yield "metrics", folder / "metrics.jsonl", metrics, lambda: read_metrics(folder / "metrics.jsonl")
    yield "recipe", folder / "r.toml", recipe, lambda: load_recipe(folder / "r.toml")
    binary = b"2 3\na " + struct.pack("<3f", 1, -2.5, 1e-8) + b"\n\xc3\xbc " + struct.pack("<3f", 4, 5, 6) + b"\n"
    table = b"2\t3\na\t1\t-2.5\t1e-8\nNew York\t4\t5\t6\n"
    for name, content in (("binary vectors", binary), ("vectors", table)):
        yield name, folder / name, content, partial(read_vectors, folder / name, 3, {"a", "ü", "New York"})


NAMES = (
    "tokenizer", "manifest", "about", "split", "checkpoint", "metrics", "recipe", "binary vectors", "vectors",
)  # fmt: skip


def read_any(name: str, num_inputs: int, dataset: Path, folder: Path) -> None:
    draw = random.Random(name)
    _, file, valid, read = next(each for each in documents(dataset, folder) if each[0] == name)
    read_whole = file.write_bytes(valid) and read()
    assert read_whole is not None
    for _ in range(num_inputs):
        file.write_bytes(mutated(valid, draw))
        error = None
        try:
            read()
        except (DataError, RecipeError) as caught:
            error = str(caught)
        assert error is None or (len(error.splitlines()) <= 2 and str(folder) in error)


@pytest.mark.promise("bytes")
@pytest.mark.parametrize("name", NAMES)
def test_what_a_stage_wrote_is_read_or_refused(name: str, dataset: Path, tmp_path: Path, record_property: Any) -> None:
    read_any(name, 150, dataset, tmp_path)
    record_property("inputs", 150)


@pytest.mark.slow
@pytest.mark.promise("bytes")
@pytest.mark.parametrize("name", NAMES)
def test_what_a_stage_wrote_as_any_bytes(name: str, dataset: Path, tmp_path: Path, record_property: Any) -> None:
    read_any(name, 10_000, dataset, tmp_path)
    record_property("inputs", 10_000)
