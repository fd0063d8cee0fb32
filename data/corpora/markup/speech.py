"""Transcripts of recordings, whose times and names of utterances would be words."""

import re
from collections.abc import Sequence
from itertools import pairwise

MIN_LINES_JUDGED = 3
"""Fewer lines begin with something like the name of an utterance, or times in order, by chance."""
TIME = r"(?!0[0-9]+(?![0-9.]))[0-9]+(?:\.[0-9]+)?"
"""A time; 0001 is a number of something."""
EOL = r"(?:\n|\Z)"
STM_REASON = (
    "is STM, segments with speakers, times and labels: cut these from both files, as by "
    "sed -E '/^;;|ignore_time_segment|inter_segment_gap/d; "
    "s/^([^ \\t]+[ \\t]+){4}[^ \\t]+[ \\t]*(<[^>]*> *)?//' FILE"
)
CTM_REASON = (
    "is CTM, a word a line with its time: write the words of each segment, as the reference has them, in a line"
)
LABELS_REASON = (
    "holds labels with their times, a label a line (TIMIT, HTK): write those of each recording in a line, as by "
    'awk \'{printf "%s ", $3} END {print ""}\' FILE'
)
CHANNEL = r"(?P<file>\S+[ \t]+[12AB])[ \t]+"
STM_ROW = re.compile(rf"{CHANNEL}\S+[ \t]+(?P<begin>{TIME})[ \t]+(?P<end>{TIME})(?:[ \t]+\S.*)?")
CTM_ROW = re.compile(rf"{CHANNEL}(?P<begin>{TIME})[ \t]+(?P<end>{TIME})[ \t]+\S+(?:[ \t]+-?[0-9.]+(?:[ \t].*)?)?")
LABEL_ROW = re.compile(rf"(?P<file>)(?P<begin>{TIME})[ \t]+(?P<end>{TIME})[ \t]+(?=\S*[^\W\d_])\S+")
UTTERANCE_ID_PATTERN = re.compile(
    r"(?!([0-9]{4}-)?[0-9]{1,2}-[0-9]{1,2}\Z)(?=.*[0-9])\w[\w.]*[-_][\w.-]+|(?=\w{8})(?:[A-Z]+[0-9]+){2,}"
)
"""The name of an utterance: of its speaker or book, and a number; a date or the score of a game is none. AISHELL has no
mark within: BAC009S0002W0122.
"""
TRN_ID_PATTERN = re.compile(rf"(?:{UTTERANCE_ID_PATTERN.pattern})|[0-9][0-9A-Za-z]{{2}}[A-Za-z][0-9A-Za-z]{{4}}")
"""The same in parentheses, where the sets of WSJ have names of eight characters without a mark within: 4T0C0201."""
NIST_COMMENT_MARK = ";;"


def utterance_ids_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no texts: each has the name of its utterance, which would be a word that is always right, before
    it, as Kaldi and LibriSpeech write transcripts, or in parentheses behind it, as sclite does; None if they have not.

    lines: the first of a file.
    """
    words = [line.split() for line in lines if line.strip() and not line.startswith(NIST_COMMENT_MARK)]
    if len(words) < MIN_LINES_JUDGED or max(map(len, words)) < 2:
        return None
    for word_index, begin, end, pattern, remedy in (
        (0, "", "", UTTERANCE_ID_PATTERN, r"s/^[^ ]+ *//"),
        (-1, "(", ")", TRN_ID_PATTERN, r"/^;;/d; s/ *\([^ ]+\)$//"),
    ):
        ids = [each[word_index] for each in words]
        names = {each.removeprefix(begin).removesuffix(end) for each in ids if each[0] == (begin or each[0])}
        if len(names) == len(ids) and all(map(pattern.fullmatch, names)):
            problem = f"has names of utterances beside the texts ({ids[0]:.40}), which would be words"
            return f"{problem}: cut them, as by sed -E '{remedy}' FILE, in files that have the same order"
    return None


def times_problem(lines: Sequence[str]) -> str | None:
    """Why lines are no texts: each has times of a recording, in seconds or samples; None if they have not.

    Rows of STM and CTM with a fraction in their times are known by `patterns`; here are those without.

    lines: the first of a file.
    """
    rows = [line.strip() for line in lines if line.strip() and not line.startswith(NIST_COMMENT_MARK)]
    if len({*rows}) < len(rows) or not any(map(str.isalpha, "".join(rows))):  # texts of numbers, or a line twice
        return None
    if CTM_ROW.fullmatch(rows[0]) and len(rows) == 1 and "." in rows[0]:
        return CTM_REASON
    for pattern, reason, is_interval in (
        (STM_ROW, STM_REASON, True),
        (CTM_ROW, CTM_REASON, False),
        (LABEL_ROW, LABELS_REASON, True),
    ):
        matches = [pattern.fullmatch(row) for row in rows]
        times = [(match["file"], float(match["begin"]), float(match["end"])) for match in matches if match is not None]
        is_ordered = all(one[1] <= other[1] for one, other in pairwise(times) if one[0] == other[0])
        is_long = len(rows) >= (MIN_LINES_JUDGED if pattern is LABEL_ROW else 2)
        lasts = all(begin < end or not is_interval for _, begin, end in times)
        if is_long and len(times) == len(rows) and is_ordered and lasts:
            return reason
    return None
