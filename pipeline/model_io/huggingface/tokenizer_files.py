"""The tokenizer of an exported model: tokenizer.json and tokenizer_config.json, with the ids that the model reads.

tfm adds the control tokens itself; there the tokenizer adds them, and its files name them.
"""

import json
from pathlib import Path
from typing import Any

from tfm.model.config import ModelConfig
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.foreign.renumbered import FILLER_PREFIX, document_pieces
from tfm.tokenizer.foreign.sentencepiece_files import (
    build_sentencepiece_model,
    have_same_ids,
    is_from_sentencepiece,
    sentencepiece_ids,
)
from tfm.tokenizer.special import BOS, EOS, PAD, SPECIAL_TOKENS, UNK
from tfm.tokenizer.tokenizer import SHARED, SOURCE, TARGET, Tokenizer

LINE_BREAK = "\n"
MARIAN_BEGIN_TOKEN = "<begin>"
"""The token before a target, behind all pieces: it is in no vocab.json, so that its text has to be given."""


def write_tokenizer(
    model: Path, folder: Path, config: ModelConfig, tokenizer: Tokenizer, *, pad_token: str, mask_token: str | None
) -> None:
    """Write the tokenizer of texts that a model reads.

    Args:
        model: the folder of the model.
        folder: to write into.
        config: of the model.
        tokenizer: of its sources.
        pad_token: the padding token.
        mask_token: the token that stands for hidden pieces, the last of all; None: there is none.
    """
    side_file = TARGET if config.architecture == "decoder_only" else SOURCE
    file = model / SHARED if (model / SHARED).exists() else model / side_file
    document: dict[str, Any] = json.loads(file.read_text("utf-8"))
    document["post_processor"] = _template_processing(surrounding_tokens(config))
    goes_on = config.block is not None
    if goes_on:
        document = use_eos_as_line_break(document)
    # a text that spells a control token is text: only tokens that are none are looked for in texts, and a language is
    # asked for in the text
    languages = {*tokenizer.languages.values()}
    for token in document["added_tokens"]:
        token["special"] &= token["id"] not in languages
    if mask_token is not None:
        plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        document["added_tokens"].append({"id": tokenizer.vocab_size, "content": mask_token, **plain})
    (folder / "tokenizer.json").write_text(_dump_json(document), encoding="utf-8")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_text_pieces(config),
        "pad_token": pad_token,
        "unk_token": UNK,
        "bos_token": BOS,
        **({} if goes_on else {"eos_token": EOS}),
        "split_special_tokens": mask_token is None,  # the mask token must be spelled in a text
        **({} if mask_token is None else {"mask_token": mask_token}),
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
        "padding_side": "left" if config.architecture == "decoder_only" else "right",
    }
    (folder / "tokenizer_config.json").write_text(_dump_json(settings), encoding="utf-8")


def are_marian_tokenizers(source: Tokenizer, target: Tokenizer) -> bool:
    """Whether two tokenizers were read from a Marian's SentencePiece models, which share a numbering."""
    return have_same_ids(source, target) and is_from_sentencepiece(source) and is_from_sentencepiece(target)


def write_marian_tokenizers(folder: Path, config: ModelConfig, source: Tokenizer, target: Tokenizer) -> None:
    """Write the tokenizers of a Marian as transformers reads them: two SentencePiece models and vocab.json.

    Args:
        folder: to write into.
        config: of the model.
        source: the tokenizer of sources.
        target: the tokenizer of targets.
    """
    for side, tokenizer in ("source", source), ("target", target):
        (folder / f"{side}.spm").write_bytes(build_sentencepiece_model(tokenizer))
    (folder / "vocab.json").write_text(_dump_json(sentencepiece_ids(source)), encoding="utf-8")
    flags = dict.fromkeys(("lstrip", "rstrip", "normalized", "single_word"), False)
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "model_max_length": max_text_pieces(config),
        "bos_token": MARIAN_BEGIN_TOKEN,  # which begins what `generate` returns, and is left out of its text
        "added_tokens_decoder": {str(source.vocab_size): {"content": MARIAN_BEGIN_TOKEN, "special": True, **flags}},
        "pad_token": PAD,
        "unk_token": UNK,
        "eos_token": EOS,
        "separate_vocabs": False,
        "split_special_tokens": True,
    }
    (folder / "tokenizer_config.json").write_text(_dump_json(settings), encoding="utf-8")


def max_text_pieces(config: ModelConfig) -> int:
    """The number of pieces that a text may have, the control tokens around it among them."""
    length = min(config.max_length, config.block or config.max_length)
    return length + (config.begin_token or (config.architecture == "decoder_only" and config.block is None))


def use_eos_as_line_break(document: dict[str, Any]) -> dict[str, Any]:
    """tokenizer.json of running text, in which the token that ends lines is read and written as a line break."""
    document = _rename_token(_hide_line_breaks(document), EOS, LINE_BREAK)
    for token in document["added_tokens"]:
        token["special"] &= token["content"] != LINE_BREAK  # else it would be left out of a text
    decoder = document["decoder"]
    if "Metaspace" in json.dumps(
        decoder
    ):  # which leaves out the space before the first word, and so do we in each line
        end = {"type": "Replace", "pattern": {"String": f"{LINE_BREAK} "}, "content": LINE_BREAK}
        document["decoder"] = {"type": "Sequence", "decoders": [decoder, {"type": "Fuse"}, end]}
    return document


def restore_eos_token(document: dict[str, Any]) -> dict[str, Any]:
    """The tokenizer.json that `use_eos_as_line_break` was given."""
    document = _rename_token(document, LINE_BREAK, EOS)
    for token in document["added_tokens"]:
        token["special"] |= token["content"] == EOS
    if "Metaspace" in json.dumps(document["decoder"]):
        document["decoder"] = document["decoder"]["decoders"][0]
    return document


def _hide_line_breaks(document: dict[str, Any]) -> dict[str, Any]:
    """The tokenizer in which pieces with a line break, which stand in no line, have names that no text has.

    Tokenizers of other programs may have such pieces; each id stays.
    """
    hidden = {number: piece for number, piece in document_pieces(document).items() if LINE_BREAK in piece}
    for number, piece in hidden.items():
        document = _rename_token(document, piece, f"{FILLER_PREFIX}line break:{number}")
    for token in document["added_tokens"]:
        token["special"] |= token["id"] in hidden
    model = document["model"]
    if hidden and model.get("merges"):
        merges = [each for each in model["merges"] if LINE_BREAK not in "".join(each)]
        document = {**document, "model": {**model, "merges": merges}}
    return document


def _rename_token(document: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """The tokenizer with another name for a token."""
    vocab = document["model"]["vocab"]
    if isinstance(vocab, list):
        entries: Any = [[new if name == old else name, score] for name, score in vocab]
    else:
        entries = {new if name == old else name: number for name, number in vocab.items()}
    tokens = [{**each, "content": new} if each["content"] == old else each for each in document["added_tokens"]]
    return {**document, "model": {**document["model"], "vocab": entries}, "added_tokens": tokens}


def surrounding_tokens(config: ModelConfig) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The control tokens before and after a text that the model reads."""
    if config.architecture != "decoder_only":
        return (BOS,) if config.begin_token else (), (EOS,)
    return ((), (EOS, BOS)) if TASK_SPECS[config.task].translates else ((BOS,), ())


def _template_processing(tokens_before_and_after: tuple[tuple[str, ...], tuple[str, ...]]) -> dict[str, Any]:
    """The step that adds tokens, as tokenizer.json has it. Each text of a pair gets its own."""

    def side_template(name: str) -> list[dict[str, Any]]:
        prefix, suffix = (
            [{"SpecialToken": {"id": token, "type_id": 0}} for token in tokens] for tokens in tokens_before_and_after
        )
        return [*prefix, {"Sequence": {"id": name, "type_id": 0}}, *suffix]

    names = [token for tokens in tokens_before_and_after for token in tokens]
    tokens = {token: {"id": token, "ids": [SPECIAL_TOKENS.index(token)], "tokens": [token]} for token in names}
    return {
        "type": "TemplateProcessing",
        "single": side_template("A"),
        "pair": side_template("A") + side_template("B"),
        "special_tokens": tokens,
    }


def _dump_json(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
