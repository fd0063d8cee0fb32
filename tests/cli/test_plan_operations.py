"""`tfm plan` beside torch's counter of operations, which runs through a training of the same recipe."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from torch.utils.flop_counter import FlopCounterMode

from tests.cli.user import RECIPE, WORDS, tfm, write_lines
from tests.tiny_images import write_idx
from tfm.model.cpu_kernels.dispatch import load_kernel_module
from tfm.model.layers import linear
from tfm.model.recurrent import unrolled
from tfm.pipeline.training.assembly.word2vec import KERNEL_MODULE, Word2vecGradientComputer
from tfm.pipeline.training.update import GradientComputer, PendingGradient

TEXTS = (
    RECIPE.format(folder=".")
    .replace("layers = 1, dim = 16, heads = 2, feed_forward_dim = 16", "layers = 2, dim = 32, heads = 2")
    .replace("heads = 2", "heads = 2, feed_forward_dim = 64")
    .replace("batch_tokens = 256", "batch_tokens = 1024")
)
CAPTIONS = """
name = "tiny"
[tokenizer]
kind = "word"
vocab_size = 60
[data]
batch_tokens = 400
limits = { max_length = 47 }
images = { height = 22, width = 17 }
train = { format = "generated", path = "scenes", split = "train", size = 60 }
valid = { format = "generated", path = "scenes", split = "valid", size = 8 }
tests.main = { format = "generated", path = "scenes", split = "test", size = 4 }
[model]
max_length = 48
tie = "output"
vision = { encoder = "convolution", channels = [4, 8, 12], stride = 2, blocks = 2 }
encoder = { layers = 1, dim = 16, heads = 2, feed_forward_dim = 32 }
decoder = { layers = 2, dim = 16, heads = 2, feed_forward_dim = 32 }
[training]
precision = "fp32"
"""
CLASSES = """
name = "tiny"
[data]
batch_tokens = 512
images = { height = 8, width = 8, colour = false }
train = IMAGES
valid = IMAGES
tests.main = IMAGES
[model]
architecture = "encoder_only"
task = "classification"
vision = { encoder = "convolution", channels = [4, 8] }
encoder = { layers = 0, dim = 16 }
[training]
precision = "fp32"
"""
WORD_VECTORS = """
name = "tiny"
[tokenizer]
kind = "word"
vocab_size = 40
[data]
batch_tokens = 300
train = { source = "none", target = "train.de" }
valid = { source = "none", target = "valid.de" }
tests.main = { source = "none", target = "test.de" }
[model]
architecture = "skip_gram"
task = "word_vectors"
embedding_dim = 16
[model.word_vectors]
window = 3
[training]
precision = "fp32"
"""
CHARACTERS = ("tokenizer.kind=codepoint", "tokenizer.shared=false", "model.tie=output", "data.limits.max_length=200")
CANINE = (
    *("model.max_length=201", "model.canine.hashes=4", "model.canine.buckets=64", "model.canine.window=16"),
    *("model.score=dot", "data.batch_tokens=2048"),
)
STARTED = ('training.init_from="runs/tiny"', "training.lora.rank=3")
RECURRENT = ("model.architecture=recurrent",)
ATTENTIVE = (*RECURRENT, "model.decoder.heads=1", "model.recurrent.attention=luong")
EXPLICIT = ("model.score=dot",)
"""Attention whose products torch's counter finds, each of them."""
PATCHES = ("model.vision.encoder=patches", "model.vision.patch=4", "data.images.width=20", "data.images.height=16")

CASES: dict[str, tuple[str, Sequence[str], float]] = {
    "fused": (TEXTS, (), 0.1),
    "epochs": (TEXTS, EXPLICIT, 0.01),
    "accumulated": (TEXTS, (*EXPLICIT, "training.accumulate=3"), 0.01),
    "growing": (TEXTS, (*EXPLICIT, "training.batch_growth={factor = 2, steps = [3, 5]}"), 0.01),
    "R-Drop": (TEXTS, (*EXPLICIT, "training.r_drop=1.0"), 0.01),
    "recomputed": (TEXTS, (*EXPLICIT, "training.recompute=true"), 0.05),
    "adapters": (TEXTS, STARTED, 0.1),
    "decoder": (TEXTS, (*EXPLICIT, "model.architecture=decoder_only"), 0.05),
    "blocks": (
        TEXTS,
        (*EXPLICIT, "model.architecture=decoder_only", "model.task=language_model", "model.block=16"),
        0.02,
    ),
    "flat": (TEXTS, ("training.layout=flat",), 0.1),
    "masked": (TEXTS, (*EXPLICIT, "model.architecture=encoder_only", "model.task=masked_language_model"), 0.02),
    "spans": (
        TEXTS,
        (
            *(*EXPLICIT, "model.task=span_corruption", "model.max_length=32", "data.limits.max_length=31"),
            "tokenizer.sentinels=4",
        ),
        0.02,
    ),
    "shards": (TEXTS, (*EXPLICIT, "data.shard_rows=40"), 0.01),
    "depth": (TEXTS, (*EXPLICIT, "model.dropout.depth=0.6"), 0.1),
    "narrow": (TEXTS, (*EXPLICIT, "model.embedding_dim=8"), 0.01),
    "convolution": (TEXTS, (*EXPLICIT, "model.mixing=convolution"), 0.02),
    "recurrent": (TEXTS, RECURRENT, 0.05),
    "attentive": (TEXTS, (*ATTENTIVE, "model.encoder.dim=16", "model.embedding_dim=8"), 0.05),
    "characters": (TEXTS, (*CHARACTERS, *CANINE, "tokenizer.target_kind=word"), 0.02),
    "characters, read": (
        TEXTS,
        (*CHARACTERS, *CANINE, *ATTENTIVE, "tokenizer.target_kind=word"),
        0.05,
    ),
    "captions": (CAPTIONS, EXPLICIT, 0.01),
    "captions of patches": (CAPTIONS, (*EXPLICIT, *PATCHES), 0.01),
    "captions, recurrent": (CAPTIONS, (*RECURRENT, "model.embedding_dim=8", "model.encoder.layers=0"), 0.05),
    "captions, attentive": (
        CAPTIONS,
        (*EXPLICIT, *ATTENTIVE, "model.encoder.dim=24"),
        0.05,
    ),
    "classes": (CLASSES, (), 0.01),
    "skip-gram": (WORD_VECTORS, (), 0.01),
    "skip-gram, shrinking": (WORD_VECTORS, ("model.word_vectors.shrink=true",), 0.05),
    "skip-gram, subsampled": (WORD_VECTORS, ("model.word_vectors.subsample=0.02",), 0.05),
    "CBOW": (WORD_VECTORS, ("model.architecture=cbow",), 0.01),
}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The operations of each update that is done; not those of zeros that fill rows up."""
    found: list[float] = []
    compute = GradientComputer._accumulate_gradients

    def count(self: GradientComputer, *given: Any) -> str | None:
        with FlopCounterMode(display=False) as counter:
            problem = compute(self, *given)
        found.append(counter.get_total_flops())
        return problem

    monkeypatch.setattr(GradientComputer, "_accumulate_gradients", count)
    for module in (linear, unrolled):
        monkeypatch.setattr(module, "LOW_PRECISION_ROW_MULTIPLE", 1)
    return found


def plan_and_train(recipe: str, settings: Sequence[str], *, started: bool = False) -> tuple[dict[str, Any], Path]:
    """Plan a recipe of two epochs, in the working folder, and train it; its plan, and the folder of the training."""
    draw = random.Random(1)
    for split, size in (("train", 200), ("valid", 20), ("test", 12)):
        sources = [draw.choices(list(WORDS), k=draw.randint(4, 25)) for _ in range(size)]
        write_lines(Path(f"{split}.de"), [" ".join(words) for words in sources])
        write_lines(Path(f"{split}.en"), [" ".join(WORDS[word] for word in words) for words in sources])
    about = write_idx(Path("labelled"), 60)
    images = ", ".join(f"{key} = {json.dumps(value)}" for key, value in about.items())
    text = recipe.replace("IMAGES", f"{{ {images} }}").replace("max_steps = 10\n", "")
    Path("tiny.toml").write_text(text.replace("[training]", "[training]\nmax_epochs = 2"), "utf-8")
    sections = ("data.", "tokenizer.", "model.tie", "model.max", "model.canine") if recipe == TEXTS else "data."
    sets, of_data = (
        [word for each in settings if each.startswith(some) for word in ("--set", each)] for some in ("", sections)
    )
    for stage in ("tokenize", "preprocess"):
        done = tfm(stage, "--recipe", "tiny.toml", *of_data)
        assert done.code == 0, done.err
    if started:
        assert tfm("train", "--recipe", "tiny.toml").code == 0
    done = tfm("plan", "tiny.toml", *sets, "--on", "H100", "--json")
    assert done.code == 0, done.err
    trained = tfm("train", "--recipe", "tiny.toml", *sets, "--out", "out")
    assert trained.code == 0, trained.err
    return json.loads(done.out), Path("out")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_operations_of_an_update_are_those_that_torch_counts(
    case: str, counted: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe, settings, tolerance = CASES[case]
    planned, out = plan_and_train(recipe, ("training.parallel=threads", *settings), started=case == "adapters")
    figures = json.loads((out / "model/manifest.json").read_bytes())["figures"]
    updates = planned["corpus"]["updates"]
    assert (updates, planned["parameters"]) == (figures["updates"], figures["parameters"])
    assert planned["flop_per_update"] == pytest.approx(sum(counted[-updates:]) / updates, rel=tolerance)


NOISE_WORDS = 4
NEGATIVE_SAMPLING = (f"model.word_vectors.negatives={NOISE_WORDS}", "training.parallel=threads")


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["skip_gram", "cbow"])
def test_torch_counts_the_products_of_noise_words_alone(
    architecture: str, counted: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    planned, _ = plan_and_train(WORD_VECTORS, (*NEGATIVE_SAMPLING, f"model.architecture={architecture}"))
    of_noise = planned["flop_per_update"] * NOISE_WORDS / (NOISE_WORDS + 1)
    assert of_noise == pytest.approx(sum(counted) / len(counted), rel=1e-6)


@pytest.mark.slow
@pytest.mark.skipif(load_kernel_module(KERNEL_MODULE) is None, reason="the loops need numba")
def test_loops_without_torch_take_as_many_operations_as_their_predictions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    predictions: list[float] = []
    start = Word2vecGradientComputer.start_gradient

    def count(self: Word2vecGradientComputer, *given: Any, **more: Any) -> PendingGradient:
        found = start(self, *given, **more)
        predictions.append(float(found.sums[2]))
        return found

    monkeypatch.setattr(Word2vecGradientComputer, "start_gradient", count)
    steps = ("training.optimizer.name=sgd", "training.optimizer.momentum=0.0", "training.clip_norm=none")
    planned, _ = plan_and_train(WORD_VECTORS, (*NEGATIVE_SAMPLING, *steps))
    assert planned["corpus"]["updates"] == len(predictions)
    of_prediction = (1 + NOISE_WORDS) * 16 * 3 * 2  # score, gradients of both vectors; multiplied and added
    assert planned["flop_per_update"] == pytest.approx(of_prediction * sum(predictions) / len(predictions), rel=1e-6)
