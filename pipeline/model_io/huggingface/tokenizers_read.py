"""The tokenizer in a folder of transformers as ours: control tokens first, all other pieces in their order."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfm.data.errors import DataError
from tfm.tokenizer.foreign.renumbered import Renumbered, pieces_of, renumbered
from tfm.tokenizer.foreign.sentencepiece import as_document, read_model
from tfm.tokenizer.special import BOS, EOS, PAD, UNK
from tfm.tokenizer.tokenizer import Tokenizer

Settings = dict[str, Any]


@dataclass(frozen=True)
class Pieces:
    """Tokenizers of source and target, which are one where texts of both are split alike; rows, nowhere: see
    `Renumbered`."""

    source: Tokenizer
    target: Tokenizer
    rows: list[int]
    nowhere: list[int]


def read_pieces(folder: Path, settings: Settings, size: int) -> Pieces:
    """The tokenizers of a model that has rows for `size` pieces.

    Raises DataError where there is none, ValueError where it is none that we have.
    """
    if (folder / "source.spm").exists():
        return _of_marian(folder, settings, size)
    file = folder / "tokenizer.json"
    if not file.exists():
        raise DataError("has no tokenizer.json: load and save its tokenizer with transformers to get one", file=folder)
    document = _document(file)
    found = renumbered(document, _roles(settings, document, _document(folder / "tokenizer_config.json")), size)
    tokenizer = _tokenizer(found)
    return Pieces(tokenizer, tokenizer, found.rows, found.nowhere)


def _of_marian(folder: Path, settings: Settings, size: int) -> Pieces:
    """Two SentencePiece models that share one numbering: source.spm, target.spm, vocab.json."""
    numbers = _document(folder / "vocab.json")
    names = sorted(numbers, key=numbers.__getitem__)
    if [numbers[name] for name in names] != list(range(len(names))):
        raise ValueError("the numbers in vocab.json are not 0, 1, 2 ..")
    sides = []
    for side in "source", "target":
        model = read_model((folder / f"{side}.spm").read_bytes())
        document = as_document(model, names, {EOS: EOS, UNK: UNK, PAD: PAD})
        sides.append(renumbered(document, _roles(settings, document, {}), size))
    source, target = map(_tokenizer, sides)
    return Pieces(source, target, sides[0].rows, sides[0].nowhere)


def _roles(settings: Settings, document: Settings, about: Settings) -> dict[str, int]:
    """The ids of what begins and ends a text, of padding and of what is unknown."""
    numbers = {piece: number for number, piece in pieces_of(document).items()}
    eos = settings.get("eos_token_id")
    ends = eos[0] if isinstance(eos, list) else eos
    begins = settings.get("decoder_start_token_id" if settings.get("is_encoder_decoder") else "bos_token_id")
    unknown = about.get("unk_token")
    unknown = unknown.get("content") if isinstance(unknown, dict) else unknown
    unknown = unknown or document["model"].get("unk_token") or UNK
    found = {EOS: ends, BOS: begins, PAD: settings.get("pad_token_id"), UNK: numbers.get(unknown)}
    if ends is None:
        raise ValueError("config.json has no eos_token_id")
    return {role: number for role, number in found.items() if number is not None}


def _tokenizer(found: Renumbered) -> Tokenizer:
    return Tokenizer.of_json(json.dumps(found.document))


def _document(file: Path) -> Settings:
    """The content of a JSON file; nothing where there is none."""
    if not file.exists():
        return {}
    document: Settings = json.loads(file.read_text("utf-8"))
    return document
