"""The report of a search: its paragraph for a paper, pictures, and all trials, on one self-contained page."""

from collections import Counter
from collections.abc import Sequence

from tfm.data.errors import format_count
from tfm.pipeline.page_frame import escape_html, frame_page
from tfm.pipeline.tuning import plots
from tfm.pipeline.tuning.config import ParameterValue, SearchConfig
from tfm.pipeline.tuning.results import SearchResults, TrialResult, comparable_trials
from tfm.pipeline.tuning.space import Parameter

METHOD_DESCRIPTIONS = {
    "grid": "grid search",
    "random": "random search (Bergstra and Bengio 2012)",
    "window": "random search in shifting windows (rounds of {window.trials_a_round} trials, windows of {window.size} "
    "values)",
    "evolution": "an evolutionary search (generations of {evolution.population}, {evolution.survivors} survivors, "
    "uniform crossover, mutation with probability {evolution.mutation:g})",
    "tpe": "the tree-structured Parzen estimator (Bergstra et al. 2011)",
    "gp": "Bayesian optimisation with a Gaussian process",
}
PRUNER_DESCRIPTIONS = {
    "none": "",
    "median": "; trials worse than the median of earlier finished ones at the same validation were ended",
    "hyperband": "; trials were ended early by Hyperband (Li et al. 2018)",
}
UNTRAINED_LABELS = {"impossible": "could not be trained", "waiting": "not begun"}
"""The words for trials without a training, by how they ended."""
PAIRED_TEST_DESCRIPTION = (
    "the one-sided paired t-test over folds, its variance corrected as trainings share data (Nadeau and Bengio 2003; "
    "no estimate of it is unbiased: Bengio and Grandvalet 2004)"
)


def methods_paragraph(config: SearchConfig, parameters: Sequence[Parameter], results: SearchResults) -> str:
    """Return the text in which a paper reports how its hyperparameters were chosen.

    Args:
        config: the [search] part of a recipe.
        parameters: the space of the search.
        results: the results of the search.
    """
    space = "; ".join(f"{each.key}: {each.describe_values()}{_describe_condition(each)}" for each in parameters)
    method = METHOD_DESCRIPTIONS[config.method].format(window=config.window, evolution=config.evolution)
    if config.method == "grid" and not any(each.ended == "waiting" for each in results.trials):
        method += " over every configuration"
    seeds = f"{config.repeats} seeds each, of which the mean counts" if config.repeats > 1 else "one seed each"
    seconds = sum(each.seconds for each in results.trials)
    work = f"{seconds:.3g} seconds" if seconds < 600 else f"{seconds / 3600:.2f} hours"
    updates = sum(each.updates for each in results.trials)
    text = (
        f"Hyperparameters were chosen by {method}, by the {_describe_evaluation(config)} (seed {config.seed})"
        f"{_describe_pruning(config)}. The space was: {space}. "
        f"{_trial_counts_sentence(results, seeds)}; they took {format_count(updates, 'update')} and {work} in all."
    )
    if results.best is None:
        return text + " No trial has finished."
    best = ", ".join(f"{key} = {_describe_value(value)}" for key, value in results.best.configuration.items())
    text += f" The best, trial {results.best.number}, had {config.metric} {results.best.value:.4f} with {best}."
    if config.repeats == 1 and config.folds is None:
        return text + " With one seed each, nothing is said about whether the next ones are worse."
    if not (other_trials := comparable_trials(results.ranked)):
        return text + " No other trial has the figures for a test of whether it is worse."
    test = "Welch's one-sided t-test over seeds" if config.folds is None else PAIRED_TEST_DESCRIPTION
    return f"{text} By {test}, {_equally_good_trials_sentence(other_trials, results.not_worse[1:])} at p < 0.05."


def _describe_pruning(config: SearchConfig) -> str:
    """Return as text how trials were ended early, and by which of their trainings, where they have several."""
    scopes = [f"on the first of {config.folds} folds"] if config.folds is not None else []
    scopes += [f"with the first of {config.repeats} seeds"] if config.repeats > 1 else []
    basis = f", by the training {' '.join(scopes)} alone" if scopes and config.pruning != "none" else ""
    return f"{PRUNER_DESCRIPTIONS[config.pruning]}{basis}"


def _trial_counts_sentence(results: SearchResults, seeds: str) -> str:
    """Return the number of trials that were trained, with their seeds, and of those that ended otherwise, as text."""
    trained, untrained = Counter[str](), Counter[str]()
    for trial in results.trials:
        if trial.is_repeated:
            untrained["had the configuration of an earlier one"] += 1
        elif trial.ended in UNTRAINED_LABELS:
            untrained[UNTRAINED_LABELS[trial.ended]] += 1
        else:
            trained[trial.ended] += 1
    rest = trained.total()
    finished = trained.pop("finished", 0)  # those that ended early were not trained with every seed
    ends = [f"{finished} finished ({seeds})"] if finished else []
    ends += [f"{number} {kind}" for kind, number in sorted(trained.items())]
    predicate = f"{'was' if rest == 1 else 'were'} trained: {', '.join(ends)}" if rest else "was trained"
    if not untrained:
        return f"{format_count(rest, 'trial') if rest else 'No trial'} {predicate}"
    exceptions = ", ".join(f"{number} {reason}" for reason, number in untrained.items())
    return f"Of {format_count(len(results.trials), 'trial')}, {exceptions}; {rest or 'none'} {predicate}"


def _describe_value(value: ParameterValue) -> str:
    """A value as a recipe has it, without quotation marks."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _equally_good_trials_sentence(other_trials: Sequence[TrialResult], not_worse: Sequence[TrialResult]) -> str:
    """Return as text the trials, among those compared with the best, that are not worse than it."""
    numbers = ", ".join(str(each.number) for each in not_worse)
    if len(not_worse) > 1:
        return f"trials {numbers} are not found to be worse than it"
    if not_worse:
        return f"trial {numbers} is not found to be worse than it"
    return f"the other {'one is' if len(other_trials) == 1 else f'{len(other_trials)} are'} worse than it"


def _describe_evaluation(config: SearchConfig) -> str:
    if config.folds is None:
        return f"{config.metric} of the validation set"
    return f"mean {config.metric} of {config.folds}-fold cross-validation on the training data"


def _describe_condition(parameter: Parameter) -> str:
    if not parameter.only_if:
        return ""
    return f" (only if {' and '.join(f'{key} = {_describe_value(value)}' for key, value in parameter.only_if)})"


def search_page(config: SearchConfig, parameters: Sequence[Parameter], results: SearchResults) -> str:
    """Return the whole page as HTML.

    Args:
        config: the [search] part of a recipe.
        parameters: the space of the search.
        results: the results of the search.
    """
    parts = [f"<p>{escape_html(methods_paragraph(config, parameters, results))}</p>"]
    if results.ranked:
        pictures = {
            "The best so far": plots.optimization_history_plot(results),
            "Every trial through its settings": plots.parallel_coordinates_plot(results, parameters),
            "Each key by itself": plots.slice_plot(results, parameters),
        }
        if results.importances:
            pictures["What matters (fANOVA)"] = plots.importance_plot(results)
        parts += [f"<h2>{title}</h2><figure>{picture}</figure>" for title, picture in pictures.items()]
    parts.append(f"<h2>Trials</h2>{_trials_table(parameters, results)}")
    return frame_page(f"Search: {config.name}", "\n".join(parts))


def _trials_table(parameters: Sequence[Parameter], results: SearchResults) -> str:
    keys = [each.key for each in parameters]
    heads = ["trial", results.metric, *keys, "updates", "seconds", "ended"]
    head = "".join(f'<th scope="col">{escape_html(each)}</th>' for each in heads)
    rest = [each for each in results.trials if each.value is None]
    rows = "".join(f"<tr>{_trial_cells(each, keys)}</tr>" for each in (*results.ranked, *rest))
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _trial_cells(trial: TrialResult, keys: Sequence[str]) -> str:
    value = "–" if trial.value is None else f"{trial.value:.4f}"
    settings = [trial.configuration.get(key, "–") for key in keys]
    texts = [f"{each:.4g}" if isinstance(each, float) else str(each) for each in settings]
    outcome = f"{trial.ended}: {trial.reason}" if trial.reason else trial.ended
    numbers = [str(trial.number), value, *texts, f"{trial.updates:,}", f"{trial.seconds:,.0f}"]
    return (
        "".join(f'<td class="number">{escape_html(each)}</td>' for each in numbers) + f"<td>{escape_html(outcome)}</td>"
    )
