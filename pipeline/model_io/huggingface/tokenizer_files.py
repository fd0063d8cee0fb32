"""The tokenizer of an exported model: tokenizer.json and tokenizer_config.json. It gives the ids that the model reads.

tfm adds the control tokens itself; there the tokenizer does so, and is told which.
"""

import json
from pathlib import Path
from typing import Any

from tfm.model.config import ModelConfig
from tfm.pipeline.tasks.abilities import ABILITIES
from tfm.tokenizer.special import BOS, EOS, SPECIALS, UNK
from tfm.tokenizer.tokenizer import SHARED, SOURCE, TARGET, Tokenizer


def write_tokenizer(
    model: Path, folder: Path, config: ModelConfig, tokenizer: Tokenizer, *, pad: str, hidden: str | None
) -> None:
    """Write the tokenizer of texts that the model in the folder `model` reads.

    pad: the padding token. hidden: the token that stands for hidden pieces, the last of all; none: there is none.
    """
    own = TARGET if config.architecture == "decoder_only" else SOURCE
    file = model / SHARED if (model / SHARED).exists() else model / own
    document: dict[str, Any] = json.loads(file.read_text("utf-8"))
    document["post_processor"] = _template(before_and_after(config))
    if hidden is not None:
        plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        document["added_tokens"].append({"id": tokenizer.vocab_size, "content": hidden, **plain})
    (folder / "tokenizer.json").write_text(_json(document), encoding="utf-8")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config.max_length,
        "pad_token": pad,
        "unk_token": UNK,
        "bos_token": BOS,
        "eos_token": EOS,
        "additional_special_tokens": [tokenizer.piece(number) for number in tokenizer.languages.values()],
        # a text that spells a control token is text; but that of a language or of hidden pieces has to be spelled
        "split_special_tokens": not tokenizer.languages and hidden is None,
        **({} if hidden is None else {"mask_token": hidden}),
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
        "padding_side": "left" if config.architecture == "decoder_only" else "right",
    }
    (folder / "tokenizer_config.json").write_text(_json(settings), encoding="utf-8")


def before_and_after(config: ModelConfig) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The control tokens before and after a text that the model reads."""
    if config.architecture != "decoder_only":
        return (BOS,) if config.begin_token else (), (EOS,)
    return ((), (EOS, BOS)) if ABILITIES[config.task].translates else ((BOS,), ())


def _template(around: tuple[tuple[str, ...], tuple[str, ...]]) -> dict[str, Any]:
    """The step that adds tokens, as tokenizer.json has it. Of a pair, each text gets its own."""

    def side(name: str) -> list[dict[str, Any]]:
        before, after = ([{"SpecialToken": {"id": token, "type_id": 0}} for token in tokens] for tokens in around)
        return [*before, {"Sequence": {"id": name, "type_id": 0}}, *after]

    names = [token for tokens in around for token in tokens]
    tokens = {token: {"id": token, "ids": [SPECIALS.index(token)], "tokens": [token]} for token in names}
    return {"type": "TemplateProcessing", "single": side("A"), "pair": side("A") + side("B"), "special_tokens": tokens}


def _json(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
