"""Small models with random weights as artifacts, and what transformers computes of what they are exported as."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.tiny_model import tiny_model
from tfm.model.config import RotaryConfig, StackConfig
from tfm.model.layers.normalization import BatchNorm
from tfm.model.layout import Layout
from tfm.pipeline.artifacts.artifact import Plan, publish
from tfm.pipeline.model_io.loaded_model import LoadedModel, load_model, save_model
from tfm.tokenizer.special import BOS_ID, EOS_ID
from tfm.tokenizer.tokenizer import Tokenizer

LANGUAGE = {"architecture": "decoder_only", "task": "language_model"}
LLAMA = {"positions": "rotary", "normalization": "rms", "activation": "swiglu", "scale_embedding": False}
SLOWED = RotaryConfig(base=500.0, factor=8.0, original_length=30)
GROUPED = StackConfig(layers=2, dim=16, heads=4, key_value_heads=2, feed_forward_dim=24)
DEEPER = StackConfig(layers=3, dim=16, heads=4, feed_forward_dim=40)
MASKED = {"architecture": "encoder_only", "task": "masked_language_model", "head_transform": True}
BERT = {"norm": "post", "embedding_norm": True, "begin_token": True}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "pre-norm": ("PegasusForConditionalGeneration", {"encoder": DEEPER}),
    "pre-norm, untied, unscaled": ("PegasusForConditionalGeneration", {"tie": "none", "scale_embedding": False}),
    "learned positions": ("PegasusForConditionalGeneration", {"tie": "output", "positions": "learned"}),
    "no positions": ("PegasusForConditionalGeneration", {"tie": "embeddings", "positions": "none"}),
    "post-norm": ("MarianMTModel", {"norm": "post", "decoder": DEEPER}),
    "post-norm, untied, GELU": ("MarianMTModel", {"norm": "post", "tie": "none", "activation": "gelu"}),
    "post-norm, learned positions": ("MarianMTModel", {"norm": "post", "positions": "learned", "activation": "silu"}),
    "GPT-2": ("GPT2LMHeadModel", LANGUAGE | {"positions": "learned", "scale_embedding": False}),
    "GPT-2, scaled, tanh": ("GPT2LMHeadModel", LANGUAGE | {"activation": "tanh"}),
    "GPT-2 that translates": ("GPT2LMHeadModel", {"architecture": "decoder_only", "positions": "none"}),
    "Llama, grouped heads": ("LlamaForCausalLM", LANGUAGE | LLAMA | {"decoder": GROUPED}),
    "Llama 3.1": ("LlamaForCausalLM", LANGUAGE | LLAMA | {"rotary": SLOWED}),
    "Llama, all pairs slower": ("LlamaForCausalLM", LANGUAGE | LLAMA | {"rotary": RotaryConfig(factor=2.5)}),
    "Llama that translates, GLU": (
        "LlamaForCausalLM",
        {"architecture": "decoder_only"} | LLAMA | {"activation": "glu"},
    ),
    "classifier": (
        "MegatronBertForSequenceClassification",
        {"architecture": "encoder_only", "task": "classification", "pooling": "first"},
    ),
    "tagger": (
        "MegatronBertForTokenClassification",
        {"architecture": "encoder_only", "task": "tagging", "positions": "learned", "activation": "gelu"},
    ),
    "masked": ("BertForMaskedLM", MASKED | BERT | {"positions": "learned", "scale_embedding": False}),
    "masked, post-norm, scaled, no begin token": (
        "BertForMaskedLM",
        MASKED | BERT | {"begin_token": False, "activation": "gelu_tanh", "output_bias": True},
    ),
    "masked, pre-norm, normed": (
        "RobertaPreLayerNormForMaskedLM",
        MASKED | BERT | {"norm": "pre", "activation": "gelu", "positions": "learned", "output_bias": True},
    ),
    "masked, pre-norm, untied": (
        "MegatronBertForMaskedLM",
        MASKED | {"begin_token": True, "tie": "none", "positions": "none", "scale_embedding": False},
    ),
    "classifier, post-norm": (
        "BertForSequenceClassification",
        {"architecture": "encoder_only", "task": "classification", "pooling": "first", **BERT},
    ),
    "classifier, pre-norm, normed": (
        "RobertaPreLayerNormForSequenceClassification",
        {"architecture": "encoder_only", "task": "classification", "pooling": "first", **BERT, "norm": "pre"},
    ),
    "tagger, post-norm": (
        "BertForTokenClassification",
        {"architecture": "encoder_only", "task": "tagging", **BERT, "output_bias": True},
    ),
    "tagger, pre-norm, normed": (
        "RobertaPreLayerNormForTokenClassification",
        {"architecture": "encoder_only", "task": "tagging", **BERT, "norm": "pre", "begin_token": False},
    ),
}
"""By name: the class of transformers, and what the model has otherwise than the default."""


def published(folder: Path, *, tokenizer: Tokenizer | None = None, **changes: Any) -> LoadedModel:
    """A tiny model, none of whose weights is 0 or 1, as `tfm train` publishes it; its batch norms have seen text."""
    made = tiny_model(folder, tokenizer=tokenizer, **changes)
    for module in made.model.modules():
        if isinstance(module, BatchNorm):
            module.mean.copy_(torch.linspace(-0.5, 0.5, len(module.mean)))
            module.variance.copy_(torch.linspace(0.5, 20, len(module.mean)))
    draw = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in made.model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.4 * torch.rand(parameter.shape, generator=draw) - 0.2)
    with publish(Plan("train", folder, {"model": made.config.model_dump()}, {}, 1), command=["tfm", "train"]) as draft:
        (tokens := draft.folder / "t").mkdir()
        made.source_tokenizer.save(tokens / "tokenizer.json")
        save_model(draft.folder, made.config, made.model.state_dict(), tokens)
        (tokens / "tokenizer.json").unlink()
        tokens.rmdir()
    return load_model(folder, "cpu")


def our_logits(loaded: LoadedModel, source: list[int], target: list[int]) -> Tensor:
    """Logits (T, V) of ids: of the source with its end token, and of what begins with the begin token."""
    config, model = loaded.config, loaded.model
    both = [torch.tensor([*source, EOS_ID]), torch.tensor([BOS_ID, *target])]
    layouts = [Layout.from_lengths(torch.tensor([len(ids)])) for ids in both]
    with torch.no_grad():
        if config.architecture == "encoder_only":
            hidden = model(both[0], layouts[0])
        elif config.task == "language_model":
            hidden = model.hidden_states(both[1], layouts[1])
        else:
            hidden = model(both[0], layouts[0], both[1], layouts[1])
        logits: Tensor = model.output(hidden)
    return logits


def logits_of_rows(theirs: Any, row: Sequence[int], source: list[int], target: list[int]) -> Tensor:
    """The same of a model of transformers that numbers pieces otherwise. row: its id by our id."""
    is_pair = theirs.config.is_encoder_decoder
    begin = theirs.config.decoder_start_token_id if is_pair else theirs.config.bos_token_id
    written = torch.tensor([[begin, *(row[number] for number in target)]])
    with torch.no_grad():
        if not is_pair:
            return theirs(written).logits[0]  # type: ignore[no-any-return]
        read = torch.tensor([[*(row[number] for number in source), theirs.config.eos_token_id]])
        return theirs(read, decoder_input_ids=written).logits[0]  # type: ignore[no-any-return]


def their_logits(theirs: Any, loaded: LoadedModel, source: list[int], target: list[int], pad: int = 3) -> Tensor:
    """The same of a model of transformers, its source topped up with padding where it has an attention mask."""
    config, size = loaded.config, loaded.target_tokenizer.vocab_size
    read, written = [*source, EOS_ID], [BOS_ID, *target]
    begin = [theirs.config.decoder_start_token_id, *target] if theirs.config.is_encoder_decoder else written
    with torch.no_grad():
        if config.architecture == "decoder_only":
            before = [] if config.task == "language_model" else read
            return theirs(torch.tensor([before + written])).logits[0, len(before) :, :size]  # type: ignore[no-any-return]
        before = [BOS_ID] if config.begin_token else []
        padded = torch.tensor([before + read + [theirs.config.pad_token_id] * pad])
        mask = (torch.arange(padded.shape[1]) < len(before + read)).long()[None]
        if config.architecture == "encoder_only":
            logits: Tensor = theirs(padded, attention_mask=mask).logits[0]
            return logits[None] if config.task == "classification" else logits[len(before) :][: len(read), :size]
        return theirs(padded, attention_mask=mask, decoder_input_ids=torch.tensor([begin])).logits[0, :, :size]  # type: ignore[no-any-return]
