"""The campaign as tables that judges fill in by hand: one CSV file a judge, one row for an item and label."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence

from tfm.pipeline.judging.answers import Answer, answer_of
from tfm.pipeline.judging.campaign import ANOTHER, Campaign, Item, Judge, Kind

MISSING = "[missing]"
FORMULA = re.compile(r"[\s'\"]*[=+\-@＝＋－＠]|[\t\r\n]")
ASKED: Mapping[Kind, Sequence[str]] = {
    "likert": ("adequacy (1 to 5)", "fluency (1 to 5)"),
    "esa": (
        "score (0 to 100)",
        f"minor errors (the words; several with | between; {MISSING})",
        "major errors (the same)",
    ),
    "pairwise": ("preferred (x; a tie: x at both)",),
    "best": ("best (x; several where they tie)",),
}
"""The columns that a judge fills in; what stands before the bracket is their name."""


def as_table(campaign: Campaign, judge: Judge) -> str:
    """The CSV file (RFC 4180) of a judge, with a byte order mark, by which spreadsheets know UTF-8.

    A text that a spreadsheet would take for a formula has an apostrophe before it (OWASP, "CSV Injection").
    """
    stream = io.StringIO()
    stream.write("\ufeff")
    table = csv.writer(stream, quoting=csv.QUOTE_ALL)
    reference = ["reference"] if campaign.show_reference else []
    table.writerow(["campaign", "judge", "item", "label", "source", *reference, "hypothesis", *ASKED[campaign.kind]])
    empty = [""] * len(ASKED[campaign.kind])
    for name in judge.items:
        item = campaign.by_id[name]
        context = [item.source, *(item.references[:1] if reference else ())]
        for shown in item.shown:
            texts = [harmless(text) for text in (*context, shown.text)]
            table.writerow([campaign.fingerprint, judge.name, item.id, shown.label, *texts, *empty])
    return stream.getvalue()


def harmless(text: str) -> str:
    """The text as a spreadsheet takes it for text: an apostrophe before what could begin a formula."""
    return f"'{text}" if FORMULA.match(text) else text


def read_table(campaign: Campaign, text: str) -> Iterator[Answer]:
    """The answers in a table that a judge filled in; items without any are left out.

    Columns are separated by commas, semicolons or tabs, as spreadsheets of different languages write them. Raises
    ValueError naming the line or the item where a cell cannot be read.
    """
    rows = _rows(text)
    given: dict[tuple[str, str], dict[str, Mapping[str, str]]] = {}
    for line, row in rows:
        if row["campaign"] != campaign.fingerprint:
            raise ValueError(f"line {line}: {ANOTHER.format(given=row['campaign'], wanted=campaign.fingerprint)}")
        labels = given.setdefault((row["judge"], row["item"]), {})
        if row["label"] in labels:
            raise ValueError(f"line {line}: item {row['item']} has label {row['label']} twice")
        labels[row["label"]] = row
    columns = [_name(column) for column in ASKED[campaign.kind]]
    for (name, item_id), labels in given.items():
        judge, item = campaign.judge(name), campaign.by_id.get(item_id)
        if judge is None:
            raise ValueError(f"{name!r:.60} is none of the campaign's {len(campaign.judges)} judges")
        if any(row.get(column) for row in labels.values() for column in columns):
            try:
                content = None if item is None else _content(campaign.kind, item, labels)
            except ValueError as error:
                raise ValueError(f"item {item_id}: {error}") from None
            yield answer_of(campaign, judge, item_id, content)


def _rows(text: str) -> list[tuple[int, dict[str, str]]]:
    """Each row with its line, by the names of the columns, white space around cells and names removed."""
    head = text.removeprefix("\ufeff").splitlines()[:1]
    separator = max(",;\t", key=lambda each: head[0].count(each)) if head else ","
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=separator, strict=True)
    try:
        names = [_name(name) for name in next(reader, [])]
        for name in ("campaign", "judge", "item", "label"):
            if name not in names:
                raise ValueError(f"line 1: no column {name}; is it a table that tfm judge make wrote?")
        found = []
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                if len(cells) != len(names):
                    raise ValueError(f"line {reader.line_num}: {len(cells)} columns, not {len(names)}")
                found.append((reader.line_num, dict(zip(names, cells, strict=True))))
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: is no CSV ({error})") from None
    return found


def _name(column: str) -> str:
    return column.partition("(")[0].strip().lower()


def _content(kind: Kind, item: Item, labels: Mapping[str, Mapping[str, str]]) -> dict[str, object]:
    """What stands in the rows of an item, in the form of the page's file."""
    if kind in ("pairwise", "best"):
        name = "preferred" if kind == "pairwise" else "best"
        chosen = [label for label, row in labels.items() if _is_crossed(label, row[name])]
        if kind == "best":
            return {"best": chosen}
        return {"preferred": "tie" if len(chosen) > 1 else chosen[0]}
    if kind == "likert":
        return {label: _numbers(label, row, ("adequacy", "fluency")) for label, row in labels.items()}
    found: dict[str, object] = {}
    for label, row in labels.items():
        text = item.by_label[label].text if label in item.by_label else ""
        found[label] = {**_numbers(label, row, ("score",)), "spans": _spans(label, row, text)}
    return found


def _is_crossed(label: str, cell: str) -> bool:
    if cell.lower() not in ("", "x", "×", "✓", "1"):
        raise ValueError(f"{label}: {cell!r:.60} is no x")
    return bool(cell)


def _numbers(label: str, row: Mapping[str, str], names: Sequence[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name in names:
        cell = row.get(name, "")
        if not cell:
            raise ValueError(f"{label}: {name} is missing")
        try:
            found[name] = float(cell.replace(",", "."))
        except ValueError:
            raise ValueError(f"{label}: {name}: {cell!r:.60} is no number") from None
    return found


def _spans(label: str, row: Mapping[str, str], text: str) -> list[dict[str, object]]:
    """The words of the cells, each found where it stands first and is not taken yet by the same words."""
    found: list[dict[str, object]] = []
    taken: dict[str, int] = {}
    for severity in ("minor", "major"):
        for words in filter(None, (each.strip() for each in re.split(r"[|\n]", row.get(f"{severity} errors", "")))):
            if words == MISSING:
                start = end = len(text)
            else:
                # a cell copied whole may have our apostrophe
                words = words if words in text else words.removeprefix("'")
                start = text.find(words, taken.get(words, 0))
                end = taken[words] = start + len(words)
            if start < 0:
                raise ValueError(f"{label}: {severity} errors: {words!r:.60} does not stand in the translation")
            found.append({"start": start, "end": end, "severity": severity})
    return found
