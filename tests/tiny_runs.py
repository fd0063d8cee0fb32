"""Runs without a training: folders that a comparison takes for those of trained models."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfm.pipeline.artifacts.artifact import Input, Plan, open_artifact, publish
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.inference.translation_records import IMAGE_CONTENTS_KEY, IMAGES_UNIT, reference_file_name
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.evaluation.assess import evaluate_segments
from tfm.pipeline.scoring.evaluation.evaluation import Evaluation
from tfm.pipeline.scoring.evaluation.scores_json import evaluations_as_json
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics.registry import Score

BLEU = "nrefs:1|case:mixed|tok:13a"
SETTINGS = {"device": "cpu", "precision": "fp32", "threads": 2, "world_size": 1, "batch_tokens": 64, "torch": "2"}
METRICS = [
    {"event": "train", "step": 10, "tokens_per_second": 100.0, "seconds": 2.0},
    {"event": "valid", "step": 10, "loss": 3.0, "seconds": 5.0},
    {"event": "train", "step": 20, "tokens_per_second": 300.0, "seconds": 13.0},
    {"event": "valid", "step": 25, "loss": 2.0, "seconds": 1.0},
]


def make_run(
    folder: Path,
    *,
    loss: float = 2.0,
    model: Mapping[str, Any] = {},
    dataset: str = "data",
    metrics: list[dict[str, Any]] | None = None,
    figures: Mapping[str, Any] = {},
    seed: int = 1,
) -> Path:
    """A run as far as a training: its model with figures, and metrics.jsonl."""
    config = {"training": {"max_steps": 25}, "model": {"architecture": "transformer", "task": "translation", **model}}
    plan = Plan("train", folder / "model", config, {"dataset": Input.from_value(dataset)}, seed)
    with publish(plan, command=["test"]) as draft:
        (draft.folder / "config.json").write_text("{}")
        validation = {"loss": loss, "perplexity": math.exp(loss), "accuracy": 0.5}
        draft.figures.update(parameters=1000, updates=25, training_seconds=17.0, settings=SETTINGS)
        draft.figures.update({"validation": validation, **figures})
    (folder / "training").mkdir()
    lines = METRICS if metrics is None else metrics
    (folder / "training" / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def add_scores(
    folder: Path, bleu: float, *, signature: str = BLEU, reference: str = "a text", beam: int = 5, **others: Score
) -> Path:
    """Translations and scores of a run's model."""
    model = open_artifact(folder / "model").as_input()
    with publish(
        Plan("translate", folder / "translations", {"decoding": {"beam": beam}}, {"model": model}, 1), command=["test"]
    ) as draft:
        for kind, text in (("source", "x"), ("reference", reference)):
            (draft.folder / f"test.{kind}.txt").write_text(text)
    inputs = {"model": model, "translations": Input.from_artifact(folder / "translations")}
    scores = {"bleu": Score(bleu, signature), **others}
    found = [Evaluation("test", 1, scores, (), "source", (), (), ())]
    with publish(Plan("evaluate", folder / "scores", {}, inputs, 1), command=["test"]) as draft:
        (draft.folder / "scores.json").write_text(json.dumps(evaluations_as_json(found)))
    return folder


def add_texts(
    run: Path,
    tests: Mapping[str, Segments],
    *,
    metrics: Sequence[str] = ("bleu", "chrf", "ter", "exact_match"),
    noted: Sequence[Mapping[str, Any]] | None = None,
    extra: Mapping[str, Score] = {},
    ending: str = "",
    **evaluation: Any,
) -> Path:
    """What a run's model said of some test sets, and the scores of that as `tfm evaluate` computes them.

    noted: the lines of segments.jsonl. extra: further scores of each test set. ending: of the names of both folders.
    """
    model = open_artifact(run / "model").as_input()
    with publish(Plan("translate", run / f"translations{ending}", {}, {"model": model}, 1), command=["test"]) as draft:
        for name, each in tests.items():
            files = {f"{name}.txt": each.hypotheses, f"{name}.source.txt": each.sources or [""] * len(each.hypotheses)}
            files |= {reference_file_name(name, number): column for number, column in enumerate(each.references, 1)}
            for file, lines in files.items():
                (draft.folder / file).write_text("".join(line + "\n" for line in lines), "utf-8", newline="\n")
            if each.sources_are_names:
                known = {} if each.image_contents is None else {IMAGE_CONTENTS_KEY: each.image_contents}
                draft.figures[name] = {IMAGES_UNIT: len(each.hypotheses), **known}
    config = EvaluationConfig(metrics=tuple(metrics), samples=0, **evaluation)  # type: ignore[arg-type]
    found = [evaluate_segments(each, config, seed=1, reporter=NullReporter(), extra=extra) for each in tests.values()]
    made = f"translations{ending}"
    inputs = {"model": model, made: Input.from_artifact(run / made)}
    plan = Plan("evaluate", run / f"scores{ending}", {"evaluation": config.model_dump(mode="json")}, inputs, 1)
    with publish(plan, command=["test"]) as draft:
        (draft.folder / "scores.json").write_text(json.dumps(evaluations_as_json(found), ensure_ascii=False), "utf-8")
        if noted is not None:
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in noted)
            (draft.folder / "segments.jsonl").write_text(text, "utf-8")
    return run
