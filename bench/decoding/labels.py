"""`python -m bench labels`: texts a second of a classifier or tagger, beside transformers' pipelines and onnxruntime
with its weights."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bench.options import Json, Predict, Rounds, add_predictions

if TYPE_CHECKING:
    from bench.compare import Contestant, Figures

PROGRAMS = {
    "tfm": "bench.decoding.labels_tfm",
    "onnxruntime": "bench.peers.decoding.labels_onnxruntime",
    "huggingface": "bench.peers.decoding.labels_huggingface",
}
FORMATS = {"onnxruntime": "onnx", "huggingface": "huggingface"}


def labels(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A classifier or tagger that `tfm train` made.")],
    texts: Annotated[Path, typer.Argument(metavar="TEXTS", help="One text a line, also .gz.")],
    against: Annotated[
        list[str] | None,
        typer.Option("--against", metavar="PEER", help="onnxruntime (extra: onnx) or huggingface (transformers)."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Lines at most.")] = 10_000,
    rounds: Rounds = 3,
    predict: Predict = None,
    json: Json = None,
) -> None:
    """Texts a second to labels, beside two peers.

    All have the same weights in fp32: the peers read what `tfm export` makes of the model, with 64 texts a batch, as
    many threads as there are processors. A process loads the model, labels 256 texts to warm up, and is timed on all.
    The share of texts with just the labels of the first contestant is given too.
    """
    from bench.processes import run_tfm
    from bench.report import contest, write_json
    from tfm.data.lines import open_lines
    from tfm.model.config import ModelConfig
    from tfm.pipeline.errors import RecipeError
    from tfm.pipeline.model_io.model_folder import resolve_model_folder

    model = resolve_model_folder(model).resolve()
    task = ModelConfig.model_validate_json((model / "config.json").read_text("utf-8")).task
    if task not in ("classification", "tagging"):
        raise RecipeError(f"{model}: was trained for {task}; give a classifier or a tagger")
    request: dict[str, Any] = {"lines": [line for line in open_lines(texts) if line.strip()][:limit]}
    request["is_tagger"] = task == "tagging"
    outputs: dict[str, list[str]] = {}
    with TemporaryDirectory() as temporary:
        contestants = [make_contestant("tfm", model, request, outputs)]
        for name in against or []:
            if name not in FORMATS:
                raise typer.BadParameter(f"{name}: peers: {', '.join(FORMATS)}", param_hint="--against")
            exported = Path(temporary) / name
            run_tfm("export", model, "--to", FORMATS[name], "--out", exported)
            contestants.append(make_contestant(name, exported, request, outputs))
        summaries = contest(
            f"{len(request['lines']):,} texts",
            add_predictions(contestants, predict),
            rounds=rounds,
            unit="texts/s",
            extra=lambda figures: compare_labels(outputs),
        )
    write_json(
        json, "labels", {"model": model, "texts": texts, "lines": len(request["lines"]), "rounds": rounds}, summaries
    )


def make_contestant(name: str, model: Path, request: dict[str, Any], outputs: dict[str, list[str]]) -> "Contestant":
    """Make a contestant that labels in a separate process and stores the labels of its last round in `outputs`."""
    from bench.compare import Contestant
    from bench.processes import run_module

    def label_texts() -> "Figures":
        process = run_module(PROGRAMS[name], request | {"model": str(model)})
        answer = process.answer()
        outputs[name] = answer["labels"]
        return {"rate": len(answer["labels"]) / answer["seconds"], "peak": process.peak}

    return Contestant(name, label_texts)


def compare_labels(outputs: dict[str, list[str]]) -> dict[str, dict[str, object]]:
    """A column with the share of texts that have the first contestant's labels; none if there is no peer."""
    first, *rest = outputs
    if not rest:
        return {}
    same = {
        name: sum(mine == theirs for mine, theirs in zip(outputs[first], outputs[name], strict=True)) for name in rest
    }
    return {"same labels": {name: f"{100 * count / len(outputs[first]):.2f} %" for name, count in same.items()}}
