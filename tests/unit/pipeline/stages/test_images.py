"""Corpora of images to datasets: which rows there are, that no image is in two splits, what is dropped, and the figures
by which images are normalised."""

import hashlib
import json
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from tests.tiny_images import COLOURS, SHAPE, write_folder, write_idx
from tests.unit.pipeline.stages.test_preprocess import Loud
from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.config import DataConfig, FoldConfig
from tfm.data.corpora.image_sources import read_images
from tfm.data.corpora.sources import content_fingerprints, read_rows
from tfm.data.corpus_keys.table_keys import drop_unset_keys
from tfm.data.dataset import image_examples
from tfm.data.dataset.image_examples import encode_images
from tfm.data.dataset.split import Dataset, Split
from tfm.data.dataset.store import load_dataset
from tfm.data.errors import DataError
from tfm.data.images.captioned_image import CaptionedImage
from tfm.data.images.decoding import Pixels
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages.preprocess import plan_dataset, preprocess
from tfm.pipeline.stages.tokenize import tokenize
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.train import train


def folder_of(path: Path, **more: object) -> dict[str, Any]:
    return {"format": "imagefolder", "path": str(path), "target": "text", **more}


def config(folder: Path, **more: Any) -> dict[str, Any]:
    """20 + 6 + 5 images with two captions each."""
    sizes = {"train": 20, "valid": 6, "test": 5}
    found = {name: folder_of(write_folder(folder / name, size, size)) for name, size in sizes.items()}
    return {
        "train": found["train"],
        "valid": found["valid"],
        "tests": {"test": found["test"]},
        "images": SHAPE,
        **more,
    }


def dataset_of(data: dict[str, Any], out: Path, reporter: NullReporter | None = None, **tokenizer: Any) -> Dataset:
    read = DataConfig.model_validate(data)
    settings = TokenizerConfig(**{"kind": "word", "vocab_size": 100, "min_frequency": 1, **tokenizer})
    tokenize(settings, read, out / "tokenizer", command=["test"], reporter=NullReporter())
    preprocess(read, out / "tokenizer", out / "dataset", command=["test"], reporter=reporter or NullReporter())
    return load_dataset(out / "dataset")


def pixels(file: Path) -> Any:
    return np.asarray(Image.open(file))


def captions_of(split: Split, data: Dataset) -> list[str]:
    return load_tokenizer_pair(data.tokenizer_folder)[1].decode_batch(split.target.to_lists())


def test_a_row_is_a_caption_and_in_test_sets_an_image(tmp_path: Path) -> None:
    data = dataset_of(config(tmp_path), tmp_path)
    lines = (tmp_path / "train" / "metadata.jsonl").read_text("utf-8").splitlines()
    captions = [caption for line in lines for caption in json.loads(line)["text"]]
    assert captions_of(data.train, data) == captions
    assert len(data.train) == 40
    assert data.train.images is not None
    for row in (0, 1, 7, 39):
        shown = pixels(tmp_path / "train" / f"{row // 2}.png")
        assert np.array_equal(data.train.images.take(np.array([row]))[0], shown)
    assert len(data.valid) == 12
    assert data.valid.texts()[0][:3] == ["0.png", "0.png", "1.png"]
    test = data.tests["test"]
    names, first = test.texts()
    assert names == [f"{number}.png" for number in range(5)]
    of_test = [json.loads(line)["text"] for line in (tmp_path / "test/metadata.jsonl").read_text("utf-8").splitlines()]
    assert [*zip(first, *test.further_references(), strict=True)] == [*map(tuple, of_test)]
    assert test.images is not None
    assert np.array_equal(test.images.take(np.array([3]))[0], pixels(tmp_path / "test/3.png"))


def test_only_captions_have_a_vocabulary(tmp_path: Path) -> None:
    dataset_of(config(tmp_path), tmp_path)
    assert [file.name for file in (tmp_path / "tokenizer").glob("*.json") if file.name != "manifest.json"] == [
        "tokenizer.json"
    ]
    figures = open_artifact(tmp_path / "tokenizer", "tokenize").figures
    assert figures["target"]["vocabulary_size"] == 4 + len(COLOURS) + len("ist oben unten links rechts".split())


def test_figures_are_those_of_the_training_images(tmp_path: Path) -> None:
    data = dataset_of(config(tmp_path), tmp_path)
    values = np.stack([pixels(tmp_path / "train" / f"{number}.png") for number in range(20)]).astype(np.float64)
    assert data.preparation is not None
    np.testing.assert_allclose(data.preparation.statistics.means, values.mean((0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(data.preparation.statistics.standard_deviations, values.std((0, 1, 2)), rtol=1e-12)
    about = json.loads((tmp_path / "dataset/tokenizer/images.json").read_text())
    assert (about["height"], about["width"], about["channels"]) == (8, 8, 3)
    assert data.tests["test"].images is not None
    assert data.tests["test"].images.preparation == data.preparation


@pytest.mark.parametrize("kind", ["imagefolder", "idx", "huggingface"])
def test_labels_in_any_script_are_names(tmp_path: Path, kind: str) -> None:
    match kind:
        case "imagefolder":
            of = {name: {"format": kind, "path": str(write_folder(tmp_path / name, 12, labels=True))} for name in "ab"}
        case "idx":
            of = {name: write_idx(tmp_path / name, 12) for name in "ab"}
        case _:
            write_folder(tmp_path / "files", 12, labels=True)
            files = sorted((tmp_path / "files").rglob("*.png"))
            table = {"picture": [str(file) for file in files], "what": [file.parent.name for file in files]}
            features = datasets.Features(picture=datasets.Image(), what=datasets.ClassLabel(names=[*COLOURS]))
            table["what"] = [[*COLOURS].index(each) for each in table["what"]]  # type: ignore[misc]
            made = datasets.Dataset.from_dict(table, features=features)
            datasets.DatasetDict(a=made, b=made).save_to_disk(str(tmp_path / "hub"))
            about = {"format": kind, "path": str(tmp_path / "hub"), "image": "picture", "target": "what"}
            of = {name: {**about, "split": name} for name in "ab"}
    data = dataset_of(
        {"train": of["a"], "valid": of["b"], "tests": {"test": of["b"]}, "images": {**SHAPE, "colour": kind != "idx"}},
        tmp_path,
        shared=False,
        target_kind="label",
    )
    assert {*captions_of(data.train, data)} == {*COLOURS}
    assert set(data.train.target_lengths.tolist()) == {1}
    assert {*data.tests["test"].texts()[1]} == {*COLOURS}


def bytes_of(folder: Path) -> dict[str, str]:
    files = sorted(
        file for file in folder.rglob("*") if file.is_file() and file.name not in ("manifest.json", "report.json")
    )
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_a_renamed_folder_gives_the_same_bytes(tmp_path: Path) -> None:
    data = config(tmp_path / "one")
    dataset_of(data, tmp_path / "a")
    (tmp_path / "one").rename(tmp_path / "two")
    dataset_of(json.loads(json.dumps(data).replace("/one/", "/two/")), tmp_path / "b")
    assert bytes_of(tmp_path / "a/dataset") == bytes_of(tmp_path / "b/dataset")
    assert "train/images/pixels.npy" in bytes_of(tmp_path / "a/dataset")


def test_it_is_stale_when_an_image_changes(tmp_path: Path) -> None:
    read = DataConfig.model_validate(config(tmp_path))
    dataset_of(config(tmp_path), tmp_path)
    before = plan_dataset(read, tmp_path / "tokenizer", tmp_path / "dataset").inputs
    Image.new("RGB", (8, 8), (1, 2, 3)).save(tmp_path / "test" / "4.png")
    after = plan_dataset(read, tmp_path / "tokenizer", tmp_path / "dataset").inputs
    assert [name for name in before if before[name] != after[name]] == [f"test: {tmp_path / 'test'}"]


def test_a_column_of_images_is_identified_by_what_is_read_of_it(tmp_path: Path) -> None:
    """Whether the files are in it, or only their names."""

    def found(whole: bool) -> list[tuple[str, str]]:
        hub = str(tmp_path / f"hub {whole}")
        about = {"format": "huggingface", "path": hub, "split": "train", "image": "image", "target": "text"}
        (corpus,) = DataConfig.model_validate({"train": about, "images": SHAPE}).train
        ((_, _, fingerprint),) = content_fingerprints(corpus)
        (image,) = read_images(corpus, read_rows)
        return [(fingerprint, image.content_hash)]

    file = tmp_path / "a.png"
    Image.new("RGB", (8, 8), (1, 2, 3)).save(file)
    content = {True: {"bytes": file.read_bytes(), "path": None}, False: {"bytes": None, "path": str(file)}}
    features = datasets.Features(image=datasets.Image(decode=False), text=datasets.Value("string"))
    for whole, cell in content.items():
        made = datasets.Dataset.from_dict({"image": [cell], "text": ["red"]}, features=features)
        made = made.cast_column("image", datasets.Image())
        datasets.DatasetDict(train=made).save_to_disk(str(tmp_path / f"hub {whole}"))
    before = {whole: found(whole) for whole in content}
    Image.new("RGB", (8, 8), (1, 2, 4)).save(file)
    after = {whole: found(whole) for whole in content}
    assert after[True] == before[True]
    for one, other in zip(before[False], after[False], strict=True):
        assert (one[0] == other[0]) == (one[1] == other[1])


def images_of(split: Split) -> set[bytes]:
    assert split.images is not None
    return {each.tobytes() for each in split.images.take(np.arange(len(split)))}


def test_an_image_is_never_in_two_splits(tmp_path: Path) -> None:
    """Not through its captions, nor through a copy under another name."""
    folder = write_folder(tmp_path / "all", 24)
    table = (folder / "metadata.jsonl").read_text("utf-8").splitlines()
    for number in range(0, 24, 2):
        (folder / f"copy-{number}.png").write_bytes((folder / f"{number}.png").read_bytes())
        line = {"file_name": f"copy-{number}.png", "text": f"Kopie {number}"}
        table.append(json.dumps(line))
    (folder / "metadata.jsonl").write_text("".join(line + "\n" for line in table), encoding="utf-8")
    data = {"train": folder_of(folder), "images": SHAPE, "ratios": (0.5, 0.25, 0.25)}
    found = dataset_of(data, tmp_path / "shares")
    parts = [images_of(split) for split in (found.train, found.valid, found.tests["test"])]
    assert [len(each) for each in parts if each]
    assert sum(map(len, parts)) == len(set.union(*parts)) == 24
    report = json.loads((tmp_path / "shares/dataset/report.json").read_text())
    assert [each["sources"] for each in report["overlap"].values()] == [0, 0]
    assert "batches" not in report
    held: list[bytes] = []
    for number in (1, 2):
        fold = {**data, "valid": folder_of(folder), "tests": {"test": folder_of(folder)}}
        fold["fold"] = FoldConfig(number=number, of=2)
        found = dataset_of(fold, tmp_path / f"fold {number}")
        assert not images_of(found.train) & images_of(found.valid)
        held += images_of(found.valid)
    assert len(held) == len(set(held)) == 24


def test_what_cannot_be_read_is_dropped_from_training_and_counted(tmp_path: Path) -> None:
    data = config(tmp_path)
    (tmp_path / "train" / "3.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    Image.new("RGBA", (16, 9), (9, 9, 9, 0)).save(tmp_path / "train" / "4.png")
    (tmp_path / "train" / "README.md").write_text("about")
    told = Loud()
    found = dataset_of(data, tmp_path, told)
    assert len(found.train) == 38
    table = (tmp_path / "train" / "metadata.jsonl").read_text("utf-8").splitlines()
    assert captions_of(found.train, found)[6:8] == json.loads(table[4])["text"]
    report = json.loads((tmp_path / "dataset/report.json").read_text())["splits"]["train"]
    assert report["dropped"]["image refused"] == 2
    assert (report["read"], report["rows"]) == (40, 38)
    assert report["images"]["stored"] == 19
    assert report["images"]["refused"]["first"][0].startswith("3.png: is not an image")
    assert {each["what"]: each["first"] for each in report["images"]["conversions"]} == {
        "transparency to white": "4.png",
        "scaled down": "4.png",
        "cropped": "4.png",
    }
    assert report["images"]["left_out"] == {"files": 1, "first": ["README.md"]}
    assert told.tables["images"][0][1] == "19"
    assert any("3.png" in warning for warning in told.warnings)


def test_conversions_are_counted_of_images_that_are_stored(tmp_path: Path) -> None:
    """The one whose captions are all dropped is none of them."""
    data = config(tmp_path, limits={"max_length": 30})
    for number in (3, 4):
        Image.new("RGBA", (16, 9), (9, 9, 9, 0)).save(tmp_path / "train" / f"{number}.png")
    table = tmp_path / "train" / "metadata.jsonl"
    rows = [json.loads(line) for line in table.read_text("utf-8").splitlines()]
    for row in rows:
        row["text"] = ["word " * 40] * 2 if row["file_name"] == "3.png" else row["text"]
    table.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    dataset_of(data, tmp_path)
    found = json.loads((tmp_path / "dataset/report.json").read_text())["splits"]["train"]["images"]
    assert found["stored"] == 19
    assert [(each["images"], each["first"]) for each in found["conversions"]] == [(1, "4.png")] * 3


def test_in_a_test_set_it_is_an_error(tmp_path: Path) -> None:
    data = config(tmp_path)
    frames = [Image.new("RGB", (8, 8), (number * 99, 0, 0)) for number in range(2)]
    frames[0].save(tmp_path / "test" / "1.png", "GIF", save_all=True, append_images=frames[1:])
    with pytest.raises(DataError, match=r"test/1\.png: is animated"):
        dataset_of(data, tmp_path)
    assert not (tmp_path / "dataset").exists()


def test_captions_in_several_columns(tmp_path: Path) -> None:
    data = config(tmp_path)
    for name in ("train", "valid", "test"):
        table = tmp_path / name / "metadata.jsonl"
        rows_ = [json.loads(line) for line in table.read_text("utf-8").splitlines()]
        lines = [json.dumps({"file_name": row["file_name"], "a": row["text"][0], "b": row["text"][1]}) for row in rows_]
        table.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    before = [dataset_of(config(tmp_path / "lists"), tmp_path / "one")]
    columns = {"format": "imagefolder", "references": ["a", "b"]}
    parts = {name: {**columns, "path": str(tmp_path / name)} for name in ("train", "valid", "test")}
    data |= {"train": parts["train"], "valid": parts["valid"], "tests": {"test": parts["test"]}}
    found = dataset_of(data, tmp_path / "two")
    assert [captions_of(each.train, each) for each in (*before, found)] == [captions_of(found.train, found)] * 2
    assert found.tests["test"].further_references() == before[0].tests["test"].further_references()


def test_size_and_skip_count_images(tmp_path: Path) -> None:
    data = config(tmp_path)
    data["train"] |= {"skip": 3, "size": 4}
    found = dataset_of(data, tmp_path)
    assert len(found.train) == 8
    assert found.train.images is not None
    assert np.array_equal(found.train.images.take(np.array([0]))[0], pixels(tmp_path / "train" / "3.png"))


def test_repeated_pairs_are_dropped_by_what_is_seen(tmp_path: Path) -> None:
    data = config(tmp_path, limits={"duplicates": "drop"})
    folder = tmp_path / "train"
    first = json.loads((folder / "metadata.jsonl").read_text("utf-8").splitlines()[0])
    (folder / "again.png").write_bytes((folder / "0.png").read_bytes())
    with (folder / "metadata.jsonl").open("a", encoding="utf-8") as table:
        table.write(json.dumps({"file_name": "again.png", "text": [first["text"][0], "anders"]}) + "\n")
    found = dataset_of(data, tmp_path)
    assert len(found.train) == 41, "its first caption is there already"
    report = json.loads((tmp_path / "dataset/report.json").read_text())["splits"]["train"]
    assert (report["dropped"]["duplicate"], report["read"]) == (1, 42)


@pytest.mark.parametrize("several", [False, True])
def test_an_empty_caption_beside_others_is_a_missing_one(tmp_path: Path, several: bool) -> None:
    """As where the columns of a table have captions of varying number."""
    pixels = np.zeros((8, 8, 3), np.uint8)
    given = [("", "a", " "), ("a", "", "b"), ("", ""), ()]
    images = [(CaptionedImage("", pixels, texts, f"image {number}"), pixels) for number, texts in enumerate(given)]
    _, target = load_tokenizer_pair(save_words(tmp_path))
    (chunk,) = encode_images(images, target, multi_reference=several)
    if several:
        assert chunk.target.texts == ["a", "a", "", ""]
        assert chunk.extra_references == [(), ("b",), (), ()]
    else:
        assert chunk.target.texts == ["a", "a", "b", "", ""]
        assert chunk.source.texts == ["image 0", "image 1", "image 1", "image 2", "image 3"]


def test_only_a_chunk_of_images_is_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_examples, "CHUNK_BYTES", 5 * 8 * 8 * 3)
    alive: set[int] = set()
    most = 0

    def made() -> Iterator[tuple[CaptionedImage, Pixels]]:
        nonlocal most
        for number in range(60):
            values = np.full((8, 8, 3), number, np.uint8)
            alive.add(number)
            weakref.finalize(values, alive.discard, number)
            most = max(most, len(alive))
            yield CaptionedImage("", values, ("a", "b"), f"image {number}"), values
            del values

    _, target = load_tokenizer_pair(save_words(tmp_path))
    sizes = set()
    for chunk in encode_images(made(), target, multi_reference=False):
        sizes.add((len(chunk), len({id(each) for each in chunk.source.pixels or ()})))
    assert sizes == {(10, 5)}
    assert most <= 11


def save_words(folder: Path) -> Path:
    train(["a b"], TokenizerConfig(kind="word", vocab_size=20, min_frequency=1)).save(folder / "tokenizer.json")
    return folder


def test_texts_are_described_as_before_there_were_images(tmp_path: Path) -> None:
    text = {"source": str(tmp_path / "a"), "target": str(tmp_path / "b")}
    found = drop_unset_keys(DataConfig.model_validate({"train": text, "valid": text}).model_dump(mode="json"))
    assert "images" not in found
    assert not {"image", "classes"} & found["train"][0].keys()
    seen = drop_unset_keys(DataConfig.model_validate(config(tmp_path)).model_dump(mode="json"))
    assert seen["images"]["height"] == 8


def test_the_built_in_scenes(tmp_path: Path) -> None:
    def of(split: str, size: int) -> dict[str, Any]:
        return {"format": "generated", "path": "scenes", "split": split, "size": size}

    tests = {"test": of("test", 3), "combinations": of("combinations", 3)}
    images = {"height": 24, "width": 24, "colour": False}
    data = dataset_of({"train": of("train", 6), "valid": of("valid", 3), "tests": tests, "images": images}, tmp_path)
    assert data.preparation is not None
    assert (data.preparation.shape.height, data.preparation.shape.channels) == (24, 1)
    assert len(data.train) > 15
    assert len(data.tests["combinations"]) == 3
    assert len(data.tests["test"].further_references()) >= 2


IDX = {"format": "idx", "path": "x", "target": "y"}
HUB = {"format": "huggingface", "path": "x", "image": "image"}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"images": None}, "train.0 has images: set their size"),
        ({"valid": {"source": "a", "target": "b"}}, "valid has no images, and texts cannot be mixed with images"),
        ({"images": {"height": 0, "width": 8}}, "greater than or equal to 1"),
        ({"images": {**SHAPE, "crop": 0.0}}, "greater than 0"),
        ({"train": {"format": "imagefolder", "path": "x", "source": "file_name"}}, "`source`: the source"),
        ({"train": {"format": "imagefolder", "path": "x", "lists": "join"}}, "`lists`"),
        ({"train": {"format": "imagefolder", "path": "x", "merge_references": True}}, "`merge_references`: all"),
        ({"train": {"format": "idx", "path": "x"}}, "needs `target`, the file of the labels"),
        ({"train": {"format": "tsv", "path": "x", "image": "picture"}}, "`image` is a column"),
        ({"train": {"format": "csv", "path": "x", "classes": ["a"]}}, "`classes` are for format"),
        ({"train": {**IDX, "classes": ["a", "b", " a"]}}, "'a' is the name of two labels"),
        ({"train": {**IDX, "classes": ["a", " "]}}, "'' is not one line of text"),
        ({"train": {**IDX, "classes": ["a", "b\nc"]}}, "is not one line of text"),
        ({"train": {**HUB, "target": "image"}}, "name the same column"),
        ({"train": {**HUB, "target": "a", "references": ["image"]}}, "name the same column"),
        ({"train": {**HUB, "target": "a", "references": ["b", "a"]}}, 'name the column "a" twice'),
        ({"train": {**HUB, "format": "imagefolder", "image": None, "references": ["b", "b"]}}, '"b" twice'),
        (
            {"train": {"format": "imagefolder", "path": "x", "source_language": "eng", "target_language": "deu"}},
            "has no language",
        ),
    ],
)
def test_what_has_no_meaning_is_refused(changed: dict[str, Any], why: str) -> None:
    folder = {"format": "imagefolder", "path": "x", "target": "text"}
    with pytest.raises(ValidationError, match=why):
        DataConfig.model_validate({"train": folder, "valid": folder, "images": SHAPE, **changed})


RECIPE = """
[data]
train = { format = "imagefolder", path = "x", target = "text" }
valid = { format = "imagefolder", path = "x", target = "text" }
tests.test = { format = "imagefolder", path = "x", target = "text" }
images = { height = 8, width = 8 }
[model]
tie = "output"
vision = { patch = 4 }
"""


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("tokenizer.shared=false", "an image has no pieces: the one vocabulary"),
        ("data.limits.max_ratio=2.0", "an image has no pieces"),
        ("data.limits.cut_sources=true", "an image has no pieces"),
        ("decoding.max_ratio=1.0", "an image has no pieces; decoding.max_length"),
        ("data.images=none", "train.0 has images: set their size"),
        ("model.vision=none", "which a model with .model.vision. reads"),
        ("model.vision.patch=3", "does not divide images of 8 x 8"),
        ("training.layout=flat", "is for texts, and the corpora are images"),
        ("data.images.heigth=9", "heigth"),
        ("data.images.flip=1", "flip"),
    ],
)
def test_keys_without_effect_beside_images_are_refused(tmp_path: Path, setting: str, why: str) -> None:
    (tmp_path / "r.toml").write_text(RECIPE)
    load_recipe(tmp_path / "r.toml")
    with pytest.raises(RecipeError, match=why):
        load_recipe(tmp_path / "r.toml", [setting])


def test_keys_without_effect_beside_labels_of_images_are_refused(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(RECIPE.replace('tie = "output"', ""))
    labels = ["model.task=classification", "model.architecture=encoder_only"]
    found = load_recipe(tmp_path / "r.toml", labels)
    assert (found.tokenizer.shared, found.tokenizer.target_kind) == (False, "label")
    for setting in ("tokenizer.kind=word", "tokenizer.vocab_size=99", "data.limits.max_length=9", "tokenizer.file=x"):
        with pytest.raises(RecipeError, match="an image has no pieces, and"):
            load_recipe(tmp_path / "r.toml", [*labels, setting])


def test_texts_for_a_model_that_reads_images_are_refused(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text('[data]\npath = "x"\n[model]\ntie = "output"\nvision = {}\n')
    with pytest.raises(RecipeError, match=r"model\.vision reads images, and the corpora are texts"):
        load_recipe(tmp_path / "r.toml")
