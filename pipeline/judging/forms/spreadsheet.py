"""The campaign as tables that judges fill in by hand: one CSV file a judge, one row for an item and label."""

import csv
import io
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from tfm.data.errors import format_count
from tfm.pipeline.judging.answers import MAX_SPANS, Answer, parse_answer, quote_value
from tfm.pipeline.judging.campaign import MAX_CAMPAIGN_BYTES, Campaign, CampaignItem, CampaignKind, Judge

MISSING_TEXT_MARK = "[missing]"
CHECK_MARKS = ("x", "×", "✓", "✔", "√", "1")
"""In compatibility form (NFKC), in which full-width letters and digits are the usual ones."""
FORMULA_START_PATTERN = re.compile(r"[\s\x00-\x1f\ufeff'\"]*[=+\-@＝＋－＠]|[\t\r\n]")
INNER_FORMULA_PATTERN = re.compile(r"(?<=[;\t\r\n])(?=['\"]*[=+\-@＝＋－＠])")
"""Places at which a spreadsheet whose separator is not the comma would begin a cell, inside of quotation marks too."""
GUARD_APOSTROPHE_PATTERN = re.compile(r"(?:^|(?<=[;\t\r\n]))'")
DECIMAL_NUMBER_PATTERN = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]*)?")
ANSWER_COLUMNS: Mapping[CampaignKind, Sequence[str]] = {
    "likert": ("adequacy (1 to 5)", "fluency (1 to 5)"),
    "esa": (
        "score (0 to 100)",
        f"minor errors (the words; several with | between; {MISSING_TEXT_MARK})",
        "major errors (the same)",
    ),
    "pairwise": ("preferred (x; a tie: x at both)",),
    "best": ("best (x; several where they tie)",),
}
"""The columns that a judge fills in; what stands before the bracket is their name."""


def make_spreadsheet(campaign: Campaign, judge: Judge) -> str:
    """The CSV file (RFC 4180) of a judge, with a byte order mark, by which spreadsheets know UTF-8.

    A text that a spreadsheet would take for a formula has an apostrophe before it (OWASP, "CSV Injection").
    """
    stream = io.StringIO()
    stream.write("\ufeff")
    table = csv.writer(stream, quoting=csv.QUOTE_ALL)
    reference = ["reference"] if campaign.show_reference else []
    table.writerow(
        ["campaign", "judge", "item", "label", "source", *reference, "hypothesis", *ANSWER_COLUMNS[campaign.kind]]
    )
    empty = [""] * len(ANSWER_COLUMNS[campaign.kind])
    for name in judge.items:
        item = campaign.items_by_id[name]
        context = [item.source, *(item.references[:1] if reference else ())]
        for shown_text in item.shown:
            texts = [escape_formula(text) for text in (*context, shown_text.text)]
            table.writerow([campaign.fingerprint, judge.name, item.id, shown_text.label, *texts, *empty])
    return stream.getvalue()


def escape_formula(text: str) -> str:
    """The text as a spreadsheet takes it for text: an apostrophe before what could begin a formula."""
    text = INNER_FORMULA_PATTERN.sub("'", text)
    return f"'{text}" if FORMULA_START_PATTERN.match(text) else text


def parse_filled_spreadsheet(campaign: Campaign, text: str) -> Iterator[Answer]:
    """The answers in a table that a judge filled in; items without any are left out.

    Columns are separated by commas, semicolons or tabs, as spreadsheets of different languages write them. Raises
    ValueError naming the line or the item where a cell cannot be read.
    """
    columns = [_normalize_column(column) for column in ANSWER_COLUMNS[campaign.kind]]
    rows_by_item: dict[tuple[str, str], dict[str, Mapping[str, str]]] = {}
    for line, row in _read_rows(text, columns):
        try:
            item = _item_of_row(campaign, row)
        except ValueError as error:
            raise ValueError(f"line {line}: {error}") from None
        labels = rows_by_item.setdefault((row["judge"], item.id), {})
        if row["label"] in labels:
            raise ValueError(f"line {line}: item {item.id} has label {row['label']} twice")
        labels[row["label"]] = row
    for (name, item_id), labels in rows_by_item.items():
        if any(row[column] for row in labels.values() for column in columns):
            try:
                content = _answer_content(campaign.kind, campaign.items_by_id[item_id], labels)
            except ValueError as error:
                raise ValueError(f"item {item_id}: {error}") from None
            yield parse_answer(campaign, campaign.judges_by_name[name], item_id, content)


def _item_of_row(campaign: Campaign, row: Mapping[str, str]) -> CampaignItem:
    """The item of a row. Raises ValueError if campaign, judge, item or label is not one of this campaign's."""
    campaign.check_fingerprint(row["campaign"])
    judge = campaign.find_judge(row["judge"])
    if judge is None:
        raise ValueError(
            f"{quote_value(row['judge'])} is not one of the campaign's {format_count(len(campaign.judges), 'judge')}"
        )
    if row["item"] not in judge.item_ids:
        raise ValueError(f"item {quote_value(row['item'])}: not an item that {judge.name} was asked")
    item = campaign.items_by_id[row["item"]]
    if row["label"] not in item.texts_by_label:
        raise ValueError(
            f"item {item.id}: label {quote_value(row['label'])} is not one of {', '.join(item.texts_by_label)}"
        )
    return item


def _read_rows(text: str, answer_columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row with its line, by the names of the columns, white space around cells and names removed."""
    text = text.removeprefix("\ufeff")
    head = re.split("[\r\n]", text, maxsplit=1)[0]
    separator = max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    limit = csv.field_size_limit(MAX_CAMPAIGN_BYTES)  # by default 131,072 characters, fewer than a text may have
    try:
        names = [_normalize_column(name) for name in next(reader, [])]
        for name in ("campaign", "judge", "item", "label", *answer_columns):
            if names.count(name) != 1:
                problem = f"no column {name}" if name not in names else f"{names.count(name)} columns {name}"
                raise ValueError(f"line 1: {problem}; is it a table that tfm judge make wrote for this campaign?")
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                if len(cells) != len(names):
                    raise ValueError(f"line {reader.line_num}: {format_count(len(cells), 'column')}, not {len(names)}")
                yield reader.line_num, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: is no CSV ({error})") from None
    finally:
        csv.field_size_limit(limit)


def _normalize_column(column: str) -> str:
    return column.partition("(")[0].strip().lower()


def _answer_content(
    kind: CampaignKind, item: CampaignItem, labels: Mapping[str, Mapping[str, str]]
) -> dict[str, object]:
    """The content of the rows of an item, in the form of the page's file."""
    if kind in ("pairwise", "best"):
        name = "preferred" if kind == "pairwise" else "best"
        marked_labels = [label for label, row in labels.items() if _parse_checkbox(label, row[name])]
        if kind == "best":
            return {"best": marked_labels}
        return {"preferred": "tie" if len(marked_labels) > 1 else marked_labels[0]}
    if kind == "likert":
        return {label: _parse_numbers(label, row, ("adequacy", "fluency")) for label, row in labels.items()}
    content: dict[str, object] = {}
    for label, row in labels.items():
        spans = _parse_marked_spans(label, row, item.texts_by_label[label].text)
        content[label] = {**_parse_numbers(label, row, ("score",)), "spans": spans}
    return content


def _parse_checkbox(label: str, cell: str) -> bool:
    if cell and unicodedata.normalize("NFKC", cell).lower() not in CHECK_MARKS:
        raise ValueError(
            f"{label}: {quote_value(cell)} is not a mark; write x where you chose, or leave the cell empty"
        )
    return bool(cell)


def _parse_numbers(label: str, row: Mapping[str, str], names: Sequence[str]) -> dict[str, object]:
    numbers: dict[str, object] = {}
    for name in names:
        cell = unicodedata.normalize("NFKC", row[name])
        if not cell:
            raise ValueError(f"{label}: {name} is missing")
        if not DECIMAL_NUMBER_PATTERN.fullmatch(cell):
            raise ValueError(f"{label}: {name}: {quote_value(cell)} is no number")
        numbers[name] = float(cell.replace(",", "."))
    return numbers


def _parse_marked_spans(label: str, row: Mapping[str, str], text: str) -> list[dict[str, object]]:
    """The words of the cells, each found where it stands first and is not taken yet by the same words."""
    spans: list[dict[str, object]] = []
    ends: dict[str, int] = {}
    for severity in ("minor", "major"):
        for words in filter(None, (each.strip() for each in re.split(r"[|\n]", row[f"{severity} errors"]))):
            if words == MISSING_TEXT_MARK:
                start = end = len(text)
            else:
                # a cell copied whole may have our apostrophes
                words = words if words in text else GUARD_APOSTROPHE_PATTERN.sub("", words)
                start = text.find(words, ends.get(words, 0))
                end = ends[words] = start + len(words)
            if start < 0:
                problem = "is marked more often than it stands in" if words in text else "is not in"
                raise ValueError(f"{label}: {severity} errors: {quote_value(words)} {problem} the translation")
            if len(spans) == MAX_SPANS:
                raise ValueError(f"{label}: more than {MAX_SPANS:,} errors are marked")
            spans.append({"start": start, "end": end, "severity": severity})
    return spans
