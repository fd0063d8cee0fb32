"""Attention aligns words without being told to, and a head that is told to aligns them better: error rates of heads
against the gold alignments of the grammar.

AER = 1 - (|A and S| + |A and P|) / (|A| + |S|)     (Och and Ney 2003), A: each target word with the source word that it
attends to most.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.claims.claim import Claim, Found
from bench.claims.runs import RUNS_FOLDER, map_runs, read_score, run_recipe
from bench.claims.seeds import format_seeds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECIPE = "recipes/claims/align.toml"
MODELS: Mapping[str, tuple[str, ...]] = {
    "Transformer": (),
    "LSTM": (
        "model.architecture=recurrent",
        "model.score=additive",
        "model.recurrent.bidirectional=true",
        "model.recurrent.attention=bahdanau",
        "model.encoder.layers=1",
        "model.decoder.layers=1",
        "model.encoder.dim=128",
        "model.decoder.dim=128",
        "model.embedding_dim=64",
        "model.decoder.heads=1",
    ),
}
GUIDED, GUIDED_BOTH_WAYS = "Transformer, a head trained", "Transformer, a head trained, both ways"
"""Transformers with a head that learns alignments, `training.guided_alignment`: those of the first one, or those of the
first one and of one that translates back, made one (Garg et al. 2019)."""
SPLIT_SIZES = {"train": 30_000, "valid": 500, "test": 500}
SEEDS = (1, 2, 3)
NUM_PAIRS = 1000
CHUNK_PAIRS = 512


def measure(seeds: Sequence[int] = SEEDS, num_pairs: int = NUM_PAIRS) -> Found:
    """BLEU of each model by seed, and the error rate, precision and recall of each of its heads, by both rows."""
    points = [(name, seed) for name in MODELS for seed in seeds]
    trained = map_runs(train_model, points)
    each_seed = [(seed,) for seed in seeds]
    backward = map_runs(train_backward, each_seed)
    links = {(GUIDED, seed): write_links(trained["Transformer", seed]) for seed in seeds}
    links |= {(GUIDED_BOTH_WAYS, seed): write_links(trained["Transformer", seed], backward[seed,]) for seed in seeds}
    trained |= map_runs(lambda name, seed: train_guided(name, seed, links[name, seed]), list(links))
    return {
        name: [measure_model(trained[name, seed], num_pairs) for seed in seeds]
        for name in (*MODELS, GUIDED, GUIDED_BOTH_WAYS)
    }


def train_model(name: str, seed: int) -> Path:
    """The run of a model that is not told how to align."""
    return run_recipe(RECIPE, f"{name.lower()}-{seed}", f"seed={seed}", *MODELS[name])


def train_backward(seed: int) -> Path:
    """The run of a Transformer that translates back: German sources, English targets."""
    corpora = {}
    for split, size in SPLIT_SIZES.items():
        english, german = write_corpus(split, size)
        corpora[split] = f'{{ source = "{german}", target = "{english}" }}'
    return run_recipe(
        RECIPE,
        f"backward-{seed}",
        f"seed={seed}",
        f"data.train=[{corpora['train']}]",
        f"data.valid={corpora['valid']}",
        f"data.tests={{ test = {corpora['test']} }}",
    )


def write_corpus(split: str, size: int) -> tuple[Path, Path]:
    """Write the texts of a split of the built-in corpus; return the files of English and of German."""
    from tfm.data.synthetic import grammar, registry
    from tfm.pipeline.artifacts.files import write_text_atomically

    files = tuple((RUNS_FOLDER / f"claim-align-{split}.{language}").resolve() for language in ("en", "de"))
    for file, lines in zip(files, zip(*grammar.generate(split, size, registry.SEED), strict=True), strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(file, "".join(f"{line}\n" for line in lines))
    return files[0], files[1]


def train_guided(name: str, seed: int, links: Path) -> Path:
    """The run of a Transformer with a head that learns the links of a file."""
    variant = f"{'guided' if name == GUIDED else 'guided-both-ways'}-{seed}"
    return run_recipe(RECIPE, variant, f"seed={seed}", f"training.guided_alignment.links={links}")


def write_links(run: Path, backward: Path | None = None) -> Path:
    """Write the alignments of a model's training pairs by the mean of the heads of its last layer; return the file.

    Args:
        run: of the model.
        backward: of a model that translates back, whose links and the others are made one (grow-diag); None for none.
    """
    from tfm.pipeline.alignment.extraction import WordAligner, align_chunks
    from tfm.pipeline.alignment.pharaoh import format_links
    from tfm.pipeline.alignment.symmetrization import align_both_ways, grow_diagonally
    from tfm.pipeline.artifacts.files import write_text_atomically
    from tfm.pipeline.model_io.loaded_model import load_model
    from tfm.pipeline.scoring.alignment.gold import read_dataset_pairs

    models = [run] if backward is None else [run, backward]
    aligners = [WordAligner(load_model(each / "model", "cpu")) for each in models]
    heads, pairs = [each.choose_head() for each in aligners], read_dataset_pairs(run / "dataset")
    if backward is None:
        links = align_chunks(aligners[0], pairs, heads[0], CHUNK_PAIRS)
    else:
        links = align_both_ways(aligners, heads, pairs, grow_diagonally, CHUNK_PAIRS)
    file = run.with_name(f"{run.name}{'' if backward is None else '-both-ways'}.links")
    write_text_atomically(file, "".join(f"{format_links(each)}\n" for each in links))
    return file


def measure_model(run: Path, num_pairs: int) -> dict[str, Any]:
    """The scores of a model's heads on sentences of the test split."""
    from tfm.pipeline.alignment.extraction import WordAligner
    from tfm.pipeline.model_io.loaded_model import load_model
    from tfm.pipeline.scoring.alignment.gold import read_built_in
    from tfm.pipeline.scoring.alignment.head_scores import score_heads

    pairs, gold = read_built_in("grammar")
    aligner = WordAligner(load_model(run / "model", "cpu"))
    head_scores = score_heads(aligner, pairs[:num_pairs], gold[:num_pairs], aligner.heads())
    scores = {"bleu": read_score(run, "test.bleu"), "heads": [each.as_json() for each in head_scores]}
    if aligner.has_trained_head:
        (trained,) = score_heads(aligner, pairs[:num_pairs], gold[:num_pairs], [aligner.choose_head()])
        scores["trained"] = trained.as_json()
    return scores


def error_rates(model: Mapping[str, Any], layer: int | None = None, *, shifted: bool = False) -> list[float]:
    """The error rates of a model's heads, without the means of layers, in percent; the best first."""
    return [
        head["aer"]
        for head in model["heads"]
        if head["shifted"] == shifted and head["head"] is not None and layer in (None, head["layer"])
    ]


def figures(data: Found) -> dict[str, str]:
    """The figures that the text quotes: mean and deviation of seeds."""
    texts = {}
    for name, of_seeds in data.items():
        each_rates = [error_rates(model) for model in of_seeds]
        texts[f"BLEU, {name}"] = format_seeds([model["bleu"] for model in of_seeds])
        texts[f"AER of the best head, {name}"] = format_seeds([rates[0] for rates in each_rates], unit=" %")
        texts[f"AER of the worst head, {name}"] = format_seeds([rates[-1] for rates in each_rates], unit=" %")
        if "trained" in of_seeds[0]:
            trained = [model["trained"]["aer"] for model in of_seeds]
            texts[f"AER of the trained head, {name}"] = format_seeds(trained, unit=" %")
        shifted_rates = [error_rates(model, shifted=True)[0] for model in of_seeds]
        texts[f"AER of the best head by the row that reads the word, {name}"] = format_seeds(shifted_rates, unit=" %")
        for layer in sorted({each["layer"] for each in of_seeds[0]["heads"]}):
            means = [mean_error_rate(model, layer) for model in of_seeds]
            texts[f"AER of the mean of layer {layer}, {name}"] = format_seeds(means, unit=" %")
    return texts


def mean_error_rate(model: Mapping[str, Any], layer: int) -> float:
    """The error rate of the mean of a layer's heads, by the row that predicts a word, in percent."""
    return next(
        float(head["aer"])
        for head in model["heads"]
        if head["head"] is None and not head["shifted"] and head["layer"] == layer
    )


def draw(data: Found) -> "Figure":
    """The error rate of each head, by layer: the row that predicts a word, and the one that has read it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    columns = [
        (name, layer) for name, (model, *_) in data.items() for layer in sorted({x["layer"] for x in model["heads"]})
    ]
    axes = figure.subplots()
    for shifted, marker, label in ((False, "o", "row that predicts the word"), (True, "x", "row that has read it")):
        for index, (name, layer) in enumerate(columns):
            rates = [rate for model in data[name] for rate in error_rates(model, layer, shifted=shifted)]
            axes.plot([index] * len(rates), rates, marker, color="C0" if marker == "o" else "C3", markersize=6)
        axes.plot([], [], marker, color="C0" if marker == "o" else "C3", label=label)
    axes.set_xticks(range(len(columns)), [f"{name.replace(', ', chr(10))}\nlayer {layer}" for name, layer in columns])
    axes.set_ylim(0, 100)
    axes.set_title("alignment error rate of each head of three seeds, %", loc="left")
    axes.grid(axis="y", alpha=0.25)
    axes.legend(frameon=False)
    return figure


CLAIM = Claim("attention aligns words without being told to, and better if a head is", measure, figures, draw)
