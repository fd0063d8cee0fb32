"""Marian's file, read as its loader walks through it, holds the weights of the export."""

import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from bench.peers.decoding.marian_binary import FLOAT32, write_marian_binary
from tests.huggingface_models import published
from tfm.pipeline.model_io.huggingface.card import ModelCard
from tfm.pipeline.model_io.huggingface.export import to_huggingface

TYPES = {FLOAT32: "<f4", 0x0101: "i1"}


def exported(folder: Path, **changes: object) -> Path:
    ours = published(folder / "model", **changes)
    (out := folder / "out").mkdir()
    to_huggingface(ours, out, ModelCard())
    return out


def read_items(content: bytes) -> dict[str, np.ndarray]:
    place = 0

    def take(pattern: str) -> tuple[int, ...]:
        nonlocal place
        values = struct.unpack_from(pattern, content, place)
        place += struct.calcsize(pattern)
        return values

    version, count = take("<QQ")
    assert version == 1
    headers = [take("<QQQQ") for _ in range(count)]
    names = []
    for length, *_ in headers:
        names.append(content[place : place + length - 1].decode())
        place += length
    shapes = [take(f"<{each[2]}i") for each in headers]
    (gap,) = take("<Q")
    place += gap
    items = {}
    for name, (_, kind, _, length), shape in zip(names, headers, shapes, strict=True):
        assert place % 256 == 0, "the engine reads weights where they lie"
        items[name] = np.frombuffer(content, TYPES[kind], int(np.prod(shape)), place).reshape(shape)
        place += length
    assert place == len(content)
    return items


def test_marian_reads_the_weights_of_the_export(tmp_path: Path) -> None:
    folder = exported(tmp_path, norm="post", tie="all")
    write_marian_binary(folder, [3, 1, 7, 5, 6], tmp_path / "model.bin")
    items, weights = read_items((tmp_path / "model.bin").read_bytes()), load_file(folder / "model.safetensors")
    assert np.array_equal(items["Wemb"], weights["model.shared.weight"][[3, 1, 7, 5, 6]])
    assert items["decoder_ff_logit_out_b"].shape == (1, 5)
    for ours, theirs in (
        ("encoder_l1_self_Wq", "encoder.layers.0.self_attn.q_proj"),
        ("decoder_l1_context_Wo", "decoder.layers.0.encoder_attn.out_proj"),
        ("decoder_l1_ffn_W2", "decoder.layers.0.fc2"),
    ):
        assert np.array_equal(items[ours], weights[f"model.{theirs}.weight"].T)
        assert np.array_equal(items[ours.replace("_W", "_b")], weights[f"model.{theirs}.bias"][None])
    assert np.array_equal(
        items["decoder_l1_context_Wo_ln_scale"][0], weights["model.decoder.layers.0.encoder_attn_layer_norm.weight"]
    )
    taken = {name for name in weights if "embed_positions" not in name and name != "final_logits_bias"}
    num_tables = 1  # the one of pieces
    assert len(items) == len(taken) - num_tables + len(("Wemb", "Wpos", "decoder_ff_logit_out_b", "special:model.yml"))
    settings = bytes(items["special:model.yml"]).rstrip(b"\0").decode()
    assert "\ndim-vocabs: [5, 5]\n" in settings


@pytest.mark.parametrize("changes", [{"norm": "pre", "tie": "all"}, {"norm": "post", "tie": "none"}])
def test_other_models_are_refused(changes: dict[str, str], tmp_path: Path) -> None:
    folder = exported(tmp_path, **changes)
    with pytest.raises(ValueError, match="post-norm models with one table"):
        write_marian_binary(folder, [1, 2], tmp_path / "model.bin")
