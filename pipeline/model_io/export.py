"""Export of a trained model to another engine's format: CTranslate2's (here), transformers' (`huggingface/`), ONNX
(`onnx/`).

Unsupported parts are rejected with the reason, never approximated.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tfm.model.attention.multi_head import CrossAttention, SelfAttention
from tfm.model.config import ModelConfig
from tfm.model.layers.embedding import Embedding
from tfm.model.layers.feed_forward import FeedForward
from tfm.pipeline.artifacts.artifact import Input, Plan, is_fresh, publish
from tfm.pipeline.artifacts.canonical_json import JSON
from tfm.pipeline.distribution import install_command
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.huggingface.card import ModelCard
from tfm.pipeline.model_io.huggingface.export import to_huggingface
from tfm.pipeline.model_io.huggingface.supported import ANY_VALUE, IGNORED_KEYS, first_unsupported_key
from tfm.pipeline.model_io.loaded_model import LoadedModel, copy_tokenizer, load_model
from tfm.pipeline.model_io.onnx.export import Precision, to_onnx
from tfm.pipeline.runtime.progress import Reporter
from tfm.tokenizer.special import BOS, EOS, UNK
from tfm.tokenizer.tokenizer import Tokenizer

CTRANSLATE2_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_tanh": "GELUTanh", "silu": "SWISH", "tanh": "Tanh"}
"""Names in CTranslate2 by those of tfm."""


@dataclass(frozen=True)
class ExportOptions:
    """Options that only some formats have. card: the contents of a model card. precision: of the products."""

    card: ModelCard | None = None
    precision: Precision | None = None

    def as_json(self) -> dict[str, JSON]:
        """Return the options that are set."""
        card: dict[str, JSON] = {} if self.card is None else {"card": asdict(self.card)}
        return card if self.precision is None else {**card, "precision": self.precision}


def export(
    model: Path, to: str, out: Path, *, command: Sequence[str], reporter: Reporter, options: ExportOptions | None = None
) -> None:
    """Publish a model in another format, with its tokenizer beside.

    Args:
        model: the folder of the model.
        to: the format.
        out: the folder to publish.
        command: the command line, for the manifest.
        reporter: shows progress.
        options: options that only some formats have.

    Raises:
        RecipeError: the format's package is not installed, or cannot hold the kind of model.
    """
    options = options or ExportOptions()
    config: dict[str, JSON] = {"to": to, **options.as_json()}
    plan = Plan("export", out, config, {"model": Input.from_artifact(model, "train")}, 0)
    if is_fresh(plan, reporter):
        return
    loaded = load_model(model, "cpu")
    with publish(plan, command=command) as draft:
        EXPORT_FORMATS[to](loaded, draft.folder, options)
    reporter.line(f"export: {out}, for {to}")


def write_huggingface_folder(loaded: LoadedModel, folder: Path, options: ExportOptions) -> None:
    """Write a folder for transformers, with its card.

    Args:
        loaded: the model.
        folder: to write into.
        options: `card` is read.
    """
    to_huggingface(loaded, folder, options.card or ModelCard())


def write_onnx_folder(loaded: LoadedModel, folder: Path, options: ExportOptions) -> None:
    """Write a folder for onnxruntime.

    Args:
        loaded: the model.
        folder: to write into.
        options: `precision` is read.
    """
    to_onnx(loaded, folder, options.precision or "fp32")


def write_ctranslate2_folder(loaded: LoadedModel, folder: Path, options: ExportOptions) -> None:
    """Write a folder for CTranslate2.

    Args:
        loaded: the model.
        folder: to write into.
        options: not read.
    """
    to_ctranslate2(loaded, folder)
    copy_tokenizer(loaded.folder, folder)


def to_ctranslate2(loaded: LoadedModel, folder: Path) -> None:
    """Write model.bin, config.json and the vocabularies, as CTranslate2 reads them."""
    try:
        from ctranslate2.specs import common_spec, transformer_spec
    except ImportError:
        raise RecipeError(f"tfm export needs a package that is not installed: {install_command('export')}") from None
    config, model = loaded.config, loaded.model
    loaded.check_reads_text("CTranslate2 has models of text alone")
    if part := ctranslate2_unsupported_part(config):
        raise RecipeError(f"{loaded.folder}: `tfm export` does not support {part} for CTranslate2 yet")
    shape = {
        "pre_norm": config.norm == "pre",
        "activation": common_spec.Activation[CTRANSLATE2_ACTIVATIONS[config.activation]],
        "layernorm_embedding": config.embedding_norm,
    }
    spec = transformer_spec.TransformerSpec(
        transformer_spec.TransformerEncoderSpec(config.encoder.layers, config.encoder.heads, **shape),
        transformer_spec.TransformerDecoderSpec(config.decoder.layers, config.decoder.heads, **shape),
    )
    fill_ctranslate2_spec(spec, model, config)
    norm = next(module for module in model.modules() if isinstance(module, nn.LayerNorm))
    spec.config.layer_norm_epsilon = norm.eps
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = UNK, BOS, EOS
    spec.config.decoder_start_token, spec.config.add_source_bos, spec.config.add_source_eos = BOS, False, True
    spec.register_source_vocabulary(vocabulary_tokens(loaded.source_tokenizer))
    spec.register_target_vocabulary(vocabulary_tokens(loaded.target_tokenizer))
    spec.validate()
    spec.save(str(folder))


CTRANSLATE2_KEYS = (
    *("task", "norm", "norm_eps", "positions", "activation", "tie", "output_bias", "scale_embedding"),
    *("embedding_norm", "embedding_dim"),
)
"""The keys of [model] whose values are written, or refused by their own sentence below."""


def ctranslate2_unsupported_part(config: ModelConfig) -> str | None:
    """The part of a model that cannot be written for CTranslate2, in words; None if all can.

    CTranslate2 has the like of some, such as decoder-only models, and nothing like others, such as additive scores.
    """
    if config.architecture != "transformer":
        return f'models of architecture = "{config.architecture}"'
    if config.languages != "source":
        return f'model.languages = "{config.languages}"'
    if config.canine is not None:
        return "sources read as characters (model.canine)"
    if config.embedding_dim not in (None, config.encoder.dim) or config.embedding_dim not in (None, config.decoder.dim):
        return f"embeddings of another width ({config.embedding_dim}) than their stack"
    if config.adaptive is not None:
        return "an adaptive softmax"
    if other_mixings := sorted(config.mixings - {"attention"}):
        return f'mixing = "{other_mixings[0]}"'
    for stack in (config.encoder, config.decoder):
        if any((stack.key_value_heads, stack.key_dim, stack.value_dim)):
            return "heads that share keys and values, or whose widths are not dim / heads"
    if config.score != "scaled_dot":
        return f'the attention score "{config.score}"'
    if config.window is not None:
        return f"attention within a window ({config.window})"
    if config.qk_norm:
        return "a norm of queries and keys (qk_norm)"
    if config.normalization != "layer":
        return f'normalization = "{config.normalization}"'
    if config.activation not in CTRANSLATE2_ACTIVATIONS:
        return f'the activation "{config.activation}"'
    if config.positions not in ("none", "sinusoidal", "fairseq", "learned"):
        return f'positions = "{config.positions}"'
    supported_keys = {**IGNORED_KEYS, **dict.fromkeys(("encoder", "decoder", *CTRANSLATE2_KEYS), ANY_VALUE)}
    key = first_unsupported_key(config, supported_keys)  # a part that is not named above, and not here, is refused
    return None if key is None else f"model.{key}"


def fill_ctranslate2_spec(spec: Any, model: Any, config: ModelConfig) -> None:
    """Copy every weight of the EncoderDecoder into the place that the format has for it.

    Args:
        spec: CTranslate2's TransformerSpec.
        model: the network.
        config: its config.
    """
    _fill_embedding(spec.encoder, spec.encoder.embeddings[0], model.source_embedding, config)
    _fill_embedding(spec.decoder, spec.decoder.embeddings, model.target_embedding, config)
    for layer_spec, layer in zip(spec.encoder.layer, model.encoder, strict=True):
        _fill_self_attention(layer_spec.self_attention, layer.attention, layer.around_attention.norm)
        _fill_feed_forward(layer_spec.ffn, layer.feed_forward, layer.around_feed_forward.norm)
    for layer_spec, layer in zip(spec.decoder.layer, model.decoder, strict=True):
        _fill_self_attention(layer_spec.self_attention, layer.attention, layer.around_attention.norm)
        _fill_cross_attention(layer_spec.attention, layer.cross_attention, layer.around_cross_attention.norm)
        _fill_feed_forward(layer_spec.ffn, layer.feed_forward, layer.around_feed_forward.norm)
    if config.norm == "pre":
        _fill_norm_spec(spec.encoder.layer_norm, model.encoder_norm)
        _fill_norm_spec(spec.decoder.layer_norm, model.decoder_norm)
    _fill_linear_spec(spec.decoder.projection, model.output)


def vocabulary_tokens(tokenizer: Tokenizer) -> list[str]:
    """Return every piece by its id."""
    return [tokenizer.piece(number) for number in range(tokenizer.vocab_size)]


def _fill_embedding(stack_spec: Any, embedding_spec: Any, embedding: Embedding, config: ModelConfig) -> None:
    table: Any = embedding.table
    embedding_spec.weight = _to_numpy(table.weight)
    stack_spec.scale_embeddings = config.scale_embedding
    # The table as the model has it: the engine's own sinusoids stand in another order.
    zero_embeddings = table.weight.new_zeros(config.max_length, table.embedding_dim)
    stack_spec.position_encodings.encodings = _to_numpy(
        embedding.positions(zero_embeddings, torch.arange(config.max_length, device=zero_embeddings.device))
    )
    if config.embedding_norm:
        _fill_norm_spec(stack_spec.layernorm_embedding, embedding.norm)


def _fill_self_attention(attention_spec: Any, attention: SelfAttention, norm: nn.LayerNorm) -> None:
    _fill_norm_spec(attention_spec.layer_norm, norm)
    _fill_linear_spec(attention_spec.linear[0], attention.query_key_value)
    _fill_linear_spec(attention_spec.linear[1], attention.output)


def _fill_cross_attention(attention_spec: Any, attention: CrossAttention, norm: nn.LayerNorm) -> None:
    _fill_norm_spec(attention_spec.layer_norm, norm)
    for linear_spec, linear in zip(
        attention_spec.linear, (attention.query, attention.key_value, attention.output), strict=True
    ):
        _fill_linear_spec(linear_spec, linear)


def _fill_feed_forward(feed_forward_spec: Any, feed_forward: FeedForward, norm: nn.LayerNorm) -> None:
    _fill_norm_spec(feed_forward_spec.layer_norm, norm)
    _fill_linear_spec(feed_forward_spec.linear_0, feed_forward.inner)
    _fill_linear_spec(feed_forward_spec.linear_1, feed_forward.outer)


def _fill_norm_spec(norm_spec: Any, norm: Any) -> None:
    norm_spec.gamma, norm_spec.beta = _to_numpy(norm.weight), _to_numpy(norm.bias)


def _fill_linear_spec(linear_spec: Any, linear: Any) -> None:
    linear_spec.weight = _to_numpy(linear.weight)
    if linear.bias is not None:
        linear_spec.bias = _to_numpy(linear.bias)


def _to_numpy(tensor: Tensor) -> Any:
    return tensor.detach().float().contiguous().numpy()


EXPORT_FORMATS: dict[str, Callable[[LoadedModel, Path, ExportOptions], None]] = {
    "ctranslate2": write_ctranslate2_folder,
    "huggingface": write_huggingface_folder,
    "onnx": write_onnx_folder,
}
"""Functions that write a model into an empty folder, by the name of the format."""
