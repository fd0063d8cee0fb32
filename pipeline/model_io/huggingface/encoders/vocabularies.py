"""tokenizer.json of the tokenizers of BERT and RoBERTa, also where a folder has nothing but their vocabularies."""

from tfm.data.errors import DataError
from tfm.pipeline.model_io.huggingface.classes import JsonObject
from tfm.pipeline.model_io.huggingface.received.snapshot import Snapshot
from tfm.tokenizer.foreign.byte_level import ROBERTA_CONTROL_TOKENS, build_byte_level_json, byte_level_components
from tfm.tokenizer.foreign.model_types import add_model_type
from tfm.tokenizer.foreign.wordpiece import BERT_CONTROL_TOKENS, bert_components, build_wordpiece_json

TOKENIZER_FILE = "tokenizer.json"
TOKENIZER_CLASSES = {
    "bert": "BertTokenizer",
    "megatron-bert": "BertTokenizer",
    "roberta": "RobertaTokenizer",
    "roberta-prelayernorm": "RobertaTokenizer",
}
"""The tokenizer of a model whose folder names none."""
SAME_CLASSES = dict.fromkeys(("DistilBertTokenizer", "ElectraTokenizer", "MobileBertTokenizer"), "BertTokenizer")
SAME_CLASSES |= dict.fromkeys(("BartTokenizer", "LongformerTokenizer", "LEDTokenizer"), "RobertaTokenizer")
"""By another name of a class the one of `TOKENIZER_CLASSES`."""


def read_tokenizer_document(folder: Snapshot, settings: JsonObject, tokenizer_config: JsonObject) -> JsonObject:
    """Read tokenizer.json of a folder, or make it from its vocabulary.

    The normalization of BERT and RoBERTa follows from `tokenizer_config`, as in transformers.

    Args:
        folder: the folder of the model.
        settings: its config.json.
        tokenizer_config: the contents of its other files; control tokens that they leave out are added.

    Raises:
        DataError: there is no vocabulary.
        ValueError: the vocabulary is of another kind.
    """
    kind = str(
        tokenizer_config.get("tokenizer_class") or TOKENIZER_CLASSES.get(settings.get("model_type", ""))
    ).removesuffix("Fast")
    kind = SAME_CLASSES.get(kind, kind)
    parts_of_kind = {
        "BertTokenizer": (BERT_CONTROL_TOKENS, bert_components),
        "RobertaTokenizer": (ROBERTA_CONTROL_TOKENS, byte_level_components),
        "GPT2Tokenizer": ({}, byte_level_components),
    }.get(kind)
    if parts_of_kind is not None:
        for key, token in parts_of_kind[0].items():
            tokenizer_config.setdefault(key, token)
    if folder.has_file(TOKENIZER_FILE):
        document: JsonObject = add_model_type(folder.read_document(TOKENIZER_FILE))
        if parts_of_kind is not None:
            document |= parts_of_kind[1](tokenizer_config)
        return document
    words, pairs = "vocab.txt", ("vocab.json", "merges.txt")
    if kind == "BertTokenizer" and folder.has_file(words):
        lines = folder.read_text(words).split("\n")
        document = build_wordpiece_json(lines[: -1 if lines[-1] == "" else None], tokenizer_config)
    elif kind == "RobertaTokenizer" and all(folder.has_file(each) for each in pairs):
        lines = folder.read_text(pairs[1]).split("\n")
        document = build_byte_level_json(folder.read_document(pairs[0]), lines, tokenizer_config, tokenizer_config)
    elif folder.has_file(words) or folder.has_file(pairs[0]):
        raise ValueError(
            f"its tokenizer is a {kind} without {TOKENIZER_FILE}: load and save it with transformers to get one"
        )
    else:
        raise DataError(f"has no {TOKENIZER_FILE}, and no vocab.txt, or vocab.json with merges.txt", file=folder.folder)
    if folder.has_file("added_tokens.json"):
        raise ValueError(
            f"it has added_tokens.json without {TOKENIZER_FILE}: load and save its tokenizer with transformers"
        )
    ends, begins, vocab = tokenizer_config["sep_token"], tokenizer_config["cls_token"], document["model"]["vocab"]
    if not {ends, begins} <= {*vocab}:
        raise ValueError(f"its vocabulary lacks {begins} or {ends}")
    post_processor = {"type": "BertProcessing", "sep": [ends, vocab[ends]], "cls": [begins, vocab[begins]]}
    return {**document, "post_processor": post_processor}
