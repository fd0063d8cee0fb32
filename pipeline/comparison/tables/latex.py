"""The scores of a comparison as the LaTeX table of a paper, for the package booktabs."""

from collections.abc import Collection, Sequence

from tfm.data.errors import escape_unprintable, format_count
from tfm.pipeline.comparison.metric_tests import SignificanceResults, significance_test_settings
from tfm.pipeline.comparison.runs import Comparison
from tfm.pipeline.comparison.tables.columns import (
    NOT_COMPARABLE_MARK,
    SIGNIFICANT_MARK,
    Cell,
    metric_signature,
    row_name,
    score_columns,
)
from tfm.pipeline.comparison.tables.legend import legend_sentences

LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{each: rf"\{each}" for each in "{}&%$#_"},
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\symbol{34}",
    **{each: f"{{{each}}}" for each in "[]*"},
    "±": r"$\pm$",
    "↓": r"$\downarrow$",
    "∞": r"$\infty$",
    "–": r"\textendash{}",
    "†": r"\dag{}",
}
"""Characters that are commands of LaTeX (also [ and * at the beginning of a line), or that its fonts lack.

Other scripts stay as they are: they need a font that has them.
"""
LATEX_MARKS = {SIGNIFICANT_MARK: "$^{*}$", NOT_COMPARABLE_MARK: r"$^{\dagger}$"}


def comparison_latex(comparison: Comparison, tested: SignificanceResults, metrics: Sequence[str]) -> str:
    """Return a LaTeX table of metrics of the main test set, the best of each in bold, with signatures in comments.

    Args:
        comparison: the comparison.
        tested: the results of the tests.
        metrics: names of metrics.
    """
    columns = score_columns(comparison, tested, metrics)
    table = [
        " & ".join(["", *(escape_latex(column.heading) for column in columns)]).lstrip(),
        *(
            " & ".join([escape_latex(row_name(row)), *(_cell_latex(column.cells[index]) for column in columns)])
            for index, row in enumerate(comparison.rows)
        ),
    ]
    names = {*map(row_name, comparison.rows), *(row.name for row in comparison.rows)}
    title = f"Scores on {tested.test}" if tested.test else "Scores"
    size = f" ({format_count(tested.num_segments, 'segment')})" if tested.num_segments else ""
    sentences = [f"{title}{size}, the best in bold", *legend_sentences(comparison, tested, metrics, columns)]
    return "\n".join(
        [
            "% \\usepackage{booktabs}",
            *(f"% {metric}: {escape_unprintable(metric_signature(comparison, metric))}" for metric in metrics),
            f"% tests: {'|'.join(f'{name}:{value}' for name, value in significance_test_settings().items())}",
            r"\begin{table}",
            r"  \centering",
            rf"  \begin{{tabular}}{{l{'r' * len(columns)}}}",
            r"    \toprule",
            rf"    {table[0]} \\",
            r"    \midrule",
            *(rf"    {line} \\" for line in table[1:]),
            r"    \bottomrule",
            r"  \end{tabular}",
            rf"  \caption{{{' '.join(_escape_sentence(text, names) for text in sentences)}}}",
            r"  \label{tab:scores}",
            r"\end{table}",
        ]
    )


def escape_latex(text: str) -> str:
    """Escape a text such that LaTeX shows just the text, on one line."""
    return "".join(LATEX_ESCAPES.get(each, each) for each in escape_unprintable(text)).replace(
        "--", "-{}-"
    )  # no ligature


def _escape_sentence(text: str, names: Collection[str]) -> str:
    """A sentence of the caption; a mark or the name of a row at its beginning looks as it does in the table."""
    if (mark := LATEX_MARKS.get(text[0])) is not None:
        return f"{mark}{escape_latex(text[1:])}."
    begins_with_name = any(text.startswith((f"{name}:", f"{name},")) for name in names)
    return f"{escape_latex(text if begins_with_name else text[0].upper() + text[1:])}."


def _cell_latex(cell: Cell) -> str:
    value = escape_latex(cell.text)
    spread = rf" $\pm$ {escape_latex(cell.spread)}" if cell.spread else ""
    marks = LATEX_MARKS[SIGNIFICANT_MARK] * cell.is_significant + LATEX_MARKS[NOT_COMPARABLE_MARK] * (
        not cell.comparable
    )
    return (rf"\textbf{{{value}}}" if cell.best else value) + spread + marks
