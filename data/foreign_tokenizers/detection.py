"""A tokenizer's file: which file of a folder it is and which form it has, by its content."""

import os
from pathlib import Path
from typing import Any

from tfm.data.errors import DataError, format_names
from tfm.data.foreign_tokenizers.forms import (
    MERGES_FILE,
    TOKENIZER_FORMATS,
    TOKENIZER_SETTINGS_FILES,
    VOCAB_FILE,
    TokenizerSource,
    decode_lines,
    is_vocabulary,
)
from tfm.data.foreign_tokenizers.received_folder import PretrainedFolder
from tfm.data.foreign_tokenizers.vocabularies import unsupported_file_problem, vocabulary_problem
from tfm.data.json_documents import parse_json
from tfm.data.safe_files import read_bounded_file
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.foreign.codes import END
from tfm.tokenizer.foreign.tiktoken import RANK_LINE, is_tekken
from tfm.tokenizer.tokenizer import MAX_TOKENIZER_FILE_BYTES, SOURCE, TARGET

TOKENIZER_FILE_NAMES = (
    "tokenizer.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    VOCAB_FILE,
    "vocab.txt",
)
"""Files with the tokenizer of a folder, by preference; else the only file with one of `TOKENIZER_FILE_ENDINGS`."""
TOKENIZER_FILE_ENDINGS = (".tiktoken", ".model", ".spm", ".codes", "codes.txt", "codes", ".bpe")


def find_tokenizer_source(config: TokenizerConfig) -> TokenizerSource:
    """Find the tokenizer that `config.file` names. Raises DataError if there is none or its form is unknown."""
    assert config.file is not None
    path = Path(config.file)
    folder, name = _locate_file(path)
    try:
        data = (
            folder.read(name)
            if path.is_dir()
            else read_bounded_file(path, max_bytes=MAX_TOKENIZER_FILE_BYTES, follow_symlinks=True)
        )
    except FileNotFoundError:
        raise DataError("no such file", file=path) from None
    file = folder.folder / name
    form = _detect_tokenizer_format(data, name, file, folder)
    tokenizer_config: dict[str, Any] = {}
    companions: dict[str, Path] = {}
    for companion in TOKENIZER_FORMATS[form].companions:
        if companion != name and folder.has_file(companion):
            companions[companion] = folder.locate_file(companion)
            tokenizer_config |= folder.read_document(companion) if companion in TOKENIZER_SETTINGS_FILES else {}
    if config.codes_vocabulary is not None:
        companions["codes_vocabulary"] = Path(config.codes_vocabulary)
    return TokenizerSource(file, data, form, tokenizer_config, companions)


def _locate_file(path: Path) -> tuple[PretrainedFolder, str]:
    """The folder and the name of the file that a file or folder stands for."""
    if not path.is_dir():
        is_pair = path.name == "tokenizer.json" and not path.exists()
        if is_pair and all((path.parent / name).exists() for name in (SOURCE, TARGET)):
            problem = f"no such file: the tokenizers there are two, {SOURCE} and {TARGET}, and one is asked for"
            raise DataError(problem, file=path)
        return PretrainedFolder(path.parent), path.name
    folder = PretrainedFolder(path)
    names = [name for name in TOKENIZER_FILE_NAMES if folder.has_file(name)]
    if not names:
        file_names = sorted(each.name for each in os.scandir(path))
        names = [name for name in file_names if name.endswith(TOKENIZER_FILE_ENDINGS)]
        if len(names) != 1:
            content = (
                f"several: name one ({format_names(names)})"
                if names
                else f"none: {format_names(file_names) or 'empty'}"
            )
            raise DataError(f"must be a tokenizer's file, and this folder has {content}", file=path)
    return folder, names[0]


def _detect_tokenizer_format(data: bytes, name: str, file: Path, folder: PretrainedFolder) -> str:
    """Return the form of a file. Raises DataError if it has none that is known."""
    if data[:1] == b"\n" and b"\x15" in data[:2000]:
        return "sentencepiece"
    if (problem := unsupported_file_problem(data)) is not None:
        raise DataError(problem, file=file)
    if data.lstrip()[:1] == b"{" or (name.endswith(".json") and data.strip()):
        try:
            document = parse_json(data)
            if is_tekken(document):
                return "tekken"
            if is_vocabulary(document):
                return VOCAB_FILE
            if name in TOKENIZER_SETTINGS_FILES and "model" not in document:
                raise DataError("has settings beside a tokenizer: give the folder, or the tokenizer's file", file=file)
            return "tokenizer.json"
        except ValueError as error:
            raise DataError(f"is not a tokenizer that tfm can use: it {error}", file=file) from None
    lines = [line for line in decode_lines(data, file)[:100] if line.strip()]
    if not lines:
        raise DataError("is empty", file=file)
    problem = vocabulary_problem([line.strip("\r ") for line in lines])
    if RANK_LINE.fullmatch(lines[0].strip()) and (problem is None or lines[0].split()[1] == "0"):
        return "tiktoken"
    if problem is not None:
        raise DataError(problem, file=file)
    columns = {len(line.strip("\r ").split(" ")) for line in lines if not line.startswith("#version")}
    if columns == {1}:
        return "vocab.txt"
    if columns <= {2, 3} and columns:
        is_byte_level = name == MERGES_FILE or (END not in "".join(lines) and folder.has_file(VOCAB_FILE))
        return MERGES_FILE if is_byte_level else "codes"
    names = ", ".join(form.name for form in TOKENIZER_FORMATS.values())
    raise DataError(
        f"is not a tokenizer in a form that tfm reads: {names}",
        file=file,
    )
