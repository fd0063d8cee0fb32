"""WordNet beside contexts: path similarity of pairs of words, and the cosine of their vectors.

path similarity(a, b) = 1 / (1 + d)     d: the least number of steps, up and down, between a noun synset of each
"""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.claims.claim import Claim, Found
from bench.claims.words.meaning import GROUPS, Vectors, cosines, make_vectors, share_of_wins, split_pairs
from tfm.pipeline.scoring.metrics.wordnet import Synset, WordNet, open_wordnet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDERS = (Path("corpora/wordnet"), Path("/usr/share/wordnet"))
ENGLISH = (
    *("mother", "father", "sister", "brother", "aunt", "uncle"),
    *("dog", "cat", "horse", "bird", "mouse", "cow"),
    *("apple", "egg", "cake", "potato", "carrot", "pear"),
    *("house", "school", "church", "museum", "hotel", "garden"),
)
"""The words of meaning.GROUPS, in the corpus's translation."""
WORDNET = "WordNet, path"


def distances_up(wordnet: WordNet, synset: Synset) -> dict[Synset, int]:
    """The least number of steps from a synset up to each of those above it, and 0 to itself."""
    distances, newest = {synset: 0}, [synset]
    while newest:
        hypernyms = {each for lower in newest for each in wordnet.hypernyms(lower)} - {*distances}
        steps = distances[newest[0]] + 1
        distances |= dict.fromkeys(hypernyms, steps)
        newest = [*hypernyms]
    return distances


def path_similarity(wordnet: WordNet, first_word: str, second_word: str) -> float:
    """The path similarity of the two nearest noun synsets of two words; 0 if none have anything above in common."""
    ups = [
        [distances_up(wordnet, each) for each in wordnet.synsets(word) if each.part == "noun"]
        for word in (first_word, second_word)
    ]
    steps = [a[common] + b[common] for a, b in itertools.product(*ups) for common in a.keys() & b.keys()]
    return 1 / (1 + min(steps)) if steps else 0.0


def path_similarities(wordnet: WordNet, words: Sequence[str]) -> Vectors:
    """The path similarity (words, words) of each two words."""
    return np.array([[path_similarity(wordnet, one, other) for other in words] for one in words])


def measure() -> Found:
    """Likeness of related and other pairs, by WordNet and by cosines of each kind of vector."""
    folder = next((each for each in FOLDERS if (each / "data.noun").is_file()), None)
    if folder is None:
        raise SystemExit(f"WordNet is missing: put its database files into {FOLDERS[0]}/")
    words = [word for group in GROUPS.values() for word in group]
    wordnet = open_wordnet(folder)
    kinds = {WORDNET: split_pairs(words, path_similarities(wordnet, ENGLISH))}
    kinds |= {kind: split_pairs(words, cosines(each)) for kind, each in make_vectors(words).items()}
    return {"words": words, "wordnet": wordnet.name, "kinds": kinds}


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: how often related pairs win, and Spearman's correlation with WordNet."""
    from scipy.stats import spearmanr

    texts, kinds = {}, data["kinds"]
    for kind, pairs in kinds.items():
        related, unrelated = pairs["related"], pairs["others"]
        texts[f"{kind}: related nearer than others"] = f"{100 * share_of_wins(related, unrelated):.0f} %"
        texts[f"{kind}: mean, related"] = f"{np.mean(related):.2f}"
        texts[f"{kind}: mean, others"] = f"{np.mean(unrelated):.2f}"
        if kind == WORDNET or len({*related, *unrelated}) == 1:
            continue
        by_path = kinds[WORDNET]
        of_all = spearmanr(by_path["related"] + by_path["others"], related + unrelated).statistic
        texts[f"{kind}: rank correlation with WordNet"] = f"{of_all:.2f}"
        of_related = spearmanr(by_path["related"], related).statistic
        texts[f"{kind}: rank correlation with WordNet, related pairs alone"] = f"{of_related:.2f}"
    return texts


def draw(data: Found) -> "Figure":
    """The cosine of each pair over its path similarity, by kind of vector."""
    from matplotlib.figure import Figure

    kinds = [kind for kind in data["kinds"] if kind != WORDNET]
    figure = Figure(figsize=(10, 3), layout="constrained")
    for axes, kind in zip(figure.subplots(1, len(kinds)), kinds, strict=True):
        for name, colour in (("others", "#999999"), ("related", "#e6550d")):
            axes.plot(data["kinds"][WORDNET][name], data["kinds"][kind][name], ".", color=colour, label=name)
        axes.set_xlabel("path similarity in WordNet")
        axes.set_title(f"cosine, {kind}", loc="left")
        axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return figure


CLAIM = Claim("contexts know what WordNet knows of likeness; one-hot vectors do not", measure, figures, draw)
