"""Weights as Marian's binary file has them, of a post-norm model that `tfm export --to huggingface` wrote.

Marian begins a target with a vector of zeros and has one table of positions for both sides, so that the vector of `<s>`
has no place there: it is left out, and the first piece of an output may differ.
"""

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

Floats = npt.NDArray[np.float32]

ALIGNMENT = 256
FLOAT32, INT8 = 0x0404, 0x0101
PROJECTIONS = {"Wq": "q_proj", "Wk": "k_proj", "Wv": "v_proj", "Wo": "out_proj"}
SETTINGS = """\
type: transformer
version: v1.9.56
dim-emb: {dim}
dim-vocabs: [{pieces}, {pieces}]
enc-depth: {encoder}
dec-depth: {decoder}
transformer-heads: {heads}
transformer-dim-ffn: {width}
transformer-ffn-activation: {activation}
transformer-ffn-depth: 2
transformer-decoder-dim-ffn: 0
transformer-decoder-ffn-depth: 0
transformer-decoder-autoreg: self-attention
transformer-train-position-embeddings: true
transformer-preprocess: ""
transformer-postprocess: dan
transformer-postprocess-emb: d
transformer-postprocess-top: ""
transformer-guided-alignment-layer: last
transformer-aan-activation: swish
transformer-aan-depth: 2
transformer-aan-nogate: false
transformer-dim-aan: 2048
transformer-depth-scaling: false
transformer-flat-memory: false
transformer-no-affine: false
transformer-no-projection: false
transformer-pool: false
transformer-rnn-projection: false
transformer-tied-layers: []
tied-embeddings: false
tied-embeddings-all: true
tied-embeddings-src: false
max-length: {positions}
enc-type: bidirectional
enc-cell: gru
enc-cell-depth: 1
dec-cell: gru
dec-cell-base-depth: 2
dec-cell-high-depth: 1
dim-rnn: 1024
bert-train-type-embeddings: true
factors-combine: sum
factors-dim-emb: 0
lemma-dim-emb: 0
lemma-dependency: ""
input-types: []
layer-normalization: false
output-omit-bias: false
right-left: false
skip: false
ulr: false
ulr-dim-emb: 0
ulr-trainable-transformation: false
unlikelihood-loss: false
"""


def write_marian_binary(export: Path, rows: list[int], file: Path) -> None:
    """Write the weights of an export to Marian's file.

    Args:
        export: a folder with config.json and model.safetensors, of `MarianMTModel` with one table of pieces.
        rows: the row of the table of each piece of Marian's vocabulary.
        file: the file that is written.

    Raises:
        ValueError: the model is another one than these.
    """
    config = json.loads((export / "config.json").read_bytes())
    if config["model_type"] != "marian" or not config["tie_word_embeddings"]:
        raise ValueError('Bergamot reads post-norm models with one table: model.norm = "post", model.tie = "all"')
    weights = load_file(export / "model.safetensors")
    settings = SETTINGS.format(
        dim=config["d_model"],
        pieces=len(rows),
        encoder=config["encoder_layers"],
        decoder=config["decoder_layers"],
        heads=config["encoder_attention_heads"],
        width=config["encoder_ffn_dim"],
        activation=config["activation_function"],
        positions=config["max_position_embeddings"],
    )
    items = dict(_marian_items(config, weights, rows))
    contents = [(name, FLOAT32, item.shape, item.astype("<f4").tobytes()) for name, item in items.items()]
    text = settings.encode() + b"\0"
    contents.append(("special:model.yml", INT8, (len(text),), text))
    file.write_bytes(_pack_items(contents))


def _marian_items(
    config: Mapping[str, int], weights: Mapping[str, Floats], rows: list[int]
) -> Iterator[tuple[str, Floats]]:
    """Names and weights; matrices are (in, out) there."""
    yield "Wemb", weights["model.shared.weight"][rows]
    yield "Wpos", weights["model.encoder.embed_positions.weight"]
    yield "decoder_ff_logit_out_b", weights["final_logits_bias"][:, rows]
    for side in "encoder", "decoder":
        attentions = {"self": "self_attn"} | ({"context": "encoder_attn"} if side == "decoder" else {})
        for number in range(config[f"{side}_layers"]):
            marian, huggingface = f"{side}_l{number + 1}", f"model.{side}.layers.{number}"
            linears = {f"{marian}_ffn_W{each}": f"{huggingface}.fc{each}" for each in (1, 2)}
            norms = {f"{marian}_ffn_ffn": f"{huggingface}.final_layer_norm"}
            for own, other in attentions.items():
                linears |= {f"{marian}_{own}_{a}": f"{huggingface}.{other}.{b}" for a, b in PROJECTIONS.items()}
                norms[f"{marian}_{own}_Wo"] = f"{huggingface}.{other}_layer_norm"
            for name, module in linears.items():
                yield name, weights[f"{module}.weight"].T
                yield name.replace("_W", "_b"), weights[f"{module}.bias"][None]
            for name, module in norms.items():
                yield f"{name}_ln_scale", weights[f"{module}.weight"][None]
                yield f"{name}_ln_bias", weights[f"{module}.bias"][None]


def _pack_items(contents: list[tuple[str, int, tuple[int, ...], bytes]]) -> bytes:
    """Items behind headers, names and shapes (marian/src/common/binary.cpp)."""
    padded = [(name, kind, shape, data + b"\0" * (-len(data) % ALIGNMENT)) for name, kind, shape, data in contents]
    head = struct.pack("<QQ", 1, len(padded))
    head += b"".join(
        struct.pack("<QQQQ", len(name) + 1, kind, len(shape), len(data)) for name, kind, shape, data in padded
    )
    head += b"".join(name.encode() + b"\0" for name, *_ in padded)
    head += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in padded)
    gap = -(len(head) + 8) % ALIGNMENT
    return head + struct.pack("<Q", gap) + b"\0" * gap + b"".join(data for *_, data in padded)
