"""`tfm rerank`: of the best translations of a model the one that other models find best, too."""

import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tfm.cli.options import Device, reject_flags
from tfm.cli.streams import print_data
from tfm.cli.text_argument import STDIN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfm.pipeline.reranking.features import FeatureScorer, Floats
    from tfm.pipeline.reranking.lists import NBestList
    from tfm.pipeline.reranking.weights import FeatureWeights

N_BEST_LISTS_PER_BATCH = 64
MAX_TUNING_TRIALS = 1_000_000
FEATURE_TABLE_COLUMNS = ("feature", "weight", "mean of the first", "mean of the chosen")


def rerank(
    file: Annotated[
        Path,
        typer.Argument(metavar="[FILE|-]", help="What `tfm translate --n-best N --jsonl` printed; default: stdin."),
    ] = STDIN,
    channel: Annotated[
        Path | None, typer.Option("--channel", metavar="MODEL", help="A model that translates in the other direction.")
    ] = None,
    language_model: Annotated[
        Path | None,
        typer.Option("--language-model", metavar="MODEL", help="A language model of the language of translations."),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option("--weights", metavar="FILE", help="The weights of the features, as --tune wrote them."),
    ] = None,
    tune: Annotated[
        Path | None,
        typer.Option("--tune", metavar="FILE", help="Find the weights that are best on --reference, and write them."),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option("--reference", metavar="FILE", help="With --tune: the right translations, line by line."),
    ] = None,
    metric: Annotated[
        Literal["bleu", "chrf", "ter"] | None, typer.Option("--metric", help="With --tune: what is best (bleu).")
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials", metavar="N", min=1, max=MAX_TUNING_TRIALS, help="With --tune: weights that are tried (1000)."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="With --tune: seed of the draws (1)."),
    ] = None,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Print all translations, the best first, with their features and scores.")
    ] = False,
    device: Device = None,
) -> None:
    """Rerank n-best lists by a noisy channel: prints the best translation of each line.

    tfm translate MODEL FILE --beam 20 --n-best 20 --jsonl | tfm rerank --channel MODEL --language-model LM --weights W

    The score is the weighted sum of log p(y|x), log p(x|y), log p(y) and the length of y. Tune the weights on
    validation data first: --tune W --reference FILE.
    """
    if channel is None and language_model is None:
        raise typer.BadParameter("give it, or --language-model, or both", param_hint="--channel")
    if (weights is None) == (tune is None):
        raise typer.BadParameter("give either --weights, or --tune to find them", param_hint="--weights")
    if tune is None:
        tuning_flags = {"--reference": reference, "--metric": metric, "--trials": trials, "--seed": seed}
        reject_flags(tuning_flags, "is for --tune")
    elif reference is None:
        raise typer.BadParameter("give the right translations, for --tune", param_hint="--reference")
    from tfm.cli.console import make_reporter
    from tfm.data.lines import open_lines, stream_lines
    from tfm.pipeline.reranking.features import FeatureScorer
    from tfm.pipeline.reranking.lists import read_lists
    from tfm.pipeline.reranking.weights import check_weights_fit_models, read_weights
    from tfm.pipeline.text_files import check_text_file

    if reference is not None:
        check_text_file(reference, make_reporter())
    lines = stream_lines(sys.stdin.buffer, "stdin") if file == STDIN else open_lines(file)
    lists = read_lists(lines, "stdin" if file == STDIN else str(file))
    if weights is not None:
        feature_weights = read_weights(weights)
        scorer = FeatureScorer.load(channel, language_model, device or "auto")
        check_weights_fit_models(feature_weights, scorer.fingerprints, weights)
        is_first = True
        while batch := list(islice(lists, N_BEST_LISTS_PER_BATCH)):
            if is_first:
                _warn_of_wrong_input(scorer, batch)
            is_first = False
            _print_reranked_lists(batch, scorer.score(batch), feature_weights, jsonl=jsonl)
        return
    assert tune is not None
    assert reference is not None
    scorer = FeatureScorer.load(channel, language_model, device or "auto")
    _tune_feature_weights(
        scorer,
        lists,
        list(open_lines(reference)),
        tune,
        metric=metric or "bleu",
        num_trials=trials or 1000,
        seed=1 if seed is None else seed,
        jsonl=jsonl,
        inputs=[file, reference],
    )


def _tune_feature_weights(
    scorer: "FeatureScorer",
    lists: "Iterator[NBestList]",
    references: list[str],
    out: Path,
    *,
    metric: str,
    num_trials: int,
    seed: int,
    jsonl: bool,
    inputs: list[Path],
) -> None:
    """Find weights, write them, and print the lists as they order them."""
    import numpy as np

    from tfm.cli.console import make_reporter
    from tfm.pipeline.artifacts.place import check_output_files
    from tfm.pipeline.errors import DataError, format_count
    from tfm.pipeline.reranking.lists import no_choice_problem
    from tfm.pipeline.reranking.weights import FEATURE_NAMES, choose_best, tune_weights

    check_output_files({"--tune": out}, inputs)
    reporter, features, n_best_lists = make_reporter(), [], list(lists)
    if not n_best_lists:
        raise DataError("there is no list of translations to tune weights on")
    if len(references) != len(n_best_lists):  # said before hours of scoring
        counts = f"{format_count(len(references), 'reference')} of {format_count(len(n_best_lists), 'list')}"
        raise DataError(f"{counts}: give one for each line")
    if (problem := no_choice_problem(n_best_lists)) is not None:
        raise DataError(problem)
    _warn_of_wrong_input(scorer, n_best_lists[:N_BEST_LISTS_PER_BATCH])
    with reporter.bar("scoring", len(n_best_lists), "lists") as bar:
        for begin in range(0, len(n_best_lists), N_BEST_LISTS_PER_BATCH):
            batch = n_best_lists[begin : begin + N_BEST_LISTS_PER_BATCH]
            features.append(scorer.score(batch))
            bar.advance(len(batch))
    table = np.concatenate(features)
    tuned_weights = tune_weights(
        table,
        n_best_lists,
        references,
        scorer.names,
        metric=metric,
        trials=num_trials,
        seed=seed,
        models=scorer.fingerprints,
    )
    tuned_weights.write(out)
    first_places, chosen_places = (
        choose_best(table[:, 0] * 0, n_best_lists),
        choose_best(table @ np.array(tuned_weights.values), n_best_lists),
    )
    rows = [
        (
            name,
            f"{weight:.4f}",
            f"{table[first_places, column].mean():.3f}",
            f"{table[chosen_places, column].mean():.3f}",
        )
        for column, (name, weight) in enumerate(zip(FEATURE_NAMES, tuned_weights.values, strict=True))
    ]
    value, direct_value, first_value = (tuned_weights.tuning[name] for name in ("value", "direct_alone", "first"))
    title = (
        f"{metric} {value:.2f} by these weights, {direct_value:.2f} by the direct model's alone, "
        f"{first_value:.2f} as they came"
    )
    reporter.table(f"{title}; {num_trials:,} trials, seed {seed}", FEATURE_TABLE_COLUMNS, rows)
    _print_reranked_lists(n_best_lists, table, tuned_weights, jsonl=jsonl)


def _warn_of_wrong_input(scorer: "FeatureScorer", lists: "list[NBestList]") -> None:
    """Warn where the first lists have nothing to choose, or the channel model translates in their direction."""
    from tfm.cli.console import make_reporter
    from tfm.pipeline.reranking.lists import no_choice_problem

    for problem in (no_choice_problem(lists), scorer.channel_direction_problem(lists)):
        if problem is not None:
            make_reporter().warn(problem)


def _print_reranked_lists(
    lists: "list[NBestList]", features: "Floats", weights: "FeatureWeights", *, jsonl: bool
) -> None:
    """Print the best translation of each list, or all in their order with their features."""
    import numpy as np

    from tfm.pipeline.reranking.lists import NBestList, list_as_json
    from tfm.pipeline.reranking.weights import FEATURE_NAMES

    scores, begin = features @ np.array(weights.values), 0
    for n_best_list in lists:
        end = begin + len(n_best_list.translations)
        order = begin + np.argsort(-scores[begin:end], kind="stable")
        reranked_list = NBestList(n_best_list.source, tuple(n_best_list.translations[row - begin] for row in order))
        begin = end
        if not jsonl:
            print_data(reranked_list.translations[0].text)
            continue
        columns = {name: features[order, column].tolist() for column, name in enumerate(FEATURE_NAMES)}
        print_data(list_as_json(reranked_list, columns, scores[order].tolist()))
