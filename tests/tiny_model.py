"""Models with random weights and a tokenizer, as `load_model` gives them, without a training."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save

from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig, StackConfig
from tfm.model.numpy_inference.decoder_only import DecoderOnly
from tfm.model.numpy_inference.transformer import Transformer
from tfm.model.numpy_inference.weights import build_decoder_only_network, build_network
from tfm.pipeline.artifacts.artifact import Plan, publish
from tfm.pipeline.decoding.shortlist import NO_PIECE, Shortlist
from tfm.pipeline.model_io.loaded_model import LoadedModel, save_model
from tfm.pipeline.model_io.model_weights import drop_shared_tensors
from tfm.pipeline.model_io.shortlist_folder import FILE, vocabularies_digest, write_shortlist
from tfm.tokenizer.code_points import save_pair
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

TEXTS = ("a dog runs through the snow .", "two dogs and a cat sit by the sea , asleep .", "the sea is cold !")
STACK = StackConfig(layers=2, dim=16, heads=2, feed_forward_dim=24)


def tiny_model(
    folder: Path = Path("tiny"),
    *,
    dtype: torch.dtype = torch.float32,
    tokenizer: Tokenizer | None = None,
    **changes: Any,
) -> LoadedModel:
    """A model in eval mode, of `changes` to a small ModelConfig, surer of what it does than a beginner is."""
    base = {"encoder": STACK, "decoder": STACK, "max_length": 96, "dropout": DropoutConfig(residual=0, embedding=0)}
    config = ModelConfig.model_validate(base | changes)
    tokenizer = tokenizer or train(TEXTS, TokenizerConfig(kind="bpe", vocab_size=60, min_frequency=1))
    size = tokenizer.vocab_size
    model = build(config, source_vocab=size, target_vocab=size, seed=2).to(dtype).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(2)
    return LoadedModel(model, tokenizer, tokenizer, config, folder)


def numpy_of(loaded: LoadedModel) -> Transformer:
    """The network of a model in numpy."""
    weights = {name: each.numpy() for name, each in drop_shared_tensors(loaded.model.state_dict()).items()}
    size = loaded.source_tokenizer.vocab_size
    return build_network(loaded.config, weights, source_vocab=size, target_vocab=size)


def numpy_language_model(loaded: LoadedModel) -> DecoderOnly:
    """The network of a language model in numpy."""
    weights = {name: each.numpy() for name, each in drop_shared_tensors(loaded.model.state_dict()).items()}
    return build_decoder_only_network(loaded.config, weights, vocab=loaded.target_tokenizer.vocab_size)


def publish_model(folder: Path, **changes: Any) -> Path:
    """A model with random weights, as a training publishes it."""
    made = tiny_model(folder, **changes)
    (folder.parent / f"{folder.name}-tokenizer").mkdir()
    save_pair(made.source_tokenizer, made.target_tokenizer, folder.parent / f"{folder.name}-tokenizer")
    with publish(Plan("train", folder, {}, {}, 1), command=["test"]) as draft:
        save_model(draft.folder, made.config, made.model.state_dict(), folder.parent / f"{folder.name}-tokenizer")
    return folder


def random_shortlist(loaded: LoadedModel, seed: int = 1) -> Shortlist:
    """Some pieces of each piece of the source, none of a few, and few that may always come."""
    draw, size = np.random.default_rng(seed), loaded.target_tokenizer.vocab_size
    table = draw.integers(4, size, (loaded.source_tokenizer.vocab_size, 4)).astype(np.int32)
    table[draw.random(table.shape) < 0.3] = NO_PIECE
    return Shortlist(table, np.array([0, 1, 2, 3, size - 1], np.int32), size)


def publish_shortlist(
    folder: Path, loaded: LoadedModel, tensors: dict[str, Any] | bytes | None = None, **config: Any
) -> Path:
    """A shortlist as an artifact, or one with other tensors."""
    digest = vocabularies_digest(loaded.source_tokenizer, loaded.target_tokenizer)
    with publish(Plan("shortlist", folder, {"vocabularies": digest} | config, {}, None), command=["test"]) as draft:
        write_shortlist(random_shortlist(loaded), draft.folder)
        if tensors is not None:
            (draft.folder / FILE).write_bytes(tensors if isinstance(tensors, bytes) else save(tensors))
    return folder
