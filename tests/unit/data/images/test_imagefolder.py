"""Image folders as Hugging Face `datasets` reads them: captions from a table, or labels from folders."""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tfm.data.corpora.sources import read_rows
from tfm.data.errors import DataError
from tfm.data.images.decoding import IMAGE_EXTENSIONS
from tfm.data.images.imagefolder import read_imagefolder


def draw(folder: Path, *names: str) -> None:
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 3), (number, 0, 0)).save(folder / name, "PNG")


def found(folder: Path, columns: Sequence[str] = ()) -> list[tuple[str, tuple[str, ...]]]:
    images, _ = read_imagefolder(folder, columns, read_rows)
    return [(Path(image.name).relative_to(folder).as_posix(), image.captions) for image in images]


def refused(folder: Path, columns: Sequence[str] = ("text",)) -> str:
    with pytest.raises(DataError) as caught:
        read_imagefolder(folder, columns, read_rows)
    assert str(caught.value).startswith(str(folder))
    return str(caught.value).removeprefix(str(folder)).removeprefix("/")


def test_folders_are_labels(tmp_path: Path) -> None:
    draw(tmp_path, "Hund/2.png", "Hund/1.PNG", "猫/x.png", "tief/y.png")
    (tmp_path / "README.md").write_text("about")
    (tmp_path / ".DS_Store").write_text("")
    images, left_out = read_imagefolder(tmp_path, [], read_rows)
    assert [(image.content, image.captions) for image in images] == [
        (tmp_path / "Hund/1.PNG", ("Hund",)),
        (tmp_path / "Hund/2.png", ("Hund",)),
        (tmp_path / "tief/y.png", ("tief",)),
        (tmp_path / "猫/x.png", ("猫",)),
    ]
    assert left_out == ["README.md"]
    assert found(tmp_path, ["label"]) == found(tmp_path)


@pytest.mark.parametrize("ending", [".jfif", ".JPE", ".pnm"])
def test_further_endings_of_formats_that_are_read_are_those_of_images(ending: str, tmp_path: Path) -> None:
    """A browser on Windows saves JPEG as .jfif: such files were counted as others, and training did without them."""
    draw(tmp_path, "a/1.png")
    Image.new("RGB", (4, 4)).save(tmp_path / f"a/2{ending}", "PPM" if ending == ".pnm" else "JPEG")
    images, left_out = read_imagefolder(tmp_path, [], read_rows)
    assert ([image.title for image in images], left_out) == (["a/1.png", f"a/2{ending}"], [])


def test_labels_are_those_that_datasets_reads(tmp_path: Path) -> None:
    draw(tmp_path, "dog/2.png", "dog/1.png", "cat/x.png")
    theirs = datasets.load_dataset(
        "imagefolder", data_dir=str(tmp_path), split="train", cache_dir=str(tmp_path / ".cache")
    )
    names = theirs.features["label"].names
    read = {(row["image"].getpixel((0, 0))[0], names[row["label"]]) for row in theirs}
    assert read == {
        (Image.open(image.content).getpixel((0, 0))[0], *image.captions)  # type: ignore[arg-type, index]
        for image in read_imagefolder(tmp_path, [], read_rows)[0]
    }


def test_a_table_has_captions_of_each_file(tmp_path: Path) -> None:
    draw(tmp_path, "1.png", "2.png", "a b/3.png", "4.png")
    (tmp_path / "metadata.csv").write_text(
        'file_name,text,other\n2.png,"ein Haus, ""alt""",x\n1.png,بيت قديم,y\na b/3.png,,z\n2.png,a house,w\n',
        encoding="utf-8",
    )
    assert found(tmp_path, ["text"]) == [
        ("2.png", ('ein Haus, "alt"', "a house")),
        ("1.png", ("بيت قديم",)),
        ("a b/3.png", ("",)),
    ]
    assert found(tmp_path, ["text", "other"])[0] == ("2.png", ('ein Haus, "alt"', "x", "a house", "w"))
    assert read_imagefolder(tmp_path, ["text"], read_rows)[1] == ["4.png"]


def test_lists_are_several_captions(tmp_path: Path) -> None:
    draw(tmp_path, "1.png", "2.png")
    lines = [{"file_name": "2.png", "text": ["a", "b\nc"]}, {"file_name": "1.png", "text": "d"}]
    (tmp_path / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    assert found(tmp_path, ["text"]) == [("2.png", ("a", "b c")), ("1.png", ("d",))]


def test_tables_may_lie_deeper_and_be_parquet(tmp_path: Path) -> None:
    draw(tmp_path, "a/1.png", "b/1.png")
    pq.write_table(pa.table({"file_name": ["1.png"], "text": [["x", "y"]]}), tmp_path / "a" / "metadata.parquet")
    (tmp_path / "b" / "metadata.csv").write_text("file_name,text\n1.png,z\n")
    assert found(tmp_path, ["text"]) == [("a/1.png", ("x", "y")), ("b/1.png", ("z",))]


def test_captions_are_those_that_datasets_reads(tmp_path: Path) -> None:
    draw(tmp_path, "1.png", "2.png")
    lines = [{"file_name": "2.png", "text": "two"}, {"file_name": "1.png", "text": "one"}]
    (tmp_path / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    theirs = datasets.load_dataset(
        "imagefolder", data_dir=str(tmp_path), split="train", cache_dir=str(tmp_path / ".cache")
    )
    read = {(row["image"].getpixel((0, 0))[0], row["text"]) for row in theirs}
    assert read == {(1, "two"), (0, "one")}
    assert {(int(name[0]) - 1, *texts) for name, texts in found(tmp_path, ["text"])} == read


@pytest.mark.parametrize("name", ["../1.png", "/etc/1.png", "", "a/../../1.png"])
def test_a_table_does_not_lead_out_of_its_folder(tmp_path: Path, name: str) -> None:
    draw(tmp_path, "in/2.png", "1.png")
    (tmp_path / "in" / "metadata.csv").write_text(f"file_name,text\n2.png,x\n{name},x\n")
    assert refused(tmp_path / "in").startswith("metadata.csv: row 2: file_name must be a path below the table: ")


def test_what_is_not_in_order_is_said(tmp_path: Path) -> None:
    assert refused(tmp_path / "gone") == ": no such folder"
    assert refused(tmp_path, ()) == f": holds no image ({', '.join(IMAGE_EXTENSIONS)})"
    draw(tmp_path, "1.png", "a/2.png")
    assert refused(tmp_path, ()).startswith(": 1.png has no label: put it into a folder of its class")
    table = tmp_path / "metadata.csv"
    table.write_text("file_name,text\n")
    assert refused(tmp_path) == ": its tables name no image"
    table.write_text("file_name,text\n1.png,x\n3.png,y\n")
    assert refused(tmp_path) == "metadata.csv: row 2: there is no file 3.png"
    assert (
        refused(tmp_path, ["caption"])
        == "metadata.csv, line 1: there is no column 'caption'; its header names: file_name, text"
    )
    assert refused(tmp_path, ()) == "metadata.csv: say which of its columns hold the captions, or the label"
    table.write_text("image,text\n1.png,x\n")
    assert refused(tmp_path) == "metadata.csv, line 1: there is no column 'file_name'; its header names: image, text"
    (tmp_path / "metadata.jsonl").write_text("")
    assert refused(tmp_path) == "metadata.jsonl: there is metadata.csv beside it: keep one of the two"


@pytest.mark.parametrize(
    ("name", "file", "how"),
    [("Rot/\u00fc.png", "Rot/u\u0308.png", "in its Unicode form, NFC or NFD,"), ("Rot/A.png", "rot/a.PNG", "in case")],
)
def test_a_name_that_other_systems_take_for_the_same_is_said(tmp_path: Path, name: str, file: str, how: str) -> None:
    """macOS writes a name in NFD or NFC, and neither it nor Windows tells upper case from lower."""
    draw(tmp_path, file)
    (tmp_path / "metadata.csv").write_text(f"file_name,text\n{name},a\n", encoding="utf-8")
    problem = f"there is no file {name}; {file} differs {how} alone: write file_name as the file is called"
    assert refused(tmp_path) == f"metadata.csv: row 1: {problem}"


def test_labels_of_folders_are_no_captions(tmp_path: Path) -> None:
    draw(tmp_path, "a/2.png")
    assert refused(tmp_path, ["text"]) == ": there is no metadata.csv, so no column text: labels are folders"


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize(("leads_to", "why"), [("a", "a folder, which is not read"), ("gone.png", "nothing")])
def test_what_a_link_hides_is_not_missing_unseen(tmp_path: Path, table: bool, leads_to: str, why: str) -> None:
    draw(tmp_path, "a/1.png", "b/2.png")
    if table:
        (tmp_path / "metadata.csv").write_text("file_name,text\na/1.png,x\n")
    (tmp_path / "b" / "link").symlink_to(tmp_path / leads_to)
    said = refused(tmp_path, ("text",) if table else ())
    assert said == f"b/link: is a link to {why}: replace it with its target, or remove it"
    (tmp_path / "b" / "link").rename(tmp_path / "b" / ".link")
    assert found(tmp_path, ("text",) if table else ())


@pytest.mark.parametrize("name", [".1.png", ".a/1.png"])
def test_a_table_names_no_hidden_file(tmp_path: Path, name: str) -> None:
    """Changes of one would go unnoticed: hidden files are no part of what a folder holds."""
    draw(tmp_path, name, "2.png")
    (tmp_path / "metadata.csv").write_text(f"file_name,text\n2.png,x\n{name},y\n")
    assert refused(tmp_path) == f"metadata.csv: row 2: {name} is hidden by a name that begins with a dot: rename it"


def test_every_name_of_a_file_is_a_line_of_text(tmp_path: Path) -> None:
    draw(tmp_path, "a/1.png")
    names = [b"x\ny.png", b"x\ry.png", b"x y.png", "x\u2028y.png".encode(), "ब्\u200dक.png".encode()]
    if sys.platform == "linux":  # others refuse such a name
        names.append(b"\xe9.png")
    for name in names:
        shutil.copy(tmp_path / "a" / "1.png", os.fsencode(tmp_path / "a") + b"/" + name)
    titles = [image.title for image in read_imagefolder(tmp_path, (), read_rows)[0]]
    assert len({*titles}) == len(titles) == 1 + len(names)
    assert {"a/x y.png", "a/x\\ny.png", "a/ब्\u200dक.png"} <= {*titles}
    assert all(len(title.encode().decode().splitlines()) == 1 for title in titles)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such a name")
@pytest.mark.parametrize("label", [b"a\nb", b"\xe9"])
def test_a_label_is_a_line_of_text(tmp_path: Path, label: bytes) -> None:
    draw(tmp_path, "a/1.png")
    (tmp_path / "a").rename(os.fsdecode(os.fsencode(tmp_path) + b"/" + label))
    assert refused(tmp_path, ()).endswith(": a label is one line of UTF-8: rename this folder")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("metadata.tsv", "save metadata.tsv, which is not read, as metadata.csv (separated by commas) or metadata."),
        ("Metadata.json", "save Metadata.json, which is not read, as metadata.csv"),
        ("metadata.csv.gz", "save metadata.csv.gz, which is not read, as metadata.csv"),
        ("Metadata.csv", "rename Metadata.csv, which is not read, to metadata.csv"),
        ("b/METADATA.JSONL", "rename b/METADATA.JSONL, which is not read, to metadata.jsonl"),
    ],
)
def test_a_table_of_another_name_or_kind_is_named_where_one_is_missed(tmp_path: Path, name: str, advice: str) -> None:
    draw(tmp_path, "b/1.png", "c/2.png")
    (tmp_path / name).write_text("file_name\ttext\n1.png\ta\n", encoding="utf-8")
    assert [texts for _, texts in found(tmp_path)] == [("b",), ("c",)]  # labels need none
    assert read_imagefolder(tmp_path, (), read_rows)[1] == [name]  # and the report says that it is left out
    assert refused(tmp_path, ["text"]).startswith(f": there is no metadata.csv, so no column text: {advice}")
    draw(tmp_path, "c/d/2.png")
    assert f"put each image into the folder of its class, or {advice}" in refused(tmp_path, ())
    draw(tmp_path, "0.png")
    assert f"0.png has no label: put it into a folder of its class, or {advice}" in refused(tmp_path, ())


def test_all_images_in_folders_of_classes_lie_equally_deep(tmp_path: Path) -> None:
    """The label of cat/indoors/2.png could be either; Hugging Face then knows no labels, torchvision says cat."""
    draw(tmp_path, "a/cat/1.png", "b/dog/2.png")
    assert [texts for _, texts in found(tmp_path)] == [("cat",), ("dog",)]
    draw(tmp_path, "a/cat/indoors/2.png")
    assert refused(tmp_path, ()) == (
        ": a/cat/1.png and a/cat/indoors/2.png do not lie equally deep, so which folder is a label is not known: "
        "put each image into the folder of its class, or write metadata.csv"
    )


@pytest.mark.parametrize("names", [("train/a/1.png", "test/a/2.png"), ("Train/1.png", "val/2.png")])
@pytest.mark.parametrize("table", [False, True])
def test_the_folder_of_all_splits_is_no_corpus(tmp_path: Path, names: Sequence[str], table: bool) -> None:
    """Images of the test set would be trained on unseen, or splits be taken for classes."""
    draw(tmp_path, *names)
    tops = sorted(name.split("/")[0] for name in names)
    for name in names if table else ():
        top, _, rest = name.partition("/")
        (tmp_path / top / "metadata.csv").write_text(f"file_name,text\n{rest},x\n")
    said = refused(tmp_path, ("text",) if table else ())
    assert said == f": holds several splits ({', '.join(tops)}): name the folder of one, such as {tmp_path / tops[0]}"
    assert found(tmp_path / tops[0], ("text",)) if table else True


def test_train_is_a_class_too(tmp_path: Path) -> None:
    draw(tmp_path, "train/1.png", "bus/2.png")
    assert [texts for _, texts in found(tmp_path)] == [("bus",), ("train",)]


def test_a_link_out_of_a_folder_is_named_with_its_end(tmp_path: Path) -> None:
    draw(tmp_path, "elsewhere.png", "in/a/1.png")
    (tmp_path / "in" / "a" / "2.png").symlink_to(tmp_path / "elsewhere.png")
    whither = os.path.realpath(tmp_path / "elsewhere.png")
    assert refused(tmp_path / "in", ()) == (
        f"a/2.png: is a link out of {tmp_path / 'in'}, to {whither}: put the file in its place, or remove the link"
    )


def test_csv_has_no_integers_for_which_classes_could_stand(tmp_path: Path) -> None:
    draw(tmp_path, "1.png")
    table = tmp_path / "metadata.csv"
    table.write_text("file_name,label\n1.png,1\n")
    with pytest.raises(DataError, match=r"metadata\.csv: its labels are texts, not integers: .* remove `classes`"):
        read_imagefolder(tmp_path, ["label"], read_rows, ("cat", "dog"))


def test_several_images_have_no_labels(tmp_path: Path) -> None:
    draw(tmp_path, "1.png", "2.png")
    assert refused(tmp_path, ()).startswith(": 1.png, 2.png have no labels: put each into a folder of its class")


@pytest.mark.parametrize(
    ("name", "table", "column"),
    [
        ("train.csv", "image,label\n1.png,a\n2.png,b\n", "image"),
        ("captions.txt", '"image"|"caption"\n"1.png"|"a, b"\n', "image"),
        ("labels.tsv", "\ufeffid\tfile\ttag\n1\tphotos/1.png\ta\n", "file"),
    ],
)
def test_a_table_that_names_images_is_one_whatever_it_is_called(
    name: str, table: str, column: str, tmp_path: Path
) -> None:
    """Beside Kaggle's `train.csv` the folder `images` was the label of every image."""
    draw(tmp_path, "photos/1.png", "photos/2.png")
    (tmp_path / name).write_text(table, encoding="utf-8")
    advice = f"save {name} as photos/metadata.csv (separated by commas), with file_name for '{column}'"
    assert refused(tmp_path, ()) == (f": all its images lie in photos, which would be the label of each: {advice}")
    assert refused(tmp_path, ["label2"]).endswith(advice)
    draw(tmp_path, "others/3.png")
    assert found(tmp_path)[0] == ("others/3.png", ("others",))


@pytest.mark.parametrize("text", ["image,label\n3.png,a\n", "1.png\n2.png\n", "", "about\n\n1.png,x\n"])
def test_other_texts_beside_images_are_no_tables_of_them(text: str, tmp_path: Path) -> None:
    draw(tmp_path, "photos/1.png", "photos/2.png")
    (tmp_path / "notes.txt").write_text(text, encoding="utf-8")
    assert [labels for _, labels in found(tmp_path)] == [("photos",)] * 2
