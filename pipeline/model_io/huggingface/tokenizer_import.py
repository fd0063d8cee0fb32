"""The tokenizer in a folder of transformers as one of tfm: control tokens first, all other pieces in their order."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tfm.data.errors import DataError
from tfm.pipeline.model_io.huggingface.received.settings_checks import TOKENIZER_CHECKS, check_values
from tfm.pipeline.model_io.huggingface.received.snapshot import Snapshot
from tfm.pipeline.model_io.huggingface.tokenizer_files import LINE_BREAK, restore_eos_token
from tfm.tokenizer.foreign.byte_level import END_OF_TEXT, build_byte_level_json
from tfm.tokenizer.foreign.m2m100 import append_languages
from tfm.tokenizer.foreign.model_types import add_model_type
from tfm.tokenizer.foreign.renumbered import (
    MAX_UNUSED_IDS,
    MODELS_WITHOUT_MERGES,
    RenumberedTokenizer,
    check_number_of_pieces,
    document_pieces,
    renumber,
    split_spelled_control_tokens,
)
from tfm.tokenizer.foreign.sentencepiece import (
    SentencePieceModel,
    add_unnumbered_model_pieces,
    build_tokenizer_json,
    parse_sentencepiece_model,
)
from tfm.tokenizer.languages import TARGET_LANGUAGE_TOKEN_PATTERN
from tfm.tokenizer.special import BOS, EOS, PAD, SPECIAL_TOKENS, UNK
from tfm.tokenizer.tokenizer import Tokenizer

JsonObject = dict[str, Any]
M2M100_VOCABULARY_FILE = "sentencepiece.bpe.model"
GPT2_MODEL_TYPE, GPT2_VOCABULARY_FILES = "gpt2", ("vocab.json", "merges.txt")


@dataclass(frozen=True)
class ImportedTokenizers:
    """Tokenizers of a model, which are one where texts of both sides are split alike.

    Args:
        source: the tokenizer of the source.
        target: the tokenizer of the target.
        rows: as in `RenumberedTokenizer`.
        missing_rows: as in `RenumberedTokenizer`.
        source_rows: the rows of the source, where it has a numbering of its own, and `rows` are of the target.
    """

    source: Tokenizer
    target: Tokenizer
    rows: list[int]
    missing_rows: list[int]
    source_rows: list[int] | None = None


def read_tokenizers(folder: Snapshot, settings: JsonObject, size: int) -> ImportedTokenizers:
    """Read the tokenizers of a model.

    Args:
        folder: of the model.
        settings: its config.json.
        size: the number of pieces for which the model has rows.

    Raises:
        DataError: there is no tokenizer.
        ValueError: tfm does not have such a tokenizer.
    """
    if folder.has_file("source.spm"):
        return _read_marian(folder, settings, size)
    has_document = folder.has_file("tokenizer.json")
    if folder.has_file(M2M100_VOCABULARY_FILE) and folder.has_file("vocab.json") and not has_document:
        return _read_m2m100(folder, settings, size)
    tokenizer_config = _read_tokenizer_config(folder)
    if has_document:
        document = _restore_tokenizer_document(folder.read_document("tokenizer.json"), settings)
    else:
        document = _read_gpt2_document(folder, settings, tokenizer_config)
    check_number_of_pieces(document, size)
    document = _set_prefix_space(add_model_type(document), tokenizer_config)
    unknown = _configured_unk_token(tokenizer_config) or document["model"].get("unk_token") or UNK
    renumbered = renumber(document, _control_token_ids(settings, document_pieces(document), unknown), size)
    tokenizer = _build_tokenizer(renumbered)
    return ImportedTokenizers(tokenizer, tokenizer, renumbered.rows, renumbered.unmapped_ids)


def _read_gpt2_document(folder: Snapshot, settings: JsonObject, tokenizer_config: JsonObject) -> JsonObject:
    """tokenizer.json of a GPT-2 whose folder has its vocab.json and merges.txt alone. Raises DataError for others."""
    kind = str(tokenizer_config.get("tokenizer_class") or "GPT2Tokenizer").removesuffix("Fast")
    is_gpt2 = settings.get("model_type") == GPT2_MODEL_TYPE and kind == "GPT2Tokenizer"
    has_vocabulary = all(folder.has_file(name) for name in GPT2_VOCABULARY_FILES)
    if not is_gpt2 or not has_vocabulary or folder.has_file("added_tokens.json"):
        problem = "has no tokenizer.json: load and save its tokenizer with transformers to get one"
        raise DataError(problem, file=folder.folder)
    vocabulary, merges = GPT2_VOCABULARY_FILES
    vocab, lines = folder.read_document(vocabulary), folder.read_text(merges).split("\n")
    return build_byte_level_json(vocab, lines, tokenizer_config, {"eos_token": END_OF_TEXT})


def _set_prefix_space(document: JsonObject, tokenizer_config: JsonObject) -> JsonObject:
    """tokenizer.json with the space before a text that its settings want, which count more in transformers.

    Raises ValueError if a Llama's would have to be cut in another way.
    """
    kind, adds_space = str(tokenizer_config.get("tokenizer_class")), tokenizer_config.get("add_prefix_space")
    step = document.get("pre_tokenizer") or {}
    if kind.removesuffix("Fast") == "GPT2Tokenizer" and step.get("type") == "ByteLevel":
        return {**document, "pre_tokenizer": {**step, "add_prefix_space": bool(adds_space)}}
    if kind.removesuffix("Fast") == "LlamaTokenizer" and adds_space is False:
        steps = [document.get("normalizer") or {}, step]
        steps += [inner for each in steps for inner in each.get("normalizers", each.get("pretokenizers", []))]
        if any(each.get("type") == "Prepend" or each.get("prepend_scheme", "never") != "never" for each in steps):
            raise ValueError("add_prefix_space = false in tokenizer_config.json, and its tokenizer.json adds a space")
    return document


def _restore_tokenizer_document(document: JsonObject, settings: JsonObject) -> JsonObject:
    """tokenizer.json of a folder that tfm exported, without the changes of `tokenizer_files` for texts there."""
    tfm_settings = settings.get("tfm")
    if not isinstance(tfm_settings, dict):
        return document
    tokens = [
        {
            **token,
            "special": token["special"] or re.fullmatch(TARGET_LANGUAGE_TOKEN_PATTERN, token["content"]) is not None,
        }
        for token in document["added_tokens"]
    ]
    document, pieces = {**document, "added_tokens": tokens}, document_pieces(document).values()
    return restore_eos_token(document) if tfm_settings.get("block") is not None and LINE_BREAK in pieces else document


def _read_m2m100(folder: Snapshot, settings: JsonObject, size: int) -> ImportedTokenizers:
    """A SentencePiece model whose pieces are numbered by vocab.json, and languages behind them."""
    tokenizer_config = _read_tokenizer_config(folder)
    names = append_languages(_read_vocabulary(folder, "vocab.json"), tokenizer_config.get("language_codes", "m2m100"))
    model = parse_sentencepiece_model(folder.read(M2M100_VOCABULARY_FILE))
    roles = _control_token_ids(settings, names, _configured_unk_token(tokenizer_config) or UNK)
    renumbered = _renumber_pieces(model, names, (EOS, UNK, PAD, BOS), roles, size)
    tokenizer = _build_tokenizer(renumbered)
    return ImportedTokenizers(tokenizer, tokenizer, renumbered.rows, renumbered.unmapped_ids)


def _read_marian(folder: Snapshot, settings: JsonObject, size: int) -> ImportedTokenizers:
    """Two SentencePiece models, source.spm and target.spm, that share the numbering in vocab.json, or whose target has
    one of its own in target_vocab.json."""
    if settings.get("share_encoder_decoder_embeddings") is False:
        return _read_two_vocabularies(folder, settings, size)
    names = _read_vocabulary(folder, "vocab.json")
    sides = []
    for side in "source", "target":
        model = parse_sentencepiece_model(folder.read(f"{side}.spm"))
        roles = _control_token_ids(settings, names, UNK)
        control: Sequence[str] = (EOS, UNK, PAD)
        if names[: len(SPECIAL_TOKENS)] == [*SPECIAL_TOKENS] and isinstance(
            settings.get("tfm"), dict
        ):  # a Marian that tfm wrote
            roles, control = {token: number for number, token in enumerate(SPECIAL_TOKENS)}, SPECIAL_TOKENS
        sides.append(_renumber_pieces(model, names, control, roles, size))
    source, target = map(_build_tokenizer, sides)
    return ImportedTokenizers(source, target, sides[0].rows, sides[0].unmapped_ids)


def _read_two_vocabularies(folder: Snapshot, settings: JsonObject, size: int) -> ImportedTokenizers:
    """The same where source and target have a table each. size: of the target's.

    The ids in config.json are of the target; a source ends with its own </s>, and no text begins with a token.
    """
    target_file = "target_vocab.json" if folder.has_file("target_vocab.json") else "vocab.json"
    sides = []
    for side, file in ("source", "vocab.json"), ("target", target_file):
        names = _read_vocabulary(folder, file)
        model = parse_sentencepiece_model(folder.read(f"{side}.spm"))
        source_ids = {role: names.index(role) for role in (EOS, UNK, PAD) if role in names}
        if EOS not in source_ids:
            raise ValueError(f"{file} has no {EOS}")
        roles = source_ids if side == "source" else _control_token_ids(settings, names, UNK)
        sides.append(
            _renumber_pieces(model, names, (EOS, UNK, PAD), roles, settings["vocab_size"] if side == "source" else size)
        )
    source, target = map(_build_tokenizer, sides)
    return ImportedTokenizers(source, target, sides[1].rows, sides[1].unmapped_ids, sides[0].rows)


def _renumber_pieces(
    model: SentencePieceModel, names: list[str], control: Sequence[str], roles: Mapping[str, int], size: int
) -> RenumberedTokenizer:
    """A SentencePiece model whose pieces have the numbers of a vocabulary; those that it lacks read as <unk>.

    Args:
        model: what cuts texts.
        names: the vocabulary, in the order of its numbers.
        control: what of it are control tokens.
        roles: the numbers of what begins and ends a text, of padding and of what is unknown.
        size: how many rows the model has.

    Raises:
        ValueError: the vocabulary has more pieces than the model has rows, or far fewer.
    """
    tokens = {each: each for each in control}
    if model.scores.keys() <= {*names}:
        return _split_at_control_tokens(renumber(build_tokenizer_json(model, names, tokens), roles, size))
    if size > len(names) + MAX_UNUSED_IDS:
        raise ValueError(f"its tokenizer has {len(names)} pieces and its embedding {size}")
    renumbered = _split_at_control_tokens(renumber(build_tokenizer_json(model, names, tokens, size), roles, size))
    return replace(renumbered, document=add_unnumbered_model_pieces(renumbered.document, model))


def _split_at_control_tokens(renumbered: RenumberedTokenizer) -> RenumberedTokenizer:
    """The tokenizer such that texts cannot spell control tokens, also if nothing had to be renumbered."""
    document = renumbered.document
    if document["model"]["type"] not in MODELS_WITHOUT_MERGES or document["pre_tokenizer"]["type"] != "Metaspace":
        return renumbered
    return replace(
        renumbered,
        document={**document, "pre_tokenizer": split_spelled_control_tokens(document["pre_tokenizer"], SPECIAL_TOKENS)},
    )


def _read_vocabulary(folder: Snapshot, file: str) -> list[str]:
    """The pieces of a vocab.json by their ids. Raises ValueError if these are not 0, 1, 2, .."""
    numbers = folder.read_document(file)
    if not all(type(number) is int for number in numbers.values()):
        raise ValueError(f"the numbers in {file} are not 0, 1, 2 ..")
    names = sorted(numbers, key=numbers.__getitem__)
    if [numbers[name] for name in names] != list(range(len(names))):
        raise ValueError(f"the numbers in {file} are not 0, 1, 2 ..")
    return names


def _control_token_ids(settings: JsonObject, names: Sequence[str] | Mapping[int, str], unknown: str) -> dict[str, int]:
    """The ids of the tokens around a text, of padding and of the unknown piece, which is called so among the names."""
    items = names.items() if isinstance(names, Mapping) else enumerate(names)
    numbers = {piece: number for number, piece in items}
    eos = settings.get("eos_token_id")
    ends = eos[0] if isinstance(eos, list) else eos
    begins = settings.get("decoder_start_token_id" if settings.get("is_encoder_decoder") else "bos_token_id")
    ids = {EOS: ends, BOS: begins, PAD: settings.get("pad_token_id"), UNK: numbers.get(unknown)}
    if ends is None:
        raise ValueError("config.json has no eos_token_id")
    return {role: number for role, number in ids.items() if number is not None}


def _configured_unk_token(tokenizer_config: JsonObject) -> str | None:
    """The name of the unknown piece in tokenizer_config.json."""
    unknown = tokenizer_config.get("unk_token")
    name: str | None = unknown.get("content") if isinstance(unknown, dict) else unknown
    return name


def _build_tokenizer(renumbered: RenumberedTokenizer) -> Tokenizer:
    return Tokenizer.from_json(json.dumps(renumbered.document)).without_spelled_control_tokens()


def _read_tokenizer_config(folder: Snapshot) -> JsonObject:
    """tokenizer_config.json, whose values are checked."""
    tokenizer_config = folder.read_document("tokenizer_config.json")
    check_values(tokenizer_config, TOKENIZER_CHECKS, folder.folder / "tokenizer_config.json")
    return tokenizer_config
