"""Lists of pieces that do not say how texts are cut: vocabularies beside codes and models of other programs."""

import re
from collections.abc import Callable, Sequence

BY_MODEL = "give the .model of SentencePiece that cuts the texts"
BY_CODES = "give the codes that cut the texts, and this file as tokenizer.codes_vocabulary if it has a piece a line"
COUNTED = re.compile(r"\S+[ \t]\d+")
YAML_ENTRY = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'#][^:]*|<[^>]*>): \d+""")
SCORED = re.compile(r"\S+\t(?:0|-\d+(?:\.\d+)?(?:e-?\d+)?)")
NUMBERED = re.compile(r"\d+ \S+ \d+")
NUMBERS = re.compile(r"\d+(?: \d+)+")
MIN_LINES = 3


def vocabulary_problem(lines: Sequence[str]) -> str | None:
    """The problem of a list of pieces that no tokenizer can be made of, with what to give; None if none is known.

    lines: the first that are not blank.
    """
    if any("bpe_simple_vocab" in line for line in lines[:1]):
        return "has the merges of CLIP: load it with transformers, and give the tokenizer.json that this writes"
    if len(lines) < MIN_LINES:
        return None
    if NUMBERS.fullmatch(lines[0]) and all(map(NUMBERS.fullmatch, lines)):
        return "is a model of YouTokenToMe, which is not read: learn one on the same texts (`tfm tokenize --kind bpe`)"
    for is_known, problem in PROBLEMS:
        if all(map(is_known, lines)):
            return problem
    pieces = [line.split("\t")[0].split(" ")[0] for line in lines]
    if all(len(line.split()) == 1 for line in lines):
        if any(piece.startswith("\u2581") for piece in pieces):
            return f"is a list of pieces of SentencePiece: {BY_MODEL}"
        if any(piece.endswith("@@") for piece in pieces):
            return f"is a list of pieces of subword-nmt: {BY_CODES}"
    return None


PROBLEMS: Sequence[tuple[Callable[[str], object], str]] = (
    (YAML_ENTRY.fullmatch, f"is a vocabulary in YAML, as Marian's, with ids alone: {BY_MODEL}, or the codes"),
    (NUMBERED.fullmatch, f"is a vocabulary of GIZA++, with ids and counts alone: {BY_CODES}"),
    (SCORED.fullmatch, f"is the list of pieces that SentencePiece writes beside a model: {BY_MODEL}"),
    (COUNTED.fullmatch, f"is a vocabulary with counts, as fairseq's dict.txt: {BY_CODES}"),
)
"""By what each line of a file matches."""
