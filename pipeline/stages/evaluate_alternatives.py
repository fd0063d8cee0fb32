"""Evaluation by which of some texts a model finds likelier: questions with choices, and contrast sets."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfm.data.json_documents import parse_json
from tfm.data.safe_files import read_bounded_file
from tfm.data.synthetic import registry
from tfm.pipeline.artifacts.artifact import Input, Plan, is_fresh, open_artifact, publish
from tfm.pipeline.artifacts.canonical_json import JSON, sha256_of_json, to_jsonable
from tfm.pipeline.config import Device
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.alternative_files import (
    AlternativeKind,
    AlternativeSet,
    built_in_sets,
    is_built_in,
    read_alternatives,
)
from tfm.pipeline.scoring.alternative_scores import (
    SCORE_TABLE_COLUMNS,
    alternatives_as_json,
    comparable_scores,
    input_warning_messages,
    item_as_json,
    score_table_rows,
)
from tfm.pipeline.scoring.evaluation.scores_json import raise_scores_file_errors
from tfm.pipeline.scoring.ledger import (
    append_entries,
    describe_test_uses,
    evaluated_model_from_manifests,
    read_ledger,
    select_entries,
    texts_fingerprint,
)

SCORES_FILE, ITEMS_FILE = "scores.json", "items.jsonl"
MAX_SCORES_FILE_BYTES = 2**30  # of a scores.json, which has every item that was missed
ITEM_NOUNS: Mapping[AlternativeKind, str] = {"choices": "questions", "contrast": "contrasts"}


def evaluate_alternatives(
    kind: AlternativeKind,
    source: str,
    *,
    model: Path,
    ensemble: Sequence[Path] = (),
    out: Path | None,
    command: Sequence[str] = (),
    reporter: Reporter,
    device: Device = "auto",
    to: str | None = None,
    source_language: str | None = None,
) -> dict[str, Any]:
    """Return the share of a file's items for which `model`, or its ensemble, finds the right text the likeliest.

    Args:
        kind: questions with choices, or a contrast set.
        source: the file, of a contrast set also the name of a built-in one.
        model: the folder of the model.
        ensemble: the folders of the other models of the ensemble.
        out: the folder where an artifact is published: the scores, and the items with the figures of each text; None
            for none.
        command: the command line, for the manifest.
        reporter: receives messages.
        device: name of the device.
        to: the target language, of a model of several.
        source_language: the source language, of a model of several.

    Returns:
        The scores as JSON has them.

    Raises:
        DataError: a line is no item, or the model gives texts no probability.
    """
    built_in = is_built_in(source, kind)
    sets = built_in_sets(source) if built_in else [read_alternatives(Path(source), kind)]
    models = [open_artifact(each, "train") for each in (model, *ensemble)]
    evaluated_model = evaluated_model_from_manifests(models, "files")

    def score_all_sets() -> tuple[dict[str, Any], list[dict[str, Any]]]:
        scores, lines = _score_sets(kind, sets, [model, *ensemble], device, (to, source_language), reporter)
        if evaluated_model is not None:
            digests = [sha256_of_json(to_jsonable(comparable_scores(each))) for each in scores["sets"]]
            entries = [
                evaluated_model.ledger_entry(text_set.name, _texts_fingerprint(text_set, kind), digest)
                for text_set, digest in zip(sets, digests, strict=True)
            ]
            append_entries(evaluated_model.root, entries, reporter)
        return scores, lines

    if out is None:
        content, _ = score_all_sets()
        _show_scores(content, reporter)
    else:
        inputs = {f"model {n}" if n > 1 else "model": each.as_input() for n, each in enumerate(models, 1)}
        version = f"{registry.NUM_CONTRAST_EXAMPLES} of {registry.corpus_version(source)}" if built_in else ""
        inputs[kind] = Input.from_value(version, source) if built_in else Input.from_file(Path(source))
        # not what the stage "evaluate" makes: the scores of a run cannot be lost to these
        languages = {"to": to, "from": source_language}
        config: dict[str, JSON] = {"kind": kind, **{key: code for key, code in languages.items() if code is not None}}
        plan = Plan(stage=kind, folder=out, config=config, inputs=inputs, seed=None)
        content = _publish_scores(plan, score_all_sets, command, reporter)
    entries = [] if evaluated_model is None else read_ledger(evaluated_model.root)
    for text_set in sets:
        if uses := describe_test_uses(select_entries(entries, _texts_fingerprint(text_set, kind))):
            reporter.line(f"{text_set.name}: this test set was scored {uses}")
    return content


def _texts_fingerprint(items: AlternativeSet, kind: AlternativeKind) -> str:
    """A set as the ledger knows it: by its right texts, as a test set by its references; those of questions, which may
    be short and the same elsewhere, with their contexts."""
    contexts = [item.context if kind == "choices" else "" for item in items.items]
    return texts_fingerprint(
        f"{context} {item.alternatives[item.answer]}" for context, item in zip(contexts, items.items, strict=True)
    )


def _publish_scores(
    plan: Plan,
    work: Callable[[], tuple[dict[str, Any], list[dict[str, Any]]]],
    command: Sequence[str],
    reporter: Reporter,
) -> dict[str, Any]:
    """Return the result of `work`, published unless it is there already, and shown."""
    file = plan.folder / SCORES_FILE
    if is_fresh(plan, reporter):
        with raise_scores_file_errors(file, remedy="run this again"):
            scores = parse_json(read_bounded_file(file, max_bytes=MAX_SCORES_FILE_BYTES))
            _show_scores(scores, reporter)
        return scores
    with publish(plan, command=command) as draft:
        scores, lines = work()
        text = json.dumps(scores, ensure_ascii=False, indent=2, allow_nan=False)
        (draft.folder / SCORES_FILE).write_text(text + "\n", encoding="utf-8")
        each_line = "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines)
        (draft.folder / ITEMS_FILE).write_text(each_line, encoding="utf-8", newline="\n")
        for set_scores in scores["sets"]:
            draft.figures[set_scores["name"]] = {rule: share["score"] for rule, share in set_scores["accuracy"].items()}
    _show_scores(scores, reporter)
    reporter.line(f"scores: {file}")
    return scores


def _score_sets(
    kind: AlternativeKind,
    sets: Sequence[AlternativeSet],
    models: Sequence[Path],
    device: Device,
    languages: tuple[str | None, str | None],
    reporter: Reporter,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The scores of some sets as JSON has them, and every item with its figures."""
    # here, not at the top: what is up to date needs no torch
    from tfm.pipeline.model_io.ensemble import load_ensemble
    from tfm.pipeline.scoring.alternatives import score_alternatives

    loaded = load_ensemble(models, device, reporter=reporter).for_languages(*languages)
    sets_as_json, lines = [], []
    for text_set in sets:
        scored_items, input_warnings = score_alternatives(loaded, text_set, kind, reporter)
        for warning in input_warning_messages(input_warnings, text_set.items):
            reporter.warn(f"{text_set.name}: {warning}")
        sets_as_json.append(alternatives_as_json(text_set, kind, scored_items, input_warnings))
        lines += [{"set": text_set.name, **item_as_json(item)} for item in scored_items]
    return {"kind": kind, "sets": sets_as_json}, lines


def _show_scores(scores: Mapping[str, Any], reporter: Reporter) -> None:
    for set_scores in scores["sets"]:
        title = f"{set_scores['name']}: {set_scores['count']:,} {ITEM_NOUNS[scores['kind']]}"
        reporter.table(title, SCORE_TABLE_COLUMNS, score_table_rows(set_scores))
        for rule, reason in set_scores["missing"].items():
            reporter.line(f"  {rule} is left out: {reason}")
