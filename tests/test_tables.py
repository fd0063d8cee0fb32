"""Every name that a recipe accepts has its row in the dict that gives it meaning, and every row has its name."""

import importlib
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.cli.user import tfm
from tfm.cli.options import DeviceName
from tfm.data.corpus_config import COLUMNS_BY_FORMAT, CorpusConfig, Format
from tfm.data.corpus_keys.built_in_corpora import GENERATOR_PARAMETERS, GeneratorName
from tfm.model.config import (
    SUPPORTED_TASKS,
    ActivationName,
    Architecture,
    AttentionScore,
    DecoderMaskName,
    FeedForwardLayer,
    GridPositions,
    LanguageMarking,
    LookupKind,
    MixingName,
    Normalization,
    NormPlacement,
    Pooling,
    PositionsJoin,
    PositionsName,
    RecurrentAttention,
    RecurrentCell,
    ResidualConnection,
    Task,
    ValueSource,
    VisionEncoder,
)
from tfm.pipeline.config import CandidateStrategy, Device, EvaluationMetric, LengthNorm, MbrUtility, Strategy
from tfm.pipeline.update_config import Optimizer, Schedule
from tfm.tokenizer.config import Kind
from tfm.tokenizer.config import Normalization as Form

ROOT = Path(__file__).parent.parent
TABLES = [
    (Kind, "tfm.tokenizer.kinds", "TOKENIZER_METHODS"),
    (Form, "tfm.tokenizer.normalization", "UNICODE_NORMALIZERS"),
    (Format, "tfm.data.corpora.sources", "READERS"),
    (Architecture, "tfm.model.build", "ARCHITECTURES"),
    (LanguageMarking, "tfm.model.transformer.language_prefix", "LANGUAGE_PREFIX_MODELS"),
    (Pooling, "tfm.model.transformer.encoder_only", "POOLINGS"),
    (PositionsName, "tfm.model.attention.positions", "POSITIONS"),
    (PositionsJoin, "tfm.model.attention.positions", "POSITION_JOINS"),
    (MixingName, "tfm.model.transformer.factory", "MIXINGS"),
    (AttentionScore, "tfm.model.attention.scores", "SCORES"),
    (ActivationName, "tfm.model.layers.feed_forward", "ACTIVATIONS"),
    (FeedForwardLayer, "tfm.model.transformer.factory", "FEED_FORWARDS"),
    (ValueSource, "tfm.model.attention.projections", "VALUE_PROJECTIONS"),
    (LookupKind, "tfm.model.attention.explicit_attention", "ATTENTION_WEIGHT_FUNCTIONS"),
    (DecoderMaskName, "tfm.model.transformer.decoder_masks", "DECODER_MASKS"),
    (NormPlacement, "tfm.model.layers.residual", "RESIDUALS_BY_NORM_PLACEMENT"),
    (ResidualConnection, "tfm.model.layers.residual", "RESIDUALS"),
    (Normalization, "tfm.model.layers.normalization", "NORMALIZATIONS"),
    (RecurrentCell, "tfm.model.recurrent.cells", "CELLS"),
    (VisionEncoder, "tfm.model.build_images", "VISION_ENCODERS"),
    (GridPositions, "tfm.model.vision.positions", "GRID_POSITIONS"),
    (RecurrentAttention, "tfm.model.recurrent.factory", "DECODERS"),
    (Task, "tfm.pipeline.tasks.registry", "TASKS"),
    (Task, "tfm.pipeline.tasks.abilities", "TASK_SPECS"),
    (Optimizer, "tfm.pipeline.training.optimizers", "OPTIMIZERS"),
    (Schedule, "tfm.pipeline.training.schedules", "SCHEDULES"),
    (LengthNorm, "tfm.pipeline.decoding.limits", "LENGTH_NORMS"),
    (CandidateStrategy, "tfm.pipeline.decoding.decode", "STRATEGIES"),
    (MbrUtility, "tfm.pipeline.inference.minimum_bayes_risk.utilities", "UTILITIES"),
]


@pytest.mark.parametrize(("names", "module", "table"), TABLES, ids=[table for _, _, table in TABLES])
def test_names_and_rows_are_the_same(names: object, module: str, table: str) -> None:
    rows = getattr(importlib.import_module(module), table)
    assert sorted(rows) == sorted(get_args(names))


@pytest.mark.parametrize("name", get_args(GeneratorName))
def test_every_built_in_corpus_can_be_read(name: str) -> None:
    from tfm.data.corpora.sources import read_pairs

    needs: dict[str, Any] = {each: 2 for each in GENERATOR_PARAMETERS.get(name, ()) if each != "mix"}
    if name == "languages":
        needs = {"source": "deu", "target": "hin"}
    corpus = CorpusConfig(format="generated", path=name, split="train", size=3, **needs)
    found = list(read_pairs(corpus))
    assert len({source for source, _ in found}) == 3  # of images with several captions each
    assert len(found) == 3 or corpus.has_images
    assert all(source and target for source, target in found)


def test_built_in_corpora_are_those_that_recipes_name() -> None:
    from tfm.data.synthetic.programs import PROGRAM_GENERATORS
    from tfm.data.synthetic.string_tasks import STRING_TASKS

    assert {
        *STRING_TASKS,
        *PROGRAM_GENERATORS,
        "grammar",
        "it",
        "languages",
        "inflection",
        "spelling",
        "scenes",
    } == set(get_args(GeneratorName))
    assert GENERATOR_PARAMETERS.keys() == PROGRAM_GENERATORS.keys()


def test_columns_of_formats_are_those_that_recipes_name() -> None:
    from tfm.data.formats import conllu, fasttext

    read = {"conllu": set(conllu.COLUMN_INDICES), "labelled": set(fasttext.IS_LABEL_COLUMN)}
    read["po"] = {"source", "target", "msgid", "msgstr"}  # the keywords of the format
    assert {name: set(columns) for name, columns in COLUMNS_BY_FORMAT.items()} == read


def test_each_architecture_learns_something_and_each_task_is_learned_by_one() -> None:
    assert set(SUPPORTED_TASKS) == set(get_args(Architecture))
    assert {task for tasks in SUPPORTED_TASKS.values() for task in tasks} == set(get_args(Task))


def test_metrics_are_the_table_and_perplexity() -> None:
    from tfm.pipeline.scoring.metrics.registry import METRIC_FUNCTIONS
    from tfm.pipeline.scoring.summaries import SUMMARY_METRICS

    # Perplexity is no function of texts: it needs the model. Figures of summaries need the sources.
    assert {*METRIC_FUNCTIONS, *SUMMARY_METRICS, "perplexity"} == set(get_args(EvaluationMetric))


def test_the_command_line_knows_the_same_devices() -> None:
    assert get_args(DeviceName) == get_args(Device)


@pytest.mark.parametrize(
    ("command", "names"),
    [("tokenize", Kind), ("tokenize", Form), ("translate", LengthNorm), ("translate", Strategy)],
    ids=["kinds", "normalizations", "length norms", "strategies"],
)
def test_help_lists_the_names(command: str, names: object) -> None:
    words = tfm(command, "--help").out.replace(",", " ").replace(".", " ").split()
    assert set(get_args(names)) <= set(words)


RECIPES = sorted(file for file in (ROOT / "recipes").rglob("*.toml") if "[search]" not in file.read_text("utf-8"))


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_recipes_that_come_with_tfm_are_valid_and_named_as_their_file(file: Path) -> None:
    result = tfm("recipe", file)
    assert result.code == 0, result.err
    assert f'"name": "{file.stem}"' in result.out
