"""docs/data/README.md: each line of a recipe that it shows reads the files that are named in front of it."""

import json
import lzma
import re
from collections.abc import Iterator
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.user import ROOT
from tfm.data.corpora.sources import read_pairs, resolve_splits
from tfm.pipeline.recipes.recipe import load_recipe

PAGE = ROOT / "docs" / "data" / "README.md"
PAIRS = [("a dog sleeps", "ein Hund schläft"), ("two cats", "zwei Katzen"), ("the sea", "das Meer")]
LABELS = [("a dog sleeps", "positive"), ("two cats", "negative"), ("the sea", "positive")]
TAGGED = [("a dog sleeps", "DET NOUN VERB"), ("two cats", "NUM NOUN"), ("the sea", "DET NOUN")]
ENTITIES = [("Ann sleeps", "B-PER O"), ("New York", "B-LOC I-LOC")]
PHONES = [("dog", "D AO1 G"), ("cat", "K AE1 T")]
INFLECTIONS = [("dog", "dogs", "N;PL"), ("sleep", "slept", "V;PST"), ("sleep", "sleeps", "V;PRS;3;SG")]
SPLITS = {"train": "train", "dev": "valid", "test": "test"}


def rows() -> Iterator[tuple[str, str]]:
    """A file of the page, and the line that reads it."""
    for line in PAGE.read_text("utf-8").splitlines():
        match = re.fullmatch(r"\| (?P<have>.*) \| `(?P<line>data.*)` \|", line)
        if match is not None:
            yield match["have"], match["line"]


def write(file: Path, *lines: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def write_aligned(folder: Path, name: str) -> None:
    for ending, side in (("en", 0), ("de", 1)):
        write(folder / f"{name}.{ending}", *(pair[side] for pair in PAIRS))


def write_files(here: Path) -> None:
    """All files that the page names."""
    write_aligned(here, "corpus")
    for split, other in SPLITS.items():
        write_aligned(here / "folder", split)
        write_aligned(here / "opus", f"opus.en-de-{split}")
        write_aligned(here / "fairseq", f"{other}.en-de")
    write_aligned(here / "wmt", "europarl-v7.de-en")
    table = ["\t".join(pair) for pair in PAIRS]
    write(here / "pairs.tsv", *table)
    (here / "pairs.tsv.xz").write_bytes(lzma.compress("".join(f"{line}\n" for line in table).encode()))
    write(here / "header.tsv", "english\tgerman", *(f'"{one}"\t"{two}"' for one, two in PAIRS))
    write(here / "pairs.csv", "english,german", *map(",".join, PAIRS))
    write(here / "semicolons.csv", *map(";".join, PAIRS))
    named = [{"english": one, "german": two} for one, two in PAIRS]
    nested = [{"en": one, "de": two} for one, two in PAIRS]
    write(here / "pairs.jsonl", *map(json.dumps, named))
    write(here / "pairs.json", json.dumps({"data": [{"texts": each} for each in nested]}))
    write(here / "hub.jsonl", *(json.dumps({"translation": each}) for each in nested))
    pq.write_table(pa.Table.from_pylist(named), here / "pairs.parquet")
    datasets.DatasetDict(train=datasets.Dataset.from_list(named)).save_to_disk(str(here / "saved"))
    units = [
        f'<tu><tuv xml:lang="en"><seg>{a}</seg></tuv><tuv xml:lang="de"><seg>{b}</seg></tuv></tu>' for a, b in PAIRS
    ]
    write(here / "memory.tmx", "<tmx><body>", *units, "</body></tmx>")
    units = [f"<trans-unit><source>{one}</source><target>{two}</target></trans-unit>" for one, two in PAIRS]
    write(here / "app.xlf", "<xliff><file><body>", *units, "</body></file></xliff>")
    write(here / "de.po", *(f'msgid "{one}"\nmsgstr "{two}"\n' for one, two in PAIRS))
    write(here / "reviews.csv", "text,label", *map(",".join, LABELS))
    write(
        here / "articles.csv", "title,body,label", *(f"{text.replace(' ', ',', 1)},{label}" for text, label in LABELS)
    )
    write(here / "inflection.tsv", *("\t".join((lemma, form, tags)) for lemma, form, tags in INFLECTIONS))
    integers = [{"text": text, "label": int(label == "positive")} for text, label in LABELS]
    write(here / "integers.jsonl", *map(json.dumps, integers))
    write(here / "fasttext.txt", *(f"__label__{label} {text}" for text, label in LABELS))
    for text, tags in TAGGED:
        words = enumerate(zip(text.split(), tags.split(), strict=True), 1)
        with open(here / "treebank.conllu", "a", encoding="utf-8") as stream:
            stream.writelines(f"{n}\t{word}\t_\t{tag}\t_\t_\t0\tdep\t_\t_\n" for n, (word, tag) in words)
            stream.write("\n")
    for text, tags in ENTITIES:
        with open(here / "entities.conll", "a", encoding="utf-8") as stream:
            stream.writelines(f"{word} {tag}\n" for word, tag in zip(text.split(), tags.split(), strict=True))
            stream.write("\n")
    words = [
        [f"S {number}", word, tag]
        for number, (text, tags) in enumerate(ENTITIES)
        for word, tag in zip(text.split(), tags.split(), strict=True)
    ]
    write(here / "kaggle.csv", "Sentence #,Word,Tag", *map(",".join, words))
    write(here / "lexicon.txt", *(f"{word}  {phones}" for word, phones in PHONES))
    write(here / "book.txt", *(target for _, target in PAIRS))
    write(here / "texts.jsonl", *(json.dumps({"text": target}) for _, target in PAIRS))


EXPECTED = {
    **dict.fromkeys(("reviews.csv", "articles.csv", "integers.jsonl", "fasttext.txt"), LABELS),
    "inflection.tsv": [(f"{lemma} {tags}", form) for lemma, form, tags in INFLECTIONS],
    "treebank.conllu": TAGGED,
    **dict.fromkeys(("entities.conll", "kaggle.csv"), ENTITIES),
    "lexicon.txt": PHONES,
    **{file: [("", target) for _, target in PAIRS] for file in ("book.txt", "texts.jsonl")},
}
"""By file; all others hold PAIRS."""


def test_the_page_has_rows() -> None:
    assert len(list(rows())) > 20


@pytest.mark.parametrize(("have", "line"), list(rows()))
def test_a_line_reads_what_is_in_front_of_it(
    have: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    task = ['model = { architecture = "decoder_only", task = "language_model" }'] * ('"none"' in line)
    write(tmp_path / "recipe.toml", line, *task)
    data = load_recipe(tmp_path / "recipe.toml").data
    corpora = data.train or resolve_splits(data).train
    file = next((name for name in EXPECTED if name in line), "")
    assert [pair for corpus in corpora for pair in read_pairs(corpus)] == EXPECTED.get(file, PAIRS), have
