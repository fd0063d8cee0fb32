"""Scores by models and commands in the artifact that is made again: with other limits alone they are the same.

Rules with the same two models measure a pair once, beside others of the first of these rules. So scores by models are
used if all rules by models look at the same pairs as before: if no limit but that of the last of them is another one.
"""

import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tfm.pipeline.artifacts.artifact import Plan
from tfm.pipeline.artifacts.canonical_json import JSON, to_jsonable
from tfm.pipeline.artifacts.manifest import open_artifact
from tfm.pipeline.artifacts.renamed_files import find_renamed_paths, rename_inputs, rename_paths
from tfm.pipeline.cleaning.config import CleanConfig, ExternalScorer
from tfm.pipeline.cleaning.corpora import CLEAN_STAGE
from tfm.pipeline.cleaning.output import SCORES_FILE
from tfm.pipeline.cleaning.recipe_check import MODEL_RULES
from tfm.pipeline.cleaning.text_batch import Bools, Floats
from tfm.pipeline.cleaning.work_folder import late_work_folder
from tfm.pipeline.errors import DataError

LATE_LIMIT_KEYS = frozenset({"min", "max", "percentile", "higher_is_better"})
"""Keys of rules by a model or a command that have an effect on the cut, and none on the scores."""
DROPPED_BY_COLUMN = "dropped_by"


def remove_late_limits(settings: JSON) -> JSON:
    """Return the settings of a cleaning without the limits of scores by models and commands.

    settings: the config of its artifact, as JSON.
    """
    if not isinstance(settings, dict) or not isinstance(rules := settings.get("clean"), dict):
        return settings
    external = rules.get("external")
    other_rules = {name: _without_limits(rule) if name in MODEL_RULES else rule for name, rule in rules.items()}
    if isinstance(external, list):
        other_rules["external"] = [_without_limits(scorer) for scorer in external]
    return {**settings, "clean": other_rules}


class PreviousScores:
    """The scores of an artifact, by the rules that gave them.

    Args:
        folder: of the artifact.
        rules: the names of its rules, in order.
        usable: the names of those whose scores depend on the pairs that they look at alone.
    """

    def __init__(self, folder: Path, rules: Sequence[str], usable: Collection[str]) -> None:
        self.folder, self.usable, self._rules = folder, frozenset(usable), list(rules)

    def read(self, rule: str, is_needed: Bools) -> Floats | None:
        """(n,) the scores by a rule, NaN for pairs that are not wanted; None if they are not usable, or of other pairs,
        or the file has no such columns.

        Args:
            rule: its name.
            is_needed: (n,) which pairs.
        """
        if rule not in self.usable:
            return None
        earlier_rules = set(self._rules[: self._rules.index(rule)])
        had_passed, scores = [], []
        with pq.ParquetFile(self.folder / SCORES_FILE) as table:
            if table.metadata.num_rows != len(is_needed) or not _has_score_columns(table.schema_arrow, rule):
                return None
            for batch in table.iter_batches(columns=[DROPPED_BY_COLUMN, rule]):
                had_passed.append(_had_passed(batch.column(DROPPED_BY_COLUMN), earlier_rules))
                scores.append(batch.column(rule).to_numpy(zero_copy_only=False))
        if not scores or not np.array_equal(np.concatenate(had_passed), is_needed):
            return None
        return np.concatenate(scores)


def _has_score_columns(schema: pa.Schema, rule: str) -> bool:
    """Whether a table names the rule that dropped each pair, and has numbers of a rule."""
    if not {DROPPED_BY_COLUMN, rule} <= {*schema.names}:
        return False
    dropped_by = schema.field(DROPPED_BY_COLUMN).type
    names = dropped_by.value_type if pa.types.is_dictionary(dropped_by) else dropped_by
    return bool(pa.types.is_string(names)) and schema.field(rule).type == pa.float64()


def find_previous_scores(plan: Plan, config: CleanConfig) -> PreviousScores | None:
    """Return the scores in the place of a plan; None if no artifact is there that differs by limits alone.

    Args:
        plan: of the cleaning.
        config: the [clean] part of a recipe.
    """
    try:
        manifest = open_artifact(plan.folder, CLEAN_STAGE)
    except (DataError, OSError):
        return None
    names = find_renamed_paths(manifest.inputs, plan.inputs)
    old_inputs = {label: each.fingerprint for label, each in rename_inputs(manifest.inputs, names).items()}
    new_inputs = {label: each.fingerprint for label, each in plan.inputs.items()}
    old_settings, new_settings = rename_paths(manifest.config, names), to_jsonable(plan.config)
    is_same = old_inputs == new_inputs and remove_late_limits(old_settings) == remove_late_limits(new_settings)
    if not is_same:
        return None
    usable = {scorer.name for scorer in config.external}
    model_rules = [rule for rule in config.rules if rule in MODEL_RULES]
    if all(_limits_of(old_settings, rule) == _limits_of(new_settings, rule) for rule in model_rules[:-1]):
        usable |= {*model_rules}
    return PreviousScores(plan.folder, list(config.rules), usable)


def check_commands(
    scorers: Sequence[ExternalScorer], work_folder: Path, previous_scores: PreviousScores | None
) -> None:
    """Raise DataError for a command of which there is no program, before pairs are measured.

    One whose scores are kept may not be needed; where it is, its start fails.

    Args:
        scorers: the commands.
        work_folder: of the cleaning.
        previous_scores: of the artifact that is made again; None: none that are the same.
    """
    for scorer in scorers:
        has_scores = previous_scores is not None or late_work_folder(work_folder, scorer.name).is_dir()
        if shutil.which(scorer.command[0]) is None and not has_scores:
            raise DataError(
                f"clean.external: {scorer.name} cannot be started: there is no command {scorer.command[0]!r}; install "
                "it, or give its path"
            )


def _limits_of(settings: JSON, rule: str) -> dict[str, JSON]:
    """The limits of a rule in the settings of a cleaning."""
    rules = settings.get("clean") if isinstance(settings, dict) else None
    values = rules.get(rule) if isinstance(rules, dict) else None
    return {key: values.get(key) for key in LATE_LIMIT_KEYS} if isinstance(values, dict) else {}


def _without_limits(rule: JSON) -> JSON:
    return {key: value for key, value in rule.items() if key not in LATE_LIMIT_KEYS} if isinstance(rule, dict) else rule


def _had_passed(dropped_by: pa.Array, rules: set[str]) -> Bools:
    """(n,) whether none of some rules dropped a pair; dropped_by: the names of the rules that did."""
    reasons = dropped_by if isinstance(dropped_by, pa.DictionaryArray) else dropped_by.dictionary_encode()
    is_of_rules = np.array([name in rules for name in reasons.dictionary.to_pylist()] + [False])  # the last: of none
    codes = reasons.indices.cast(pa.int64()).fill_null(len(is_of_rules) - 1).to_numpy(zero_copy_only=False)
    passed: Bools = ~is_of_rules[codes]
    return passed
