"""Contents, not clocks: an input that was replaced by another of the same size and time is another input.

So do `rsync -t`, `cp -p` and tar leave it. The old contents are neither "up to date" nor read once more, in this
process or by another run.
"""

import json
import os
import shutil
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.cli.user import tfm
from tests.tiny_images import idx_bytes
from tests.tiny_wordnet import SYNSETS, write_wordnet
from tfm.data.corpora.sources import content_fingerprints, read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.dataset.store import load_split
from tfm.model.config import ModelConfig
from tfm.pipeline.external_metric import ExternalMetric
from tfm.pipeline.model_io.pretrained_vectors import vector_inputs
from tfm.pipeline.scoring.metrics.external import scores as external
from tfm.pipeline.scoring.metrics.wordnet import open_wordnet, wordnet_fingerprint

LONG_AGO = 1_500_000_000 * 10**9
WORDS = ("one", "two")
"""Old and new contents: of the same length."""
NUM_ROWS = 40


def replace(old: Path, new: Path, *, in_place: bool = False) -> None:
    """Give every file below `old` the bytes of its namesake below `new`, which are as many, and its old time."""
    changed = 0
    for file in sorted(old.rglob("*")):
        twin = new / file.relative_to(old)
        if file.is_dir() or not twin.exists() or file.read_bytes() == twin.read_bytes():
            continue
        before = file.stat()
        assert twin.stat().st_size == before.st_size, file
        if in_place:
            file.write_bytes(twin.read_bytes())
        else:
            draft = file.with_name(f".{file.name}.draft")
            shutil.copyfile(twin, draft)
            draft.replace(file)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        changed += 1
    assert changed


def age(folder: Path) -> None:
    """Let all files have one time long ago."""
    for file in folder.rglob("*"):
        os.utime(file, ns=(LONG_AGO, LONG_AGO))


def table_of(word: str) -> list[dict[str, str]]:
    return [{"source": f"{word} {number:03}", "target": f"{word} {number:03}"} for number in range(NUM_ROWS)]


def write_table(file: Path, word: str) -> None:
    rows = table_of(word)
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), file, compression="none")
    elif file.suffix == ".arrow":
        table = pa.Table.from_pylist(rows)
        with pa.OSFile(str(file), "wb") as stream, pa.ipc.new_stream(stream, table.schema) as arrow:
            arrow.write_table(table)
    elif file.suffix == ".json":
        file.write_text(json.dumps(rows), "utf-8")
    elif file.suffix == ".jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    else:
        mark = "\t" if file.suffix == ".tsv" else ","
        cells = [("source", "target"), *((row["source"], row["target"]) for row in rows)]
        file.write_text("".join(mark.join(row) + "\n" for row in cells), "utf-8")


def write_saved(folder: Path, word: str) -> None:
    splits = {split: datasets.Dataset.from_list(table_of(word)) for split in ("train", "validation", "test")}
    datasets.DatasetDict(splits).save_to_disk(str(folder))
    for file in folder.rglob("state.json"):  # or else this one says that it is another dataset
        file.write_text(json.dumps({**json.loads(file.read_text()), "_fingerprint": "0123456789abcdef"}))


def write_images(folder: Path, word: str) -> None:
    folder.mkdir(parents=True)
    Image.new("RGB", (8, 8), {"one": "red", "two": "blue"}[word]).save(folder / "1.bmp")
    (folder / "metadata.csv").write_text("file_name,target\n1.bmp,a caption\n", "utf-8")


def write_captions(folder: Path, word: str) -> None:
    write_images(folder, "one")
    (folder / "metadata.csv").write_text(f"file_name,target\n1.bmp,caption {word}\n", "utf-8")


def write_idx(folder: Path, word: str) -> None:
    folder.mkdir(parents=True)
    values = np.full((2, 8, 8), len(word) + (word == "two"), np.uint8)
    (folder / "images.idx").write_bytes(idx_bytes(values))
    (folder / "labels.idx").write_bytes(idx_bytes(np.array([0, 1], np.uint8)))


def in_file(name: str) -> Callable[[Path, str], None]:
    return lambda folder, word: write_table(folder / name, word)


def write_text(folder: Path, word: str) -> None:
    folder.mkdir(parents=True)
    lines = "".join(row["source"] + "\n" for row in table_of(word))
    for name in ("train", "valid", "test"):
        for side in ("source", "target"):
            (folder / f"{name}.{side}").write_text(lines, "utf-8")


def write_labelled(folder: Path, word: str) -> None:
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text(f"__label__{word} a text\n", "utf-8")


def write_conllu(folder: Path, word: str) -> None:
    folder.mkdir(parents=True)
    (folder / "a.conllu").write_text(f"1\t{word}\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n", "utf-8")


def write_image_column(folder: Path, word: str) -> None:
    write_images(folder / "files", word)
    rows = [{"image": {"bytes": (folder / "files" / "1.bmp").read_bytes(), "path": None}, "target": "a caption"}]
    shutil.rmtree(folder / "files")
    of_images = datasets.Features({"image": datasets.Image(), "target": datasets.Value("string")})
    table = pa.Table.from_pylist(rows, of_images.arrow_schema)
    pq.write_table(table, folder / "train.parquet", compression="none")


def in_lines(text: str) -> Callable[[Path, str], None]:
    def write(folder: Path, word: str) -> None:
        folder.mkdir(parents=True)
        (folder / "a").write_text(text.replace("{}", word) + "\n", "utf-8")

    return write


def write_zip(folder: Path, word: str) -> None:
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("a", f"{word}\tx\n")


TMX = '<tmx><tu><tuv lang="en"><seg>{}</seg></tuv><tuv lang="de"><seg>x</seg></tuv></tu></tmx>'
XLIFF = "<xliff><unit><segment><source>{}</source><target>x</target></segment></unit></xliff>"
HUB: dict[str, Any] = {"format": "huggingface", "path": "{}", "split": "train"}
CORPORA: dict[str, tuple[Callable[[Path, str], None], dict[str, Any]]] = {
    "text": (write_text, {"source": "{}/train.source", "target": "{}/train.target"}),
    **{
        kind: (in_file(f"a.{kind}"), {"format": kind, "path": f"{{}}/a.{kind}"})
        for kind in ("csv", "tsv", "jsonl", "parquet")
    },
    **{
        f"folder of {kind}": (in_file(f"data/train.{kind}"), HUB)
        for kind in ("csv", "tsv", "jsonl", "json", "parquet", "arrow")
    },
    "saved dataset": (write_saved, HUB),
    "labelled": (write_labelled, {"format": "labelled", "path": "{}/a.txt"}),
    "conllu": (write_conllu, {"format": "conllu", "path": "{}/a.conllu", "target": "upos"}),
    "conll": (in_lines("{} NN"), {"format": "conll", "path": "{}/a"}),
    "tmx": (in_lines(TMX), {"format": "tmx", "path": "{}/a", "source": "en", "target": "de"}),
    "xliff": (in_lines(XLIFF), {"format": "xliff", "path": "{}/a"}),
    "po": (in_lines('msgid "{}"\nmsgstr "x"'), {"format": "po", "path": "{}/a"}),
    "zip": (write_zip, {"format": "tsv", "path": "{}/a.zip", "source": "0", "target": "1"}),
    "images": (write_images, {"format": "imagefolder", "path": "{}", "target": "target"}),
    "captions": (write_captions, {"format": "imagefolder", "path": "{}", "target": "target"}),
    "idx": (write_idx, {"format": "idx", "path": "{}/images.idx", "target": "{}/labels.idx"}),
    "column of images": (write_image_column, {**HUB, "image": "image"}),
}
OF_PIXELS = ("images", "idx", "column of images")
"""Their pairs are names and captions, which stay."""


def corpus_in(folder: Path, about: dict[str, Any]) -> CorpusConfig:
    placed = {key: value.format(folder) if isinstance(value, str) else value for key, value in about.items()}
    return CorpusConfig.model_validate(placed)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.few(23)
def test_a_corpus_is_its_contents(name: str, in_place: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfm.data.safe_files.MIN_FILE_AGE_NS", -(10**18))  # as if all files were old
    write, about = CORPORA[name]
    for word in WORDS:
        write(tmp_path / word, word)
        age(tmp_path / word)
    shutil.copytree(tmp_path / "one", tmp_path / "corpus")
    corpus = corpus_in(tmp_path / "corpus", about)
    before = [part[2] for part in content_fingerprints(corpus)], list(read_pairs(corpus))
    assert before == ([part[2] for part in content_fingerprints(corpus)], list(read_pairs(corpus)))
    time.sleep(0.02)  # a tick of the clock that stamps files
    replace(tmp_path / "corpus", tmp_path / "two", in_place=in_place)
    after = [part[2] for part in content_fingerprints(corpus)], list(read_pairs(corpus))
    assert after[0] != before[0]
    assert after[1] == list(read_pairs(corpus_in(tmp_path / "two", about))) or name in OF_PIXELS
    assert (after[1] != before[1]) == (name not in OF_PIXELS)


def test_another_separator_is_another_corpus(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("source,target;source,target\na,b;c,d\n", "utf-8")
    found = []
    for mark in (",", ";"):
        card = f'---\nconfigs:\n- config_name: default\n  data_files: train.csv\n  sep: "{mark}"\n---\n'
        (tmp_path / "README.md").write_text(card, "utf-8")
        found.append({part[2] for part in content_fingerprints(corpus_in(tmp_path, {**HUB, "target": "target"}))})
    assert found[0] != found[1]


def test_word_vectors_a_wordnet_and_the_files_of_commands_are_their_contents(tmp_path: Path) -> None:
    for word in WORDS:
        folder = tmp_path / word
        folder.mkdir()
        (folder / "vectors.txt").write_text(f"1 2\n{word} 0.1 0.2\n", "utf-8")
        (folder / "score.py").write_text(f"print('{word}')\n", "utf-8")
        write_wordnet(folder / "wordnet", {**SYNSETS, "noun": [f"car auto{word}"]})
        age(folder)
    shutil.copytree(tmp_path / "one", tmp_path / "inputs")
    place = tmp_path / "inputs"
    metric = ExternalMetric(name="mine", command=(sys.executable, str(place / "score.py")))

    def fingerprints() -> list[str]:
        model = ModelConfig.model_construct(source_vectors=str(place / "vectors.txt"), target_vectors=None)
        inputs = [*vector_inputs(model).values(), *external.external_metric_inputs([metric]).values()]
        return [*(each.fingerprint for each in inputs), wordnet_fingerprint(place / "wordnet")]

    before = fingerprints()
    first = open_wordnet(place / "wordnet")
    replace(place, tmp_path / "two")
    after = fingerprints()
    assert after[-1] != before[-1]
    assert open_wordnet(place / "wordnet") is not first
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 3, "all but the program"


RECIPE = """
name = "tiny"
[tokenizer]
kind = "word"
vocab_size = 60
[data]
path = "{}"
source = "source"
target = "target"
batch_tokens = 256
"""


SLOW = ("csv", "parquet", "saved dataset", "text")


@pytest.mark.parametrize("kind", ["jsonl", *(pytest.param(kind, marks=pytest.mark.slow) for kind in SLOW)])
def test_a_dataset_is_made_again_of_the_new_texts(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for word in WORDS:
        folder = tmp_path / word
        if kind == "saved dataset":
            write_saved(folder, word)
        elif kind == "text":
            write_text(folder, word)
        else:
            for split in ("train", "validation", "test"):
                write_table(folder / f"{split}.{kind}", word)
        age(folder)
    shutil.copytree(tmp_path / "one", tmp_path / "corpus")
    (tmp_path / "r.toml").write_text(RECIPE.format(tmp_path / "corpus"), "utf-8")

    def made(name: str) -> tuple[str, list[str]]:
        said = []
        for stage in ("tokenize", "preprocess"):
            result = tfm(stage, "--recipe", "r.toml", "--set", f"name={name}")
            assert result.code == 0, result.err
            said.append(result.err + result.out)
        split = load_split(tmp_path / "runs" / name / "dataset" / "test", texts=True)
        return "".join(said), split.texts()[1]

    assert all(text.startswith("one") for text in made("a")[1])
    assert made("a")[0].count("up to date") == 2
    replace(tmp_path / "corpus", tmp_path / "two")
    for name in ("a", "b"):
        said, texts = made(name)
        assert "up to date" not in said
        assert texts
        assert all(text.startswith("two") for text in texts)


def test_scores_are_made_again_of_each_new_file(tmp_path: Path) -> None:
    for word in WORDS:
        (tmp_path / word).mkdir()
        for name in ("hypotheses", "reference", "source"):
            (tmp_path / word / name).write_text(f"{word} {name}\n", "utf-8")
        age(tmp_path / word)
    for changed in ("hypotheses", "reference", "source"):
        place = tmp_path / f"new {changed}"
        shutil.copytree(tmp_path / "one", place)
        command = ("evaluate", "--hypotheses", place / "hypotheses", "--reference", place / "reference")
        command = (*command, "--source", place / "source", "--metric", "chrf", "--out", tmp_path / f"scores {changed}")
        assert tfm(*command).code == 0
        again = tfm(*command)
        assert "up to date" in again.out + again.err
        twin = tmp_path / f"twin {changed}"
        twin.mkdir()
        shutil.copy2(tmp_path / "two" / changed, twin / changed)
        replace(place, twin)
        again = tfm(*command)
        assert again.code == 0
        assert "up to date" not in again.out + again.err
