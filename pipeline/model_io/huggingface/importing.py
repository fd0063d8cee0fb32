"""Import of a model that `save_pretrained` of transformers wrote, as a `model/` of tfm with its tokenizer.

Written without that library: a test compares the results of both.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from tfm.data.errors import format_names, unexpected_value_reason, validation_problem
from tfm.model.config import ModelConfig
from tfm.pipeline.artifacts.artifact import Plan, is_fresh, publish
from tfm.pipeline.artifacts.manifest import MANIFEST_FILE, read_manifest
from tfm.pipeline.errors import DataError
from tfm.pipeline.model_io.huggingface.classes import NEVER_PREDICTED_BIAS, HuggingFaceClass, JsonObject, StateDict
from tfm.pipeline.model_io.huggingface.encoders.tokenizers import read_encoder_tokenizers
from tfm.pipeline.model_io.huggingface.received.default_settings import complete_settings
from tfm.pipeline.model_io.huggingface.received.dry_run import check_weight_names, check_weights
from tfm.pipeline.model_io.huggingface.received.settings_checks import check_config
from tfm.pipeline.model_io.huggingface.received.snapshot import CONFIG_FILE, GENERATION_CONFIG_FILE, Snapshot
from tfm.pipeline.model_io.huggingface.registry import IMPORT_CLASSES
from tfm.pipeline.model_io.huggingface.tokenizer_import import ImportedTokenizers, read_tokenizers
from tfm.pipeline.model_io.loaded_model import save_config_and_weights
from tfm.pipeline.model_io.model_folder import resolve_model_folder
from tfm.pipeline.model_io.model_weights import check_shapes_match, model_weight_shapes
from tfm.pipeline.model_io.weight_files import path_for_safetensors
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.code_points import save_pair


def import_model(folder: Path, out: Path, *, command: Sequence[str], reporter: Reporter) -> None:
    """Publish the model in a folder of transformers, as `tfm train` publishes one.

    Args:
        folder: of transformers.
        out: the folder to publish.
        command: the command line, for the manifest.
        reporter: shows progress.

    Raises:
        DataError: a file is missing, damaged or elsewhere, or tfm does not have such a model, with the reason.
    """
    snapshot = Snapshot(folder)
    settings, hf_class = _find_class(snapshot)
    with _convert_errors_to_data_error(snapshot, hf_class):
        settings = settings | hf_class.tokenizer_overrides(snapshot, settings)
        check_weights(snapshot, settings, hf_class)
    plan = Plan("train", out, {"imported": hf_class.name}, snapshot.inputs(), None)
    if is_fresh(plan, reporter):
        return
    with _convert_errors_to_data_error(snapshot, hf_class):
        config, weights, pieces = _read_config_weights_tokenizers(snapshot, settings, hf_class)
        source, target = pieces.source.vocab_size, pieces.target.vocab_size
        expected_shapes = model_weight_shapes(config, source_vocab=source, target_vocab=target)
    model_weights = {name: weights[name] for name in expected_shapes}
    check_shapes_match(expected_shapes, {name: tuple(each.shape) for name, each in model_weights.items()}, folder)
    num_parameters = sum(each.numel() for each in model_weights.values())
    with publish(plan, command=command) as draft:
        save_pair(pieces.source, pieces.target, draft.folder)
        save_config_and_weights(draft.folder, config, model_weights)
        draft.figures["parameters"] = num_parameters
    reporter.line(f"import: {out}, a {hf_class.name} of {num_parameters:,} parameters")
    if hf_class.note:
        reporter.warn(hf_class.note)
    ends = _list_eos_ids(settings)
    others = [each for each in _list_eos_ids(snapshot.read_document(GENERATION_CONFIG_FILE)) if each not in ends]
    if ends and len(ends + others) > 1:
        reporter.warn(
            f"the model has several EOS tokens ({format_names(ends + others)}). tfm uses only the first, {ends[0]}; to "
            "use another, move it to the front of eos_token_id in config.json"
        )


def _list_eos_ids(settings: JsonObject) -> list[int]:
    """The ids of tokens that end a text, by config.json or generation_config.json, each once."""
    ends = settings.get("eos_token_id")
    return list(dict.fromkeys(ends if isinstance(ends, list) else [] if ends is None else [ends]))


@contextmanager
def _convert_errors_to_data_error(snapshot: Snapshot, hf_class: HuggingFaceClass) -> Iterator[None]:
    """Turn every error that an unexpected value leads to into a DataError with the reason while the body runs."""
    try:
        yield
    except ValidationError as error:
        raise DataError(validation_problem(error), file=snapshot.folder / CONFIG_FILE) from error
    except UNEXPECTED_VALUE_ERRORS as error:
        reason = unexpected_value_reason(error)
        raise DataError(f"is no {hf_class.name} that tfm can import: {reason:.200}", file=snapshot.folder) from error


FOREIGN_CHECKPOINTS = {
    re.compile(r".*\.npz(\.(decoder\.)?yml)?"): (
        "is a model of Marian: make one of transformers of it by convert_marian_to_pytorch.py there, and import that"
    ),
    re.compile(r"checkpoint[\w.]*\.pt|dict\.[\w-]+\.txt"): (
        "is a checkpoint of fairseq: make a model of transformers of it by a conversion script there, and import that"
    ),
    re.compile(r".*\.(pt|pth|ckpt|t7)"): (
        "is a checkpoint of another program, as OpenNMT's or JoeyNMT's: import reads what save_pretrained writes"
    ),
    re.compile(r".*\.gguf"): (
        "is a model of llama.cpp (GGUF): give the folder that it was made from, with config.json and model.safetensors"
    ),
}
"""Files of models of other programs, by their names, and what to do with them."""
UNEXPECTED_VALUE_ERRORS = (
    *(LookupError, ValueError, TypeError, AttributeError, ArithmeticError, AssertionError),
    *(RuntimeError, RecursionError, SafetensorError),
)


def _foreign_checkpoint_problem(names: Sequence[str]) -> str | None:
    """Whose model some files are that is not of transformers, and what to do; None if none of them is known."""
    for pattern, problem in FOREIGN_CHECKPOINTS.items():
        if any(pattern.fullmatch(name) for name in names):
            return problem
    return None


def _find_class(snapshot: Snapshot) -> tuple[JsonObject, HuggingFaceClass]:
    """config.json, completed, and the class that it names. Raises DataError if tfm has no such class."""
    folder = snapshot.folder
    if not folder.exists():
        raise DataError("no such folder", file=folder)
    if not folder.is_dir():
        problem = _foreign_checkpoint_problem([folder.name]) or "is a file: give the folder of the model"
        raise DataError(problem, file=folder)
    artifact = resolve_model_folder(folder)
    is_tfm_artifact = (artifact / MANIFEST_FILE).exists()
    if not snapshot.has_file(CONFIG_FILE) and not is_tfm_artifact:
        foreign_problem = _foreign_checkpoint_problem([each.name for each in os.scandir(folder)])
        problem = "has no config.json: give a folder as `save_pretrained` of transformers writes it"
        raise DataError(foreign_problem or problem, file=folder)
    settings = snapshot.read_document(CONFIG_FILE)
    architectures = settings.get("architectures")
    names = [str(each) for each in architectures] if isinstance(architectures, list) else []
    classes_by_name = {each.name: each for each in IMPORT_CLASSES}
    hf_class = next((classes_by_name[name] for name in names if name in classes_by_name), None)
    if hf_class is None and is_tfm_artifact:
        if read_manifest(artifact, artifact).stage == "export":
            raise DataError("is an export of tfm that tfm does not read: use the model it was made of", file=folder)
        raise DataError("was made by tfm, and needs no import", file=folder)
    if hf_class is None:
        description = format_names(names) or f"model_type {settings.get('model_type')!r:.80}"
        raise DataError(
            f"tfm cannot import {description}, only {', '.join(classes_by_name)}", file=folder / CONFIG_FILE
        )
    check_config(settings, folder / CONFIG_FILE)
    return complete_settings(settings, hf_class.model_type), hf_class


def _read_config_weights_tokenizers(
    snapshot: Snapshot, settings: JsonObject, hf_class: HuggingFaceClass
) -> tuple[ModelConfig, StateDict, ImportedTokenizers]:
    """Config, weights by the names of tfm, and tokenizers."""
    state_dict = hf_class.standardize_state_dict(settings, _load_weights(snapshot))
    keys = hf_class.read(settings, state_dict)
    size, abilities = len(state_dict[hf_class.tables[0]]), TASK_SPECS[keys["task"]]
    if abilities.labels is not None or abilities.hides_pieces:
        pieces, begins = read_encoder_tokenizers(snapshot, settings, size, abilities.labels)
        keys |= {"begin_token": begins, "max_length": keys["max_length"] - begins}  # a position is that token's
    else:
        pieces = read_tokenizers(snapshot, settings, size)
    rows = torch.tensor(pieces.rows)
    for name in hf_class.tables:
        is_of_source = pieces.source_rows is not None and ".encoder." in name
        state_dict[name] = state_dict[name][torch.tensor(pieces.source_rows) if is_of_source else rows]
    bias = hf_class.bias
    if bias is not None and (pieces.missing_rows or keys.get("output_bias")):
        old = state_dict[bias].flatten()[rows] if bias in state_dict else torch.zeros(len(rows))
        old[pieces.missing_rows] = NEVER_PREDICTED_BIAS
        state_dict[bias] = old.unsqueeze(0) if bias == "final_logits_bias" else old
        keys["output_bias"] = True
    config = ModelConfig.model_validate(keys)
    check_weight_names(hf_class, config, state_dict)
    return config, hf_class.import_weights(config, state_dict), pieces


def _load_weights(snapshot: Snapshot) -> StateDict:
    """Every weight in the folder, in fp32."""
    state_dict: dict[str, Tensor] = {}
    for file in snapshot.weight_files():
        state_dict |= load_file(path_for_safetensors(file))
    return {name: each.float() if each.is_floating_point() else each for name, each in state_dict.items()}
