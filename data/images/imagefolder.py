"""Folders of images in the `imagefolder` convention of Hugging Face `datasets`.

Either a table says of each file (column `file_name`, relative to the table) its captions or label: metadata.csv,
metadata.jsonl or metadata.parquet, in the folder or in folders below it. Or there is no table, and an image's label is
the name of the folder in which it lies; all images lie equally deep, as that of one deeper could be either folder's.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import TypeAlias
from unicodedata import normalize

from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError, escape_control_characters, format_names
from tfm.data.formats.hub.hub_folder import resolve_inside_folder
from tfm.data.formats.hub.split_names import SPLIT_WORDS
from tfm.data.images.captioned_image import CaptionedImage
from tfm.data.images.decoding import IMAGE_EXTENSIONS
from tfm.data.safe_files import open_regular_file

FILE_NAME_COLUMN = "file_name"
TableReader: TypeAlias = Callable[[CorpusConfig], Iterator[tuple[str, ...]]]
METADATA_FILES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
METADATA_STEM = "metadata"
TABLE_EXTENSIONS, TABLE_DELIMITERS, MAX_HEAD_BYTES = (".csv", ".tsv", ".txt"), (",", "\t", ";", "|"), 2**16
"""Tables of other names, of which the first two lines are looked at."""
SPLIT_NAMES = frozenset(word for words in SPLIT_WORDS.values() for word in words)


def read_imagefolder(
    folder: Path, columns: Sequence[str], read_table: TableReader, classes: Sequence[str] = ()
) -> tuple[list[CaptionedImage], list[str]]:
    """Read the images of a folder with their captions.

    Further captions of an image are further columns, further rows with its file name or, in jsonl and parquet, a list
    in one cell; their order is kept. Without a table, images come in the order of their paths.

    Args:
        folder: of the images.
        columns: of the table that hold captions, or the label.
        read_table: `data.corpora.sources.read_rows`.
        classes: the names of labels that are integers.

    Returns:
        The images, and the names of files in the folder that are none of them.

    Raises:
        DataError: a table and row, which are named, are not valid.
    """
    files = [file for _, file in list_files(folder)]
    tables = [file for file in files if file.name in METADATA_FILES]
    if classes and not tables:
        advice = _misnamed_table_advice(folder, files) or "remove `classes`"
        raise DataError(f"its labels are the names of folders, not integers: {advice}", file=folder)
    _check_one_split(folder, tables or [file for file in files if file.suffix.lower() in IMAGE_EXTENSIONS])
    images = (
        _read_tables(folder, tables, columns, read_table, classes) if tables else _read_folders(folder, files, columns)
    )
    used_files = {*tables, *(image.content for image in images)}
    other_files = [file.relative_to(folder).as_posix() for file in files if file not in used_files]
    if not images:
        problem = "its tables name no image" if tables else f"holds no image ({', '.join(IMAGE_EXTENSIONS)})"
        raise DataError(problem, file=folder)
    return images, other_files


def list_files(folder: Path) -> list[tuple[str, Path]]:
    """The files of a folder of images by relative path, sorted, without hidden files.

    Raises:
        DataError: there is no such folder, or a link in it leads out of it, to a folder or nowhere: what lies behind it
            would be missing unseen.
    """
    if not folder.is_dir():
        raise DataError("no such folder" if not folder.exists() else "is a file, not a folder", file=folder)
    names = sorted((file.relative_to(folder).as_posix(), file) for file in _visible_files(folder))
    for name, file in names:
        if file.is_symlink():
            _check_link_stays_inside(folder, name)
    return names


def _check_link_stays_inside(folder: Path, name: str) -> None:
    try:
        resolve_inside_folder(folder, name, folder)
    except DataError:
        target = format_names([os.path.realpath(folder / name)])
        problem = f"is a link out of {folder}, to {target}: put the file in its place, or remove the link"
        raise DataError(problem, file=folder / name) from None


def _visible_files(folder: Path) -> Iterator[Path]:
    """The files in a folder and its subfolders, without files of the operating system (.DS_Store and the like)."""
    for file in folder.rglob("*"):
        if _is_hidden(file.relative_to(folder)):
            continue
        if file.is_symlink() and not file.is_file():
            target = "a folder, which is not read" if file.is_dir() else "nothing"
            raise DataError(f"is a link to {target}: replace it with its target, or remove it", file=file)
        if file.is_file():
            yield file


def _is_hidden(name: PurePath) -> bool:
    return any(part.startswith(".") for part in name.parts)


def _read_tables(
    folder: Path, tables: Sequence[Path], columns: Sequence[str], read_table: TableReader, classes: Sequence[str]
) -> list[CaptionedImage]:
    if not columns:
        raise DataError("say which of its columns hold the captions, or the label", file=tables[0])
    table_by_folder: dict[Path, Path] = {}
    for table in tables:
        if (first_table := table_by_folder.setdefault(table.parent, table)) != table:
            raise DataError(f"there is {first_table.name} beside it: keep one of the two", file=table)
    if classes and (csv := next((table for table in tables if table.suffix == ".csv"), None)):
        raise DataError("its labels are texts, not integers: write their names into it, and remove `classes`", file=csv)
    captions: dict[Path, list[str]] = {}
    for table in tables:
        for number, (name, *texts) in enumerate(read_table(_table_as_corpus(table, columns, classes)), 1):
            captions.setdefault(_image_path(folder, table, number, name), []).extend(texts)
    return [_make_image(folder, file, tuple(texts)) for file, texts in captions.items()]


def _table_as_corpus(table: Path, columns: Sequence[str], classes: Sequence[str]) -> CorpusConfig:
    """A table as a corpus of texts: the sources are file names, the targets captions."""
    first, *references = columns
    kind = table.suffix.removeprefix(".")
    settings = {
        "format": kind,
        "path": str(table),
        "source": FILE_NAME_COLUMN,
        "target": first,
        "references": tuple(references) or None,
        "classes": tuple(classes),
    }
    return CorpusConfig.model_validate({**settings, "lists": None if kind == "csv" else "references"})


def _image_path(folder: Path, table: Path, row_number: int, name: str) -> Path:
    """The image file that a row names; it lies in the folder of all images, also after links are followed."""
    path = PurePosixPath(name)
    if not name or "\0" in name or path.is_absolute() or ".." in path.parts:
        raise DataError(
            f"row {row_number}: {FILE_NAME_COLUMN} must be a path below the table: {format_names([name])!r}", file=table
        )
    if _is_hidden(path):
        problem = f"row {row_number}: {format_names([name])} is hidden by a name that begins with a dot: rename it"
        raise DataError(problem, file=table)
    file = table.parent / path
    try:
        if not file.is_file():
            raise DataError(
                f"row {row_number}: there is no file {format_names([name])}{_similar_name_advice(table, name)}",
                file=table,
            )
    except OSError:  # of Python 3.11: a name that is too long
        raise DataError(f"row {row_number}: {format_names([name])!r} is not a file name", file=table) from None
    return resolve_inside_folder(folder, file.relative_to(folder).as_posix(), table)


def _similar_name_advice(table: Path, name: str) -> str:
    """Name the file with a name that differs only in case or Unicode form, which other systems do not distinguish."""
    for file in table.parent.rglob("*"):
        similar_name = file.relative_to(table.parent).as_posix()
        if normalize("NFC", similar_name).casefold() == normalize("NFC", name).casefold():
            difference = (
                "in case"
                if normalize("NFC", similar_name) != normalize("NFC", name)
                else "in its Unicode form, NFC or NFD,"
            )
            return (
                f"; {format_names([similar_name])} differs {difference} alone: "
                f"write {FILE_NAME_COLUMN} as the file is called"
            )
    return ""


def _read_folders(folder: Path, files: Sequence[Path], columns: Sequence[str]) -> list[CaptionedImage]:
    images = [file for file in files if file.suffix.lower() in IMAGE_EXTENSIONS]
    if unlabelled := [file.name for file in images if file.parent == folder]:
        names, advice = (
            format_names(unlabelled, max_chars=80),
            _misnamed_table_advice(folder, files) or "write metadata.csv",
        )
        if len(unlabelled) == 1:
            problem = f"{names} has no label: put it into a folder of its class, or {advice}"
        else:
            problem = f"{names} have no labels: put each into a folder of its class, or {advice}"
        raise DataError(problem, file=folder)
    if columns and list(columns) != ["label"]:
        advice = _misnamed_table_advice(folder, files) or "labels are folders"
        raise DataError(f"there is no metadata.csv, so no column {format_names(columns)}: {advice}", file=folder)
    _check_equally_deep(folder, images, _misnamed_table_advice(folder, files) or "write metadata.csv")
    if len({file.parent for file in images}) == 1 and (advice := _misnamed_table_advice(folder, files)):
        problem = f"all its images lie in {format_names([images[0].parent.name])}, which would be the label of each"
        raise DataError(f"{problem}: {advice}", file=folder)
    for label in (file.parent for file in images):
        if label.name != escape_control_characters(label.name, keep=""):
            raise DataError("a label is one line of UTF-8: rename this folder", file=label)
    return [_make_image(folder, file, (file.parent.name,)) for file in images]


def _misnamed_table_advice(folder: Path, files: Sequence[Path]) -> str:
    """Advice on a file with the name of a table in a format that is not read; "" if there is none."""
    for file in files:
        name = format_names([file.relative_to(folder).as_posix()])
        if file.name.lower() in METADATA_FILES:
            return f"rename {name}, which is not read, to {file.name.lower()}"
        if file.name.lower().partition(".")[0] == METADATA_STEM:
            return f"save {name}, which is not read, as metadata.csv (separated by commas) or metadata.jsonl"
    return next(filter(None, (_other_table_advice(folder, file, files) for file in files)), "")


def _other_table_advice(folder: Path, file: Path, files: Sequence[Path]) -> str:
    """Advice on a table of any name whose first row names an image, as of Kaggle and Flickr8k; "" if it does not."""
    if file.suffix.lower() not in TABLE_EXTENSIONS:
        return ""
    with open_regular_file(file) as stream:
        head = stream.read(MAX_HEAD_BYTES).decode("utf-8-sig", "replace").splitlines()[:2]
    images = {each.name: each for each in files if each.suffix.lower() in IMAGE_EXTENSIONS}
    for delimiter in TABLE_DELIMITERS if len(head) == 2 else ():
        header, row = ([cell.strip('"') for cell in line.split(delimiter)] for line in head)
        for column, cell in zip(header, row, strict=False):
            if (image := images.get(PurePosixPath(cell).name)) is not None and column not in images:
                place = format_names([(image.parent / METADATA_FILES[0]).relative_to(folder).as_posix()])
                name = format_names([file.relative_to(folder).as_posix()])
                return f"save {name} as {place} (separated by commas), with {FILE_NAME_COLUMN} for {column!r:.40}"
    return ""


def _check_one_split(folder: Path, files: Sequence[Path]) -> None:
    """Refuse tables, or images without one, that lie in folders called train, test and so on: they would be mixed."""
    tops = sorted({(*file.parent.relative_to(folder).parts, "")[0] for file in files})
    if len(tops) > 1 and all(top.lower() in SPLIT_NAMES for top in tops):
        problem = f"holds several splits ({', '.join(tops)}): name the folder of one, such as {folder / tops[0]}"
        raise DataError(problem, file=folder)


def _check_equally_deep(folder: Path, images: Sequence[Path], advice: str) -> None:
    """Refuse images at different depths: Hugging Face then assigns no labels, and others use the topmost folder.

    Args:
        folder: of the images.
        images: their files.
        advice: how to give them a table, for the message.
    """
    if not images:
        return
    high, low = (choose(images, key=lambda file: len(file.parts)) for choose in (min, max))
    if len(high.parts) != len(low.parts):
        names = " and ".join(file.relative_to(folder).as_posix() for file in (high, low))
        names = escape_control_characters(names, keep="")
        problem = f"{names} do not lie equally deep, so which folder is a label is not known"
        raise DataError(f"{problem}: put each image into the folder of its class, or {advice}", file=folder)


def _make_image(folder: Path, file: Path, captions: tuple[str, ...]) -> CaptionedImage:
    return CaptionedImage(
        str(file), file, captions, escape_control_characters(file.relative_to(folder).as_posix(), keep="")
    )
