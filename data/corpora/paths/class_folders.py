"""Folders with a folder of texts a class, as of IMDB and 20 Newsgroups: named with the command that makes a table."""

import shlex
from itertools import islice
from pathlib import Path

from tfm.data.corpora.paths.split_names import is_split_name, training_name_rank

MAX_FILES_LOOKED_AT, MIN_FILES_OF_CLASS, MAX_CLASSES_NAMED = 50, 2, 20
FOLDER_OF_TEXTS_WITHOUT_CLASS = "unsup"


def class_folders_hint(folder: Path) -> str:
    """Name the folders of classes in a folder or its training folder, and the command that makes a table of them; empty
    if there are none.
    """
    inner = sorted(filter(Path.is_dir, folder.iterdir()), key=lambda path: (training_name_rank(path.name), path.name))
    for parent in (folder, *inner):
        classes = sorted(path for path in parent.iterdir() if _holds_texts(path))
        if len(classes) < 2:
            continue
        globs = [f"{shlex.quote(str(path))}/*" for path in classes[:MAX_CLASSES_NAMED]]
        if len(classes) > MAX_CLASSES_NAMED:
            globs = [f"{shlex.quote(str(parent))}/*/*"]
        line = r"""printf '%s\t%s\n' "$(tr -s '\n\r\t' ' ' < "$f")" "$(basename "$(dirname "$f")")" """.rstrip()
        table = '{ format = "tsv", path = "train.tsv", quoting = "raw", source = 0, target = 1 }'
        return (
            f"; it has a folder of texts for each class: make a table of them, as by for f in {' '.join(globs)}; "
            f"do {line}; done > train.tsv, and set data.train = {table}"
        )
    return ""


def _holds_texts(folder: Path) -> bool:
    """Whether a folder is one of a class: it has several files, no folders, and all are texts by their names."""
    if not folder.is_dir() or is_split_name(folder.name) or folder.name == FOLDER_OF_TEXTS_WITHOUT_CLASS:
        return False
    files = list(islice(folder.iterdir(), MAX_FILES_LOOKED_AT))
    return len(files) >= MIN_FILES_OF_CLASS and all(
        path.is_file() and path.suffix in ("", ".txt") and not is_split_name(path.stem) for path in files
    )
