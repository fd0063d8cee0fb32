"""Finds the scores of a model on every test set beside its folder."""

from collections.abc import Mapping
from pathlib import Path

from tfm.data.json_documents import read_json
from tfm.pipeline.artifacts.manifest import open_artifact
from tfm.pipeline.scoring.evaluation.scores_json import evaluations_from_json, raise_scores_file_errors


def find_model_scores(model: Path) -> Mapping[str, Mapping[str, tuple[float, str]]]:
    """Read each score and its signature, by test set and metric, from `scores/` beside the folder of a model.

    Empty if there are none, or if they are of another model.
    """
    folder = model.parent / "scores"
    if model.name != "model" or not folder.exists():
        return {}
    scores = open_artifact(folder, "evaluate")
    scored_model = scores.inputs.get("model")
    if scored_model is None or scored_model.fingerprint != open_artifact(model, "train").fingerprint:
        return {}
    file = scores.path / "scores.json"
    with raise_scores_file_errors(file, remedy="score again"):
        evaluations = evaluations_from_json(read_json(scores.folder / "scores.json", displayed_path=file))
        return {each.name: {name: (s.score, s.signature) for name, s in each.scores.items()} for each in evaluations}
