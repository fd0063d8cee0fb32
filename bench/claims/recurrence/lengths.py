"""A state is a bottleneck: BLEU by length of texts to 100 words, LSTMs without and with attention, a Transformer.

Figure 2 of Bahdanau et al. 2015, with texts of several sentences side by side.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from bench.claims.claim import Claim, Found
from bench.claims.plots import draw_lines
from bench.claims.recurrence.bottleneck import ATTENTION, recurrent
from bench.claims.runs import RUNS_FOLDER, read_score, run_recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPE = "recipes/claims/lengths.toml"
FOLDER = RUNS_FOLDER / "lengths"
SPLITS = {"train": 16_000, "valid": 200, "test": 300}
MAX_WORDS, BIN_WORDS, MAX_SENTENCES = 100, 20, 14
MODELS: Mapping[str, Sequence[str]] = {
    "LSTM, state of 64": recurrent(64),
    "LSTM, state of 256": recurrent(256),
    "LSTM of 128 with attention": recurrent(128, "model.recurrent.bidirectional=true", *ATTENTION),
    "Transformer": (),
}


def join_sentences(split: str, number: int) -> Iterator[tuple[str, str]]:
    """Yield texts of 1 to MAX_SENTENCES sentences of a split and their translations, of at most MAX_WORDS words."""
    from tfm.data.synthetic.grammar import generate

    random, pairs = Random(split), generate(split, 20 * number, 1)
    for _ in range(number):
        count, english, german = 1 + random.randrange(MAX_SENTENCES), "", ""
        for _ in range(count):
            source, target = next(pairs)
            if max(len(f"{english} {source}".split()), len(f"{german} {target}".split())) > MAX_WORDS:
                break
            english, german = f"{english} {source}".strip(), f"{german} {target}".strip()
        yield english, german


def write_corpus(folder: Path) -> None:
    """Write the texts of every split, a file for each side."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, number in SPLITS.items():
        for side, texts in zip(("en", "de"), zip(*join_sentences(split, number), strict=True), strict=True):
            (folder / f"{split}.{side}").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")


def bleu_by_length(texts: Sequence[str], references: Sequence[str], edges: Sequence[int]) -> list[float]:
    """BLEU of the texts whose references have at most so many words, and more than the edge before."""
    import sacrebleu

    scores = []
    for low, high in zip((0, *edges), edges, strict=False):
        rows = [row for row, each in enumerate(references) if low < len(each.split()) <= high]
        row_references = [references[row] for row in rows]
        scores.append(sacrebleu.corpus_bleu([texts[row] for row in rows], [row_references]).score)
    return scores


def measure(max_words: int = MAX_WORDS) -> Found:
    """BLEU of the test texts by number of words, for each model; greedy search."""
    import tfm

    write_corpus(FOLDER)
    edges = list(range(BIN_WORDS, max_words + 1, BIN_WORDS))
    sources, references = ((FOLDER / f"test.{side}").read_text("utf-8").splitlines() for side in ("en", "de"))
    bleu, parameters = {}, {}
    for name, sets in MODELS.items():
        run = run_recipe(RECIPE, name.replace(",", "").replace(" ", "-"), *sets)
        bleu[name] = bleu_by_length(tfm.load(run, device="cpu").translate(sources, beam=1), references, edges)
        parameters[name] = int(read_score(run, "parameters"))
    return {"edges": edges, "bleu": bleu, "parameters": parameters}


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes."""
    texts = {f"{name}: parameters": f"{size:,}" for name, size in data["parameters"].items()}
    for name, values in data["bleu"].items():
        for edge, value in zip(data["edges"], values, strict=True):
            texts[f"{name}: BLEU to {edge} words"] = f"{value:.1f}"
    return texts


def draw(data: Found) -> "Figure":
    """BLEU over length."""
    edges, title = data["edges"], "test BLEU, greedy search"
    figure, axes = draw_lines(edges, data["bleu"], xlabel="words of the reference", title=title)
    axes.set_xticks(edges, [f"to {edge}" for edge in edges])
    return figure


CLAIM = Claim("a state is a bottleneck for long texts", measure, figures, draw)
