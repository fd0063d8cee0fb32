"""Files whose lines belong together: sources, hypotheses and references, line by line."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfm.data.corpora.markup.problems import (
    MAX_LINES_READ,
    PROBLEMS_OF_PAIRS,
    check_lines,
    holds_json_objects,
    markup_problem,
)
from tfm.data.corpora.text_remarks import table_remark
from tfm.data.errors import DataError, format_count
from tfm.data.lines import blank_lines_remedy, open_lines
from tfm.pipeline.config import EvalSplit
from tfm.pipeline.inference.translation_records import reference_file_name
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.scoring.evaluation.segments import Segments

if TYPE_CHECKING:
    from tfm.data.dataset.split import Dataset, Split
    from tfm.pipeline.artifacts.manifest import Manifest

UNSCORED_NAMES = ("source", "prefixes", "forced")
"""Names of files that a model reads, whose lines may be of another form than what is scored."""


def read_aligned_files(files: Mapping[str, Path]) -> dict[str, list[str]]:
    """The lines of each file. Raises DataError if one is empty or the counts differ, naming both files."""
    return _check_aligned(files, {name: list(open_lines(file)) for name, file in files.items()})


def read_given_files(files: Mapping[str, Path], reporter: Reporter) -> dict[str, list[str]]:
    """Read the lines of each file that a person names, as `read_aligned_files`; each once, as it may be a pipe.

    Args:
        files: by name; those of UNSCORED_NAMES are not compared with the others.
        reporter: receives a warning of a file that seems to be a table or JSON, for several of a form once.

    Raises:
        DataError: a file is empty, line counts differ, or one is no text a line, but tags, times, columns or, beside
            texts, JSON, whose words would be scored.
    """
    lines = {name: list(open_lines(file)) for name, file in files.items()}
    for name, file in files.items():
        check_lines(lines[name], file, (markup_problem, *PROBLEMS_OF_PAIRS))
    scored = [name for name in files if name not in UNSCORED_NAMES]
    in_json = [name for name in scored if holds_json_objects(lines[name])]
    if in_json and len(in_json) < len(scored):
        problem = "has an object of JSON a line, and other files have texts: write its texts, as by jq -r .KEY FILE"
        raise DataError(problem, file=files[in_json[0]])
    remarks: set[str | None] = {None}
    for name, file in files.items():
        if name != "forced" and (remark := table_remark(lines[name][:MAX_LINES_READ])) not in remarks:
            reporter.warn(f"{file}: {remark}")
            remarks.add(remark)
    return _check_aligned(files, lines)


def _check_aligned(files: Mapping[str, Path], lines: dict[str, list[str]]) -> dict[str, list[str]]:
    last = list(files)[-1]
    for name, file in files.items():
        if not lines[name]:
            raise DataError("is empty: there is nothing to score", file=file)
        if len(lines[name]) != len(lines[last]):
            longer, shorter = sorted((name, last), key=lambda each: len(lines[each]), reverse=True)
            remedy = blank_lines_remedy(files[longer], lines[longer][len(lines[shorter]) :])
            raise DataError(
                f"has {format_count(len(lines[name]), 'line')}, but {files[last]} has {len(lines[last])}: "
                f"line n of one must belong to line n of the other{remedy}",
                file=file,
            )
    return lines


def write_texts(
    folder: Path, sources: Sequence[str] | None, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> None:
    """Write the texts of a test set that was given as files into the folder of its scores, for `read_texts_of_scores`.

    Args:
        folder: of the scores.
        sources: one for each segment, if they are known.
        hypotheses: one for each segment.
        references: one or more lists as long.
    """
    texts = {} if sources is None else {"source": sources}
    texts |= {"hypotheses": hypotheses}
    texts |= {_reference_name(number): column for number, column in enumerate(references, 1)}
    for name, lines in texts.items():
        text = "".join(f"{line}\n" for line in lines)
        (folder / f"{name}.txt").write_text(text, encoding="utf-8", newline="\n")


def read_texts_of_scores(manifest: "Manifest") -> dict[str, list[str]]:
    """The texts in a folder of scores, by name, references after the hypotheses. Raises DataError if it has none."""
    names = ["source"] if "source.txt" in manifest.files else []
    names.append("hypotheses")
    number = 1
    while f"{_reference_name(number)}.txt" in manifest.files:
        names.append(_reference_name(number))
        number += 1
    if "hypotheses.txt" not in manifest.files or number == 1:
        raise DataError("has no texts: remove the folder and run `tfm evaluate` again", file=manifest.path)
    return read_aligned_files({name: manifest.folder / f"{name}.txt" for name in names})


def _reference_name(index: int) -> str:
    return "reference" if index == 1 else f"reference.{index}"


def select_splits_to_score(data: "Dataset", eval_split: EvalSplit) -> "dict[str, Split]":
    """The test sets of a dataset, the main one first, or its validation split: no test set may have the name "valid".

    Raises DataError if there is nothing in the validation split.
    """
    if eval_split == "tests":
        return data.tests
    if not len(data.valid):
        raise DataError(
            'has no validation split, which evaluation.tests = "final" needs: name data.valid',
            file=data.tokenizer_folder.parent,
        )
    return {"valid": data.valid.group_by_image()}


def read_translations(dataset: Path, translations: Path, eval_split: EvalSplit) -> list[Segments]:
    """Read every test set of a dataset, or its validation split, beside its translations, the main one first.

    Args:
        dataset: the folder of the dataset.
        translations: the folder of the translations.
        eval_split: "tests" or "valid".
    """
    from tfm.data.dataset.store import load_dataset

    tests = []
    data = load_dataset(dataset)
    for name, split in select_splits_to_score(data, eval_split).items():
        numbers = range(1, 2 + len(split.further_references()))
        files = {"source": f"{name}.source.txt", "hypotheses": f"{name}.txt"}
        files |= {f"reference {number}": reference_file_name(name, number) for number in numbers}
        lines = read_aligned_files({kind: translations / file for kind, file in files.items()})
        references = [lines[f"reference {number}"] for number in numbers]
        directions = data.directions.get(name, ())
        tests.append(
            Segments(
                name,
                lines["source"],
                lines["hypotheses"],
                references,
                directions,
                split.images,
                split.images is not None,
            )
        )
    return tests
