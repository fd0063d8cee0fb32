"""report.html: the results of an evaluation, on one self-contained page."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfm.data.errors import format_count
from tfm.pipeline.page_frame import escape_corpus_text, escape_html, frame_page, inline_svg
from tfm.pipeline.reports.evaluation_tables import evaluation_tables
from tfm.pipeline.scoring.breakdown import SampleSegment
from tfm.pipeline.scoring.evaluation.evaluation import Evaluation, mean_scores_by_group
from tfm.pipeline.scoring.metrics.meteor import NO_WORDNET_SIGNATURE
from tfm.pipeline.scoring.metrics.score import FOUR_DIGIT_METRICS, Score, lower_is_better

if TYPE_CHECKING:
    from tfm.pipeline.artifacts.manifest import Input

METRIC_NAMES: Mapping[str, str] = {
    "bleu": "BLEU",
    "bleu_paper": "BLEU as in papers",
    "chrf": "chrF",
    "chrf++": "chrF++",
    "ter": "TER",
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
    "rougeLsum": "ROUGE-Lsum",
    "meteor": "METEOR",
    "cider_d": "CIDEr-D",
    "exact_match": "exact match",
    "wer": "WER",
    "cer": "CER",
    "per": "PER",
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "entity_f1": "entity F1",
    "length": "words",
    "compression": "compression",
    "novelty": "new 2-grams",
    "token_accuracy": "accuracy by token",
    "wrong_language": "wrong language",
    "perplexity": "perplexity",
    "word_perplexity": "perplexity by word",
    "bits_per_character": "bits a character",
    "objective": "J(θ)",
}
MAX_COLUMNS = 30  # of a confusion matrix on a page
LINEAGE_STYLE = """\
ul.lineage, ul.lineage ul { list-style: none; padding-left: 1.2rem; border-left: 1px solid var(--line); }
ul.lineage { padding-left: 0.8rem; }
"""


def score_rows(evaluation: Evaluation) -> list[tuple[str, str, str]]:
    """Name, score and signature of each metric, as tables show them; below an F-score its recall."""
    rows = []
    for name, score in evaluation.scores.items():
        label = metric_label(name, score.signature)
        rows.append((label, format_score(name, score), score.signature))
        if score.recall is not None:
            rows.append((f"{label} recall", f"{score.recall:.2f}", score.signature.replace("-f1*100", "-recall*100")))
    return rows + [(metric_label(name), "–", why) for name, why in evaluation.missing.items()]


def format_score(name: str, score: Score) -> str:
    """A score with its digits: many external ones lie between 0 and 1."""
    places = 4 if name in FOUR_DIGIT_METRICS or "external:" in score.signature else 2
    return f"{score.score:.{places}f}" if math.isfinite(score.score) else "∞"


def mean_of_directions_tables(evaluations: Sequence[Evaluation]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Means of the scores of test sets in several languages: a title, and names with numbers."""
    for name, scores in mean_scores_by_group(evaluations).items():
        rows = [
            (metric_label(metric, score.signature), format_score(metric, score)) for metric, score in scores.items()
        ]
        yield f"mean of {name} directions", rows


def metric_label(name: str, signature: str = "") -> str:
    """A metric's name for people, with an arrow where lower is better.

    A METEOR without synonyms has a name of its own, which its signature decides.
    """
    if name == "meteor" and f"|{NO_WORDNET_SIGNATURE}" in signature:
        return "METEOR exact+stem"
    return METRIC_NAMES.get(name, name) + (" ↓" if lower_is_better(name, signature) else "")


def render_report(
    title: str,
    evaluations: Sequence[Evaluation],
    *,
    curves: str | None,
    inputs: "Mapping[str, Input]",
    test_uses: Mapping[str, str] | None = None,
    commands: Sequence[str] = (),
) -> str:
    """The whole page, in which every text of users is escaped.

    Args:
        title: of the page.
        evaluations: of each test set.
        curves: an SVG document of ours.
        inputs: what the scores were made from, for the lineage.
        test_uses: by test set, how often it was looked at.
        commands: those of external metrics, which ran.
    """
    uses_by_test = test_uses or {}
    parts = [
        part
        for evaluation in evaluations
        for part in (
            _scores_table(evaluation, uses_by_test.get(evaluation.name, "")),
            _metric_tables(evaluation),
        )
    ]
    parts += [_means_table(*table) for table in mean_of_directions_tables(evaluations)]
    if curves is not None:
        parts.append(f"<h2>Training</h2>\n<figure>{inline_svg(curves)}</figure>")
    parts += [_lengths_table(evaluation) for evaluation in evaluations if evaluation.lengths]
    parts += [_samples_section(evaluation) for evaluation in evaluations]
    if commands:
        inner = "".join(f"<li><code>{escape_html(command)}</code></li>" for command in commands)
        parts.append(f"<h2>Commands of external metrics</h2>\n<ul>{inner}</ul>")
    if inputs:
        inner = "".join(_lineage_html(name, inputs[name].as_json()) for name in sorted(inputs))
        parts.append(f'<h2>Lineage</h2>\n<ul class="lineage">{inner}</ul>')
    return frame_page(title, "\n".join(part for part in parts if part), style=LINEAGE_STYLE)


def _scores_table(evaluation: Evaluation, test_use_note: str) -> str:
    rows = "".join(
        f'<tr><td>{escape_html(name)}</td><td class="number">{escape_html(score)}</td>'
        f"<td><code>{escape_html(signature)}</code></td></tr>"
        for name, score, signature in score_rows(evaluation)
    )
    num_segments = format_count(evaluation.num_segments, "segment")
    return (
        f"<h2>Scores on {escape_html(evaluation.name)}</h2>\n"
        f'<p class="note">{num_segments}; ↓ lower is better{test_use_note and "; "}{escape_html(test_use_note)}</p>\n'
        f'<table><tr><th>metric</th><th class="number">score</th><th>signature</th></tr>{rows}</table>'
    )


def _means_table(title: str, rows: Sequence[tuple[str, str]]) -> str:
    lines = "".join(f'<tr><td>{escape_html(name)}</td><td class="number">{score}</td></tr>' for name, score in rows)
    head = '<tr><th>metric</th><th class="number">mean</th></tr>'
    return f"<h2>{escape_html(title.capitalize())}</h2>\n<table>{head}{lines}</table>"


def _metric_tables(evaluation: Evaluation) -> str:
    """Scores by label, errors by their kind, and confusions."""
    text = ""
    for title, columns, rows in evaluation_tables(evaluation, MAX_COLUMNS):
        heads = "".join(f'<th class="number">{escape_corpus_text(head)}</th>' for head in columns[1:])
        lines = "".join(
            f"<tr><td>{escape_corpus_text(name)}</td>"
            + "".join(f'<td class="number">{escape_corpus_text(cell)}</td>' for cell in cells)
            + "</tr>"
            for name, *cells in rows
        )
        text += f"<h2>{escape_html(title.capitalize())} on {escape_html(evaluation.name)}</h2>\n"
        text += f"<table><tr><th>{escape_html(columns[0])}</th>{heads}</tr>{lines}</table>"
    return text


def _lengths_table(evaluation: Evaluation) -> str:
    names = list(dict.fromkeys(name for group in evaluation.lengths for name in group.scores))
    rows = ""
    for group in evaluation.lengths:
        span = f"{group.shortest}" if group.shortest == group.longest else f"{group.shortest}–{group.longest}"
        cells = (f"{group.scores[name].score:.2f}" if name in group.scores else "–" for name in names)
        width = min(max(group.scores[names[0]].score, 0), 100) if names and names[0] in group.scores else 0
        rows += (
            f'<tr><td class="number">{span}</td><td class="number">{group.num_segments:,}</td>'
            + "".join(f'<td class="number">{cell}</td>' for cell in cells)
            + f'<td class="bar"><div style="width: {width:.1f}%"></div></td></tr>'
        )
    heads = [_test_heading(name, evaluation) for name in names]
    columns = "".join(f'<th class="number">{escape_html(head)}</th>' for head in heads)
    bar = f"{escape_html(heads[0])} of 100" if heads else ""
    unit = escape_html(evaluation.lengths[0].unit) if evaluation.lengths else "words"
    return (
        f"<h2>Quality by {escape_html(evaluation.length_of)} length on {escape_html(evaluation.name)}</h2>\n"
        f'<table><tr><th class="number">{unit}</th><th class="number">segments</th>{columns}<th>{bar}</th></tr>'
        f"{rows}</table>"
    )


def _test_heading(name: str, evaluation: Evaluation) -> str:
    """A metric's name over its column of scores by length."""
    signatures = {group.scores[name].signature for group in evaluation.lengths if name in group.scores}
    is_other = name == "bleu" and all("|eff:yes|" in each for each in signatures)
    return metric_label(name) + (" (effective order)" if is_other else "")


def _samples_section(evaluation: Evaluation) -> str:
    text = ""
    if evaluation.worst:
        text += f"<h2>Worst samples of {escape_html(evaluation.name)}</h2>\n"
        measure = "chrF" if evaluation.worst[0].accuracy is None else "share of right labels"
        text += f'<p class="note">lowest {measure} of the segment first</p>' + "".join(
            map(_sample_html, evaluation.worst)
        )
    if evaluation.random:
        text += f"<h2>Random samples of {escape_html(evaluation.name)}</h2>\n" + "".join(
            map(_sample_html, evaluation.random)
        )
    return text


def _sample_html(sample: SampleSegment) -> str:
    entries = [] if sample.source is None else [("source", sample.source)]
    entries += [("hypothesis", sample.hypothesis)] + [("reference", text) for text in sample.references]
    # dir=auto: a right-to-left language reads from its own side
    inner = "".join(f'<dt>{name}</dt><dd dir="auto">{escape_corpus_text(text)}</dd>' for name, text in entries)
    score = f"chrF {sample.chrf:.1f}" if sample.accuracy is None else f"{100 * sample.accuracy:.0f} % of labels right"
    return f'<div class="sample"><p>line {sample.line}, {score}</p><dl>{inner}</dl></div>\n'


def _lineage_html(name: str, entry: Mapping[str, Any]) -> str:
    """One input and, nested in it, its own inputs: `entry` is Input.as_json()."""
    lineage = entry["lineage"]
    words = [name] + ([f"made by {lineage['stage']}"] if lineage else []) + ([entry["path"]] if entry["path"] else [])
    inner = (
        "".join(_lineage_html(label, lineage["inputs"][label]) for label in sorted(lineage["inputs"]))
        if lineage
        else ""
    )
    nested = f"<ul>{inner}</ul>" if inner else ""
    return f"<li>{escape_html(' · '.join(words))} <code>{escape_html(entry['fingerprint'])}</code>{nested}</li>"
