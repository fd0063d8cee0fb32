"""A tokenizer that another program made, taken over: its file or folder, in any form that is known, to a `Tokenizer`.

docs/tokenizers/foreign.md lists the forms. Which one a file has, its content says, not its name.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfm.data.errors import DataError, unexpected_value_reason
from tfm.data.foreign_tokenizers.detection import find_tokenizer_source
from tfm.data.foreign_tokenizers.forms import TOKENIZER_FORMATS, TokenizerSource
from tfm.tokenizer import code_points
from tfm.tokenizer.config import CONTROL_TOKEN_FIELDS, FOREIGN_KEYS, TokenizerConfig
from tfm.tokenizer.foreign.model_types import add_model_type
from tfm.tokenizer.foreign.original_ids import (
    FAIRSEQ_NUMBERINGS,
    ORIGINAL_IDS_FILE,
    FairseqNumbering,
    fairseq_ids,
    load_original_ids,
)
from tfm.tokenizer.foreign.renumbered import MAX_UNUSED_IDS, document_pieces, renumber
from tfm.tokenizer.foreign.roles import KEYS_BY_ROLE, find_role_ids
from tfm.tokenizer.foreign.unnumbered import append_pieces_read_as_unk
from tfm.tokenizer.special import SPECIAL_TOKENS
from tfm.tokenizer.tokenizer import MAX_TOKENIZER_FILE_BYTES, Tokenizer

LOADING_ERRORS = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, AssertionError, RecursionError)
"""Errors that an unexpected value leads to."""


@dataclass(frozen=True)
class ForeignTokenizer:
    """tokenizer: our control tokens have the ids 0 to 3. form: what its file is, as messages call it. control_tokens:
    by ours those there; empty if the file has ours. A role without a token there is a piece that no text has."""

    tokenizer: Tokenizer
    form: str
    control_tokens: Mapping[str, str]


def load_foreign_tokenizer(config: TokenizerConfig) -> ForeignTokenizer:
    """The tokenizer of `config.file`. Raises DataError with the reason if it is none that tfm can use."""
    source = find_tokenizer_source(config)
    if source.is_code_point_tokenizer:
        if useless_keys := [key for key in FOREIGN_KEYS if getattr(config, key) is not None]:
            raise DataError(f"has every character of Unicode: remove tokenizer.{useless_keys[0]}", file=source.file)
        return ForeignTokenizer(code_points.load_tokenizer(source.file), "a tokenizer of code points", {})
    try:
        return _renumber_vocabulary(source, config)
    except LOADING_ERRORS as error:
        reason = unexpected_value_reason(error)
        raise DataError(f"is not a tokenizer that tfm can use: {reason:.400}", file=source.file) from error


def _renumber_vocabulary(source: TokenizerSource, config: TokenizerConfig) -> ForeignTokenizer:
    form = TOKENIZER_FORMATS[source.form]
    for key in ("codes_vocabulary", "pattern"):
        if getattr(config, key) is not None and key != form.key:
            raise ValueError(f"it is {form.name}, which has no use for tokenizer.{key}. Remove the key")
    document, pieces_without_id = form.read_tokenizer(source, config)
    document = add_model_type(document)
    tokens_by_role = {
        role: token for role, key in CONTROL_TOKEN_FIELDS.items() if (token := getattr(config, key)) is not None
    }
    pieces = document_pieces(document)
    is_ours = [pieces.get(number) for number in range(len(SPECIAL_TOKENS))] == [*SPECIAL_TOKENS]
    if is_ours and not tokens_by_role:
        tokenizer = Tokenizer.from_json(json.dumps({**document, "post_processor": None}))
        tokenizer = tokenizer.without_spelled_control_tokens()
        if (file := source.companions.get(ORIGINAL_IDS_FILE)) is not None:  # one of ours that was taken before
            ids = load_original_ids(file.parent, source.file.name, tokenizer.vocab_size)
            tokenizer = tokenizer.with_original_ids(ids)
        return ForeignTokenizer(tokenizer, form.name, {})
    size = max(pieces, default=-1) + 1
    if not pieces or size > len(pieces) + MAX_UNUSED_IDS:
        raise ValueError(f"it has {len(pieces):,} pieces, and ids up to {size - 1:,}")
    roles = find_role_ids(document, _control_tokens(source), tokens_by_role)
    renumbered = renumber(document, roles, size)
    renumbered_document = renumbered.document
    if pieces_without_id is not None:
        renumbered_document = append_pieces_read_as_unk(renumbered_document, *pieces_without_id)
    text = json.dumps(renumbered_document, ensure_ascii=False, indent=2)
    if (size := len(text.encode())) > MAX_TOKENIZER_FILE_BYTES:
        raise ValueError(
            f"its tokenizer.json would have {size:,} bytes, and tfm reads {MAX_TOKENIZER_FILE_BYTES:,} at most"
        )
    tokenizer = Tokenizer.from_json(text)
    unmapped_ids = {*renumbered.unmapped_ids}
    if form.has_ids(config):
        rows = [None if new in unmapped_ids else old for new, old in enumerate(renumbered.rows)]
        numbering = _fairseq_numbering(source)
        tokenizer = tokenizer.with_original_ids(rows if numbering is None else fairseq_ids(pieces, rows, numbering))
    control_tokens = {
        role: pieces[renumbered.rows[new]] for new, role in enumerate(SPECIAL_TOKENS) if new not in unmapped_ids
    }
    return ForeignTokenizer(tokenizer, form.name, control_tokens)


def _fairseq_numbering(source: TokenizerSource) -> FairseqNumbering | None:
    """The numbering of the class that the settings beside a SentencePiece model name; None if it is that of the
    model.
    """
    name = str(source.tokenizer_config.get("tokenizer_class")).removesuffix("Fast")
    return FAIRSEQ_NUMBERINGS.get(name) if source.form == "sentencepiece" else None


def _control_tokens(source: TokenizerSource) -> dict[str, str]:
    """The names of control tokens in files beside a tokenizer, by their keys."""
    tokens_by_key: dict[str, str] = {}
    for key in (key for keys in KEYS_BY_ROLE.values() for key in keys):
        value = source.tokenizer_config.get(key)
        spelling: Any = value.get("content") if isinstance(value, Mapping) else value
        if spelling is not None and not (isinstance(spelling, str) and spelling):
            raise ValueError(f"{key} = {json.dumps(value, ensure_ascii=False):.60} beside it is not a token")
        if spelling is not None:
            tokens_by_key[key] = spelling
    return tokens_by_key


def tokenizer_files(config: TokenizerConfig) -> dict[str, Path]:
    """Every file that `load_foreign_tokenizer` reads, by its name in a manifest.

    Raises DataError if it is of no known format, or is not there.
    """
    source = find_tokenizer_source(config)
    companions = {
        name if name == "codes_vocabulary" else f"file: {name}": path for name, path in source.companions.items()
    }
    return {"file": source.file, **companions}
