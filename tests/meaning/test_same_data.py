"""What may not change a dataset: the order of a corpus, white space that the tokenizer drops, a seed of training; and
what a dataset must say: spellings in training of what is tested, references that its tokenizer cannot write."""

import json
import random
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from datasets import load_from_disk
from tokenizers import Tokenizer

from tests.cli.user import Result, tfm
from tests.meaning import campaign, scripts
from tests.meaning.scripts import SCRIPTS, Script

pytestmark = [pytest.mark.slow, pytest.mark.meaning("relations")]
Pairs = list[tuple[str, str]]
SPLIT = """
name = "{name}"
[tokenizer]
kind = "char"
vocab_size = 200
min_frequency = 1
[data]
train = {{ source = "{folder}/train.src", target = "{folder}/train.tgt" }}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=SCRIPTS.values(), ids=SCRIPTS)
def script(request: pytest.FixtureRequest) -> Script:
    return request.param  # type: ignore[no-any-return]


def prepared(name: str, text: str, *words: str) -> tuple[Path, Result]:
    """The dataset of a recipe, and what was said while making it."""
    recipe = Path(f"{name}.toml")
    recipe.write_text(text, encoding="utf-8")
    for stage in ("tokenize", "preprocess"):
        said = tfm(stage, "--recipe", recipe, *words)
        assert said.code == 0, said.err
    return Path("runs", name, "dataset"), said


def texts_of(dataset: Path, split: str) -> list[tuple[str, str]]:
    found = load_from_disk(str(dataset / split))
    return list(zip(found["source_text"], found["target_text"], strict=True))


def report_of(dataset: Path) -> Any:
    return json.loads((dataset / "report.json").read_text("utf-8"))


def test_a_permuted_corpus_has_the_same_random_splits(script: Script, record_property: Any) -> None:
    pairs, found = script.pairs(300, 1), []
    for name in ("first", "second"):
        scripts.write_pairs(Path(name), {"train": pairs})
        dataset, _ = prepared(name, SPLIT.format(name=name, folder=name))
        found.append({split: sorted(texts_of(dataset, split)) for split in ("valid", "test")})
        random.Random(2).shuffle(pairs)
    assert found[0] == found[1]
    assert all(len(rows) > 10 for rows in found[0].values())
    sources = [{source for source, _ in rows} for rows in found[0].values()]
    assert not sources[0] & sources[1]
    record_property("rows", len(pairs))


def spellings(text: str, space: str) -> list[str]:
    """Other ways to write a text that the same pieces come of."""
    found = [f"{text} ", f"  {text}", f"{text}\u3000"]
    if space:
        found += [text.replace(" ", each, 1) for each in ("  ", "\u00a0", "\t") if " " in text]
    decomposed = unicodedata.normalize("NFD", text)
    return [*found, *([decomposed] if decomposed != text else [])]


def test_tested_sentences_in_another_spelling_are_in_training(script: Script, record_property: Any) -> None:
    """Sources that differ from those of training in what no model sees are said to be there; so are the targets."""
    train, draw = script.pairs(100, 3), random.Random(4)
    tested = [tuple(draw.choice(spellings(text, script.space)) for text in pair) for pair in train]
    fresh = [pair for pair in script.pairs(40, 5, 7, 9) if pair not in train]
    columns = {"train": train, "valid": script.pairs(10, 6), "test": [*tested, *fresh]}
    corpora = scripts.write_pairs(Path("corpora"), columns)  # type: ignore[arg-type]
    recipe = campaign.write_recipe(Path("spelled.toml"), corpora.folder, "char")
    dataset, _ = prepared("spelled", recipe.read_text("utf-8"))
    found = report_of(dataset)["overlap"]["test"]
    assert found["sources"] == found["pairs"] == found["targets"] == len(tested)
    record_property("rows", len(tested))


def test_duplicates_in_another_spelling_are_dropped(script: Script, record_property: Any) -> None:
    draw = random.Random(7)
    once = list(dict.fromkeys(script.pairs(100, 8)))
    again = [tuple(draw.choice(spellings(text, script.space)) for text in pair) for pair in once]
    columns = {"train": [*once, *again], "valid": once[:5], "test": once[:5]}
    corpora = scripts.write_pairs(Path("corpora"), columns)  # type: ignore[arg-type]
    recipe = campaign.write_recipe(Path("twice.toml"), corpora.folder, "char")
    dataset, _ = prepared("twice", recipe.read_text("utf-8"), "--set", "data.limits.duplicates=drop")
    train = report_of(dataset)["splits"]["train"]
    assert (train["rows"], train["dropped"]["duplicate"]) == (len(once), len(again))
    record_property("rows", len(again))


@pytest.mark.parametrize("name", [name for name, script in SCRIPTS.items() if script.cased])
def test_a_tokenizer_that_lower_cases_reads_capitals_as_small_letters(name: str, record_property: Any) -> None:
    """Sentences in capitals are those of training, also where a capital has two small letters, as Σ has."""
    train = [pair for pair in SCRIPTS[name].pairs(120, 11) if "ß" not in "".join(pair)]
    tested = [(source.upper(), target.upper()) for source, target in train]
    corpora = scripts.write_pairs(Path("corpora"), {"train": train, "valid": train[:9], "test": tested})
    recipe = campaign.write_recipe(Path("capitals.toml"), corpora.folder, "bpe")
    dataset, _ = prepared("capitals", recipe.read_text("utf-8"), "--set", "tokenizer.lowercase=true")
    report = report_of(dataset)
    assert report["overlap"]["test"]["pairs"] == len(tested)
    found = load_from_disk(str(dataset / "test"))["target"]
    tokenizer = Tokenizer.from_file(str(dataset / "tokenizer" / "tokenizer.json"))
    written = [tokenizer.decode(ids) for ids in found]
    assert [text.strip() for text in written] == [target.lower() for _, target in train]
    record_property("rows", len(tested))


def test_what_is_in_normal_form_c_comes_back(script: Script) -> None:
    """By default a tokenizer changes no character of the references: nothing is reported as out of reach."""
    corpora = scripts.write_pairs(Path("corpora"), {split: script.pairs(60, 9) for split in ("train", "valid", "test")})
    recipe = campaign.write_recipe(Path("plain.toml"), corpora.folder, "char")
    dataset, _ = prepared("plain", recipe.read_text("utf-8"))
    assert [report_of(dataset)["splits"][split]["unwritable"]["segments"] for split in ("valid", "test")] == [0, 0]


@pytest.mark.parametrize(("name", "lost"), [("Thai", "ำ"), ("Han", "，！？"), ("Latin", "ﬁ²")])
def test_references_that_cannot_be_written_are_reported(name: str, lost: str, record_property: Any) -> None:
    """NFKC by choice: which characters no hypothesis can have, and how many references have one."""
    script = SCRIPTS[name]
    pairs = script.pairs(80, 10)
    if name == "Latin":
        pairs = [
            (source, f"{target} {lost}" if number % 2 else target) for number, (source, target) in enumerate(pairs)
        ]
    corpora = scripts.write_pairs(Path("corpora"), dict.fromkeys(("train", "valid", "test"), pairs))
    recipe = campaign.write_recipe(Path("folded.toml"), corpora.folder, "char")
    dataset, said = prepared("folded", recipe.read_text("utf-8"), "--set", "tokenizer.normalization=nfkc")
    found = report_of(dataset)["splits"]["test"]["unwritable"]
    touched = sum(unicodedata.normalize("NFKC", target) != target for _, target in pairs)
    times = {each: sum(target.count(each) for _, target in pairs) for each in lost}
    assert found["segments"] == touched > 0
    assert {each["character"]: each["times"] for each in found["characters"]} == {k: v for k, v in times.items() if v}
    assert all(character in said.err for character, count in times.items() if count)
    record_property("rows", touched)


def test_another_seed_has_the_same_tokenizer_and_dataset(record_property: Any) -> None:
    corpora = scripts.write(Path("corpora"), SCRIPTS["Greek"])
    recipe = campaign.write_recipe(Path("seeds.toml"), corpora.folder, "bpe")
    found = []
    for seed in (1, 2, 31):
        text = f"seed = {seed}\n" + recipe.read_text("utf-8").replace("seeds", f"seed{seed}")
        dataset, _ = prepared(f"seed{seed}", text)
        manifests = (dataset.parent / stage / "manifest.json" for stage in ("tokenizer", "dataset"))
        found.append([json.loads(file.read_text("utf-8"))["fingerprint"] for file in manifests])
    assert found[0] == found[1] == found[2]
    record_property("seeds", 3)
