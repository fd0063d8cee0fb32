"""The recipe: one TOML file with all settings of a run; read, overridden, checked.

Precedence: defaults < the recipe it extends < the recipe < `--set a.b=c` < a command's own flag.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from tfm.data.config import DataConfig
from tfm.model.config import ModelConfig
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.cleaning.recipe_check import check_clean
from tfm.pipeline.config import DEFAULT_SEED, DecodingConfig, EvaluationConfig, stride_problem
from tfm.pipeline.errors import escape_unprintable
from tfm.pipeline.guided_alignment import guided_alignment_problem
from tfm.pipeline.recipes.characters import check_character_settings
from tfm.pipeline.recipes.images import check_images
from tfm.pipeline.recipes.label_defaults import check_label_tokenizer, no_score_reason, set_label_tokenizer
from tfm.pipeline.recipes.messages.error_messages import Origins
from tfm.pipeline.recipes.overrides import parse_settings
from tfm.pipeline.recipes.recipe_files import read_recipe_file
from tfm.pipeline.recipes.section_validation import validate_section
from tfm.pipeline.recipes.texts_alone import (
    check_corpora_have_sources,
    check_vocabularies_have_texts,
    copy_text_to_missing_side,
    default_to_running_text,
)
from tfm.pipeline.recipes.unused_keys.check import check_unused_keys
from tfm.pipeline.recipes.unused_keys.table import UNUSED_KEYS_RULES
from tfm.pipeline.sharded_training import muon_problem, recompute_problem, sharding_problem
from tfm.pipeline.synthesis.config import SynthesisConfig
from tfm.pipeline.tasks.abilities import TASK_SPECS, select_tasks
from tfm.pipeline.training_config import TrainingConfig
from tfm.tokenizer.config import TokenizerConfig


def _folder_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", name):
        raise ValueError(
            "it becomes the name of the run's folder: use letters, digits, `.`, `_` and `-`, not beginning with `.`"
        )
    return name


class Recipe(BaseModel):
    """A run: everything that determines its scores."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, AfterValidator(_folder_name)] = Field(
        description="the run is in runs/NAME; default: the recipe's file name without .toml"
    )
    seed: int = Field(
        DEFAULT_SEED, ge=0, lt=2**32, description="seed of initial weights, order of examples and dropout"
    )
    clean: CleanConfig | None = None
    tokenizer: TokenizerConfig = TokenizerConfig()
    data: DataConfig
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    synthesis: SynthesisConfig | None = None

    @model_validator(mode="after")
    def _check_sections(self) -> "Recipe":
        if self.data.path is None and not self.data.train:
            raise ValueError("there is no training data: give data.path or data.train")
        idle = self.data.epoch_without_corpora(self.training.max_epochs or 0)
        if idle is not None:
            raise ValueError(f"no training corpus is used in epoch {idle}; see `epochs` of data.train")
        if self.model.shared_vocabulary_reason is not None and not self.tokenizer.shared:
            raise ValueError(
                f"model.{self.model.shared_vocabulary_reason} needs one vocabulary: tokenizer.shared = true"
            )
        check_character_settings(self.model, self.tokenizer, self.training)
        check_images(self.data.images, self.model, self.training)
        check_clean(self.clean, self.data, self.model.task)
        self._check_task()
        if (problem := self.tokenizer.languages_problem(self.data.languages)) is not None:
            raise ValueError(problem)
        if self.model.block is None and self.data.limits.max_length + 1 > self.model.max_length:
            raise ValueError(
                f"data.limits.max_length ({self.data.limits.max_length}) and the end token exceed "
                f"model.max_length ({self.model.max_length})"
            )
        return self

    def _check_task(self) -> None:
        """Raise ValueError for a setting that the task has no use for."""
        task, abilities, training = self.model.task, TASK_SPECS[self.model.task], self.training
        check_label_tokenizer(task, self.tokenizer)
        check_corpora_have_sources(task, self.data)
        check_vocabularies_have_texts(self.data, self.tokenizer)
        if abilities.hides_spans and self.tokenizer.file is None and not self.tokenizer.sentinels:
            raise ValueError(f'model.task = "{task}" puts sentinels in place of spans: set tokenizer.sentinels = 100')
        if (reason := abilities.n_best_problem(self.decoding)) is not None:
            raise ValueError(reason)
        stride, window = self.evaluation.stride, (self.model.block, self.model.max_length)
        if abilities.continues_text and (reason := stride_problem(stride, *window)) is not None:
            raise ValueError(reason)
        if training.layout == "flat" and not abilities.flat_layout:
            tasks = " and ".join(select_tasks(lambda each: each.flat_layout))
            raise ValueError(f'training.layout = "flat" is for {tasks}, not "{task}"')
        if self.data.target_languages and not abilities.translates:
            raise ValueError(f'`target_language` of corpora: nothing is translated with model.task = "{task}"')
        for setting, name in ((self.data.tags, "data.train: `tag`"), (self.synthesis, "[synthesis]")):
            if setting and not abilities.translates:
                raise ValueError(f'{name}: nothing is translated with model.task = "{task}"')
        if (reason := no_score_reason(task, training)) is not None:
            raise ValueError(reason)
        if self.model.word_vectors.negatives is not None:
            if training.early_stopping.metric == "perplexity":
                raise ValueError("early_stopping.metric: negative sampling has a loss, but no perplexity")
            if "label_smoothing" in training.model_fields_set and training.label_smoothing:
                raise ValueError("training.label_smoothing needs a softmax, which word_vectors.negatives replaces")
        if training.init_from is not None and (self.model.source_vectors or self.model.target_vectors):
            raise ValueError("training.init_from sets the embeddings too: remove source_vectors and target_vectors")
        if self.model.has_adaptive_tails and (reason := training.adaptive_softmax_problem()) is not None:
            raise ValueError(reason)
        for find_problem in (muon_problem, sharding_problem, recompute_problem, guided_alignment_problem):
            reason = find_problem(training, self.model)
            if reason is not None:
                raise ValueError(reason)
        batch_norm = self.model.batch_norm_key
        if batch_norm is not None and (reason := training.batch_norm_problem(batch_norm)) is not None:
            raise ValueError(reason)


def load_recipe(path: Path, overrides: Sequence[str] = (), flags: Mapping[str, object | None] | None = None) -> Recipe:
    """Return the recipe in a TOML file, with all it extends and all defaults.

    Args:
        path: the file.
        overrides: `--set` texts such as "training.max_steps=500"; the text "none" takes away a value that may be
            absent.
        flags: values by dotted key, None if not given.

    Raises:
        RecipeError: the recipe is not valid; the message names the file or flag, the key, and the nearest valid key or
            the allowed values.
    """
    origins: Origins = {}
    raw = read_recipe_file(path, origins)
    raw.setdefault("name", path.stem)
    recipe = validate_section(
        Recipe,
        Recipe,
        raw,
        parse_settings(overrides, flags or {}),
        escape_unprintable(str(path)),
        origins,
        add_defaults=_add_defaults,
    )
    check_unused_keys(recipe, origins, UNUSED_KEYS_RULES)
    return recipe


def _add_defaults(raw: dict[str, Any]) -> None:
    """Set in a recipe, as it was read, what follows from its task and its corpora."""
    set_label_tokenizer(raw)
    default_to_running_text(raw)
    copy_text_to_missing_side(raw)


def recipe_schema() -> dict[str, Any]:
    """The JSON schema of recipes, for editors."""
    content = Recipe.model_json_schema()
    content["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    content["title"] = "A recipe of tfm"
    content["properties"]["extends"] = {
        "type": "string",
        "description": "another recipe to start from, relative to this file",
    }
    content["required"] = []  # the rest may come from the recipe it extends
    return {key: _replace_null_in_schema(each) for key, each in content.items()}


def _replace_null_in_schema(node: Any) -> Any:
    # TOML has no null; we write the text "none" for it.
    if isinstance(node, dict):
        if node.get("type") == "null":
            return {"const": "none"}
        return {key: _replace_null_in_schema(each) for key, each in node.items() if (key, each) != ("default", None)}
    return [_replace_null_in_schema(each) for each in node] if isinstance(node, list) else node
