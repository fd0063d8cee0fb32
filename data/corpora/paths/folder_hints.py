"""Folders whose files are not read as they are: test sets in SGML or XML, transcripts of recordings, and a folder of
texts a class, as of IMDB and 20 Newsgroups. Each is named with the command that makes a text or a table of it.
"""

import shlex
from itertools import islice
from pathlib import Path

from tfm.data.corpora.markup.problems import MAX_LINES_READ, is_tagged_test_set
from tfm.data.corpora.markup.speech import utterance_ids_problem
from tfm.data.corpora.paths.split_names import is_split_name, training_name_rank
from tfm.data.errors import DataError
from tfm.data.lines import open_lines

TEST_SET_ENDINGS = (".sgm", ".sgml", ".xml")
TRANSCRIPT_PATTERN, KALDI_NAME = "*.trans.txt", "text"
MAX_FILES_LOOKED_AT = 10_000
"""Names of files that are compared, in a folder of any size within a second."""
MIN_FILES_OF_CLASS, MAX_FILES_OF_CLASS, MAX_CLASSES_NAMED = 2, 50, 20
"""A class has several texts, of which so many are looked at; a command for more classes has a pattern for all."""
FOLDER_OF_TEXTS_WITHOUT_CLASS = "unsup"


def tagged_test_sets(folder: Path) -> list[str]:
    """The test sets of a folder that are in SGML or XML, each with a remedy."""
    candidates = [
        path for path in sorted(folder.iterdir()) if path.suffix.lower() in TEST_SET_ENDINGS and path.is_file()
    ]
    return [f"{path.name} (the text of its <seg>, one a line, would be)" for path in candidates if _is_test_set(path)]


def _is_test_set(path: Path) -> bool:
    try:
        return is_tagged_test_set(list(islice(open_lines(path), MAX_LINES_READ)))
    except (DataError, OSError):  # not a text, which reading it would report
        return False


def transcripts_hint(folder: Path) -> str:
    """Name the transcripts in a folder of recordings, as in LibriSpeech and Kaldi, and the command that writes their
    texts; empty if there are none.
    """
    if (problem := _kaldi_problem(folder / KALDI_NAME)) is not None:
        return f"; its file {KALDI_NAME} {problem}"
    files = islice(folder.rglob("*"), MAX_FILES_LOOKED_AT)
    first_name = min((path.name for path in files if path.match(TRANSCRIPT_PATTERN)), default="")
    if not first_name:
        return ""
    command = f"find {shlex.quote(str(folder))} -name '{TRANSCRIPT_PATTERN}' | sort | xargs cut -d' ' -f2-"
    return (
        f"; it has transcripts of recordings ({first_name}), whose lines begin with names of utterances: tfm reads no "
        f'sound; the texts alone are written by {command} > texts.txt; set data.train = {{ source = "none", target = '
        '"texts.txt" }'
    )


def _kaldi_problem(path: Path) -> str | None:
    try:
        return utterance_ids_problem(list(islice(open_lines(path), MAX_LINES_READ)))
    except (DataError, OSError):  # there is none, or it is not a text
        return None


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
    files = list(islice(folder.iterdir(), MAX_FILES_OF_CLASS))
    return len(files) >= MIN_FILES_OF_CLASS and all(
        path.is_file() and path.suffix in ("", ".txt") and not is_split_name(path.stem) for path in files
    )
