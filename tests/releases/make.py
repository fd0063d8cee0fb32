"""Small artifacts of each kind, made by one release and opened by every later one.

`python -m tests.releases.make` makes those of the present version, in tests/releases/VERSION: a folder for each kind of
model, with tokenizer, dataset and model, and `expected.json`, the numbers that the model gives. What a release made is
never made again.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tfm
from tests.cli.user import WORDS, write_lines
from tfm.pipeline.distribution import version

FOLDER = Path(__file__).parent
ARTIFACTS = ("tokenizer", "dataset", "model")
OF_TRANSFORMER = ("translations", "scores")
TINY = "layers = 1, dim = 8, heads = 2, feed_forward_dim = 8"
PAIRS = """
train = { source = "train.de", target = "train.en" }
valid = { source = "valid.de", target = "valid.en" }
tests = { main = { source = "valid.de", target = "valid.en" } }
"""
LABELS = PAIRS.replace(".en", ".label")
TEXTS = PAIRS.replace('"train.de"', '"none"').replace('"valid.de"', '"none"')
IMAGES = """
train = { format = "generated", path = "scenes", split = "train", size = 40 }
valid = { format = "generated", path = "scenes", split = "valid", size = 8 }
tests = {}
images = { height = 12, width = 12 }
"""
SOURCES = ["eins zwei drei", "sechs", "vier eins eins fünf"]
TARGETS = ["one two three", "six", "four one one five"]

RECIPES: Mapping[str, tuple[str, str, str]] = {
    "transformer": (
        'kind = "bpe"\nvocab_size = 40',
        PAIRS,
        f"encoder = {{ {TINY} }}\ndecoder = {{ {TINY} }}",
    ),
    "rotary": (
        'kind = "wordpiece"\nvocab_size = 40\nshared = false',
        PAIRS,
        'activation = "swiglu"\nnormalization = "rms"\npositions = "rotary"\ntie = "output"\n'
        f"encoder = {{ {TINY} }}\ndecoder = {{ {TINY} }}",
    ),
    "lstm": (
        'kind = "word"\nvocab_size = 40',
        PAIRS,
        'architecture = "recurrent"\nencoder = { layers = 1, dim = 8 }\ndecoder = { layers = 1, dim = 8 }',
    ),
    "language-model": (
        'kind = "unigram"\nvocab_size = 40',
        TEXTS,
        f'task = "language_model"\narchitecture = "decoder_only"\ndecoder = {{ {TINY} }}',
    ),
    "masked": (
        'kind = "wordpiece"\nvocab_size = 40',
        TEXTS,
        f'task = "masked_language_model"\narchitecture = "encoder_only"\nencoder = {{ {TINY} }}',
    ),
    "classifier": (
        'kind = "char"',
        LABELS,
        f'task = "classification"\narchitecture = "encoder_only"\nencoder = {{ {TINY} }}',
    ),
    "word-vectors": (
        'kind = "word"\nvocab_size = 40',
        TEXTS,
        'task = "word_vectors"\narchitecture = "skip_gram"\nembedding_dim = 8',
    ),
    "captions": (
        'kind = "word"\nvocab_size = 40',
        IMAGES,
        'tie = "output"\nvision = { encoder = "patches", patch = 6 }\n'
        f"encoder = {{ {TINY} }}\ndecoder = {{ {TINY} }}",
    ),
}
"""Tokenizer, corpora and model of each kind."""


def image_scores(model: Any) -> list[float]:
    """The scores of the captions of a drawn image."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as place:
        image = Image.new("RGB", (12, 12), "white")
        image.paste("red", (2, 2, 7, 9))
        image.save(Path(place, "image.png"))
        return [each.score for each in model.translations([str(Path(place, "image.png"))], beam=2, n_best=2)[0]]


def candidate_probabilities(model: Any) -> list[float]:
    """The probabilities of what stands at a mask."""
    return [each.probability for each in model.fill("one [MASK] three", top=4)[0]]


NUMBERS: Mapping[str, Callable[[Any], list[float]]] = {
    **dict.fromkeys(
        ("transformer", "rotary", "lstm"), lambda model: [float(x) for x in model.score(SOURCES, TARGETS).log_probs]
    ),
    "language-model": lambda model: [float(x) for x in model.score(TARGETS).log_probs],
    "masked": candidate_probabilities,
    "classifier": lambda model: [share for each in model.probabilities(SOURCES) for _, share in sorted(each.items())],
    "word-vectors": lambda model: [float(x) for x in model.embed(["one", "six"]).ravel()],
    "captions": image_scores,
}
"""The numbers that each kind of model computes of given inputs."""


def make(name: str, folder: Path) -> None:
    """Make the artifacts of one kind."""
    tokenizer, corpora, model = RECIPES[name]
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as place:
        for split, size in (("train", 40), ("valid", 8)):
            sources = [draw.choices(list(WORDS), k=draw.randint(2, 5)) for _ in range(size)]
            write_lines(Path(place, f"{split}.de"), [" ".join(words) for words in sources])
            write_lines(Path(place, f"{split}.en"), [" ".join(WORDS[word] for word in words) for words in sources])
            write_lines(Path(place, f"{split}.label"), ["long" if len(words) > 3 else "short" for words in sources])
        recipe = (
            f'name = "{name}"\n[tokenizer]\n{tokenizer}\n[data]\nbatch_tokens = 256{corpora}[model]\n{model}\n'
            '[training]\nmax_steps = 5\nprecision = "fp32"\n'
        )
        Path(place, f"{name}.toml").write_text(recipe, "utf-8")
        subprocess.run(
            [sys.executable, "-m", "tfm.cli.app", "run", f"{name}.toml"],
            cwd=place,
            check=True,
            env=os.environ | {"PYTHONPATH": str(FOLDER.parents[1])},
        )
        for each in (*ARTIFACTS, *(OF_TRANSFORMER if name == "transformer" else ())):
            if (made := Path(place, "runs", name, each)).exists():
                shutil.copytree(made, folder / name / each)
    numbers = NUMBERS[name](tfm.load(folder / name / "model", device="cpu"))
    (folder / name / "expected.json").write_text(json.dumps(numbers) + "\n", "utf-8")


def main() -> None:
    folder = FOLDER / str(version())
    if folder.exists():
        sys.exit(f"{folder} exists: what a release made is never made again")
    for name in RECIPES:
        make(name, folder)


if __name__ == "__main__":
    main()
