"""The tokenizer of an encoder-only model: WordPiece of BERT, byte-level BPE of RoBERTa, or another tokenizer.json.

Its control tokens are told by what it puts around a text. The one that stands for hidden pieces is our padding, which
no text has either.
"""

import json

from tfm.data.errors import format_count
from tfm.pipeline.model_io.huggingface.classes import JsonObject
from tfm.pipeline.model_io.huggingface.encoders.bert import MASK_TOKEN_ID_KEY
from tfm.pipeline.model_io.huggingface.encoders.labels import read_label_names
from tfm.pipeline.model_io.huggingface.encoders.vocabularies import read_tokenizer_document
from tfm.pipeline.model_io.huggingface.received.settings_checks import TOKENIZER_CHECKS, check_values
from tfm.pipeline.model_io.huggingface.received.snapshot import Snapshot
from tfm.pipeline.model_io.huggingface.tokenizer_import import ImportedTokenizers
from tfm.tokenizer.config import LabelKind
from tfm.tokenizer.foreign.renumbered import check_number_of_pieces, document_pieces, renumber
from tfm.tokenizer.foreign.roles import template_prefix_and_suffix_ids
from tfm.tokenizer.special import BOS, EOS, PAD, PAD_ID, SPECIAL_TOKENS, UNK
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import make_label_tokenizer


def read_encoder_tokenizers(
    folder: Snapshot, settings: JsonObject, size: int, kind: LabelKind | None
) -> tuple[ImportedTokenizers, bool]:
    """Read the tokenizers of a model.

    Args:
        folder: of the model.
        settings: its config.json.
        size: the number of pieces for which the model has rows.
        kind: the kind of its labels; None: the model gives no labels.

    Returns:
        The tokenizers, and whether a token begins each text.

    Raises:
        DataError: a file is missing.
        ValueError: tfm does not have such a tokenizer.
    """
    tokenizer_config = _tokenizer_settings(folder)
    document = read_tokenizer_document(folder, settings, tokenizer_config)
    check_number_of_pieces(document, size)
    mask_id = settings.get("tfm", {}).get(MASK_TOKEN_ID_KEY)
    document["added_tokens"] = [each for each in document.get("added_tokens", []) if each["id"] != mask_id]
    numbers = {piece: number for number, piece in document_pieces(document).items()}
    prefix_id, suffix_id = surrounding_token_ids(document)
    unknown = document["model"].get("unk_token") or tokenizer_config.get("unk_token") or UNK
    pad_or_mask_id = numbers.get(
        tokenizer_config.get("mask_token", ""), numbers.get(tokenizer_config.get("pad_token", ""))
    )
    ids_by_role = {EOS: suffix_id, BOS: prefix_id, UNK: numbers.get(unknown), PAD: pad_or_mask_id}
    roles = {role: number for role, number in ids_by_role.items() if number is not None}
    renumbered = renumber(document, roles, size)
    rows = renumbered.rows
    if mask_id is None and rows[: len(SPECIAL_TOKENS)] == [*range(len(SPECIAL_TOKENS))] and PAD in roles:
        rows[PAD_ID], rows[roles[PAD]] = rows[roles[PAD]], rows[PAD_ID]  # called as ours, but hidden pieces are not
    source = Tokenizer.from_json(json.dumps(renumbered.document)).without_spelled_control_tokens()
    target = source if kind is None else make_label_tokenizer(read_label_names(settings, kind), kind)
    return ImportedTokenizers(source, target, rows, renumbered.unmapped_ids), prefix_id is not None


def _tokenizer_settings(folder: Snapshot) -> JsonObject:
    """The settings of a tokenizer, its tokens as they are spelled."""
    settings: JsonObject = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        document = folder.read_document(name)
        check_values(document, TOKENIZER_CHECKS, folder.folder / name)
        settings |= document
    spellings = {key: each["content"] for key, each in settings.items() if isinstance(each, dict) and "content" in each}
    return settings | spellings


def surrounding_token_ids(document: JsonObject) -> tuple[int | None, int]:
    """The ids of the tokens before and after each text. Raises ValueError if they are not one each, or one after."""
    before, after = template_prefix_and_suffix_ids(document)
    if len(before) > 1 or len(after) != 1:
        raise ValueError(
            f"its tokenizer puts {format_count(len(before), 'token')} before a text and {len(after)} after it; here "
            "there is one after it, and one or none before it"
        )
    return (before[0] if before else None), after[0]
