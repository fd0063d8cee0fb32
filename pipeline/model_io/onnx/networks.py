"""The graphs of a network, with their inputs and outputs.

Legend: B sentences · S source length · T new pieces of a target · P pieces before them · V vocabulary · G, K as in
`attention.py`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from tfm.model.config import BOS_ID, ModelConfig
from tfm.model.layers.embedding import Embedding
from tfm.model.transformer.decoder_only import DecoderOnly
from tfm.model.transformer.encoder_decoder import EncoderDecoder
from tfm.model.transformer.encoder_only import EncoderOnly, PredictionHeadTransform, SentenceHead
from tfm.pipeline.model_io.onnx.attention import (
    KeysValues,
    PositionsAndMask,
    add_memory_keys_values,
    causal_bias,
    cross_attention,
    padding_bias,
    self_attention,
)
from tfm.pipeline.model_io.onnx.graph import Graph, parameter_names_by_id
from tfm.pipeline.model_io.onnx.layers import (
    ACTIVATIONS,
    add_embedding,
    add_linear,
    add_norm,
    add_residual,
    feed_forward,
)
from tfm.pipeline.model_io.onnx.pooling import POOLINGS

INPUT_IDS, ATTENTION_MASK, LOGITS = "input_ids", "attention_mask", "logits"
SLICE_END = 2**62
"""The end of a slice that goes on to the end."""


def add_encoder(graph: Graph, model: EncoderDecoder, config: ModelConfig) -> None:
    """Add the encoder: input_ids (B, S), attention_mask (B, S) -> memory.i.key, memory.i.value of each decoder layer.

    The keys and values that cross-attention has of a source (B, G, S, K) are computed once, not in every step.

    Args:
        graph: the graph.
        model: the network.
        config: its config.
    """
    rows, _ = _add_encoder_stack(graph, model.source_embedding, model.encoder, model.encoder_norm, config)
    for number, layer in _enumerate_layers(model.decoder):
        keys_values = add_memory_keys_values(graph, layer.cross_attention, rows)
        keys_values.add_graph_outputs(graph, f"memory.{number}", layer.cross_attention.heads, "source")


def add_decoder(graph: Graph, model: EncoderDecoder, config: ModelConfig) -> None:
    """Add the decoder: input_ids (B, T), attention_mask, memory.i, past.i -> logits (B, T, V) and present.i.

    attention_mask (B, S) is that of the source, memory.i and past.i (B, G, P, K), P >= 0, are those of all layers, and
    present.i is the past of the next step.

    Args:
        graph: the graph.
        model: the network.
        config: its config.
    """
    ids, mask = (
        graph.add_input(INPUT_IDS, "int64", "batch", "target"),
        graph.add_input(ATTENTION_MASK, "int64", "batch", "source"),
    )
    layers = _enumerate_layers(model.decoder)
    memories = [
        KeysValues.add_graph_inputs(graph, f"memory.{i}", layer.cross_attention.heads, "source") for i, layer in layers
    ]
    pasts = _past_keys_values(graph, model.decoder)
    positions, bias = _new_positions_and_causal_mask(graph, ids, pasts[0])
    positions_and_mask = PositionsAndMask(graph.add_node("Unsqueeze", positions, graph.add_int_vector(0)), bias)
    hidden_source = padding_bias(graph, mask)
    rows = add_embedding(graph, model.target_embedding, ids, positions_and_mask.positions)
    for (number, layer), memory, past in zip(layers, memories, pasts, strict=True):
        rows = _self_attention(graph, layer, number, rows, positions_and_mask, past)
        rows = add_residual(
            graph,
            layer.around_cross_attention,
            rows,
            lambda x, layer=layer, memory=memory: cross_attention(  # type: ignore[misc]
                graph, layer.cross_attention, x, memory, hidden_source
            ),
        )
        rows = _add_feed_forward(graph, layer, config, rows)
    _add_logits(graph, model, add_norm(graph, model.decoder_norm, rows))


def add_decoder_only(graph: Graph, model: DecoderOnly, config: ModelConfig) -> None:
    """Add the network: input_ids (B, T), attention_mask (B, P + T), past.i (B, G, P, K) -> logits (B, T, V), present.i.

    P >= 0. The mask is 1 for tokens, 0 for padding, wherever that stands; positions are counted by it.

    Args:
        graph: the graph.
        model: the network.
        config: its config.
    """
    ids, mask = (
        graph.add_input(INPUT_IDS, "int64", "batch", "target"),
        graph.add_input(ATTENTION_MASK, "int64", "batch", "all"),
    )
    pasts = _past_keys_values(graph, model.layers)
    queries, mask_bias = _new_positions_and_causal_mask(graph, ids, pasts[0])
    positions = graph.add_node("Gather", _positions_from_mask(graph, mask), queries, axis=1)
    positions_and_mask = PositionsAndMask(positions, graph.add_node("Add", padding_bias(graph, mask), mask_bias))
    rows = add_embedding(graph, model.embedding, ids, positions)
    for (number, layer), past in zip(_enumerate_layers(model.layers), pasts, strict=True):
        rows = _self_attention(graph, layer, number, rows, positions_and_mask, past)
        rows = _add_feed_forward(graph, layer, config, rows)
    _add_logits(graph, model, add_norm(graph, model.norm, rows))


def add_encoder_only(graph: Graph, model: EncoderOnly, config: ModelConfig) -> None:
    """Add the network: input_ids (B, S), attention_mask (B, S) -> logits (B, C) or (B, S, C).

    The logits are those of a text's label (B, C), or of tags or pieces (B, S, C). A begin token, where the model reads
    one, is put before each text within.

    Args:
        graph: the graph.
        model: the network.
        config: its config.
    """
    rows, mask = _add_encoder_stack(graph, model.embedding, model.encoder, model.encoder_norm, config)
    head = model.head
    if isinstance(head, SentenceHead):
        text_vectors = POOLINGS[config.pooling](graph, rows, mask)
        logits = add_linear(graph, model.output, graph.add_node("Tanh", add_linear(graph, head.inner, text_vectors)))
        graph.add_output(LOGITS, logits, "batch", _num_output_classes(model))
        return
    if config.begin_token:
        rows = graph.add_node(
            "Slice", rows, graph.add_int_vector(1), graph.add_int_vector(SLICE_END), graph.add_int_vector(1)
        )
    if isinstance(head.narrow, PredictionHeadTransform):
        inner = ACTIVATIONS[config.activation](graph, add_linear(graph, head.narrow.dense, rows))
        rows = add_norm(graph, head.narrow.norm, inner)
    else:
        rows = add_linear(graph, head.narrow, rows)
    logits = add_linear(graph, model.output, rows)
    graph.add_output(LOGITS, logits, "batch", "source", _num_output_classes(model))


GRAPH_BUILDERS: Mapping[str, Mapping[str, Callable[[Graph, Any, ModelConfig], None]]] = {
    "transformer": {"encoder": add_encoder, "decoder": add_decoder},
    "decoder_only": {"model": add_decoder_only},
    "encoder_only": {"model": add_encoder_only},
}
"""The graphs of a network, by the names of their files, by architecture."""


def build_graphs(model: Any, config: ModelConfig) -> dict[str, Any]:
    """The graphs of a network as ModelProtos, by the names of their files. Raises RecipeError for one too large."""
    names, graphs = parameter_names_by_id(model), {}
    for name, write in GRAPH_BUILDERS[config.architecture].items():
        write(graph := Graph(name, names), model, config)
        graphs[name] = graph.build_model_proto()
    return graphs


def _add_encoder_stack(
    graph: Graph, table: Any, layers: nn.ModuleList, final: nn.Module, config: ModelConfig
) -> tuple[str, str]:
    """The rows (B, S, D) that an encoder makes of its inputs, and their mask (B, S); S + 1 with a begin token."""
    assert isinstance(table, Embedding)
    ids, mask = (graph.add_input(name, "int64", "batch", "source") for name in (INPUT_IDS, ATTENTION_MASK))
    if config.begin_token:
        ids, mask = _prepend_column(graph, BOS_ID, ids), _prepend_column(graph, 1, mask)
    positions_and_mask = PositionsAndMask(_positions_from_mask(graph, mask), padding_bias(graph, mask))
    rows = add_embedding(graph, table, ids, positions_and_mask.positions)
    for _, layer in _enumerate_layers(layers):
        rows = add_residual(
            graph,
            layer.around_attention,
            rows,
            lambda x, layer=layer: self_attention(graph, layer.attention, x, positions_and_mask)[0],  # type: ignore[misc]
        )
        rows = _add_feed_forward(graph, layer, config, rows)
    return add_norm(graph, final, rows), mask


def _prepend_column(graph: Graph, value: int, matrix: str) -> str:
    """A number before each row of (B, S): (B, 1 + S). Padding may come between: positions are counted by the mask."""
    column = graph.add_node("Concat", graph.add_node("Shape", matrix, start=0, end=1), graph.add_int_vector(1), axis=0)
    return graph.add_node("Concat", graph.add_node("Expand", graph.add_int_vector(value), column), matrix, axis=1)


def _self_attention(
    graph: Graph, layer: Any, number: int, rows: str, positions_and_mask: PositionsAndMask, past: KeysValues
) -> str:
    """Rows after the self-attention of a layer; adds the keys and values for the next step to the outputs."""

    def attend(x: str) -> str:
        output, keys_values = self_attention(graph, layer.attention, x, positions_and_mask, past)
        keys_values.add_graph_outputs(graph, f"present.{number}", layer.attention.heads, "present")
        return output

    return add_residual(graph, layer.around_attention, rows, attend)


def _add_feed_forward(graph: Graph, layer: Any, config: ModelConfig, rows: str) -> str:
    inner = layer.feed_forward
    return add_residual(
        graph, layer.around_feed_forward, rows, lambda x: feed_forward(graph, inner, config.activation, x)
    )


def _add_logits(graph: Graph, model: EncoderDecoder | DecoderOnly, rows: str) -> None:
    logits = add_linear(graph, model.output, add_linear(graph, model.narrow, rows))
    graph.add_output(LOGITS, logits, "batch", "target", _num_output_classes(model))


def _num_output_classes(model: Any) -> int:
    """The number of pieces or labels."""
    return int(model.output.weight.shape[0])


def _past_keys_values(graph: Graph, layers: nn.ModuleList) -> list[KeysValues]:
    return [
        KeysValues.add_graph_inputs(graph, f"past.{i}", layer.attention.heads, "past")
        for i, layer in _enumerate_layers(layers)
    ]


def _positions_from_mask(graph: Graph, mask: str) -> str:
    """The position of each token (B, S), counted from 0 without the padding."""
    positions = graph.add_node(
        "Sub", graph.add_node("CumSum", mask, graph.add_index_scalar(1)), graph.add_int_vector(1)
    )
    return graph.add_node("Max", positions, graph.add_int_vector(0))


def _new_positions_and_causal_mask(graph: Graph, ids: str, past: KeysValues) -> tuple[str, str]:
    """The place of each new row among past and new rows (T,), and the mask that hides later rows (T, S)."""
    past_length = graph.add_node("Shape", past.key, start=2, end=3)
    total = graph.add_node("Add", past_length, graph.add_node("Shape", ids, start=1, end=2))
    rows = graph.add_node(
        "Range", graph.add_index_scalar(0), graph.add_node("Squeeze", total), graph.add_index_scalar(1)
    )
    queries = graph.add_node("Slice", rows, past_length, total)
    return queries, causal_bias(graph, rows, queries)


def _enumerate_layers(layers: nn.ModuleList) -> list[tuple[int, Any]]:
    return list(enumerate(layers))
