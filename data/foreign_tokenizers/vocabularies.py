"""Lists of pieces that do not say how texts are cut: vocabularies beside codes and models of other programs."""

import re
from collections.abc import Callable, Sequence

BY_MODEL = "give the .model of SentencePiece that cuts the texts"
BY_CODES = "give the codes that cut the texts, and this file as tokenizer.codes_vocabulary if it has a piece a line"
LEARN = "learn one on the same texts (`tfm tokenize --kind bpe`)"
COUNTED = re.compile(r"\S+[ \t]\d+")
YAML_ENTRY = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'#][^:]*|<[^>]*>): \d+""")
SCORED = re.compile(r"\S+\t(?:0|-\d+(?:\.\d+)?(?:e-?\d+)?)")
RWKV_ENTRY = re.compile(r"""\d+ b?(['"]).*\1 \d+""")
TRUECASE_ENTRY = re.compile(r"\S+ \(\d+/\d+\)(?: \S+ \(\d+\))*")
NUMBERED = re.compile(r"\d+ \S+ \d+")
NUMBERS = re.compile(r"\d+(?: \d+)+")
MIN_LINES = 3
KERAS_TOKENIZER_START = re.compile(rb'\s*"?\s*\{\s*\\*"class_name\\*":\s*\\*"Tokenizer\b')
"""How a file of `Tokenizer.to_json()` begins: an object, or a JSON text that holds it."""
PIECE_LIST_START = re.compile(rb'\s*\[\s*"')
PICKLE_STARTS = tuple(bytes([0x80, version]) for version in range(2, 6))


def vocabulary_problem(lines: Sequence[str]) -> str | None:
    """The problem of a list of pieces that no tokenizer can be made of, with what to give; None if none is known.

    lines: the first that are not blank.
    """
    if any("bpe_simple_vocab" in line for line in lines[:1]):
        return "has the merges of CLIP: load it with transformers, and give the tokenizer.json that this writes"
    if lines[0] == "\\data\\":
        return "is a language model of n-grams (ARPA), as KenLM's, which cuts no texts: give the tokenizer itself"
    if len(lines) < MIN_LINES:
        return None
    if NUMBERS.fullmatch(lines[0]) and all(map(NUMBERS.fullmatch, lines)):
        return f"is a model of YouTokenToMe, which is not read: {LEARN}"
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


def unsupported_file_problem(data: bytes) -> str | None:
    """The problem of a file of a form that is known and not read, by its first bytes; None if it is no such."""
    if KERAS_TOKENIZER_START.match(data):
        return (
            "is a tokenizer of Keras: counts of words, without pieces or control tokens: train one on the same text "
            "(`tfm tokenize --kind word`)"
        )
    if PIECE_LIST_START.match(data):
        return f"is a list of pieces in JSON, as CTranslate2's vocabulary.json: {BY_MODEL}, or the codes"
    if data.startswith(PICKLE_STARTS) or b"/data.pkl" in data[:200]:
        return (
            "is a pickle, as vocabularies of torchtext and OpenNMT are, and opening one runs its code: give the "
            ".model or the codes that cut the texts"
        )
    if data.startswith((b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ")):
        return "is compressed: unpack it, and give the file in it"
    return None


PROBLEMS: Sequence[tuple[Callable[[str], object], str]] = (
    (YAML_ENTRY.fullmatch, f"is a vocabulary in YAML, as Marian's, with ids alone: {BY_MODEL}, or the codes"),
    (RWKV_ENTRY.fullmatch, f"is a vocabulary of RWKV, which is not read: {LEARN}"),
    (TRUECASE_ENTRY.fullmatch, "is a model of Moses' truecaser, which cuts no texts: give the tokenizer itself"),
    (NUMBERED.fullmatch, f"is a vocabulary of GIZA++, with ids and counts alone: {BY_CODES}"),
    (SCORED.fullmatch, f"is the list of pieces that SentencePiece writes beside a model: {BY_MODEL}"),
    (COUNTED.fullmatch, f"is a vocabulary with counts, as fairseq's dict.txt: {BY_CODES}"),
)
"""By what each line of a file matches."""
