"""The law of recipes: a key that a recipe sets changes what is built or done, or is refused with the reason.

Each key of the schema is set to another value, for each architecture, task and choice that may make it idle. Of models,
schedules, optimisers and decoding it is seen here what changes; for all others it is said which test shows it.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from pydantic import BaseModel
from torch import nn

from tests.quick import NUM_THIRDS, thirds
from tests.tiny_model import tiny_model
from tests.tiny_training import WHOLE_WORDS, write_dataset
from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.dataset.split import Dataset
from tfm.data.dataset.store import load_dataset
from tfm.model.build import build
from tfm.model.config import SUPPORTED_TASKS, Architecture
from tfm.model.layers import dropout
from tfm.model.layers.linear import Linear
from tfm.pipeline.decoding.constraints.phrases import PhraseConstraints
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.recipe import Recipe, load_recipe
from tfm.pipeline.tasks.registry import TASKS
from tfm.pipeline.tasks.task import TaskContext
from tfm.pipeline.training.optimizers import make_optimizer, set_learning_rate
from tfm.pipeline.training.schedules import SCHEDULES, ScheduleContext
from tfm.pipeline.update_config import Optimizer, Schedule
from tfm.tokenizer.special import EOS_ID

ROOT = Path(__file__).parents[2]
BASE = """
[data]
path = "corpus"
limits.max_length = 20
[model]
max_length = 32
encoder = { layers = 1, dim = 8, heads = 2, feed_forward_dim = 6 }
decoder = { layers = 1, dim = 8, heads = 2, feed_forward_dim = 6 }
"""
ONE_SIDED = """
[data]
limits.max_length = 20
train = { target = "a" }
valid = { target = "b" }
tests.main = { target = "c" }
"""
KINDS = [(architecture, task) for architecture in get_args(Architecture) for task in SUPPORTED_TASKS[architecture]]
PIECES = WHOLE_WORDS.model_copy(update={"sentinels": 4})
SPELLED = (
    "model.canine={ hashes = 2, buckets = 30, window = 2, rate = 2 }",
    *("model.encoder.heads=2", "tokenizer.kind=codepoint"),
)
CHOICES: list[tuple[str, ...]] = [
    (),
    ("model.mixing=convolution", "model.positions=none"),
    ("model.mixing=convolution", "model.positions=none", "model.decoder.layers=2"),
    ("model.decoder.layers=2",),
    ("model.recurrent.attention=luong", "model.decoder.heads=2"),
    ("model.adaptive.cutoffs=[8, 12]", "model.adaptive.factor=2", "training.label_smoothing=0"),
    ("model.adaptive={}", "training.label_smoothing=0"),
    ("model.embedding_dim=4",),
    ("model.embedding_norm=true",),
    ("model.word_vectors.negatives=2", "training.label_smoothing=0"),
    SPELLED,
    (*SPELLED, "tokenizer.shared=false", "tokenizer.target_kind=char", "model.tie=output"),
]
"""Beside each architecture and task, what makes keys idle or wakes them; what does not go together is passed over."""
MODEL: dict[str, tuple[object, ...]] = {
    "embedding_dim": (6,),
    "encoder.layers": (2,),
    "encoder.dim": (16,),
    "encoder.heads": (4,),
    "encoder.key_value_heads": (1,),
    "encoder.key_dim": (6,),
    "encoder.value_dim": (6,),
    "encoder.feed_forward_dim": (10,),
    "decoder.layers": (2,),
    "decoder.dim": (16,),
    "decoder.heads": (4,),
    "decoder.key_value_heads": (1,),
    "decoder.key_dim": (6,),
    "decoder.value_dim": (6,),
    "decoder.feed_forward_dim": (10,),
    "encoder.mixing": ("recurrent", "convolution"),
    "decoder.mixing": ("recurrent", "convolution"),
    "norm": ("post",),
    "normalization": ("layer_gain", "layer_std", "rms", "batch", "none"),
    "residual": ("none",),
    "norm_eps": (0.01,),
    "mixing": ("convolution", "recurrent"),
    "window": (1,),
    "convolution.width": (2,),
    "convolution.filters": (5,),
    "convolution.dilation": (2,),
    "positions": ("none", "sinusoidal_from_one", "fairseq", "learned", "rotary", "alibi", "shaw", "transformer_xl"),
    "positions_join": ("concatenate", "attention"),
    "activation": ("gelu", "gelu_tanh", "swiglu", "none"),
    "score": ("dot", "general", "additive", "linear_additive", "distance"),
    "qk_norm": (True,),
    "feed_forward": ("none",),
    "attention_projections": (False,),
    "values": ("keys",),
    "lookup": ("hard",),
    "mask": ("strict", "none"),
    "output_projection": (False,),
    "tie": ("none",),
    "output_bias": (True,),
    "scale_embedding": (False,),
    "embedding_norm": (True,),
    "adaptive.cutoffs": ([6, 9],),
    "adaptive.factor": (1,),
    "adaptive.inputs": (False,),
    "begin_token": (True,),
    "head_transform": (True,),
    "languages": ("m2m100", "mbart"),
    "pooling": ("max", "first"),
    "block": (5,),
    "max_length": (40,),
    "init_range": (0.3,),
    "dropout.residual": (0.5,),
    "dropout.embedding": (0.5,),
    "dropout.attention": (0.5,),
    "dropout.feed_forward": (0.5,),
    "dropout.depth": (0.9,),
    "recurrent.cell": ("gru", "gru_reset_before", "ssru", "tanh"),
    "recurrent.normalization": ("layer", "batch"),
    "recurrent.bidirectional": (True,),
    "recurrent.reverse_source": (True,),
    "recurrent.attention": ("bahdanau", "luong"),
    "canine.hashes": (4,),
    "canine.buckets": (20,),
    "canine.window": (1,),
    "canine.rate": (3,),
    "canine.upsampling": (3,),
    "word_vectors.window": (2,),
    "word_vectors.shrink": (True,),
    "word_vectors.negatives": (3,),
    "word_vectors.subsample": (0.03,),
    "span_corruption.share": (0.5,),
}
"""By key of [model]: values other than the default. An own value of `tie` may do what another does: see its docs."""
SCHEDULE: dict[str, object] = {
    "peak": 0.1,
    "warmup_steps": 7,
    "final": 0.0003,
    "decay_steps": 900,
    "hold_steps": 600,
    "factor": 0.25,
    "patience": 0,
}
OPTIMIZER: dict[str, object] = {"betas": [0.5, 0.6], "eps": 0.1, "momentum": 0.1, "weight_decay": 0.3}
DECODING: dict[str, object] = {
    "strategy": "sample",
    "beam": 1,
    "temperature": 3.0,
    "top_k": 2,
    "top_p": 0.1,
    "seed": 5,
    "length_norm": "wu",
    "alpha": 0.2,
    "n_best": 3,
    "min_length": 15,
    "max_length": 3,
    "max_ratio": 0.5,
    "no_repeat_ngram": 1,
    "forbidden": ["dog", "sea"],
    "forced": ["asleep"],
}
SHOWN: dict[str, str] = {
    "clean": "tests/unit/pipeline/cleaning/test_keys.py",
    "clean.mutual_information": "tests/unit/pipeline/cleaning/test_mutual_information.py",
    "clean.cross_entropy": "tests/unit/pipeline/cleaning/test_cross_entropy.py",
    "name": "tests/unit/pipeline/recipes/test_recipe.py",
    "seed": "tests/unit/pipeline/training/test_loop.py",
    "tokenizer": "tests/unit/tokenizer/test_train.py",
    "tokenizer.criterion": "tests/unit/tokenizer/merges/test_likelihood.py",
    "tokenizer.min_score": "tests/unit/tokenizer/merges/test_likelihood.py",
    "tokenizer.min_gain": "tests/unit/tokenizer/merges/test_likelihood.py",
    "tokenizer.clusters": "tests/unit/tokenizer/test_clusters.py",
    "tokenizer.file": "tests/unit/pipeline/stages/test_tokenize.py",
    **dict.fromkeys(
        (f"tokenizer.{name}" for name in ("pad_token", "unk_token", "bos_token", "eos_token")),
        "tests/unit/data/foreign_tokenizers/test_loading.py",
    ),
    "tokenizer.codes_vocabulary": "tests/unit/data/foreign_tokenizers/test_codes.py",
    "tokenizer.pattern": "tests/unit/data/foreign_tokenizers/test_ranks.py",
    "tokenizer.grow": "tests/unit/pipeline/stages/test_grown_tokenizer.py",
    "tokenizer.lowercase": "tests/unit/tokenizer/test_tokenizer.py",
    "tokenizer.normalization": "tests/unit/tokenizer/test_tokenizer.py",
    "tokenizer.sentinels": "tests/unit/tokenizer/test_sentinels.py",
    "tokenizer.shared": "tests/unit/pipeline/stages/test_tokenize.py",
    **dict.fromkeys(
        (f"tokenizer.{side}_{name}" for side in ("source", "target") for name in ("normalization", "lowercase")),
        "tests/unit/pipeline/stages/test_sides.py",
    ),
    "training.validation.metrics": "tests/unit/pipeline/scoring/test_validation_scores.py",
    "tokenizer.source_from": "tests/unit/pipeline/stages/test_tokenize.py",
    "tokenizer.target_kind": "tests/cli/test_tasks.py",
    "data": "tests/unit/data/corpora/test_splits.py",
    "data.fold": "tests/unit/data/corpora/test_portions.py",
    "data.images": "tests/unit/pipeline/stages/test_images.py",
    "data.images.crop": "tests/unit/data/images/test_augmentation.py",
    "data.images.flip": "tests/unit/data/images/test_augmentation.py",
    "data.images.shift": "tests/unit/data/images/test_augmentation.py",
    "data.limits": "tests/unit/data/dataset/test_examples.py",
    "data.limits.cut_sources": "tests/unit/pipeline/stages/test_preprocess.py",
    "data.running_text": "tests/unit/data/corpora/test_portions.py",
    "data.temperature": "tests/unit/pipeline/stages/test_languages.py",
    "data.online": "tests/unit/data/corpora/test_sources.py",
    "data.batch_tokens": "tests/unit/pipeline/stages/test_preprocess.py",
    "data.shard_rows": "tests/unit/data/batching/test_epochs.py",
    "model.architecture": "tests/unit/pipeline/tasks/test_tasks.py",
    "model.task": "tests/unit/pipeline/tasks/test_tasks.py",
    "model.span_corruption.mean_length": "tests/unit/pipeline/tasks/test_span_corruption.py",
    "model.source_vectors": "tests/unit/pipeline/model_io/test_pretrained_vectors.py",
    "model.target_vectors": "tests/unit/pipeline/model_io/test_pretrained_vectors.py",
    "model.freeze_vectors": "tests/unit/pipeline/model_io/test_pretrained_vectors.py",
    "model.rotary": "tests/unit/model/attention/test_relative_positions.py",
    "model.vision": "tests/unit/model/vision/test_vision_config.py",
    "training": "tests/unit/pipeline/training/test_loop.py",
    "training.trackers": "tests/cli/test_trackers.py",
    "training.batch_growth": "tests/unit/pipeline/training/test_batch_growth.py",
    "training.bpe_dropout": "tests/unit/tokenizer/test_sampled.py",
    "training.image_statistics": "tests/unit/pipeline/training/test_image_training.py",
    "training.lora": "tests/unit/pipeline/training/test_lora_training.py",
    "training.parallel": "tests/invariants/test_helpers.py",
    **dict.fromkeys(
        ("training.shard", "training.recompute", "training.elastic"), "tests/invariants/test_sharded_training.py"
    ),
    "training.restarts": "tests/system/test_cluster_runs.py",
    "synthesis": "tests/unit/pipeline/synthesis/test_keys.py",
    "training.guided_alignment": "tests/unit/pipeline/alignment/test_guided.py",
    "decoding.shortlist": "tests/unit/pipeline/decoding/test_shortlist.py",
    "decoding.replace_unknown": "tests/unit/pipeline/inference/test_unknown_words.py",
    "training.r_drop": "tests/unit/pipeline/tasks/test_r_drop.py",
    "training.unigram_alpha": "tests/unit/tokenizer/test_sampled.py",
    "training.label_smoothing": "tests/unit/pipeline/tasks/test_losses.py",
    "training.device": "tests/unit/pipeline/runtime/test_devices.py",
    "training.precision": "tests/unit/pipeline/runtime/test_devices.py",
    "training.layout": "tests/unit/model/test_flat_layout.py",
    "training.validation.every_epochs": "tests/invariants/test_resume.py",
    "training.schedule.name": "tests/unit/pipeline/training/test_schedules.py",
    "training.optimizer.name": "tests/unit/pipeline/training/test_optimizers.py",
    "decoding.batch_sentences": "tests/unit/pipeline/decoding/test_decode.py",
    "decoding.precision": "tests/unit/pipeline/decoding/test_decode.py",
    **dict.fromkeys(
        (f"decoding.mbr_{name}" for name in ("candidates", "size", "utility", "pruning")),
        "tests/unit/pipeline/inference/test_minimum_bayes_risk.py",
    ),
    "evaluation": "tests/unit/pipeline/scoring/test_metrics.py",
    "evaluation.entities": "tests/unit/pipeline/scoring/test_entities.py",
    "evaluation.rouge_stemmer": "tests/unit/pipeline/scoring/test_summaries.py",
    "evaluation.words": "tests/unit/pipeline/scoring/test_error_rates.py",
    "evaluation.stride": "tests/unit/pipeline/scoring/test_token_scores.py",
    "evaluation.tests": "tests/cli/test_final.py",
    "evaluation.external": "tests/unit/pipeline/scoring/test_external.py",
    "evaluation.wordnet": "tests/unit/pipeline/scoring/test_meteor.py",
}
"""By key, or by the table that holds it: the test that shows what it changes."""


def leaves(section: type[BaseModel], key: str = "") -> Iterator[str]:
    """Every key that holds a value, or a list of tables, with dots."""
    for name, field in section.model_fields.items():
        inner = [each for each in (field.annotation, *get_args(field.annotation)) if isinstance(each, type)]
        below = next((each for each in inner if issubclass(each, BaseModel)), None)
        if below is None or f"{key}{name}" in (
            "data.train",
            "data.valid",
            "data.tests",
            "evaluation.external",
            "clean.external",
            "synthesis.text",
        ):
            yield f"{key}{name}"
        else:
            yield from leaves(below, f"{key}{name}.")


def given(value: object) -> str:
    return json.dumps(value)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("law") / "base.toml"
    file.write_text(BASE)
    return file


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return load_dataset(write_dataset(tmp_path_factory.mktemp("law") / "dataset", num_train=40, pieces=PIECES))


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dropout.POOL_SIZES, "cpu", 1 << 14)


def read(file: Path, *sets: str) -> Recipe | str:
    """The recipe, or why it is refused."""
    try:
        return load_recipe(file, sets)
    except RecipeError as error:
        return str(error)


def portrait(recipe: Recipe, data: Dataset) -> tuple[object, ...]:
    """What is built and done: weights, tables, longest input, and losses of training and of validation."""
    source, target = load_tokenizer_pair(data.tokenizer_folder)
    task = TASKS[recipe.model.task](TaskContext(recipe.training, recipe.model, source, target, 64))
    network: Any = build(recipe.model, source_vocab=source.vocab_size, target_vocab=target.vocab_size, seed=1).train()
    if recipe.model.task == "word_vectors":
        task.prepare_model(network, data)
    losses = []
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(3)  # surer than a beginner is, so that what changes little is seen
        for step, rows in enumerate(task.epochs(data.train, 64, 1)(0)[:3], 1):
            network.dropout_rng.seed_batch(1, step, 0, 0)
            losses.append(float(task.loss(network, task.batch(data.train, rows)).sum))
        nll = float(task.evaluate(network.eval(), task.batch(data.valid, task.ordered_batches(data.valid, 64)[0])).nll)
    return tables_of(network), network.max_length, losses, nll


def tables_of(network: nn.Module) -> list[tuple[str, tuple[int, ...]]]:
    """Names and shapes: what the numbers do is seen in the losses."""
    named = [*network.named_parameters(), *network.named_buffers()]
    return [(name, tuple(tensor.shape)) for name, tensor in named]


def cases(base: Path) -> Iterator[tuple[str, tuple[str, ...], Recipe]]:
    """Every architecture and task with every choice that goes with it."""
    for architecture, task in KINDS:
        kind = sets_of((architecture, task))
        for choice in CHOICES:
            found = read(base_of(base, architecture), *kind, *choice)
            if isinstance(found, Recipe):
                yield f"{architecture} {task} {' '.join(choice)}", (*kind, *choice), found


def sets_of(kind: tuple[str, str]) -> tuple[str, ...]:
    """What says which architecture and task a recipe has."""
    sentinels = ("tokenizer.sentinels=20",) if kind[1] == "span_corruption" else ()
    return f"model.architecture={kind[0]}", f"model.task={kind[1]}", *sentinels


def base_of(base: Path, architecture: str) -> Path:
    """A recipe of an architecture alone, so that nothing in it is idle."""
    file = base.with_name(f"{architecture}.toml")
    unused = {
        "decoder_only": ("encoder = {",),
        "encoder_only": ("decoder = {",),
        "skip_gram": ("encoder = {", "decoder = {"),
        "cbow": ("encoder = {", "decoder = {"),
    }
    lines = [line for line in BASE.splitlines() if not line.startswith(unused.get(architecture, ("-",)))]
    extra = "[model]\nembedding_dim = 8\n" if architecture in ("skip_gram", "cbow") else ""
    text = "\n".join(lines).replace("[model]\n", extra or "[model]\n")
    if architecture == "recurrent":
        text = re.sub(r", heads = 2, feed_forward_dim = 6", "", text)
    file.write_text(text)
    return file


# The same networks as those of translation, and of a language model.
LIKE_OTHERS = (
    *(("transformer", "span_corruption"), ("recurrent", "span_corruption"), ("decoder_only", "translation")),
    *(("encoder_only", "masked_language_model"), ("encoder_only", "classification")),
)


@pytest.mark.few(1)
@thirds
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.slow] * (kind in LIKE_OTHERS), id=" ".join(kind)) for kind in KINDS],
)
def test_every_key_of_the_model_changes_it_or_is_refused(
    base: Path, data: Dataset, kind: tuple[str, str], number: int
) -> None:
    idle, tried = [], 0
    mine = [case for case in cases(base) if case[0].startswith(" ".join(kind) + " ")]
    for label, sets, recipe in mine[number::NUM_THIRDS]:
        before = portrait(recipe, data)
        for key, values in MODEL.items():
            for value in values:
                found = read(base.with_name(f"{kind[0]}.toml"), *sets, f"model.{key}={given(value)}")
                if isinstance(found, str):
                    assert len(found.splitlines()) <= 2, found
                    continue
                tried += 1
                if found != recipe and portrait(found, data) == before:
                    idle.append(f"{label}: model.{key} = {value}")
    assert tried or len(mine) <= number
    assert not idle, "\n".join(idle)


def rates(recipe: Recipe) -> list[float]:
    schedule, course = (
        recipe.training.schedule,
        ScheduleContext(3000, 512, [3.0, 3.1, 3.2, 3.3, 3.4, 3.5, 3.6, 3.7, 3.8]),
    )
    return [SCHEDULES[schedule.name](step, schedule, course) for step in range(1, 3001, 29)]


@pytest.mark.parametrize("name", get_args(Schedule))
def test_every_key_of_a_schedule_changes_a_rate_or_is_refused(base: Path, name: str) -> None:
    chosen = (f"training.schedule.name={name}", "training.schedule.warmup_steps=20")
    before, used = read(base, *chosen), 0
    assert isinstance(before, Recipe)
    for key, value in SCHEDULE.items():
        found = read(base, *chosen, f"training.schedule.{key}={given(value)}")
        assert isinstance(found, str) or rates(found) != rates(before), key
        if isinstance(found, str):
            assert f'has no effect with training.schedule.name = "{name}"' in found
        used += isinstance(found, Recipe)
    assert used >= 2


def after_updates(recipe: Recipe) -> list[float]:
    """Weights between hidden features, and others, after three updates, of gradients that differ."""
    hidden = Linear(3, 2, compute_dtype=torch.float32)
    network = nn.Sequential(nn.Sequential(hidden), Linear(2, 2, compute_dtype=torch.float32))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.arange(parameter.numel()).view(parameter.shape) - 2.5)
    optimizer = make_optimizer(network, recipe.training.optimizer)
    for step in range(3):
        set_learning_rate(optimizer, 0.1)
        for place, parameter in enumerate(network.parameters()):
            parameter.grad = torch.full_like(parameter, 0.3 + place - step)
        optimizer.step()
    return [number for parameter in network.parameters() for number in parameter.detach().flatten().tolist()]


@pytest.mark.parametrize("name", get_args(Optimizer))
def test_every_key_of_an_optimiser_changes_an_update_or_is_refused(base: Path, name: str) -> None:
    before, used = read(base, f"training.optimizer.name={name}"), 0
    assert isinstance(before, Recipe)
    for key, value in OPTIMIZER.items():
        found = read(base, f"training.optimizer.name={name}", f"training.optimizer.{key}={given(value)}")
        assert isinstance(found, str) or after_updates(found) != after_updates(before), key
        used += isinstance(found, Recipe)
    assert used >= 2


def hypotheses(recipe: Recipe, loaded: Any) -> object:
    config, texts = recipe.decoding, ["two dogs and a cat", "the sea is cold !", "a dog"]
    sources = loaded.source_tokenizer.encode_batch(texts)
    phrases = PhraseConstraints.from_config(loaded.target_tokenizer, config, len(texts))
    return decode(loaded.model, sources, config, device=torch.device("cpu"), phrases=phrases)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "chosen",
    [
        (),
        ("decoding.strategy=sample",),
        ("decoding.strategy=sample", "decoding.temperature=0"),
        ("decoding.length_norm=none", "decoding.max_length=20"),
    ],
    ids=lambda chosen: " ".join(chosen) or "as by default",
)
def test_every_key_of_decoding_changes_a_hypothesis_or_is_refused(base: Path, chosen: tuple[str, ...]) -> None:
    loaded = tiny_model(max_length=40)
    with torch.no_grad():
        loaded.model.output.weight[EOS_ID] *= 2  # so that some hypotheses end
    chosen = ("decoding.no_repeat_ngram=2", *chosen)
    before = read(base, *chosen)
    assert isinstance(before, Recipe)
    assert {f"decoding.{key}" for key in DECODING} | SHOWN.keys() >= set(leaves(type(before.decoding), "decoding."))
    for key, value in DECODING.items():
        found = read(base, *chosen, f"decoding.{key}={given(value)}")
        same = isinstance(found, Recipe) and found.decoding == before.decoding
        assert isinstance(found, str) or same or hypotheses(found, loaded) != hypotheses(before, loaded), key


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: " ".join(kind))
def test_a_task_without_translations_takes_no_keys_of_them(base: Path, kind: tuple[str, str]) -> None:
    sets = sets_of(kind)
    file, decodes = base_of(base, kind[0]), kind[1] == "translation"
    labels = kind[1] in ("classification", "tagging")
    for setting, taken in (
        ("decoding.beam=2", decodes),
        ("decoding.max_length=9", decodes),
        ("training.validation.beam=2", decodes),
        ("training.validation.bleu=false", decodes),
        ('evaluation.metrics=["exact_match"]', decodes or labels),
        ("evaluation.samples=3", decodes or labels),
        ("evaluation.stride=3", kind[1] == "language_model"),
    ):
        found = read(file, *sets, setting)
        assert isinstance(found, Recipe) == taken, setting
        if isinstance(found, str):
            assert found.startswith(f"--set {setting}: {setting.partition('=')[0]} = ")
            assert f'model.task = "{kind[1]}"' in found


@pytest.mark.parametrize(
    ("setting", "metrics", "of_texts", "of_labels"),
    [
        ("evaluation.bleu_tokenize=char", None, True, False),
        ("evaluation.bleu_tokenize=char", ["chrf"], True, False),  # BLEU by length, and that of validation
        ("evaluation.bleu_tokenize=char", ["bleu", "accuracy"], True, True),
        ("evaluation.rouge_tokenize=rouge-score", None, True, False),
        ("evaluation.rouge_tokenize=rouge-score", ["rougeL"], True, True),
        ("evaluation.rouge_tokenize=rouge-score", ["bleu"], False, False),
        ("evaluation.wordnet=folder", None, False, False),
        ("evaluation.wordnet=folder", ["meteor"], True, True),
        ("evaluation.labels=word", None, False, True),
        ("evaluation.labels=word", ["accuracy"], True, True),
        ("evaluation.lowercase=true", None, True, True),
        ("evaluation.lowercase=true", ["accuracy", "macro_f1"], True, False),
        ("evaluation.lowercase=true", ["accuracy", "exact_match"], True, True),
    ],
)
@pytest.mark.parametrize("kind", ["translation", "classification", "tagging"])
def test_keys_of_scores_are_used_by_a_metric_or_refused(
    base: Path, kind: str, setting: str, metrics: list[str] | None, of_texts: bool, of_labels: bool
) -> None:
    architecture = "transformer" if kind == "translation" else "encoder_only"
    sets = [f"model.architecture={architecture}", f"model.task={kind}", setting]
    sets += [f"evaluation.metrics={json.dumps(metrics)}"] if metrics else []
    found = read(base_of(base, architecture), *sets)
    assert isinstance(found, Recipe) == (of_texts if kind == "translation" else of_labels), found


@pytest.mark.parametrize(
    ("setting", "over"),
    [
        ("data.source=de", ONE_SIDED),
        ("data.split_seed=4", ONE_SIDED),
        ("data.ratios=[0.5, 0.25, 0.25]", ONE_SIDED),
        ("data.online=true", ONE_SIDED),
        ("data.train.0.split=train", ONE_SIDED),
        ("data.valid.weight=2", ONE_SIDED),
        ("data.valid.1.weight=2", ONE_SIDED.replace("valid = {", "valid = [{}, {").replace('"b" }', '"b" }]')),
        ("tokenizer.criterion=likelihood", ONE_SIDED),
        ("training.unigram_alpha=0.2", ONE_SIDED),
        ("training.bpe_dropout=0.1", ONE_SIDED + '[tokenizer]\nkind = "unigram"'),
        ("tokenizer.min_score=0.1", ONE_SIDED + '[tokenizer]\nkind = "wordpiece"'),
        ("tokenizer.min_score=0.1", ONE_SIDED + '[tokenizer]\nkind = "wordpiece"\ncriterion = "likelihood"'),
        ("tokenizer.min_gain=0.1", ONE_SIDED + '[tokenizer]\nkind = "wordpiece"\ncriterion = "ratio"'),
        (
            "data.limits.max_ratio=2",
            re.sub('target = "([abc])"', r'source = "none", target = "\1"', ONE_SIDED)
            + '[model]\narchitecture = "decoder_only"\ntask = "language_model"\n',
        ),
        ("data.running_text=true", ONE_SIDED),
        ("data.running_text=false", BASE),
        (
            "data.train.0.source=de",
            ONE_SIDED.replace('target = "a"', 'format = "generated", path = "copy", split = "train", size = 9'),
        ),
    ],
    ids=lambda each: each.splitlines()[0] if each.splitlines() else "",
)
def test_keys_of_corpora_that_nothing_reads_are_refused(tmp_path: Path, setting: str, over: str) -> None:
    file = tmp_path / "texts.toml"
    file.write_text(over)
    assert isinstance(read(file), Recipe)
    found = read(file, setting)
    assert isinstance(found, str)
    assert found.startswith(f"--set {setting}: {setting.partition('=')[0]} = ")
    assert "has no effect" in found


def test_every_key_of_the_schema_has_its_place_in_this_law() -> None:
    here = {
        *(f"model.{key}" for key in MODEL),
        *(f"training.schedule.{key}" for key in SCHEDULE),
        *(f"training.optimizer.{key}" for key in OPTIMIZER),
        *(f"decoding.{key}" for key in DECODING),
    }
    for key in set(leaves(Recipe)) - here:
        places = [key, *(key.rsplit(".", number)[0] for number in range(1, key.count(".") + 1))]
        test = next((SHOWN[each] for each in places if each in SHOWN), None)
        assert test is not None, f"{key}: what does it change, and which test shows it?"
        assert key.rpartition(".")[2] in (ROOT / test).read_text("utf-8"), f"{key}: not in {test}"
