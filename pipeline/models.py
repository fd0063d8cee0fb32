"""A trained model on disk, and the choice of device and precision."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from data.errors import DataError
from model.build import build
from model.config import ModelConfig
from model.transformer import EncoderDecoder
from pipeline.errors import RecipeError
from pipeline.manifest import NAME, open_artifact
from tokenizer.tokenizer import SHARED, SOURCE, TARGET, Tokenizer, load_pair

TOKENIZER_FILES = (SHARED, SOURCE, TARGET)
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class LoadedModel:
    """A model with the tokenizers it was trained with."""

    model: EncoderDecoder
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    config: ModelConfig
    folder: Path


def save_model(folder: Path, config: ModelConfig, weights: dict[str, Tensor], tokenizer_folder: Path) -> None:
    """Write config.json, model.safetensors and the tokenizer into a folder, which then stands alone."""
    (folder / "config.json").write_text(config.model_dump_json(indent=2) + "\n", encoding="utf-8")
    save_file(untied(weights), folder / "model.safetensors")
    copy_tokenizer(tokenizer_folder, folder)


def copy_tokenizer(source: Path, target: Path) -> None:
    """Copy the tokenizer's files, one shared or one a side."""
    for name in TOKENIZER_FILES:
        if (source / name).exists():
            shutil.copyfile(source / name, target / name)


def load_model(folder: Path, device: str = "auto", dtype: torch.dtype = torch.float32) -> LoadedModel:
    """The model in a folder that `save_model` wrote, in eval mode; where that is an artifact, it is verified first."""
    if (folder / NAME).exists():
        open_artifact(folder, "train")
    try:
        config = ModelConfig.model_validate(json.loads((folder / "config.json").read_text(encoding="utf-8")))
        weights = load_file(folder / "model.safetensors")
        source_tokenizer, target_tokenizer = load_pair(folder)
    except (OSError, ValueError, ValidationError, SafetensorError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"not a model: {reason}. Give a folder that `tfm train` published.", file=folder) from error
    model = build(config, source_vocab=source_tokenizer.vocab_size, target_vocab=target_tokenizer.vocab_size)
    load_weights(model, weights, folder)
    model.to(device=resolve_device(device), dtype=dtype).eval()
    return LoadedModel(model, source_tokenizer, target_tokenizer, config, folder)


def untied(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same weights with each shared tensor once, under its first name; safetensors stores no sharing."""
    seen: set[int] = set()
    kept = {}
    for name, tensor in weights.items():
        if tensor.data_ptr() not in seen:
            kept[name] = tensor.detach().contiguous()
            seen.add(tensor.data_ptr())
    return kept


def load_weights(model: torch.nn.Module, weights: dict[str, Tensor], place: Path) -> None:
    """Copy weights into the model's own tensors; names and shapes must fit exactly."""
    own = untied(model.state_dict())
    if missing := sorted(own.keys() ^ weights.keys()):
        raise DataError(f"its weights do not fit this model: {missing[0]} is in one of them only", file=place)
    with torch.no_grad():
        for name, tensor in own.items():
            if tensor.shape != weights[name].shape:
                found, wanted = tuple(weights[name].shape), tuple(tensor.shape)
                raise DataError(f"its weights do not fit this model: {name} is {found}, not {wanted}", file=place)
            tensor.copy_(weights[name])


def resolve_device(device: str) -> torch.device:
    """`auto` is the GPU where there is one. Raises RecipeError where the asked one is not there."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if device == "auto":
        return torch.device("cuda" if available["cuda"] else "cpu")
    if not available.get(device, False):
        usable = ", ".join(name for name, there in available.items() if there)
        raise RecipeError(f'device "{device}" is not available here; usable: auto, {usable}')
    return torch.device(device)


def resolve_precision(precision: str, device: torch.device) -> torch.dtype:
    """Precision of matrix products in training: `auto` is bf16 where the hardware multiplies bf16 natively."""
    if precision == "auto":
        return torch.bfloat16 if _multiplies_bf16(device) else torch.float32
    return PRECISIONS[precision]


def _multiplies_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    # Without these instructions a CPU emulates bf16, far slower than fp32.
    asks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return device.type == "cpu" and any(getattr(torch.cpu, ask, lambda: False)() for ask in asks)
