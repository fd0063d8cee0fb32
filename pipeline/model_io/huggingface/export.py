"""A trained model as a folder that `transformers` reads: weights, settings, tokenizer and card.

Written without that library: a test compares the results of both.
"""

import json
from itertools import count
from pathlib import Path
from typing import Any

from safetensors.torch import save

from tfm.model.config import ModelConfig
from tfm.pipeline.artifacts.manifest import open_artifact
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.huggingface.card import ModelCard, card_text
from tfm.pipeline.model_io.huggingface.classes import HuggingFaceClass, JsonObject
from tfm.pipeline.model_io.huggingface.gpt2 import max_positions
from tfm.pipeline.model_io.huggingface.marian import MARIAN, add_never_predicted_piece
from tfm.pipeline.model_io.huggingface.registry import find_export_class, unsupported_reason
from tfm.pipeline.model_io.huggingface.tokenizer_files import (
    are_marian_tokenizers,
    write_marian_tokenizers,
    write_tokenizer,
)
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.foreign.original_ids import ORIGINAL_IDS_FILE
from tfm.tokenizer.special import BOS, BOS_ID, EOS_ID, PAD, PAD_ID
from tfm.tokenizer.tokenizer import SHARED, Tokenizer


def to_huggingface(loaded: LoadedModel, folder: Path, card: ModelCard) -> None:
    """Write a model into a folder as a class of transformers.

    Args:
        loaded: the model.
        folder: to write into.
        card: contents of the model card.

    Raises:
        DataError: the model reads images.
        RecipeError: no class of transformers holds the model; the part that none has is named.
    """
    loaded.check_reads_text("classes of transformers are written of models of text alone")
    config = loaded.config
    model_class = find_export_class(config)
    if model_class is None:
        problem = f"no class of transformers holds this model: {unsupported_reason(config)}"
        raise RecipeError(f"{loaded.folder}: {problem}. docs/exchange/to-transformers.md has what each class holds")
    source, target = loaded.source_tokenizer, loaded.target_tokenizer
    has_two_vocabularies = config.architecture == "transformer" and source is not target
    if has_two_vocabularies and not (model_class.name == MARIAN.name and are_marian_tokenizers(source, target)):
        problem = f"{model_class.name} has one vocabulary, and this model two: train one with tokenizer.shared = true"
        raise RecipeError(f"{loaded.folder}: {problem}")
    tokenizer = target if config.architecture == "decoder_only" else source
    settings = model_class.settings(config, tokenizer.vocab_size)
    weights = model_class.export_weights(config, loaded.model.state_dict())
    if has_two_vocabularies:
        settings, weights = add_never_predicted_piece(settings, weights)
    _write_json(
        folder / "config.json", _config_json(model_class, settings) | _label_settings(config, loaded.target_tokenizer)
    )
    (folder / "model.safetensors").write_bytes(save(weights, {"format": "pt"}))
    pad = BOS if settings["pad_token_id"] == BOS_ID else PAD
    hidden = _mask_token(tokenizer) if TASK_SPECS[config.task].hides_pieces else None
    if has_two_vocabularies:
        write_marian_tokenizers(folder, config, source, target)
    else:
        write_tokenizer(loaded.folder, folder, config, tokenizer, pad_token=pad, mask_token=hidden)
        if tokenizer.original_ids:
            _write_json(folder / ORIGINAL_IDS_FILE, {SHARED: [*tokenizer.original_ids]})
    if TASK_SPECS[config.task].writes:
        _write_json(folder / "generation_config.json", _generation_config(config, settings))
    usage_code = _usage_code(model_class, config, tokenizer)
    manifest = open_artifact(loaded.folder, "train")
    text = card_text(card, manifest, class_name=model_class.name, task=model_class.pipeline, usage_code=usage_code)
    (folder / "README.md").write_text(text, encoding="utf-8")


def _config_json(model_class: HuggingFaceClass, settings: JsonObject) -> JsonObject:
    header = {"architectures": [model_class.name], "model_type": model_class.model_type, "dtype": "float32"}
    return {**header, "torch_dtype": "float32", "bos_token_id": BOS_ID, **settings}


def _mask_token(tokenizer: Tokenizer) -> str:
    """A name for the token of hidden pieces, that no piece has."""
    pieces = {tokenizer.piece(number) for number in range(tokenizer.vocab_size)}
    return next(name for number in count() if (name := f"<mask{number or ''}>") not in pieces)


def _label_settings(config: ModelConfig, target: Tokenizer) -> JsonObject:
    """The names of the classes of a classifier or tagger; control tokens, which it never gives, are among them."""
    if TASK_SPECS[config.task].labels is None:
        return {}
    names = [target.surface(number).strip() for number in range(target.vocab_size)]
    return {"id2label": dict(enumerate(names)), "label2id": {name: number for number, name in enumerate(names)}}


def _generation_config(config: ModelConfig, settings: JsonObject) -> JsonObject:
    """Settings of generation as in tfm: greedy, or with a beam whose scores are divided by the length.

    Tokens that a text cannot have are never given. A translation may have as many pieces as the model has positions,
    the begin token among them, and then its end, which needs none. A language model stops where its positions end, and
    one of running text at no line's end.
    """
    decoding, abilities = DecodingConfig(), TASK_SPECS[config.task]
    length = (
        1 + config.max_length if config.architecture == "transformer" else max_positions(config) + abilities.translates
    )
    token_keys = ("pad_token_id", "decoder_start_token_id")
    token_ids: JsonObject = {key: settings[key] for key in token_keys if key in settings}
    beam = {"num_beams": decoding.beam, "length_penalty": decoding.alpha, "early_stopping": False}
    return {
        "bos_token_id": BOS_ID,
        "eos_token_id": None if config.block is not None else EOS_ID,
        **token_ids,
        "max_length": length,
        "suppress_tokens": [PAD_ID, BOS_ID],
        **({**beam, "forced_eos_token_id": EOS_ID} if abilities.translates else {}),
    }


def _usage_code(model_class: HuggingFaceClass, config: ModelConfig, tokenizer: Tokenizer) -> str:
    """Code for the card."""
    if TASK_SPECS[config.task].labels is not None:
        return f'from transformers import pipeline\n\nprint(pipeline("{model_class.pipeline}", "DIR")("A text."))'
    if TASK_SPECS[config.task].hides_pieces:
        return (
            f'from transformers import pipeline\n\nprint(pipeline("fill-mask", "DIR")("A {_mask_token(tokenizer)}."))'
        )
    if TASK_SPECS[config.task].continues_text:
        return 'from transformers import pipeline\n\nprint(pipeline("text-generation", "DIR")("Once"))'
    auto = "AutoModelForSeq2SeqLM" if config.architecture == "transformer" else "AutoModelForCausalLM"
    languages = list(tokenizer.languages.values())[
        : 1 + tokenizer.has_source_language
    ]  # of the target, and of the source
    text = "".join(map(tokenizer.piece, languages)) + "A text."
    begins = "" if config.architecture == "transformer" else "[:, inputs.input_ids.shape[1] :]"
    return "\n".join(
        [
            f"from transformers import {auto}, AutoTokenizer",
            "",
            f'tokenizer, model = AutoTokenizer.from_pretrained("DIR"), {auto}.from_pretrained("DIR")',
            f'inputs = tokenizer(["{text}"], return_tensors="pt", padding=True)',
            f"written = model.generate(**inputs){begins}",
            "print(tokenizer.batch_decode(written, skip_special_tokens=True))",
        ]
    )


def _write_json(file: Path, document: dict[str, Any]) -> None:
    file.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
