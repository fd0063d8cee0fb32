"""The output of a system on each test set, segment by segment, read from the folder of its run.

Two systems can be compared only on the same texts: `text_mismatch_reason` names the difference.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tfm.data.errors import format_count
from tfm.data.json_documents import read_json
from tfm.pipeline.artifacts.artifact import Input, Manifest, open_artifact, read_artifact
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.errors import DataError
from tfm.pipeline.inference.translation_records import IMAGE_CONTENTS_KEY, IMAGES_UNIT, reference_file_name
from tfm.pipeline.reports.run_summary import scores_folder_suffix
from tfm.pipeline.scoring.aligned_files import read_aligned_files
from tfm.pipeline.scoring.evaluation.scores_json import raise_scores_file_errors
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.ledger import texts_fingerprint
from tfm.pipeline.scoring.segment_scores import SEGMENTS_FILE

NO_TRANSLATIONS_REASON = "has no translations/ of its test sets, so that no segments can be compared"
OTHER_VERSION_REASON = "another version of tfm made scores/: run `tfm evaluate` again"
OTHER_TRANSLATIONS_REASON = "translations/ are not those that scores/ are of, and are omitted: run `tfm evaluate` again"


@dataclass(frozen=True)
class SegmentValues:
    """Figures of one segment in an evaluation, beside its texts.

    Args:
        log_prob: natural logarithm of the probability of its references; None if it has none.
        pieces: the number of predictions (end token included).
        words: the number of words.
        external: the numbers of external metrics, by their name.
    """

    log_prob: float | None
    pieces: int | None
    words: int | None
    external: Mapping[str, float]


@dataclass(frozen=True)
class System:
    """A trained model by its outputs.

    Args:
        name: of the system.
        tests: the texts of each test set, the main one first.
        figures: where its evaluation noted them, by test set and line.
        main: the name of the main test set; None if the model was not scored.
        test_fingerprint: the `ledger.fingerprint` of the main test set.
        evaluation: settings by which it was scored.
        notes: missing parts, in words.
    """

    name: str
    tests: Mapping[str, Segments]
    figures: Mapping[str, Sequence[SegmentValues]] = field(default_factory=dict)
    main: str | None = None
    test_fingerprint: str | None = None
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    notes: Sequence[str] = ()

    @property
    def texts(self) -> Segments | None:
        """The main test set, where its texts are known."""
        return None if self.main is None else self.tests.get(self.main)

    @property
    def segment_values(self) -> Sequence[SegmentValues]:
        """The figures of the main test set, line by line, where they were noted."""
        return () if self.main is None else self.figures.get(self.main, ())


def read_system(run: Path, name: str, test: str | None = None) -> System:
    """Read the folder of a run: translations/ and scores/ of its model/, each verified.

    Parts that the run does not have, or has of another model, are left out with a note.

    Args:
        run: the folder of the run.
        name: the name of the system.
        test: the test set that is taken for the main one; VALID: the validation split, which has folders of its own.

    Raises:
        DataError: a part is damaged.
    """
    model = open_artifact(run / "model", "train").as_input()
    notes: list[str] = []
    scores, translations = (run / f"{name}{scores_folder_suffix(test)}" for name in ("scores", "translations"))
    scores_manifest, translations_manifest = (
        _open_matching_artifact(model, scores, "evaluate"),
        _open_matching_artifact(model, translations, "translate"),
    )
    fingerprints, figures = ({}, {}) if scores_manifest is None else read_artifact(scores, read_test_scores, "evaluate")
    scores_input = None if scores_manifest is None else scores_manifest.inputs.get(translations.name)
    if (
        translations_manifest is not None
        and scores_input is not None
        and scores_input.fingerprint != translations_manifest.fingerprint
    ):
        notes.append(OTHER_TRANSLATIONS_REASON)
        translations_manifest = None
    tests = {}
    if translations_manifest is not None:
        tests = read_artifact(
            translations, lambda artifact: _read_translations(artifact, list(fingerprints)), "translate"
        )
    if not tests and not figures and not notes:
        notes.append(NO_TRANSLATIONS_REASON)
    evaluation = EvaluationConfig()
    if scores_manifest is not None:
        try:
            evaluation = EvaluationConfig.model_validate(scores_manifest.config.get("evaluation", {}))
        except ValidationError:
            notes.append(OTHER_VERSION_REASON)
    for split, segment_values in figures.items():
        if split in tests and len(segment_values) != len(tests[split].hypotheses):
            problem = (
                f"has {format_count(len(segment_values), 'line')} of {split}, which has {len(tests[split].hypotheses)}"
            )
            raise DataError(f"{problem}: evaluate again", file=scores / SEGMENTS_FILE)
    main = (
        next(iter(fingerprints or tests), None) if test is None else test if test in (fingerprints or tests) else None
    )
    test_fingerprint = None if main is None else fingerprints.get(main)
    if test_fingerprint is None and main in tests:
        test_fingerprint = texts_fingerprint(tests[main].references[0], tests[main].identifying_sources)
    return System(name, tests, figures, main, test_fingerprint, evaluation, notes)


def text_mismatch_reason(segments: Segments, base: Segments) -> str | None:
    """Return the reason why two systems cannot be compared on a test set; None if both were given the same texts.

    The reason begins with the name of the test set.
    """
    if len(segments.hypotheses) != len(base.hypotheses):
        return f"{segments.name}: {format_count(len(segments.hypotheses), 'segment')}, not {len(base.hypotheses):,}"
    if len(segments.references) != len(base.references):
        count = format_count(len(segments.references), "reference")
        return f"{segments.name}: {count} a segment, not {len(base.references)}"
    columns = [("reference", *pair) for pair in zip(segments.references, base.references, strict=True)]
    if segments.image_contents is not None and base.image_contents is not None:
        if segments.image_contents != base.image_contents:
            return f"{segments.name}: its images are others"
    elif segments.sources is not None and base.sources is not None:
        columns.append(("source", segments.sources, base.sources))
    for kind, column, other_column in columns:
        for line, (text, other_text) in enumerate(zip(column, other_column, strict=True), 1):
            if text != other_text:
                return f"{segments.name}: the {kind} of line {line} is another text"
    return None


def _open_matching_artifact(model: Input, folder: Path, stage: str) -> Manifest | None:
    """The artifact in a folder that a stage made from this model; None if there is none."""
    if not folder.exists():
        return None
    manifest = open_artifact(folder, stage)
    model_input = manifest.inputs.get("model")
    return manifest if model_input is not None and model_input.fingerprint == model.fingerprint else None


def _read_translations(manifest: Manifest, order: Sequence[str]) -> dict[str, Segments]:
    """The test sets in translations/, those of `order` first; texts that were translated from a file have none."""
    ending = ".reference.txt"
    candidates = [file.removesuffix(ending) for file in manifest.files if file.endswith(ending)]
    names = [name for name in candidates if {f"{name}.txt", f"{name}.source.txt"} <= manifest.files.keys()]
    return {
        name: _read_segments(manifest, name)
        for name in sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))
    }


def _read_segments(manifest: Manifest, name: str) -> Segments:
    files = {"source": f"{name}.source.txt", "hypotheses": f"{name}.txt"}
    number = 1
    while (file := reference_file_name(name, number)) in manifest.files:
        files[f"reference {number}"], number = file, number + 1
    lines = read_aligned_files({kind: manifest.folder / file for kind, file in files.items()})
    references = [lines[f"reference {each}"] for each in range(1, number)]
    figures = manifest.figures.get(name, {})
    has_images, contents = IMAGES_UNIT in figures, figures.get(IMAGE_CONTENTS_KEY)
    content_key = contents if isinstance(contents, str) else None
    return Segments(
        name, lines["source"], lines["hypotheses"], references, sources_are_names=has_images, image_contents=content_key
    )


def read_test_scores(manifest: Manifest) -> tuple[dict[str, str | None], dict[str, list[SegmentValues]]]:
    """Read scores/: the fingerprint of each test set's texts, the main one first, and the noted figures of segments."""
    path = manifest.path / "scores.json"
    with raise_scores_file_errors(path, remedy="score again"):
        content = read_json(manifest.folder / "scores.json", displayed_path=path)
        entries = {str(content["split"]): content, **content["others"]}
        texts = {name: entry.get("texts") for name, entry in entries.items()}  # formerly they were not there
        fingerprints = {name: each if isinstance(each, str) else None for name, each in texts.items()}
    values_by_test: dict[str, list[SegmentValues]] = {}
    if SEGMENTS_FILE not in manifest.files:
        return fingerprints, values_by_test
    with open(manifest.folder / SEGMENTS_FILE, "rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line)
                rows = values_by_test.setdefault(entry["split"], [])
                if entry["line"] != len(rows) + 1:
                    raise ValueError(f"line {len(rows) + 1} of {entry['split']} is missing")
                rows.append(_parse_segment_values(entry))
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
                path = manifest.path / SEGMENTS_FILE
                raise DataError(f"was not written by tfm ({error}); evaluate again", file=path, line=number) from error
    return fingerprints, values_by_test


def _parse_segment_values(entry: Mapping[str, Any]) -> SegmentValues:
    log_prob, pieces, words = entry["log_prob"], entry["pieces"], entry["words"]
    external = {str(name): float(value) for name, value in entry["external"].items()}
    log_prob = None if log_prob is None else float(log_prob)
    if not all(map(math.isfinite, (log_prob or 0.0, *external.values()))):
        raise ValueError("a number that is not finite")
    pieces, words = (None if each is None else int(each) for each in (pieces, words))
    if min(pieces or 0, words or 0) < 0:
        raise ValueError("a count below 0")
    return SegmentValues(log_prob, pieces, words, external)
