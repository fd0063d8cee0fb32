"""Stacked windows ignore long context, attention sees all: accuracy of agreement by the distance of its cue.

"near the old houses by the red car … , the dogs": whether "do" or "does" asks about it is decided by the last noun, and
predicted from the first row; the nouns between are in any number, so that who cannot see the last is right half of the
time (Linzen et al. 2016 count agreement so).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from bench.claims.plots import draw_lines
from bench.claims.runs import RUNS_FOLDER, run_recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPE = "recipes/claims/cue.toml"
FOLDER = RUNS_FOLDER / "cue"
NOUNS = ("dog", "house", "car", "tree", "river", "friend", "teacher", "bird")
ADJECTIVES = ("old", "red", "small", "quiet")
PREPOSITIONS = ("near", "by", "behind")
LABELS = ("does", "do")
PHRASE_WORDS = 4
PHRASES = (0, 1, 2, 3, 4, 6, 8, 12, 16)
NUM_TRAIN, NUM_OTHER, NUM_PER_DISTANCE = 12_000, 400, 200
REACH = 4
MODELS: Mapping[str, Sequence[str]] = {
    "attention": (),
    f"attention, window of {REACH}": (f"model.window={REACH}",),
    f"convolution over {REACH} words before and after": (
        *("model.mixing=convolution", f"model.window={REACH}"),
        "model.positions=sinusoidal",
    ),
    "recurrent (LSTM)": ("model.mixing=recurrent", "model.positions=none"),
}


def write_question(random: Random, phrases: int) -> tuple[str, str]:
    """Draw the label of a question, does or do, and the question without it, with so many phrases before its noun."""
    words: list[str] = []
    for _ in range(phrases):
        noun = random.choice(NOUNS) + "s" * (random.random() < 0.5)
        words += [random.choice(PREPOSITIONS), "the", random.choice(ADJECTIVES), noun]
    plural = random.random() < 0.5
    return LABELS[plural], " ".join([*words, ",", "the", random.choice(NOUNS) + "s" * plural])


def write_corpus(folder: Path) -> None:
    """Write the questions of training, validation and test: each number of phrases is as frequent."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, size) in enumerate({"train": NUM_TRAIN, "valid": NUM_OTHER, "test": NUM_OTHER}.items()):
        random = Random(seed)
        lines = [" ".join(write_question(random, random.randrange(PHRASES[-1] + 1))) for _ in range(size)]
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def measure(phrases: Sequence[int] = PHRASES, number: int = NUM_PER_DISTANCE) -> Found:
    """Share of new questions whose label is right, by model and distance in words."""
    import tfm

    write_corpus(FOLDER)
    accuracy: dict[str, list[float]] = {}
    for name, sets in MODELS.items():
        run = run_recipe(RECIPE, name.split(" (")[0].replace(",", "").replace(" ", "-"), *sets)
        model, random = tfm.load(run, device="cpu"), Random(99)
        accuracy[name] = []
        for count in phrases:
            labels, questions = zip(*(write_question(random, count) for _ in range(number)), strict=True)
            predicted = model.classify(questions)
            right = [one == other for one, other in zip(predicted, labels, strict=True)]
            accuracy[name].append(100 * sum(right) / number)
    return {"distances": [3 + PHRASE_WORDS * count for count in phrases], "accuracy": accuracy}


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes."""
    return {
        f"{name}, {distance} words": f"{share:.0f} %"
        for name, shares in data["accuracy"].items()
        for distance, share in zip(data["distances"], shares, strict=True)
    }


def draw(data: Found) -> "Figure":
    """Accuracy over distance; half are right by chance."""
    distances, accuracy = data["distances"], data["accuracy"]
    title = "verbs in the right form, %"
    figure, axes = draw_lines(distances, accuracy, xlabel="words from the verb to its noun", title=title)
    axes.axhline(50, color="#999999", linestyle="--", linewidth=0.9)
    return figure


CLAIM = Claim("stacked windows lose a cue that is far away; attention keeps it", measure, figures, draw)
