"""A trained model as a folder for onnxruntime: graphs, tokenizer, settings, and a script that uses them.

The graphs are built from our weights, part by part. A trace of our own network, which works on rows without padding and
asks how many there are, would hold only for batches of the shape that was traced.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from tfm.model.config import ModelConfig
from tfm.pipeline.distribution import install_command
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.loaded_model import LoadedModel, copy_tokenizer
from tfm.pipeline.model_io.onnx.scripts import choose_script_name_and_text
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.normalization import WHITE_SPACE
from tfm.tokenizer.special import BOS_ID, EOS_ID, PAD_ID, SPECIAL_TOKENS, UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer

Precision = Literal["fp32", "int8"]


def to_onnx(loaded: LoadedModel, folder: Path, precision: Precision) -> None:
    """Write a model into a folder.

    Args:
        loaded: the model.
        folder: to write into.
        precision: of its products.

    Raises:
        RecipeError: the packages are not installed, or a part of the model cannot be written.
    """
    try:
        import onnx
        import onnxruntime  # noqa: F401  # it quantizes, and runs what is written
    except ImportError:
        raise RecipeError(f"tfm export needs a package that is not installed: {install_command('onnx')}") from None
    from tfm.pipeline.model_io.onnx.networks import build_graphs
    from tfm.pipeline.model_io.onnx.quantize import write_int8
    from tfm.pipeline.model_io.onnx.supported import unsupported_reason

    loaded.check_reads_text("graphs are written of models of text alone")
    if (part := unsupported_reason(loaded.config)) is not None:
        problem = f"a model with {part} is not written as ONNX. docs/exchange/to-onnx.md says which models are"
        raise RecipeError(f"{loaded.folder}: {problem}")
    if loaded.source_tokenizer.has_source_language:
        problem = "a model whose sources begin with two languages, the target's and their own, is not written as ONNX"
        raise RecipeError(f"{loaded.folder}: {problem}")
    graphs = build_graphs(loaded.model, loaded.config)
    for name, model in graphs.items():
        if precision == "int8":
            write_int8(model, folder / f"{name}.onnx")
        else:
            onnx.save(model, str(folder / f"{name}.onnx"))
    copy_tokenizer(loaded.folder, folder)
    settings = json.dumps(_export_settings(loaded, precision), ensure_ascii=False, indent=2)
    (folder / "config.json").write_text(settings + "\n", encoding="utf-8")
    script = choose_script_name_and_text(loaded.config)
    if script is not None:
        (folder / script[0]).write_text(script[1], encoding="utf-8")
    (folder / "README.md").write_text(_readme_text(loaded, graphs, script, precision), encoding="utf-8")


def _export_settings(loaded: LoadedModel, precision: Precision) -> dict[str, Any]:
    """config.json: settings for the script, and the [model] of the recipe."""
    config = loaded.config
    return {
        "task": config.task,
        "precision": precision,
        "pad": PAD_ID,
        "unknown": UNK_ID,
        "pieces": (
            loaded.target_tokenizer if config.architecture == "decoder_only" else loaded.source_tokenizer
        ).vocab_size,
        "begin": BOS_ID,
        "end": EOS_ID,
        "max_length": config.max_length,
        **_settings_of_task(config, loaded.source_tokenizer, loaded.target_tokenizer),
        "model": config.model_dump(mode="json"),
    }


def _settings_of_task(config: ModelConfig, source: Tokenizer, target: Tokenizer) -> dict[str, Any]:
    abilities = TASK_SPECS[config.task]
    if abilities.translates:
        return {"languages": source.languages}
    if abilities.continues_text:
        context = min(config.max_length, config.block or config.max_length)
        return {"context": context, "through_ends": config.block is not None}
    if abilities.labels is None:
        return {}
    names = [target.decode([number]) for number in range(target.vocab_size)]
    return {"labels": names, "control": len(SPECIAL_TOKENS), "spaces": WHITE_SPACE}


def _readme_text(
    loaded: LoadedModel, graphs: dict[str, Any], script: tuple[str, str] | None, precision: Precision
) -> str:
    config = loaded.config
    precision_text = ", its matrices in 8 bits" if precision == "int8" else ""
    lines = [
        "# A model for onnxruntime",
        "",
        f"A model for {config.task.replace('_', ' ')} (`{config.architecture}`), trained by `tfm` and exported with "
        f"`tfm export --to onnx`{precision_text}.",
        "",
    ]
    if script is not None:
        lines += [
            "## Use",
            "",
            "    pip install onnxruntime tokenizers numpy",
            f"    {_example_command(config, loaded)}",
            "",
        ]
    lines += ["## The graphs", "", *_describe_graphs(config), ""]
    for name, model in graphs.items():
        lines += [f"`{name}.onnx`:", "", "| | name | type | shape |", "|---|---|---|---|"]
        lines += dict.fromkeys(
            [*_layer_table_rows("in", model.graph.input), *_layer_table_rows("out", model.graph.output)]
        )
        lines += [""]
    if script is not None:
        lines += [f"## {script[0]}", "", "```python", script[1].rstrip("\n"), "```", ""]
    return "\n".join(lines)


def _example_command(config: ModelConfig, loaded: LoadedModel) -> str:
    abilities = TASK_SPECS[config.task]
    if abilities.continues_text:
        return 'python generate.py --prompt "Once"  # or: python generate.py < prompts.txt'
    if abilities.translates:
        language_option = "".join(f" --to {language}" for language in list(loaded.source_tokenizer.languages)[:1])
        return f"python translate.py{language_option} < source.txt > target.txt"
    return "python label.py < texts.txt > labels.txt"


def _describe_graphs(config: ModelConfig) -> Iterator[str]:
    yield "`attention_mask` is 1 for tokens and 0 for padding, which may stand on either side."
    if config.architecture == "encoder_only":
        return
    yield "`past` is what the step before gave as `present`; in the first step its length is 0."
    if config.architecture == "transformer":
        yield "`memory` is what the encoder made of the source, whose mask the decoder is given too."


def _layer_table_rows(kind: str, values: Iterable[Any]) -> Iterator[str]:
    """Rows of a table: the parts of each kind of layer, once."""
    for value in values:
        shape = ", ".join(size.dim_param or str(size.dim_value) for size in value.type.tensor_type.shape.dim)
        element = "int64" if value.type.tensor_type.elem_type == 7 else "float32"
        yield f"| {kind} | `{re.sub(r'[.][0-9]+[.]', '.LAYER.', value.name)}` | {element} | {shape} |"
