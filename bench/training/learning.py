"""`python -m bench learning`: BLEU against seconds of a recipe's training, beside Hugging Face's Trainer."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from bench.options import Json

if TYPE_CHECKING:
    from bench.training.workload import Workload
    from tfm.pipeline.config import EvaluationConfig
    from tfm.pipeline.recipes.recipe import Recipe

PEER_NAME = "Hugging Face"


class CurvePoint(NamedTuple):
    """A validation: after so many updates, so many seconds of training, BLEU."""

    step: int
    seconds: float
    bleu: float


def learning(
    dataset: Annotated[Path, typer.Argument(metavar="DATASET", help="What `tfm preprocess` made.")],
    recipe: Annotated[Path, typer.Option("--recipe", metavar="FILE", help="Whose training it is.")],
    huggingface: Annotated[Path, typer.Option("--huggingface", metavar="VENV", help="Environment of the Trainer.")],
    updates: Annotated[int, typer.Option("--updates", metavar="N", min=1, help="Of the Trainer.")],
    rate: Annotated[float, typer.Option("--rate", metavar="X", help="Of the Trainer, at most.")] = 0.002,
    warmup: Annotated[int, typer.Option("--warmup", metavar="N", min=0, help="Of the Trainer's rate.")] = 500,
    every: Annotated[int, typer.Option("--every", metavar="N", min=1, help="Its updates between validations.")] = 200,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the recipe.")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE.svg", help="Draw the curves there.")] = None,
    json: Json = None,
) -> None:
    """Validation BLEU against seconds, beside Hugging Face.

    Both train at the same time, on the same ids, models of the same size, and translate with the recipe's beam: set
    OMP_NUM_THREADS to half of the processors. The Trainer has Adam, a rate that comes down to 0 and no seconds
    of its own that are spent on validation; ours are counted.
    """
    from bench.report import table_reporter, write_json
    from bench.training.workload import Workload
    from tfm.pipeline.recipes.recipe import load_recipe

    out, full = table_reporter(), load_recipe(recipe, sets or [])
    work = Workload(dataset.resolve(), full.model, full.training, 0, updates)
    peer = {"updates": updates, "rate": rate, "warmup": warmup, "every": every}
    peer["beam"] = work.config.validation.beam
    with TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        peer_curve = pool.submit(learn_huggingface, work, full.evaluation, huggingface, peer, Path(folder))
        tfm_curve = pool.submit(learn_tfm, work.dataset, full, Path(folder) / "tfm")
        curves = {"tfm": tfm_curve.result(), PEER_NAME: peer_curve.result()}
    out.table(f"validation BLEU, beam {peer['beam']}", *learning_table(curves))
    if plot is not None:
        from tfm.pipeline.artifacts.files import write_text_atomically

        write_text_atomically(plot, draw_curves(curves))
    options = {"dataset": dataset, "recipe": recipe, "sets": sets, "huggingface": peer}
    write_json(
        json, "learning", options, {name: [each._asdict() for each in points] for name, points in curves.items()}
    )


def learn_tfm(dataset: Path, recipe: "Recipe", out: Path) -> list[CurvePoint]:
    """`tfm train` as the recipe has it."""
    import json

    from bench.processes import run_tfm
    from bench.training.workload import set_options

    training = recipe.training.model_copy(update={"log_every": 1})  # so that a validation's seconds are known
    parts = {"model": recipe.model, "training": training}
    words = set_options(parts | {"decoding": recipe.decoding, "evaluation": recipe.evaluation})
    run_tfm("train", "--data", dataset, *words, "--out", out)
    return read_points(map(json.loads, (out / "training" / "metrics.jsonl").read_text("utf-8").splitlines()))


def read_points(lines: Iterable[Mapping[str, Any]]) -> list[CurvePoint]:
    """The validations in a metrics.jsonl, each with the seconds that its training had taken before it.

    Raises ProcessError if they have no BLEU.
    """
    from bench.processes import ProcessError

    points, seconds = [], 0.0
    for line in lines:
        if line["event"] == "train":
            seconds = line["seconds"]
        elif line["event"] == "valid" and line["bleu"] is not None:
            points.append(CurvePoint(line["step"], seconds, line["bleu"]))
    if not points:
        raise ProcessError("no validation has a BLEU: set training.validation.bleu = true")
    return points


def learn_huggingface(
    work: "Workload", evaluation: "EvaluationConfig", venv: Path, settings: Mapping[str, Any], folder: Path
) -> list[CurvePoint]:
    """Marian and Seq2SeqTrainer; what they translate is scored as `tfm train` scores it."""
    import json

    from bench.processes import run
    from bench.training.baselines import PEERS_FOLDER, model_size
    from bench.training.pieces import SOURCE, TARGET, write_pieces
    from bench.training.workload import venv_python
    from tfm.data.artifact_tokenizers import load_tokenizer_pair
    from tfm.pipeline.inference.translation_records import join_to_one_line
    from tfm.pipeline.scoring.metrics.registry import bleu

    write_pieces(work.data.train, work.vocab, folder / "train")
    write_pieces(work.data.valid, work.vocab, folder / "valid")
    files = {"source": folder / "train" / SOURCE, "target": folder / "train" / TARGET}
    files["valid"] = folder / "valid" / SOURCE
    request: dict[str, Any] = {name: str(file) for name, file in files.items()}
    request |= {"sentences": work.sentences_a_batch(), "size": asdict(model_size(work)), **settings}
    process = run([venv_python(venv), PEERS_FOLDER / "learn_huggingface.py"], folder=folder, text=json.dumps(request))
    tokenizer, references = load_tokenizer_pair(work.data.tokenizer_folder)[1], work.data.valid.texts()[1]
    columns = [[join_to_one_line(text) for text in references]]
    points = []
    for point in process.answer()["points"]:
        texts = [join_to_one_line(text) for text in tokenizer.decode_batch(point["found"])]
        points.append(CurvePoint(point["step"], point["seconds"], bleu(texts, columns, evaluation).score))
    return points


def learning_table(curves: Mapping[str, Sequence[CurvePoint]]) -> tuple[list[str], list[list[str]]]:
    """A row a validation, in the order of the clock."""
    rows = sorted((point.seconds, name, point) for name, points in curves.items() for point in points)
    cells = [[f"{seconds:,.0f}", name, f"{point.step:,}", f"{point.bleu:.2f}"] for seconds, name, point in rows]
    return ["seconds", "", "update", "BLEU"], cells


def draw_curves(curves: Mapping[str, Sequence[CurvePoint]]) -> str:
    """BLEU over minutes."""
    from bench.report import curves_svg

    lines = [
        (name, [each.seconds / 60 for each in points], [each.bleu for each in points])
        for name, points in curves.items()
    ]
    return curves_svg(lines, "minutes", "validation BLEU")
