"""tokenizer.json of the tokenizers of BERT and RoBERTa, also where a folder has nothing but their vocabularies."""

from typing import Any

from tfm.data.errors import DataError
from tfm.pipeline.model_io.huggingface.classes import Settings
from tfm.pipeline.model_io.huggingface.received.snapshot import Snapshot

FILE = "tokenizer.json"
CONTROL = ("unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
OF_BERT = dict(zip(CONTROL, ("[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"), strict=True))
OF_ROBERTA = dict(zip(CONTROL, ("<unk>", "</s>", "<pad>", "<s>", "<mask>"), strict=True))
BY_MODEL = {
    "bert": "BertTokenizer",
    "megatron-bert": "BertTokenizer",
    "roberta": "RobertaTokenizer",
    "roberta-prelayernorm": "RobertaTokenizer",
}
"""The tokenizer of a model whose folder names none."""


def document_of(folder: Snapshot, settings: Settings, about: Settings) -> Settings:
    """Read tokenizer.json of a folder, or make it from its vocabulary.

    The normalization of BERT and RoBERTa follows from `about`, as in transformers.

    Args:
        folder: the folder of the model.
        settings: its config.json.
        about: the contents of its other files; control tokens that they leave out are added.

    Raises:
        DataError: there is no vocabulary.
        ValueError: the vocabulary is of another kind.
    """
    kind = str(about.get("tokenizer_class") or BY_MODEL.get(settings.get("model_type", ""))).removesuffix("Fast")
    of_kind = {"BertTokenizer": (OF_BERT, _of_bert), "RobertaTokenizer": (OF_ROBERTA, _of_roberta)}.get(kind)
    if of_kind is not None:
        for key, token in of_kind[0].items():
            about.setdefault(key, token)
    if folder.has(FILE):
        document: Settings = folder.read_document(FILE)
        if of_kind is not None:
            document |= of_kind[1](about)
        return document
    words, pairs = "vocab.txt", ("vocab.json", "merges.txt")
    if kind == "BertTokenizer" and folder.has(words):
        lines = folder.read_text(words).split("\n")
        vocab = {piece: number for number, piece in enumerate(lines[: -1 if lines[-1] == "" else None])}
        model: Settings = {"type": "WordPiece", "unk_token": about["unk_token"], "vocab": vocab}
        model |= {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    elif kind == "RobertaTokenizer" and all(folder.has(each) for each in pairs):
        vocab = folder.read_document(pairs[0])
        lines = folder.read_text(pairs[1]).split("\n")
        merges = [line.split(" ") for line in lines if line and not line.startswith("#version")]
        model = {"type": "BPE", "vocab": vocab, "merges": merges, "unk_token": None, "dropout": None}
        model |= {"continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False}
    elif folder.has(words) or folder.has(pairs[0]):
        raise ValueError(f"its tokenizer is a {kind} without {FILE}: load and save it with transformers to get one")
    else:
        raise DataError(f"has no {FILE}, and no vocab.txt, or vocab.json with merges.txt", file=folder.folder)
    if folder.has("added_tokens.json"):
        raise ValueError(f"it has added_tokens.json without {FILE}: load and save its tokenizer with transformers")
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    control = dict.fromkeys(about[key] for key in CONTROL if about[key] in vocab)
    added = [{"id": vocab[piece], "content": piece, **plain} for piece in control]
    ends, begins = (token for token in (about["sep_token"], about["cls_token"]))
    if not {ends, begins} <= {*vocab}:
        raise ValueError(f"its vocabulary lacks {begins} or {ends}")
    around = {"type": "BertProcessing", "sep": [ends, vocab[ends]], "cls": [begins, vocab[begins]]}
    nothing: dict[str, Any] = dict.fromkeys(("truncation", "padding", "normalizer"))
    parts = {"version": "1.0", "model": model, "added_tokens": added, "post_processor": around}
    assert of_kind is not None
    return {**nothing, **parts, **of_kind[1](about)}


def _of_bert(about: Settings) -> Settings:
    """The steps of BERT's tokenizer before a text is split, and after."""
    if not about.get("do_basic_tokenize", True):
        raise ValueError("do_basic_tokenize = false is not supported")
    return {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": about.get("tokenize_chinese_chars", True),
            "strip_accents": about.get("strip_accents"),
            "lowercase": about.get("do_lower_case", True),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    }


def _of_roberta(about: Settings) -> Settings:
    """The steps of RoBERTa's tokenizer: the bytes of a text, and its words with the space before."""
    step = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
    return {
        "normalizer": None,
        "pre_tokenizer": {**step, "add_prefix_space": bool(about.get("add_prefix_space", False))},
        "decoder": {**step, "add_prefix_space": True},
    }
