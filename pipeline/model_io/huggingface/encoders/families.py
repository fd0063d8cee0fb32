"""The families of encoder-only models: how their classes are called, and where each weight stands in them.

| | norms | embeddings | heads |
|---|---|---|---|
| `Bert` (Devlin et al. 2019) | after | normed | a pooler before the classes |
| `Roberta` (Liu et al. 2019) | after | normed, positions from 2 on | a layer of its own before the classes |
| `RobertaPreLayerNorm` (Ott et al. 2019) | before | the same | the same |
| `MegatronBert` (Shoeybi et al. 2019) | before | not normed | as BERT |
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tfm.model.config import ModelConfig
from tfm.pipeline.model_io.huggingface.weights import WeightMapping, linear_weights, norm_weights

WORD_EMBEDDINGS, POSITION_EMBEDDINGS, TYPE_EMBEDDINGS = (
    f"embeddings.{name}_embeddings.weight" for name in ("word", "position", "token_type")
)


@dataclass(frozen=True)
class HeadWeightNames:
    """The head on an encoder.

    Args:
        classes: the output layer.
        bias: of the output layer.
        inner: the dense layer before it.
        inner_norm: the norm behind the dense layer.
    """

    classes: str
    bias: str | None
    inner: str | None = None
    inner_norm: str | None = None


@dataclass(frozen=True)
class EncoderFamily:
    """Models of one shape.

    Args:
        name: of the family.
        model_type: in config.json.
        prefix: the beginning of the names of weights, in classes with a head.
        norm: the placement of norms.
        embedding_norm: whether the embeddings are normed.
        norm_attention: the norm of a layer at its attention.
        norm_feed_forward: the norm of a layer at its feed-forward layer.
        norm_last: the norm behind the last layer.
        padded_positions: whether the first positions, up to the number of the padding token, are no text's.
        head_activation: of a masked language model's head; None: that of the layers.
        masked: the head of masked tokens.
        labels: the head of labels of texts.
        tags: the head of tags of words.
    """

    name: str
    model_type: str
    prefix: str
    norm: Literal["pre", "post"]
    embedding_norm: bool
    norm_attention: str
    norm_feed_forward: str
    norm_last: str | None
    padded_positions: bool
    head_activation: str | None
    masked: HeadWeightNames
    labels: HeadWeightNames
    tags: HeadWeightNames = HeadWeightNames("classifier.weight", "classifier.bias")

    @property
    def base_model_head(self) -> HeadWeightNames:
        """The replacement for a missing head: the input's table predicts hidden pieces."""
        return HeadWeightNames(self.word_embeddings, None)

    @property
    def word_embeddings(self) -> str:
        return f"{self.prefix}.{WORD_EMBEDDINGS}"

    @property
    def position_embeddings(self) -> str:
        return f"{self.prefix}.{POSITION_EMBEDDINGS}"

    @property
    def type_embeddings(self) -> str:
        return f"{self.prefix}.{TYPE_EMBEDDINGS}"

    def position_offset(self, settings: dict[str, Any]) -> int:
        """The number of rows of the positions before that of a text's first token."""
        return int(settings["pad_token_id"]) + 1 if self.padded_positions else 0

    def list_body_weights(self, config: ModelConfig) -> Iterator[WeightMapping]:
        """The table of all weights but those of the head."""
        yield WeightMapping("embedding.table.weight", (self.word_embeddings,))
        if config.positions == "learned":
            yield WeightMapping("embedding.positions.table.weight", (self.position_embeddings,))
        if self.embedding_norm:
            yield from norm_weights("embedding.norm", f"{self.prefix}.embeddings.LayerNorm")
        for i in range(config.encoder.layers):
            tfm_layer, hf_layer = f"encoder.{i}", f"{self.prefix}.encoder.layer.{i}"
            products = [f"{hf_layer}.attention.self.{name}" for name in ("query", "key", "value")]
            yield from linear_weights(
                f"{tfm_layer}.attention.query_key_value", *products, sizes=[config.encoder.dim] * 3
            )
            yield from linear_weights(f"{tfm_layer}.attention.output", f"{hf_layer}.attention.output.dense")
            yield from linear_weights(f"{tfm_layer}.feed_forward.inner", f"{hf_layer}.intermediate.dense")
            yield from linear_weights(f"{tfm_layer}.feed_forward.outer", f"{hf_layer}.output.dense")
            yield from norm_weights(f"{tfm_layer}.around_attention.norm", f"{hf_layer}.{self.norm_attention}")
            yield from norm_weights(f"{tfm_layer}.around_feed_forward.norm", f"{hf_layer}.{self.norm_feed_forward}")
        if self.norm_last is not None:
            yield from norm_weights("encoder_norm", f"{self.prefix}.{self.norm_last}")


def _bert_head_names(prefix: str) -> tuple[HeadWeightNames, HeadWeightNames]:
    """The heads of masked tokens, and of labels."""
    head = "cls.predictions"
    masked = HeadWeightNames(
        f"{head}.decoder.weight", f"{head}.bias", f"{head}.transform.dense", f"{head}.transform.LayerNorm"
    )
    return masked, HeadWeightNames("classifier.weight", "classifier.bias", f"{prefix}.pooler.dense")


_ROBERTA_HEADS = (
    HeadWeightNames("lm_head.decoder.weight", "lm_head.bias", "lm_head.dense", "lm_head.layer_norm"),
    HeadWeightNames("classifier.out_proj.weight", "classifier.out_proj.bias", "classifier.dense"),
)
_POST_NORMS = ("attention.output.LayerNorm", "output.LayerNorm", None)

BERT = EncoderFamily("Bert", "bert", "bert", "post", True, *_POST_NORMS, False, None, *_bert_head_names("bert"))
ROBERTA = EncoderFamily("Roberta", "roberta", "roberta", "post", True, *_POST_NORMS, True, "gelu", *_ROBERTA_HEADS)
ROBERTA_PRE_NORM = EncoderFamily(
    "RobertaPreLayerNorm",
    "roberta-prelayernorm",
    "roberta_prelayernorm",
    "pre",
    True,
    *("attention.LayerNorm", "intermediate.LayerNorm", "LayerNorm"),
    True,
    "gelu",
    *_ROBERTA_HEADS,
)
MEGATRON = EncoderFamily(
    "MegatronBert",
    "megatron-bert",
    "bert",
    "pre",
    False,
    *("attention.ln", "ln", "encoder.ln"),
    False,
    None,
    *_bert_head_names("bert"),
)
