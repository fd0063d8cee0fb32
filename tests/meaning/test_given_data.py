"""What of the data that is given is used, how often, and that it is known by what it says: split names, weights, saved
datasets; every one as a user sees it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, DatasetDict

from tests.cli.user import tfm, write_lines
from tests.meaning import campaign, scripts
from tests.meaning.scripts import SCRIPTS
from tests.meaning.test_same_data import prepared, report_of, texts_of

pytestmark = [pytest.mark.slow, pytest.mark.meaning("counts")]
FOLDER = """
name = "{name}"
[tokenizer]
kind = "char"
vocab_size = 200
min_frequency = 1
[data]
path = "{path}"
source = "src"
target = "tgt"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "test", ["test", "test2016", "test-2017", "newstest2014", "flickr2018.test", "test_2016_flickr"]
)
@pytest.mark.parametrize("valid", ["valid", "dev"])
def test_named_splits_are_used_and_nothing_is_cut_from_training(test: str, valid: str, record_property: Any) -> None:
    script = SCRIPTS["Devanagari"]
    pairs = {name: script.pairs(size, size) for name, size in (("train", 80), (valid, 12), (test, 15))}
    scripts.write_pairs(Path("given"), pairs)
    dataset, _ = prepared("named", FOLDER.format(name="named", path="given"))
    splits = report_of(dataset)["splits"]
    assert {name: split["rows"] for name, split in splits.items()} == {"train": 80, "valid": 12, test: 15}
    assert texts_of(dataset, test) == pairs[test]
    record_property("splits", 3)


def test_what_looks_like_a_split_and_is_not_used_is_named() -> None:
    script = SCRIPTS["Arabic"]
    scripts.write_pairs(Path("given"), {name: script.pairs(40, 1) for name in ("train", "valid", "dev", "test")})
    _, said = prepared("named", FOLDER.format(name="named", path="given"))
    assert "dev" in said.err


@pytest.mark.parametrize(("rows", "weight"), [(30, 0.05), (4, 0.05), (7, 0.3), (5, 2.5)])
def test_weighted_rows_come_as_often_as_their_weight_asks(rows: int, weight: float, record_property: Any) -> None:
    """Each sentence fills a batch of its own, so that updates count how many rows were trained on in all epochs."""
    script, epochs = SCRIPTS["Hangul"], 20
    pairs = script.pairs(10 + rows, 1, 8, 8)
    length = max(len(text) + 1 for pair in pairs for text in pair)
    columns = {"train": pairs[:10], "more": pairs[10:], "valid": pairs[:2], "test": pairs[:2]}
    corpora = scripts.write_pairs(Path("corpora"), columns)
    recipe = campaign.write_recipe(Path("weighted.toml"), corpora.folder, "char")
    more = f'{{ source = "corpora/more.src", target = "corpora/more.tgt", weight = {weight} }}'
    lines = [
        f"{line[:-2]} }}, {more}]".replace("train = {", "train = [{") if line.startswith("train = ") else line
        for line in recipe.read_text("utf-8").splitlines()
    ]
    recipe.write_text("\n".join(lines), encoding="utf-8")
    changes = {"data.batch_tokens": length, "training.max_epochs": epochs, "training.validation.bleu": False}
    run = campaign.run(recipe, changes | {"training.validation.every_epochs": epochs})
    drawn = len(run.metrics("train")) - 10 * epochs
    assert abs(drawn - epochs * weight * rows) < 1
    record_property("rows", drawn)


def test_a_saved_dataset_is_known_by_its_texts(record_property: Any) -> None:
    """A new text under the fingerprint that the library gave the old one is another dataset."""
    pairs = SCRIPTS["Thai"].pairs(60, 2)

    def save(place: str, changed: str) -> None:
        columns = {"src": [source for source, _ in pairs], "tgt": [target + changed for _, target in pairs]}
        split = Dataset.from_dict(columns)
        DatasetDict({"train": split, "validation": split, "test": split}).save_to_disk(place)

    save("given", "")
    text = FOLDER.format(name="saved", path="given")
    dataset, _ = prepared("saved", text)
    before = json.loads((dataset / "manifest.json").read_text("utf-8"))["fingerprint"]
    states = {file.parent.name: file.read_text("utf-8") for file in Path("given").rglob("state.json")}
    shutil.rmtree("given")
    save("given", "ๆ")
    for name, state in states.items():
        (Path("given") / name / "state.json").write_text(state, encoding="utf-8")
    dataset, _ = prepared("saved", text)
    assert json.loads((dataset / "manifest.json").read_text("utf-8"))["fingerprint"] != before
    assert all(target.endswith("ๆ") for _, target in texts_of(dataset, "test"))
    record_property("datasets", 2)


def test_a_tokenizer_from_elsewhere_gives_its_own_pieces() -> None:
    """`tfm tokenize --from FILE`: a tokenizer.json that another library wrote."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    lines = [text for pair in SCRIPTS["Cyrillic"].pairs(200, 3) for text in pair]
    made = Tokenizer(models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Metaspace()  # type: ignore[assignment]
    specials = ["<pad>", "<unk>", "<s>", "</s>"]
    made.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=120, special_tokens=specials, show_progress=False))
    made.save("elsewhere.json")
    said = tfm("tokenize", "--from", "elsewhere.json", write_lines(Path("text"), lines), "--out", "taken")
    assert said.code == 0, said.err
    taken = Tokenizer.from_file("taken/tokenizer.json")
    assert [taken.encode(line).tokens for line in lines] == [made.encode(line).tokens for line in lines]
