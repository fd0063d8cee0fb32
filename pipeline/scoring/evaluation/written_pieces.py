"""Lines of one side that hold something else than text, or another form of it: pieces, escapes and marks, as a system
keeps them inside, characters that nobody sees, or letters in another normal form.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from tfm.data.corpora.unseen_characters import UNSEEN_CHARACTERS, UnseenCharacterCounts
from tfm.data.lines import normalize
from tfm.data.scripts import SPACELESS_LETTERS, compile_pattern, may_have_spaceless_letters
from tfm.pipeline.scoring.evaluation.identifiers import identifier_warnings

_DIVIDED_PATTERN = rf"{SPACELESS_LETTERS} {SPACELESS_LETTERS}"
_SINGLE_LETTERS_PATTERN = rf"(?s)(?!.*{SPACELESS_LETTERS})\S{{1,2}}(?: \S{{1,2}}){{3,}}"
_HALF_WIDTH_PATTERN = r"[\p{Han}\p{Hiragana}\p{Katakana}][,?!:;]"
MIN_LINES = 3
MIN_SHARE = 0.05
MAX_LINES_JUDGED = 200
"""The lines of a side that are looked at, evenly: a form is in many lines, and scores should not wait for a search."""
REMEDIES_BY_FORM: Mapping[Callable[[str], object], str] = {
    re.compile(r"\S@@(?: |$)").search: "hold pieces of subword-nmt (@@): join them, as by sed -r 's/(@@ )|(@@ ?$)//g'",
    re.compile("(?:^| )\u2581").search: "hold pieces of SentencePiece (\u2581): join them, as by spm_decode",
    re.compile(r"(?:^| )##\w").search: "hold pieces of WordPiece (##): join them, as by sed 's/ ##//g'",
    re.compile("\uffed").search: "hold joiners of OpenNMT's tokenizer (\uffed): detokenize them",
    re.compile(r"&(?:apos|quot|amp|lt|gt|#(?:124|91|93));").search: "hold Moses' escapes (&apos;): detokenize them",
    re.compile(r"&(?!(?:apos|quot|amp|lt|gt|#(?:124|91|93));)(?:#\d+|#[xX][0-9A-Fa-f]+|[A-Za-z]{2,16});").search: (
        "hold escapes of HTML (&#39;): decode them, as by "
        "python3 -c 'import html, sys; sys.stdout.writelines(map(html.unescape, sys.stdin))'"
    ),
    re.compile(
        r"(?:^|\s)(?:</?s>|<(?:pad|eos|bos|sep)>|\[(?:CLS|SEP|PAD|BOS|EOS)\]|<\|\w+\|>)(?:\s|$)"
    ).search: "hold marks of a model (</s>): cut them, as by skip_special_tokens=True when they are decoded",
    re.compile(
        r"(?:__[a-z]{2,3}(?:_[A-Z][A-Za-z]+)?__|>>\w+<<|<2\w+>|[a-z]{3}_[A-Z][a-z]{3}|[a-z]{2}_[A-Z]{2})\s"
    ).match: "begin with the code of a language: cut it, as by sed 's/^[^ ]* //'",
    re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069]").search: (
        "have marks that nobody sees (such as U+200B): remove them, as by "
        r"perl -CSD -pe 's/[\x{ad}\x{200b}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2060}\x{2066}-\x{2069}]//g' FILE"
    ),
    lambda line: may_have_spaceless_letters(line) and compile_pattern(_DIVIDED_PATTERN).search(line): (
        "have spaces between words of a script without them: join them, or divide both sides"
    ),
    lambda line: max(map(len, line.split(" "))) <= 2 and compile_pattern(_SINGLE_LETTERS_PATTERN).fullmatch(line): (
        "are letters between spaces: join them, or divide both sides"
    ),
    lambda line: may_have_spaceless_letters(line) and compile_pattern(_HALF_WIDTH_PATTERN).search(line): (
        "have half-width marks (, and not \uff0c) behind Chinese or Japanese letters: write both sides with the same"
    ),
    lambda line: not line.isascii() and normalize("NFC", line) != line: (
        "are not in NFC, so that equal letters differ: write both sides in it, as by python3 -c "
        "'import sys, unicodedata as u; sys.stdout.writelines(u.normalize(\"NFC\", line) for line in sys.stdin)'"
    ),
}
"""By a test of a line, what it is and what to do."""


def written_pieces_warnings(hypotheses: Sequence[str], references: Sequence[str]) -> list[str]:
    """Warnings that a part of one side is no text, or in another form than the other side."""
    sides = {"hypotheses": sample_lines(hypotheses), "references": sample_lines(references)}
    warnings = []
    for has_form, remedy in REMEDIES_BY_FORM.items():
        counts = {side: sum(bool(has_form(line)) for line in lines) for side, lines in sides.items()}
        for side, other in (("hypotheses", "references"), ("references", "hypotheses")):
            if counts[side] >= max(MIN_LINES, MIN_SHARE * len(sides[side])) and 2 * counts[other] < counts[side]:
                rest = f"of the {other} {counts[other] or 'none'}"
                lines = describe_sample(len(hypotheses), side)
                warnings.append(f"{counts[side]:,} of {lines} {remedy}; {rest}")
    return warnings


def line_step(num_lines: int) -> int:
    """The distance of lines that are looked at, so that they are MAX_LINES_JUDGED at most."""
    return max(1, -(-num_lines // MAX_LINES_JUDGED))


def sample_lines(lines: Sequence[str]) -> Sequence[str]:
    """Every so many of the lines, MAX_LINES_JUDGED at most."""
    return lines[:: line_step(len(lines))]


def describe_sample(num_lines: int, name: str) -> str:
    """The number of lines that are looked at, and that there are more, if there are."""
    num_judged = len(range(0, num_lines, line_step(num_lines)))
    return f"{num_judged:,} {name}" if num_judged == num_lines else f"{num_judged:,} {name} that were looked at"


def unseen_character_warnings(lines: Sequence[str], name: str, others: Sequence[str] = ()) -> list[str]:
    """Warnings of control characters, byte order marks and replacement characters, of each that no other line has.

    Args:
        lines: of one side.
        name: what these are, such as "hypotheses".
        others: lines of the other side.
    """
    counts = UnseenCharacterCounts()
    for _ in counts.count_rows(zip(lines, strict=True)):
        pass
    return [
        count.describe(f"{len(lines):,} {name}", "line", "scored with the text")
        for count in counts.counts
        if count.texts and not any(map(UNSEEN_CHARACTERS[count.kind].search, others))
    ]


def hypothesis_form_warnings(hypotheses: Sequence[str], references: Sequence[str]) -> list[str]:
    """Warnings that the lines of one side hold something else than texts: names of utterances, pieces, escapes,
    characters that nobody sees.
    """
    unseen = unseen_character_warnings(hypotheses, "hypotheses", references)
    return [
        *identifier_warnings(hypotheses, references),
        *written_pieces_warnings(hypotheses, references),
        *unseen,
    ]
