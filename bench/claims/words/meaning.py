"""A word's meaning is the company it keeps: related words are near by their contexts, and all equally far as one-hot
vectors.

    cos(a, b) = a . b / (|a| |b|);  for one-hot vectors 0 wherever a and b are different words
"""

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bench.claims.claim import Claim, Found
from bench.claims.runs import run_recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPE = "recipes/claims/meaning.toml"
SIZE, WINDOW = 20_000, 2  # lines and distance, as the recipe has them
GROUPS: Mapping[str, Sequence[str]] = {
    "relatives": ("Mutter", "Vater", "Schwester", "Bruder", "Tante", "Onkel"),
    "animals": ("Hund", "Katze", "Pferd", "Vogel", "Maus", "Kuh"),
    "food": ("Apfel", "Ei", "Kuchen", "Kartoffel", "Karotte", "Birne"),
    "buildings": ("Haus", "Schule", "Kirche", "Museum", "Hotel", "Garten"),
}
Vectors = NDArray[np.float64]


def measure() -> Found:
    """Cosines of related and other pairs by each kind of vector."""
    words = [word for group in GROUPS.values() for word in group]
    kinds = {kind: split_pairs(words, cosines(each)) for kind, each in make_vectors(words).items()}
    return {"words": words, "kinds": kinds}


def make_vectors(words: Sequence[str]) -> dict[str, Vectors]:
    """Vectors (words, D) of each kind."""
    import tfm

    model = tfm.load(run_recipe(RECIPE, "skip-gram"))
    counts = count_contexts(corpus_lines(), words)
    return {
        "one-hot": np.eye(len(words)),
        "counts": counts,
        "counts, PPMI": positive_mutual_information(counts),
        "skip-gram": np.asarray(model.embed(words), np.float64),
    }


def corpus_lines() -> list[list[str]]:
    """The words of the training text, as the recipe has it."""
    from tfm.data.synthetic.grammar import generate

    lines = (german for _, german in generate("train", SIZE, 1))
    return [split_words(line) for line in lines]


def split_words(line: str) -> list[str]:
    """The words of a line, its punctuation apart."""
    return re.findall(r"\w+|[^\w\s]", line)


def count_contexts(lines: Sequence[Sequence[str]], words: Sequence[str]) -> Vectors:
    """Count how often each word of the text stands near each of some words: (words, vocabulary)."""
    rows = {word: position for position, word in enumerate(words)}
    counts: list[Counter[str]] = [Counter() for _ in words]
    for line in lines:
        for position, word in enumerate(line):
            if word in rows:
                context = (*line[max(position - WINDOW, 0) : position], *line[position + 1 : position + 1 + WINDOW])
                counts[rows[word]].update(context)
    vocabulary = sorted(set().union(*counts))
    return np.array([[each[word] for word in vocabulary] for each in counts], np.float64)


def positive_mutual_information(counts: Vectors) -> Vectors:
    """max(0, log(c(a, b) c / (c(a) c(b)))) of counts."""
    expected = counts.sum(1, keepdims=True) * counts.sum(0, keepdims=True) / counts.sum()
    with np.errstate(divide="ignore"):
        result: Vectors = np.maximum(np.log(counts / expected), 0)
    return result


def cosines(vectors: Vectors) -> Vectors:
    """Cosines (words, words) of vectors (words, D)."""
    normed = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    products: Vectors = normed @ normed.T
    return products


def split_pairs(words: Sequence[str], likeness: Vectors) -> dict[str, list[float]]:
    """Likeness (words, words) of the pairs within a group, and of those of two groups."""
    group = {word: name for name, members in GROUPS.items() for word in members}
    values_by_kind: dict[str, list[float]] = {"related": [], "others": []}
    for (i, a), (j, b) in itertools.combinations(enumerate(words), 2):
        values_by_kind["related" if group[a] == group[b] else "others"].append(float(likeness[i, j]))
    return values_by_kind


def share_of_wins(related: Sequence[float], unrelated: Sequence[float]) -> float:
    """The share of related pairs that are nearer than another one, a tie counted half: the area under the ROC curve."""
    first, second = np.array(related)[:, None], np.array(unrelated)
    return float((first > second).mean() + 0.5 * (first == second).mean())


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes."""
    texts = {}
    for kind, pairs in data["kinds"].items():
        texts[f"{kind}: related nearer than others"] = f"{100 * share_of_wins(pairs['related'], pairs['others']):.0f} %"
        texts[f"{kind}: mean cosine, related"] = f"{np.mean(pairs['related']):.2f}"
        texts[f"{kind}: mean cosine, others"] = f"{np.mean(pairs['others']):.2f}"
    return texts


def draw(data: Found) -> "Figure":
    """The distribution of the cosines of both kinds of pairs, by kind of vector."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    panels = figure.subplots(1, len(data["kinds"]), sharey=True)
    for axes, (kind, pairs) in zip(panels, data["kinds"].items(), strict=True):
        axes.boxplot([pairs["related"], pairs["others"]], widths=0.6, showfliers=False)
        axes.set_xticks([1, 2], ["related", "others"])
        axes.set_title(kind, loc="left")
        axes.grid(alpha=0.25, axis="y")
    panels[0].set_ylabel("cosine")
    return figure


CLAIM = Claim("related words are near by their contexts; one-hot vectors know nothing of it", measure, figures, draw)
