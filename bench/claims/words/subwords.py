"""Words are too many, letters make sequences long, pieces are between: unknown words and lengths by vocabulary size."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (100, 200, 400, 800)
KINDS = ("bpe", "unigram", "wordpiece", "word")
NUM_TRAIN, NUM_TEST = 2000, 1000


def measure(sizes: Sequence[int] = SIZES, num_train: int = NUM_TRAIN, num_test: int = NUM_TEST) -> Found:
    """Pieces a word and the share of words with an unknown piece, in test lines, by kind and vocabulary size."""
    from tfm.data.synthetic.grammar import generate

    texts, tests = (
        [german for _, german in generate(split, size, 1)] for split, size in (("train", num_train), ("test", num_test))
    )
    figures_by_kind: dict[str, list[dict[str, float]]] = {
        kind: [describe(train(texts, make_config(kind, size)), tests) for size in sizes] for kind in KINDS
    }
    return {
        "sizes": list(sizes),
        "kinds": figures_by_kind,
        "characters": describe(train(texts, make_config("char", 100)), tests),
    }


def make_config(kind: str, size: int) -> TokenizerConfig:
    """The settings of a tokenizer that keeps whatever it has room for."""
    return TokenizerConfig.model_validate({"kind": kind, "vocab_size": size, "min_frequency": 1})


def describe(tokenizer: Tokenizer, texts: Sequence[str]) -> dict[str, float]:
    """Pieces a word, and the share of words that have an unknown piece."""
    words = [word for text in texts for word in text.split()]
    ids = tokenizer.encode_batch(words)
    unknown = sum(UNK_ID in each for each in ids) / len(words)
    return {"pieces": sum(map(len, tokenizer.encode_batch(texts))) / len(words), "unknown": 100 * unknown}


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes."""
    texts = {"characters: pieces a word": f"{data['characters']['pieces']:.2f}"}
    for kind, of_sizes in data["kinds"].items():
        for size, figures_of_size in zip(data["sizes"], of_sizes, strict=True):
            texts[f"{kind}, {size}: pieces a word"] = f"{figures_of_size['pieces']:.2f}"
            texts[f"{kind}, {size}: words with an unknown piece"] = f"{figures_of_size['unknown']:.1f} %"
    return texts


def draw(data: Found) -> "Figure":
    """Both over the size of the vocabulary."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, (key, title) in zip(
        figure.subplots(1, 2),
        (("pieces", "pieces a word"), ("unknown", "words with an unknown piece, %")),
        strict=True,
    ):
        for kind, of_sizes in data["kinds"].items():
            axes.plot(data["sizes"], [each[key] for each in of_sizes], marker=".", label=kind)
        axes.axhline(data["characters"][key], color="#999999", linewidth=0.8, linestyle="--", label="characters")
        axes.set_xscale("log", base=2)
        axes.set_xticks(data["sizes"], [str(each) for each in data["sizes"]])
        axes.set_xlabel("vocabulary")
        axes.set_title(title, loc="left")
        axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    return figure


CLAIM = Claim("words are too many, letters make sequences long; pieces are between", measure, figures, draw)
