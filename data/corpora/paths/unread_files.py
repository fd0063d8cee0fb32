"""Files that are not plain text: test sets in SGML or XML, and transcripts in folders of recordings."""

import shlex
from itertools import islice
from pathlib import Path

from tfm.data.corpora.markup.problems import MAX_LINES_READ, is_tagged_test_set
from tfm.data.corpora.markup.speech import utterance_ids_problem
from tfm.data.errors import DataError
from tfm.data.lines import open_lines

TEST_SET_ENDINGS = (".sgm", ".sgml", ".xml")
TRANSCRIPT_PATTERN, KALDI_NAME = "*.trans.txt", "text"
MAX_FILES_LOOKED_AT = 10_000


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
