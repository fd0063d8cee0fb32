"""The sizes of a model in the terms of Hugging Face's configurations."""

from typing import Any

PAD, BEGIN, END = 0, 2, 3


def size_settings(size: dict[str, Any], longest: int) -> dict[str, Any]:
    """Keys of encoder and decoder. size: a `bench.workload.ModelSize` as a dict. longest: the most positions."""
    sizes: dict[str, Any] = {}
    for side in ("encoder", "decoder"):
        sizes |= {f"{side}_layers": size["layers"], f"{side}_attention_heads": size["heads"]}
        sizes |= {f"{side}_ffn_dim": size["inner"]}
    sizes |= {"vocab_size": size["vocab"], "d_model": size["dim"], "max_position_embeddings": longest}
    sizes |= {"activation_function": "relu", "scale_embedding": True, "decoder_start_token_id": BEGIN}
    return sizes | {"pad_token_id": PAD, "bos_token_id": BEGIN, "eos_token_id": END}


def canine_settings(canine: dict[str, int]) -> dict[str, int]:
    """The sizes of CANINE's parts around the deep layers, in the terms of its configuration."""
    settings = {"num_hash_functions": canine["hashes"], "num_hash_buckets": canine["buckets"]}
    settings |= {"local_transformer_stride": canine["block"], "downsampling_rate": canine["rate"]}
    return settings | {"upsampling_kernel_size": canine["upsampling"], "type_vocab_size": 1}
