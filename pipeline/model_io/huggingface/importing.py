"""A model as `save_pretrained` of transformers writes it becomes a `model/` of ours, with its tokenizer.

Written without that library: a test compares what it computes with what we do.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from tfm.data.errors import listed
from tfm.data.json_documents import read_json
from tfm.model.build import build, num_parameters
from tfm.model.config import ModelConfig
from tfm.pipeline.artifacts.artifact import Input, Plan, is_fresh, publish
from tfm.pipeline.errors import DataError
from tfm.pipeline.model_io.huggingface.classes import NEVER, HuggingFaceClass, Settings, State
from tfm.pipeline.model_io.huggingface.encoders.tokenizers import read_texts
from tfm.pipeline.model_io.huggingface.registry import IMPORTED
from tfm.pipeline.model_io.huggingface.tokenizers_read import Pieces, read_pieces
from tfm.pipeline.model_io.loaded_model import check_fit, save_network, untied
from tfm.pipeline.model_io.model_folder import model_folder
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.tasks.abilities import ABILITIES
from tfm.tokenizer.tokenizer import save_pair

INDEX, WEIGHTS = "model.safetensors.index.json", "model.safetensors"
NO_WEIGHTS = (
    *("embed_positions.weight", "final_logits_bias"),
    *(".attn.bias", ".attn.masked_bias", ".position_ids", "rotary_emb.inv_freq", "model.shared.weight"),
)
"""What the names end in of what is looked at elsewhere, or follows from config.json."""


def import_model(folder: Path, out: Path, *, command: Sequence[str], reporter: Reporter) -> None:
    """Publish the model in a folder of transformers at `out`, as `tfm train` publishes one.

    Raises DataError where a file is missing or damaged, or with the reason where the model is none that we have.
    """
    settings, held_by = _class_of(folder)
    files = sorted(
        each
        for each in folder.iterdir()
        if each.is_file() and each.suffix in (".json", ".safetensors", ".spm", ".model", ".txt")
    )
    inputs = {each.name: Input.of_file(each) for each in files if each.name != "manifest.json"}
    todo = Plan("train", out, {"imported": held_by.name}, inputs, None)
    if is_fresh(todo, reporter):
        return
    try:
        config, weights, pieces = _read(folder, settings, held_by)
    except ValidationError as error:
        problem = error.errors()[0]
        raise DataError(
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}", file=folder / "config.json"
        ) from error
    except (KeyError, ValueError, TypeError, AttributeError, RuntimeError, SafetensorError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error).partition("\n")[0][:200]
        raise DataError(f"is no {held_by.name} that tfm can import: {reason}", file=folder) from error
    model = build(config, source_vocab=pieces.source.vocab_size, target_vocab=pieces.target.vocab_size)
    own = untied(model.state_dict())
    kept = {name: weights[name] for name in own}
    wanted, given = ({name: tuple(each.shape) for name, each in group.items()} for group in (own, kept))
    check_fit(wanted, given, folder)
    with publish(todo, command=command) as draft:
        save_pair(pieces.source, pieces.target, draft.folder)
        save_network(draft.folder, config, kept)
        draft.figures["parameters"] = num_parameters(model)
    reporter.line(f"import: {out}, a {held_by.name} of {num_parameters(model):,} parameters")
    if held_by.note:
        reporter.warn(held_by.note)
    ends = settings.get("eos_token_id")
    if isinstance(ends, list) and len(ends) > 1:
        reporter.warn(
            f"it ends texts with any of the tokens {listed(ends)}; here {ends[0]} alone ends one, and the others are "
            "pieces like any other: in config.json put the one first that is to end texts (eos_token_id)"
        )


def _class_of(folder: Path) -> tuple[Settings, HuggingFaceClass]:
    """config.json, and the class that it names. Raises DataError where we have none such."""
    file = folder / "config.json"
    if not folder.exists():
        raise DataError("no such folder", file=folder)
    ours = (model_folder(folder) / "manifest.json").exists()
    if not file.exists() and not ours:
        raise DataError("has no config.json: give a folder as `save_pretrained` of transformers writes it", file=folder)
    settings = read_json(file) if file.exists() else {}
    named = settings.get("architectures")
    names = [str(each) for each in named] if isinstance(named, list) else []
    known = {each.name: each for each in IMPORTED}
    found = next((known[name] for name in names if name in known), None)
    if found is None and ours:
        raise DataError("was made by tfm, and needs no import", file=folder)
    if found is None:
        told = ", ".join(names) or f"model_type {settings.get('model_type')!r}"
        raise DataError(f"tfm cannot import {told}, only {', '.join(known)}", file=file)
    return settings, found


def _read(folder: Path, settings: Settings, held_by: HuggingFaceClass) -> tuple[ModelConfig, State, Pieces]:
    """Config, weights by our names, and tokenizers."""
    settings = settings | held_by.told(folder, settings)
    found = held_by.begun(settings, _weights(folder))
    keys = held_by.read(settings, found)
    size, abilities = len(found[held_by.tables[0]]), ABILITIES[keys["task"]]
    if abilities.labels is not None or abilities.hides_pieces:
        pieces, begins = read_texts(folder, settings, size, abilities.labels)
        keys |= {"begin_token": begins, "max_length": keys["max_length"] - begins}  # a position is that token's
    else:
        pieces = read_pieces(folder, settings, size)
    rows = torch.tensor(pieces.rows)
    for name in held_by.tables:
        of_source = pieces.source_rows is not None and ".encoder." in name
        found[name] = found[name][torch.tensor(pieces.source_rows) if of_source else rows]
    bias = held_by.bias
    if bias is not None and (pieces.nowhere or keys.get("output_bias")):
        old = found[bias].flatten()[rows] if bias in found else torch.zeros(len(rows))
        old[pieces.nowhere] = NEVER
        found[bias] = old.unsqueeze(0) if bias == "final_logits_bias" else old
        keys["output_bias"] = True
    config = ModelConfig.model_validate(keys)
    placed = {name for weight in held_by.weights(config) for name in weight.theirs} | {*held_by.tables, bias}
    for name in found:
        if name not in placed and not name.endswith(NO_WEIGHTS):
            raise ValueError(f"it has a weight that has no place in ours, {name}")
    return config, held_by.imported(config, found), pieces


def _weights(folder: Path) -> State:
    """Every weight in the folder, in fp32. Raises DataError where there are none."""
    files = [folder / WEIGHTS]
    if (folder / INDEX).exists():
        index: Mapping[str, Any] = json.loads((folder / INDEX).read_text("utf-8"))
        files = [folder / name for name in sorted(set(index["weight_map"].values()))]
    found: dict[str, Tensor] = {}
    for file in files:
        if not file.exists():
            problem = f"has no {file.name}: weights are read from safetensors alone; save it anew with transformers"
            raise DataError(problem, file=folder)
        found |= load_file(file)
    return {name: each.float() if each.is_floating_point() else each for name, each in found.items()}
