"""Files that are not a text a line, though they are read as such without an error: tags and times would be words."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from tfm.data.errors import DataError

MAX_LINES_READ, MIN_LINES_JUDGED = 20, 3
TIME = r"[0-9]+(?:\.[0-9]+)?"
EOL = r"(?:\n|\Z)"
TALK_TAG = "<(?:url|keywords|speaker|talkid|title|description|reviewer|translator)>"
REASONS_BY_PATTERN: Mapping[re.Pattern[str], str] = {
    re.compile(
        r"\s*(<\?xml[^>]*>\s*)?<((!doctype\s+)?(mteval|srcset|refset|tstset)\b|dataset\b[^>]*>\s*<(collection|doc)\b)",
        re.IGNORECASE,
    ): ("is a test set as WMT had it, in SGML or XML: write the text of its <seg>, one a line, into a file"),
    re.compile(rf"(?:.*\n)?\s*{TALK_TAG}.*\n\s*{TALK_TAG}|<CHAPTER ID="): (
        "has lines of tags, as talks of IWSLT and Europarl have them: leave these out of both files, as by grep -v '^<'"
    ),
    re.compile(rf"(\([0-4] \([0-4] .*\){EOL}){{2}}"): (
        "is trees with labels, as of the Stanford Sentiment Treebank: make a label and a text a line of them, as by "
        "sed -E 's/^\\(([0-4]) /\\1 /; s/\\([0-4] //g; s/\\)//g' FILE, and set format = \"labelled\""
    ),
    re.compile(r"S .*\nA -?[0-9]+ -?[0-9]+\|\|\|"): (
        "is M2, sentences with corrections: write the sentences into a file, and the corrected ones into another"
    ),
    re.compile(
        r"(--.*\n)*(-- (MySQL|MariaDB|PostgreSQL|SQLite)\b.* dump|PRAGMA foreign_keys=|INSERT INTO \S+.* VALUES\b)"
    ): ("is a dump of a database in SQL: export the table as CSV"),
    re.compile(r"(<\?xml[^>]*>\s*)?(<!DOCTYPE [^>]*>\s*)?<(tmx|xliff)\b"): (
        "is a translation memory: set format and path in place of source and target"
    ),
    re.compile(
        rf"((;;.*\n)*(?=.*[0-9]\.[0-9])(\S+[ \t]+){{3}}{TIME}[ \t]+{TIME}([ \t].*)?{EOL}){{2}}|;; (CATEGORY|LABEL) "
    ): (
        "is STM, segments with speakers, times and labels: cut these from both files, as by "
        "sed -E '/^;;|ignore_time_segment|inter_segment_gap/d; "
        "s/^([^ \\t]+[ \\t]+){4}[^ \\t]+[ \\t]*(<[^>]*> *)?//' FILE"
    ),
    re.compile(
        rf"((;;.*\n)*[ \t]*(?=.*[0-9]\.[0-9])(\S+[ \t]+){{2}}({TIME}[ \t]+){{2}}"
        rf"\S+([ \t]+-?[0-9.]+.*)?[ \t]*{EOL}){{2}}"
    ): ("is CTM, a word a line with its time: write the words of each segment, as the reference has them, in a line"),
    re.compile(rf"([0-9]+ \|\|\| .*{EOL}){{2}}"): (
        "is a list of n best with their numbers, as of Moses: write one text of each number, one a line, into a file"
    ),
    re.compile(rf"([A-Z] ?\|.*\n|20[0-9-]+ .*\n)*([STHDP]-[0-9]+\t.*{EOL}){{2}}"): (
        "is what fairseq-generate prints: take its hypotheses, as by grep ^H- FILE | sort -V | cut -f3"
    ),
    re.compile(r"(WEBVTT\b.*\n|1\n(?=[0-9:]+[,.]))(.*\n)*?[0-9:]+[,.][0-9]{3} --> "): (
        "is subtitles with their times: write the text of each, one a line, into a file"
    ),
    re.compile(
        rf"\[Script Info\]|(\{{[0-9]+\}}\{{[0-9]+\}}.*{EOL}){{2}}|(\[[0-9]+:[0-9.:]+\].*{EOL}){{2}}"
        rf"|[0-9]+:[0-9]+:[0-9.]+,[0-9]+:[0-9]+:[0-9.]+{EOL}"
    ): ("is subtitles or lyrics with their times: write the text of each, one a line, into a file"),
    re.compile(r'File type = "ooTextFile|@UTF8\n@|@Begin\n'): (
        "is a transcript with times and codes (Praat's TextGrid, CHAT): write its texts, one a line, into a file"
    ),
    re.compile(r"# Sentence pair \([0-9]+\) source length"): (
        "is what GIZA++ aligned: give the two files of texts that it was made of"
    ),
    re.compile(
        rf"([0-9]+ [0-9]+ [0-9]+ [SP]( [0-9.]+)?{EOL}){{2}}"
        rf"|(?=[\s\S]* )([0-9]+[-?][0-9]+( [0-9]+[-?][0-9]+)*{EOL}|{EOL}){{2,}}\Z"
    ): (
        "holds links of words by their numbers, not texts: give it to tfm align or training.guided_alignment; if they "
        "are texts (scores of games), write both into the columns of a TSV, as by paste"
    ),
    re.compile(r"T[0-9]+\t\S+ [0-9]+ [0-9]+(;[0-9]+ [0-9]+)*\t"): (
        "is standoff of brat, whose text is in the .txt beside it: write a word and its tag a line, as "
        'docs/external/spans_to_conll.py of tfm does, and set format = "conll"'
    ),
    re.compile(r"(#.*\n)*1(-[0-9]+)?\t([^\t\n]*\t){8}[^\t\n]*(\n|\Z)"): (
        'is CoNLL-U: in a corpus set format = "conllu"; else write the words or labels of a sentence in a line'
    ),
    re.compile(r"(%.*\n|[ \t]*\n)*@relation\s", re.IGNORECASE): (
        "is ARFF: export it as CSV, as by weka.core.converters.CSVSaver"
    ),
}
"""Why a file whose first lines match is no text a line, and what to do."""

UTTERANCE_ID_PATTERN = re.compile(r"(?!([0-9]{4}-)?[0-9]{1,2}-[0-9]{1,2}\Z)(?=.*[0-9])\w[\w.]*[-_][\w.-]+")
"""The name of an utterance: of its speaker or book, and a number; a date or the score of a game is none."""
TRN_ID_PATTERN = re.compile(rf"(?:{UTTERANCE_ID_PATTERN.pattern})|[0-9][0-9A-Za-z]{{2}}[A-Za-z][0-9A-Za-z]{{4}}")
"""The same in parentheses, where the sets of WSJ have names of eight characters without a mark within: 4T0C0201."""
NIST_COMMENT_MARK = ";;"
ENTITY_TAG_PATTERN = re.compile(r"[BIESLUM]-\S+|O")
PAGE_PATTERN = re.compile(r"<\?xml\s|<!doctype\s+html\b|<html\b", re.IGNORECASE)


def tag_columns_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no texts: they have a word and its tag of entities each; None if they do not.

    lines: the first of a file.
    """
    rows = [line.split() for line in lines if line.strip()]
    tags = [ENTITY_TAG_PATTERN.fullmatch(row[-1]) for row in rows]
    is_tagged = len(rows) > 1 and None not in tags and any(row[-1] != "O" for row in rows)
    if not is_tagged or min(map(len, rows)) < 2 or all(ENTITY_TAG_PATTERN.fullmatch(row[0]) for row in rows):
        return None
    remedy = 'write the tags of a sentence in a line, as by awk \'NF {printf "%s ", $NF; next} {print ""}\' FILE'
    remedy += " (its words by $1 in place of $NF)"
    return f'has a word and its tag a line, as CoNLL-2003: in a corpus set format = "conll"; else {remedy}'


def holds_json_objects(lines: Sequence[str]) -> bool:
    """Whether the first lines of a file are objects of JSON, as of JSON Lines."""
    try:
        return bool(lines) and all(isinstance(json.loads(line), dict) for line in lines[:MAX_LINES_READ])
    except (ValueError, RecursionError):
        return False


def utterance_ids_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no texts: each has the name of its utterance, which would be a word that is always right, before
    it, as Kaldi and LibriSpeech write transcripts, or in parentheses behind it, as sclite does; None if they have not.

    lines: the first of a file.
    """
    words = [line.split() for line in lines if line.strip() and not line.startswith(NIST_COMMENT_MARK)]
    if len(words) < MIN_LINES_JUDGED or max(map(len, words)) < 2:
        return None
    for place, begin, end, pattern, remedy in (
        (0, "", "", UTTERANCE_ID_PATTERN, r"s/^[^ ]+ *//"),
        (-1, "(", ")", TRN_ID_PATTERN, r"/^;;/d; s/ *\([^ ]+\)$//"),
    ):
        ids = [each[place] for each in words]
        names = {each.removeprefix(begin).removesuffix(end) for each in ids if each[0] == (begin or each[0])}
        if len(names) == len(ids) and all(map(pattern.fullmatch, names)):
            problem = f"has names of utterances beside the texts ({ids[0]:.40}), which would be words"
            return f"{problem}: cut them, as by sed -E '{remedy}' FILE, in files that have the same order"
    return None


def page_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no texts but XML or HTML, which texts alone may be, for a model of such texts; None if they are.

    lines: the first of a file.
    """
    if lines and PAGE_PATTERN.match(lines[0]):
        return "is XML or HTML, whose tags would be words: write its texts, one a line, into a file"
    return None


PROBLEMS_OF_PAIRS = (page_problem, utterance_ids_problem, tag_columns_problem)
"""The problems that are looked for in both sides of pairs, and that texts alone may have."""


def line_end_problem(lines: Sequence[str]) -> str | None:
    """Why the lines of a file are not what it has for lines: they end in CR alone, so that it is one line to all
    readers, or in a CR too many; None if they do not.

    lines: the first of a file.
    """
    if len(lines) == 1 and lines[0].count("\r") > 1:
        return "its lines end in CR alone: convert them to LF"
    if lines and all(line.endswith("\r") for line in lines):
        return "its lines end in CR CR LF: convert them to LF, as by sed -E 's/\\r+$//' FILE"
    return None


def markup_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no texts but one of the known forms of tagged text, or end otherwise; None if they are texts.

    lines: the first of a file.
    """
    if (problem := line_end_problem(lines)) is not None:
        return problem
    head = "\n".join(lines)
    return next((reason for pattern, reason in REASONS_BY_PATTERN.items() if pattern.match(head)), None)


def check_lines(
    lines: Iterable[str], path: Path, problems: Sequence[Callable[[Sequence[str]], str | None]]
) -> Sequence[str]:
    """Raise DataError if a file is no text a line.

    Args:
        lines: of the file.
        path: of the file.
        problems: that are looked for in the first lines, such as `markup_problem`.

    Returns:
        The first lines.
    """
    head = list(islice(lines, MAX_LINES_READ))
    for find_problem in problems:
        if (problem := find_problem(head)) is not None:
            raise DataError(problem, file=path)
    return head
