"""Corpora, hub folders, images and recipes from somebody who means harm: read inside their folder, within bounds."""

import bz2
import gzip
import io
import json
import lzma
import os
import socket
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.cli.user import ROOT
from tfm.data.config import DataConfig
from tfm.data.corpora import sources
from tfm.data.corpora.portions import Portion
from tfm.data.corpora.preflight import check_and_count_splits
from tfm.data.corpora.sources import Splits, content_fingerprints, read_pairs, resolve_splits
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError, TfmError
from tfm.data.images.decoding import ImageSize, decode_image
from tfm.data.images.image_column import read_image_column
from tfm.data.images.imagefolder import read_imagefolder
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.tuning.config import load_search

pytestmark = pytest.mark.promise("bytes")
SECRET = "source,target\nmy secret,mein Geheimnis\n"
PUBLIC = "source,target\none,eins\n"
MAX_RESIDENT = 1500 * 2**20
SECONDS = 20


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Every address that something connects to, or looks up; none may."""
    asked: list[object] = []

    def refuse(*words: object, **_: object) -> None:
        asked.append(words)
        raise OSError("no network here")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    yield asked
    assert asked == []


@pytest.fixture
def hub(tmp_path: Path, requests: list[object]) -> Path:
    """A received folder with a file of its own; beside it lies what it must not reach."""
    (tmp_path / "secret.csv").write_text(SECRET, "utf-8")
    folder = tmp_path / "hub"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "train.csv").write_text(PUBLIC, "utf-8")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    (folder / "out").symlink_to(tmp_path)
    return folder


def said(read: Callable[[], object], *, folder: Path) -> str:
    """What an attempt is refused with: one line of ours that names the folder."""
    with pytest.raises(TfmError) as caught:
        read()
    text = str(caught.value)
    assert str(folder) in text
    assert "\n" not in text
    assert len(text) < 1000
    return text


def read_all(folder: Path) -> list[tuple[str, str]]:
    """All training pairs of a folder, by every way that a stage reads them."""
    splits = resolve_splits(DataConfig(path=str(folder)))
    (corpus,) = (each.corpora[0] if isinstance(each, Portion) else each for each in splits.train)
    check_and_count_splits(Splits((corpus,), (corpus,), {}))
    content_fingerprints(corpus)
    return list(read_pairs(corpus))


LEADING_OUT = (
    "../secret.csv", "data/../../secret.csv", "{out}/secret.csv", "link.csv", "out/secret.csv", "../*.csv",
    "**/../../*.csv",
    "http://127.0.0.1:9/a.csv", "https://example.org/a.csv", "hf://datasets/some/set/a.csv", "s3://bucket/a.csv",
    "zip://a.csv::http://127.0.0.1:9/a.zip", "zip://secret.csv::../a.zip", "file:///{out}/secret.csv", "/dev/zero",
    "file://{out}/secret.csv", "simplecache::http://127.0.0.1:9/a.csv", "~/secret.csv", "nowhere.csv", "a\0b.csv",
    "x" * 5000, "a\nb.csv", "", ".",
)  # fmt: skip
CARDS = {
    "a path": "configs:\n- config_name: default\n  data_files: {name}\n",
    "a list": "configs:\n- config_name: default\n  data_files:\n  - {name}\n",
    "a split": "configs:\n- config_name: default\n  data_files:\n  - split: train\n    path: {name}\n",
    "a split's list": "configs: [{config_name: d, data_files: [{split: train, path: [data/train.csv, {name}]}]}]\n",
    "a folder": "configs:\n- config_name: default\n  data_dir: {name}\n",
}


@pytest.mark.parametrize("place", CARDS)
def test_no_name_of_a_card_leads_out_of_its_folder(hub: Path, place: str, record_property: Any) -> None:
    for file in ("README.md", ".huggingface.yaml"):
        for name in LEADING_OUT:
            text = CARDS[place].replace("{name}", json.dumps(name.replace("{out}", str(hub.parent))))
            (hub / file).write_text(f"---\n{text}---\n" if file == "README.md" else text, "utf-8")
            if place == "a folder" and name in ("", "."):
                continue
            assert "secret" not in said(lambda: read_all(hub), folder=hub).replace(name, "")
        (hub / file).unlink()
    record_property("names", 2 * len(LEADING_OUT))


def test_links_are_not_followed_out_of_a_folder(hub: Path) -> None:
    (hub / "out").unlink()
    (hub / "link.csv").rename(hub / "train-link.csv")
    assert "train-link.csv" in said(lambda: read_all(hub), folder=hub)
    (hub / "train-link.csv").unlink()
    assert read_all(hub) == [("one", "eins")]
    (hub / "data" / "more-train.csv").symlink_to("train.csv")
    assert read_all(hub) == [("one", "eins")] * 2
    (hub / "README.md").symlink_to(hub.parent / "secret.csv")
    assert "README.md" in said(lambda: read_all(hub), folder=hub)


def test_scripts_archives_and_endless_links_are_passed_over(hub: Path, tmp_path: Path) -> None:
    for name in ("link.csv", "out"):
        (hub / name).unlink()
    marker = tmp_path / "it ran"
    script = f"open({str(marker)!r}, 'w').close()\n"
    for name in ("hub.py", "data/train.py", "train.pkl", "__init__.py", "train.h5", "a.zip", "task.toml"):
        (hub / name).write_text(script, "utf-8")
    (hub / "loop").symlink_to(".")
    (hub / "data" / "loop").symlink_to("..")
    with pytest.raises(DataError, match="loop"):
        read_all(hub)
    (hub / "loop").unlink()
    (hub / "data" / "loop").unlink()
    assert read_all(hub) == [("one", "eins")]
    assert not marker.exists()


@pytest.mark.parametrize(
    ("front", "reason"),
    [
        ("a: [" * 100_000, "nested too deeply|damaged"),
        ("- " * 100_000, "nested too deeply|damaged"),
        ("a: &a [*a, *a]\nconfigs: *a", None),
        ("x: " + "1:" * 10_000 + "1", None),
        ("configs: 3", None),
        ("configs: [3, [], {}]", None),
        ("!!python/object/apply:os.system [x]", None),
        ("configs: [{config_name: a, data_files: {a: b}}]", "no splits with paths"),
        ("configs: [{config_name: a, data_files: [{split: '../x', path: data/train.csv}]}]", "no splits with paths"),
        ("configs: [{config_name: a, encoding: utf-16}]", "does not apply"),
        ("configs: [{config_name: a, sep: '||'}]", "not one character"),
        ("configs: [{config_name: a}, {config_name: b}]", "several configurations"),
        ("a: " + "x" * 2**21, "longer than"),
        ("a: \0", "damaged"),
        ("a: 'x", "damaged"),
    ],
)  # fmt: skip
def test_cards_that_are_none(hub: Path, front: str, reason: str | None) -> None:
    for name in ("link.csv", "out"):
        (hub / name).unlink()
    (hub / "README.md").write_text(f"---\n{front}\n---\n", "utf-8")
    if reason is None:
        assert read_all(hub) == [("one", "eins")]
    else:
        with pytest.raises(DataError, match=reason):
            read_all(hub)


def test_a_snapshot_of_the_cache_reads_its_blobs_alone(hub: Path) -> None:
    (hub / "blobs").mkdir()
    (hub / "blobs" / "0123").write_text(PUBLIC, "utf-8")
    snapshot = hub / "snapshots" / "main"
    snapshot.mkdir(parents=True)
    (snapshot / "train.csv").symlink_to("../../blobs/0123")
    assert read_all(snapshot) == [("one", "eins")]
    (snapshot / "valid.csv").symlink_to("../../../secret.csv")
    said(lambda: read_all(snapshot), folder=snapshot)


URLS = ("http://127.0.0.1:9/a", "hf://datasets/x/y", "s3://a/b", "some/set::x", "csv", "pandas", "webdataset",
        "../../x", "a\nb", "x" * 5000, "some/set", "some/set:de")  # fmt: skip


@pytest.mark.parametrize("name", URLS)
def test_no_name_asks_the_network_while_it_is_off(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, requests: list[object]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.csv").write_text(SECRET, "utf-8")
    with pytest.raises(DataError):
        read_all(Path(name))


# Datasets as save_to_disk leaves them


def saved(folder: Path) -> Path:
    one = datasets.Dataset.from_dict({"source": ["one"], "target": ["eins"]})
    datasets.DatasetDict(train=one).save_to_disk(str(folder))
    return folder


@pytest.mark.parametrize("name", LEADING_OUT)
@pytest.mark.few(10)
def test_no_name_of_a_saved_dataset_leads_out_of_it(name: str, tmp_path: Path, requests: list[object]) -> None:
    saved(tmp_path / "secret")
    folder = saved(tmp_path / "set")
    assert read_all(folder) == [("one", "eins")]
    arrow = next((tmp_path / "secret" / "train").glob("*.arrow"))
    (tmp_path / "secret.csv").symlink_to(arrow)
    (folder / "train" / "link.csv").symlink_to(arrow)
    (folder / "train" / "out").symlink_to(tmp_path)
    state = folder / "train" / "state.json"
    whole = state.read_text("utf-8")
    name = name.replace("{out}", str(tmp_path))
    state.write_text(json.dumps(json.loads(whole) | {"_data_files": [{"filename": name}]}), "utf-8")
    said(lambda: read_all(folder), folder=folder)
    state.write_text(whole, "utf-8")
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": ["train", name]}), "utf-8")
    said(lambda: read_all(folder), folder=folder)


def test_a_saved_dataset_is_described_as_it_is(tmp_path: Path, requests: list[object]) -> None:
    folder = saved(tmp_path / "set")
    info = folder / "train" / "dataset_info.json"
    about = json.loads(info.read_text("utf-8"))
    about["features"]["source"] = {"feature": about["features"]["source"], "length": 10**9, "_type": "List"}
    info.write_text(json.dumps(about), "utf-8")
    assert "other columns" in said(lambda: read_all(folder), folder=folder)
    info.write_text("[" * 100_000, "utf-8")
    said(lambda: read_all(folder), folder=folder)
    info.unlink()
    info.symlink_to("/dev/zero")
    said(lambda: read_all(folder), folder=folder)


# Images


def png(size: tuple[int, int] = (4, 3), mode: str = "RGB") -> bytes:
    stream = io.BytesIO()
    Image.new(mode, size).save(stream, "PNG")
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_no_table_of_images_names_what_lies_elsewhere(kind: str, tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(png())
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "a.png").write_bytes(png())
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    names = [name.replace("csv", "png").replace("{out}", str(tmp_path)) for name in LEADING_OUT]
    for name in names:
        if kind == "csv" and ("\0" in name or not name):
            continue
        row = {"file_name": name, "text": "x"}
        for old in folder.glob("metadata.*"):
            old.unlink()
        if kind == "csv":
            (folder / "metadata.csv").write_text(f'file_name,text\n"{name}",x\n', "utf-8")
        elif kind == "jsonl":
            (folder / "metadata.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
        else:
            pq.write_table(pa.Table.from_pylist([row]), folder / "metadata.parquet")
        said(lambda: read_imagefolder(folder, ["text"], sources.read_rows), folder=folder)


@pytest.mark.parametrize("kind", ["saved", "parquet"])
def test_no_row_of_images_names_what_lies_elsewhere(kind: str, tmp_path: Path, requests: list[object]) -> None:
    (tmp_path / "secret.png").write_bytes(png())
    folder = tmp_path / "set"
    folder.mkdir()
    for name in (str(tmp_path / "secret.png"), "../secret.png", "https://example.org/a.png", "/dev/zero", "a\0b"):
        cells = [{"bytes": None, "path": name}]
        table = pa.table(
            {"image": pa.array(cells, pa.struct({"bytes": pa.binary(), "path": pa.string()})), "text": ["x"]}
        )
        features = datasets.Features(image=datasets.Image(), text=datasets.Value("string"))
        table = table.cast(features.arrow_schema)
        pq.write_table(table, folder / "train.parquet")
        if kind == "saved":
            (folder / "train.parquet").unlink()
            datasets.Dataset(table).save_to_disk(str(folder)) if not list(folder.iterdir()) else None
            arrow = next(folder.glob("*.arrow"))
            with pa.ipc.new_stream(str(arrow), table.schema) as stream:
                stream.write_table(table)
        text = said(lambda: list(read_image_column(str(folder), "train", "image", ["text"])), folder=folder)
        assert "row 1" in text or "not a whole dataset" in text


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def hostile_images() -> dict[str, bytes]:
    whole = png()
    head, rest = whole[:33], whole[33:]
    huge = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0))
    bomb = zlib.compress(b"\0" * 10**8, 9)
    frames = [Image.new("RGB", (4, 3), (5 * each, 0, 0)) for each in range(50)]
    animated = {}
    for kind in ("GIF", "WEBP", "PNG", "TIFF"):
        stream = io.BytesIO()
        frames[0].save(stream, kind, save_all=True, append_images=frames[1:])
        animated[f"{kind} of many frames"] = stream.getvalue()
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 3\n%%EndComments\n(/tmp/x) (w) file\n%%EOF\n"
    return {
        **animated,
        "50,000 x 50,000": huge + chunk(b"IDAT", zlib.compress(b"\0" * 10**7)) + chunk(b"IEND", b""),
        "iTXt bomb": head + chunk(b"iTXt", b"a\0\1\0\0\0" + bomb) + rest,
        "zTXt bombs": head + b"".join(chunk(b"zTXt", b"a\0\0" + bomb) for _ in range(20)) + rest,
        "iCCP bomb": head + chunk(b"iCCP", b"a\0\0" + bomb) + rest,
        "EPS": eps,
        "SVG": b'<svg xmlns="http://www.w3.org/2000/svg" width="4" height="3"/>',
        "PDF": b"%PDF-1.4\n",
        "cut off": png((40, 30))[:50],
        "nothing": b"",
        "zeros": b"\0" * 1000,
    }


def test_images_are_refused_or_read_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("ran a program"))
    for kind, data in hostile_images().items():
        file = tmp_path / "a.png"
        file.write_bytes(data)
        try:
            found = decode_image(file, str(file), ImageSize(3, 4, 3)).pixels
        except DataError as error:
            text = str(error)
        else:
            assert kind.endswith(("bomb", "bombs"))
            assert np.array_equal(found, np.zeros((3, 4, 3)))
            continue
        assert text.startswith(f"{file}: "), kind
        assert "\n" not in text, kind
    file.unlink()
    os.mkfifo(file)
    said(lambda: decode_image(file, str(file), ImageSize(3, 4, 3)), folder=tmp_path)


# Recipes


RECIPE = '[data]\npath = "x"\n[training]\nmax_steps = 5\n'


def test_recipes_extend_files_and_not_without_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    for name in ("pipe.toml", "zero.toml", "folder.toml", "loop.toml", "/dev/zero", "a\0", "x" * 300, "", "."):
        (tmp_path / "r.toml").write_text(f"extends = {json.dumps(name)}\n", "utf-8")
        folder = Path(name) if name.startswith("/") else tmp_path
        said(lambda: load_recipe(tmp_path / "r.toml"), folder=folder)
        said(partial(load_search, tmp_path / name), folder=folder)
    (tmp_path / "0.toml").write_text(RECIPE, "utf-8")
    for number in range(1, 1500):
        (tmp_path / f"{number}.toml").write_text(f'extends = "{number - 1}.toml"\n', "utf-8")
    assert load_recipe(tmp_path / "19.toml").data.path == "x"
    with pytest.raises(RecipeError, match="more than 20 recipes in a row"):
        load_recipe(tmp_path / "1499.toml")
    (tmp_path / "absolute.toml").write_text(f'extends = "{tmp_path / "0.toml"}"\n', "utf-8")
    assert load_recipe(tmp_path / "absolute.toml").name == "absolute"


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 100_000) + " = 1",
        f"[{'.'.join('a' * 100_000)}]\n" + "".join(f"b{number} = 1\n" for number in range(50_000)),
        "[" + ".".join(['"a"'] * 100_000) + "]\n" + "".join(f"b{number} = 1\n" for number in range(50_000)),
        "a = " + "{a = " * 60 + "1" + "}" * 60,
        "a = " + "[" * 60 + "]" * 60,
        "seed = 0x" + "f" * 500_000,
        "seed = 1e400",
        "seed = " + "9" * 500_000,
        "seed = 0001-01-01",
        " " * 1_000_000 + "x",
        "[search]\nname = '" + "x" * 500_000 + "'",
    ],
)
def test_toml_that_means_harm_is_refused_at_once(text: str, tmp_path: Path) -> None:
    for load in (load_recipe, load_search):
        (tmp_path / "r.toml").write_text(text, "utf-8")
        with pytest.raises(RecipeError) as caught:
            load(tmp_path / "r.toml")
        assert len(str(caught.value)) < 2000


# Special files, names and keys


FORMATS = ("text", "tsv", "csv", "jsonl", "parquet", "labelled", "conllu", "conll", "tmx", "xliff", "po")


@pytest.mark.parametrize("format_", FORMATS)
def test_corpora_that_are_no_files_are_refused_without_waiting(format_: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path, tmp_path / ("x" * 300)):
        places = {"source": str(path), "target": str(path)} if format_ == "text" else {"path": str(path)}
        corpus = CorpusConfig.model_validate({"format": format_, **places})
        for read in (lambda c: list(read_pairs(c)), content_fingerprints):
            said(lambda read=read, corpus=corpus: read(corpus), folder=Path(str(path)[:200]))  # type: ignore[misc]


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"source": "a", "target": "b", "source": "c"}\n', "utf-8")
    (tmp_path / "a.csv").write_text("source,target,source\na,b,c\n", "utf-8")
    pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * 3, ["source", "target", "source"]), tmp_path / "a.parquet")
    for kind in ("jsonl", "csv", "parquet"):
        file = tmp_path / f"a.{kind}"
        text = said(
            lambda kind=kind, file=file: list(read_pairs(CorpusConfig(format=kind, path=str(file)))), folder=file
        )  # type: ignore[misc]
        assert "source" in text


# How much memory and time it takes


LIMITED = """
import resource, sys
from pathlib import Path
from tfm.data.corpora.sources import content_fingerprints, read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError
try:
    corpus = CorpusConfig.model_validate_json(sys.argv[1])
    content_fingerprints(corpus)
    print(sum(1 for _ in read_pairs(corpus)))
except DataError as error:
    print(error)
if sys.platform == "darwin":
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
else:  # ru_maxrss begins with that of the process that started this one
    lines = Path("/proc/self/status").read_text().splitlines()
    print(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024)
"""


def limited(**corpus: Any) -> str:
    """The number of pairs, or the refusal, of a corpus that is read in a process of its own, within the limits."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, json.dumps(corpus)],
        env=environment, capture_output=True, text=True, timeout=SECONDS, check=True,
    )  # fmt: skip
    *text, peak = done.stdout.splitlines()
    assert int(peak) < MAX_RESIDENT, int(peak) >> 20
    return "\n".join(text)


def zipped(content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", content)
    return stream.getvalue()


def zstd(content: bytes) -> bytes:
    return pa.compress(content, codec="zstd", asbytes=True)  # type: ignore[no-any-return]


def repeated(size: int, count: int) -> pa.Array:
    """A text `count` times, in the memory of one."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count), pa.int32()), pa.array(["x" * size]))


def columns(side: pa.Array) -> pa.Table:
    return pa.table({"source": side, "target": side})


MEGABYTE = 10**6
XML_BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "tmx laughs": (
        lambda: b'<!DOCTYPE tmx [<!ENTITY a "ha"><!ENTITY b "' + b"&a;" * 1000 + b'">]><tmx><body>&b;</body></tmx>',
        "declares or uses the entity",
    ),
    "tmx files": (
        lambda: b'<!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/passwd">]><tmx>&a;</tmx>',
        "declares or uses the entity",
    ),
    "tmx parameters": (
        lambda: b'<!DOCTYPE tmx [<!ENTITY % a SYSTEM "http://127.0.0.1:9/">%a;]><tmx/>',
        "declares or uses",
    ),
    "xliff other DTD": (lambda: b'<!DOCTYPE xliff SYSTEM "http://127.0.0.1:9/"><xliff>&a;</xliff>', "declares or uses"),
    "tmx depth": (lambda: b"<tmx>" + b"<a>" * 2**24, "nested more than 100 deep"),
    "tmx text": (lambda: b"<tmx><tu><tuv><seg>" + b"a" * 2**28, "segment longer than"),
    "xliff tags": (lambda: b"<xliff><trans-unit><source>" + b"<g>x</g>" * 2**25, "segment with more than"),
    "xliff attribute": (lambda: b'<xliff a="' + b"a" * 2**28, "tag or comment longer than"),
    "tmx comment": (lambda: b"<tmx><!--" + b"a" * 2**28, "tag or comment longer than"),
    "tmx variants": (lambda: b"<tmx><tu>" + b"<tuv><seg>a</seg></tuv>" * 2**23, "a unit with more than"),
    "tmx properties": (
        lambda: b"<tmx><tu>" + b"".join(b'<prop type="%d">a</prop>' % i for i in range(20_000)),
        "a unit with more",
    ),
    "xliff names": (lambda: b"<xliff>" + b"".join(b"<a%d/>" % number for number in range(2**18)), "different names"),
}


def bombs(folder: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    """By what it is: what is said of it (a number of pairs, or part of a refusal), and the corpus."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}

    def parquet(name: str, expected: str, table: pa.Table, **how: Any) -> None:
        file = folder / f"{name}.parquet"
        pq.write_table(table, file, compression="zstd", **how)
        found[name] = expected, {"format": "parquet", "path": str(file), "lists": "join"}

    def lists(size: int, items: int, rows: int) -> pa.Array:
        offsets = pa.array(range(0, items * rows + 1, items), pa.int32())
        return pa.ListArray.from_arrays(offsets, repeated(size, items * rows))

    big = {"dictionary_pagesize_limit": 2**30}
    parquet("texts", "unpack to more than 536,870,912", columns(repeated(MEGABYTE, 12_000)), **big)
    parquet("texts without a schema of Arrow", "250", columns(repeated(MEGABYTE, 250)), store_schema=False, **big)
    parquet("long texts", "row 1 holds more than", columns(repeated(17 * MEGABYTE, 500)), store_schema=False, **big)
    parquet("plain texts", "250", columns(pa.array(["x" * MEGABYTE] * 250)), use_dictionary=False)
    parquet("lists", "row 1 holds more than", columns(lists(MEGABYTE, 1000, 12)), store_schema=False, **big)
    items = pa.ListArray.from_arrays(pa.array([0, 3 * 10**7], pa.int32()), repeated(0, 3 * 10**7))
    parquet("many short items", "row 1 holds more than", columns(items))
    parquet("structs", "250", pa.table({"translation": pa.StructArray.from_arrays(
        [repeated(MEGABYTE, 250)] * 2, ["source", "target"])}), store_schema=False, **big)  # fmt: skip
    prefixes = pa.array(["x" * MEGABYTE + f"{number:05}" for number in range(250)])
    parquet("prefixes", "250", columns(prefixes), use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY")
    hub = folder / "hub"
    hub.mkdir()
    text = pa.table({"source": ["x" * MEGABYTE] * 600, "target": ["y"] * 600})
    feather.write_feather(text, hub / "train.arrow", compression="zstd", chunksize=600)
    found["packed Arrow"] = "unpacks to", {"format": "huggingface", "path": str(hub), "split": "train"}
    for name, line, expected, about in (
        ("one long line", b"\0" * 2**27, "is longer than", {"format": "jsonl"}),
        ("many short lines", b"a\tb\n" * 2**21, str(2**21), {"format": "tsv", "source": "0", "target": "1"}),
        ("a row of many lines", b'source,target\n"' + b'\n","' * 2**25, "quotation mark", {"format": "csv"}),
        ("a sentence of many words", b"1\ta\tb\tX\tY\t_\t0\troot\t_\t_\n" * 2**20, "blank line", {"format": "conllu"}),
        *((name, make(), expected, {"format": name.split()[0], "source": "a", "target": "b"})
          for name, (make, expected) in XML_BOMBS.items()),
        ("a long message", b'msgid "a"\nmsgstr ""\n' + b'"bbbbbbbb"\n' * 2**24, "is longer than", {"format": "po"}),
        ("many lists", b'{"source": [' + b"[]," * (2**22) + b"[]]}\n", "holds", {"format": "jsonl"}),
    ):  # fmt: skip
        file = folder / f"{name}.gz"
        file.write_bytes(gzip.compress(line, 1))
        found[name] = expected, {**about, "path": str(file)}
    for ending, pack in {".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd, ".zip": zipped}.items():
        file = folder / f"long line{ending}"
        file.write_bytes(pack(b"x" * 2**29))
        found[file.name] = "is longer than", {"format": "jsonl", "path": str(file)}
    many = io.BytesIO()
    with zipfile.ZipFile(many, "w") as archive:
        for number in range(100_000):
            archive.writestr(f"{number}{'x' * 100}", b"")
    (folder / "many.zip").write_bytes(many.getvalue())
    found["many.zip"] = "not a complete zip archive", {"format": "jsonl", "path": str(folder / "many.zip")}
    return found


@pytest.fixture(scope="module")
def bomb_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, dict[str, Any]]]:
    return bombs(tmp_path_factory.mktemp("bombs"))


BOMBS = (
    "texts", "texts without a schema of Arrow", "long texts", "plain texts", "lists", "many short items", "structs",
    "prefixes", "packed Arrow", "one long line", "many short lines", "a row of many lines", "a sentence of many words",
    "many lists", "a long message", "long line.bz2", "long line.xz", "long line.zst", "long line.zip", "many.zip",
    *XML_BOMBS,
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_read_or_refused_within_the_limits(
    name: str, bomb_files: dict[str, tuple[str, dict[str, Any]]]
) -> None:
    expected, corpus = bomb_files[name]
    assert expected in limited(**corpus)
