"""Tables filled in by hand: what was written into them is read, and no text in them is a formula."""

import csv
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.judged import HOSTILE, campaign, systems
from tfm.pipeline.errors import DataError
from tfm.pipeline.judging.answer_files import read_answers
from tfm.pipeline.judging.answers import Answer, ErrorSpan, Rating
from tfm.pipeline.judging.campaign import Campaign, CampaignKind
from tfm.pipeline.judging.forms.spreadsheet import escape_formula, make_spreadsheet

KINDS: tuple[CampaignKind, ...] = ("likert", "esa", "pairwise", "best")
Fill = Callable[[dict[str, str], int], None]


def rows_of(of: Campaign) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(make_spreadsheet(of, of.judges[0]).removeprefix("\ufeff"), newline="")))


def filled(of: Campaign, file: Path, fill: Fill, delimiter: str = ",") -> Path:
    """The table of the first judge, each row filled in by `fill`, which gets it with its number."""
    rows = rows_of(of)
    for number, row in enumerate(rows):
        fill(row, number)
    with open(file, "w", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
        table.writeheader()
        table.writerows(rows)
    return file


def column(row: dict[str, str], name: str) -> str:
    return next(each for each in row if each.partition("(")[0].strip() == name)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_has_all_that_a_judge_is_shown_and_no_more(kind: CampaignKind) -> None:
    of = campaign(kind, systems(3, 40), show_reference=kind == "esa")
    rows = rows_of(of)
    shown = [(item, each) for item in map(of.items_by_id.__getitem__, of.judges[0].items) for each in item.shown]
    assert [(row["item"], row["label"], row["source"], row["hypothesis"]) for row in rows] == [
        (item.id, each.label, item.source, each.text) for item, each in shown
    ]
    assert ("reference" in rows[0]) == (kind == "esa")
    text = make_spreadsheet(of, of.judges[0])
    assert not any(word in text for word in ("system 0", "check", "repeat", "damaged"))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_ratings_are_read_with_any_separator(tmp_path: Path, delimiter: str) -> None:
    of = campaign("likert", systems(3, 40))

    def fill(row: dict[str, str], number: int) -> None:
        row[column(row, "adequacy")], row[column(row, "fluency")] = str(1 + number % 5), f" {1 + number % 3} "

    answers = read_answers(of, [filled(of, tmp_path / "t.csv", fill, delimiter)])
    assert [answer.item.id for answer in answers] == list(of.judges[0].items)
    assert [answer.ratings["A"].scores for answer in answers] == [
        {"adequacy": 1 + number % 5, "fluency": 1 + number % 3} for number in range(len(answers))
    ]
    assert all(answer.seconds is None for answer in answers)


def test_a_table_of_long_texts_is_read(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    of = campaign(
        "likert",
        systems(1, 2, texts=["W" * (before + 1)]),
        num_segments=1,
        num_judges=1,
        repeat_share=0,
        attention_check_share=0,
    )
    file = tmp_path / "t.csv"
    file.write_text(make_spreadsheet(of, of.judges[0]).replace('"",""', '"4","5"'), encoding="utf-8")
    (answer,) = read_answers(of, [file])
    assert answer.ratings["A"].scores == {"adequacy": 4, "fluency": 5}
    assert csv.field_size_limit() == before


def test_errors_are_found_where_their_words_stand(tmp_path: Path) -> None:
    text = "-a 🐕 der Hund, der Hund | läuft"
    of = campaign(
        "esa", systems(1, 40, texts=[text]), repeat_share=0, attention_check_share=0, num_segments=1, num_judges=1
    )

    def fill(row: dict[str, str], number: int) -> None:
        assert row["hypothesis"] == f"'{text}"
        row[column(row, "score")] = "70,0"
        row[column(row, "minor errors")] = "der Hund|der Hund\n[missing]"
        row[column(row, "major errors")] = "'-a 🐕"

    answer = read_answers(of, [filled(of, tmp_path / "t", fill)])[0]
    spans = (
        ErrorSpan(0, 4, "major"),
        ErrorSpan(5, 13, "minor"),
        ErrorSpan(15, 23, "minor"),
        ErrorSpan(31, 31, "minor"),
    )
    assert answer.ratings["A"] == Rating({"score": 70}, spans)
    assert [text[span.start : span.end] for span in spans] == ["-a 🐕", "der Hund", "der Hund", ""]


@pytest.mark.parametrize(("kind", "crossed"), [("pairwise", "A"), ("pairwise", "AB"), ("best", "BC"), ("best", "C")])
def test_what_is_crossed_is_preferred(tmp_path: Path, kind: CampaignKind, crossed: str) -> None:
    of = campaign(kind, systems(3, 40))
    name = "preferred" if kind == "pairwise" else "best"

    def fill(row: dict[str, str], number: int) -> None:
        row[column(row, name)] = "X" if row["label"] in crossed else ""

    answers = read_answers(of, [filled(of, tmp_path / "t", fill)])
    assert {answer.best for answer in answers} == {frozenset(crossed)}


@pytest.mark.parametrize("mark", ["x", "Ｘ", "ｘ", "×", "✓", "✔", "√", "1", "１"])
def test_a_mark_of_any_keyboard_is_one(tmp_path: Path, mark: str) -> None:
    of = campaign("pairwise", systems(3, 40))

    def fill(row: dict[str, str], number: int) -> None:
        row[column(row, "preferred")] = mark if row["label"] == "A" else ""

    assert {answer.best for answer in read_answers(of, [filled(of, tmp_path / "t", fill)])} == {frozenset("A")}


def test_full_width_digits_are_numbers(tmp_path: Path) -> None:
    of = campaign("esa", systems(3, 40))

    def fill(row: dict[str, str], number: int) -> None:
        row[column(row, "score")] = "６２．５"

    answers = read_answers(of, [filled(of, tmp_path / "t", fill)])
    assert {answer.ratings["A"].scores["score"] for answer in answers} == {62.5}


def test_rows_that_are_not_filled_in_are_left_out(tmp_path: Path) -> None:
    of = campaign("likert", systems(3, 40))

    def fill(row: dict[str, str], number: int) -> None:
        row[column(row, "adequacy")] = row[column(row, "fluency")] = "3" if number < 4 else ""

    file = filled(of, tmp_path / "t", fill)
    with pytest.raises(DataError, match=f"has not answered item {of.judges[0].items[4]} and"):
        read_answers(of, [file])
    found = read_answers(of, [file], partial=True)
    expected = [Answer("judge-1", of.items_by_id[name], None, {"A": Rating({"adequacy": 3, "fluency": 3})})
                for name in of.judges[0].items[:4]]  # fmt: skip
    assert found == expected


@pytest.mark.parametrize(
    ("kind", "name", "value", "said"),
    [
        ("likert", "adequacy", "6", "A: adequacy: 6 is no number from 1 to 5"),
        ("likert", "adequacy", "", "A: adequacy is missing"),
        ("likert", "adequacy", "good", "A: adequacy: 'good' is no number"),
        ("esa", "minor errors", "nowhere", "'nowhere' is not in the translation"),
        ("esa", "score", "101", "score: 101 is no number from 0 to 100"),
        ("pairwise", "preferred", "yes", "A: 'yes' is not a mark; write x where"),
        ("pairwise", "label", "A", "has label A twice"),
        ("likert", "campaign", "0", "line 2: is of another campaign"),
        ("likert", "judge", "me", "'me' is not one of the campaign's 2 judges"),
        ("likert", "item", "i9999", "item 'i9999': not an item that judge-1 was asked"),
        ("likert", "label", "B", "label 'B' is not one of A"),
        ("likert", "adequacy", "0_3", "A: adequacy: '0_3' is no number"),
        ("likert", "adequacy", "1" + "0" * 400, "A: adequacy: inf is no number from 1 to 5"),
        ("esa", "minor errors", "[missing]|" * 1001, "A: more than 1,000 errors are marked"),
    ],
)
def test_a_cell_that_cannot_be_read_is_refused_by_name(
    tmp_path: Path, kind: CampaignKind, name: str, value: str, said: str
) -> None:
    of = campaign(kind, systems(2, 40))
    wrong = 1 if (name, kind) == ("label", "pairwise") else 0

    def fill(row: dict[str, str], number: int) -> None:
        for each in ("adequacy", "fluency", "score"):
            row.update({key: "3" for key in row if key.startswith(each)})
        row.update({key: "x" for key in row if key.startswith("preferred")})
        if number == wrong:
            row[column(row, name)] = value

    with pytest.raises(DataError) as caught:
        read_answers(of, [filled(of, tmp_path / "t.csv", fill)])
    assert str(caught.value).startswith(f"{tmp_path / 't.csv'}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"a,b\n1,2\n", "no column campaign"),
        (b"campaign,judge,item,label,fluency\n", "no column adequacy"),
        (b"campaign,judge,item,label,adequacy,fluency,item\n", "line 1: 2 columns item"),
        (b"campaign,judge,item,label,adequacy,fluency\n1,2\n", "line 2: 2 columns, not 6"),
        (b'campaign,judge,item,label,adequacy,fluency\n"1,2\n', "is no CSV"),
        (b"campaign,judge,item,label\n\xe4\n", "is not UTF-8"),
        (b"campaign,judge,item,label,adequacy,fluency\n", "holds no answer"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(DataError, match=said):
        read_answers(campaign("likert", systems(1, 40)), [tmp_path / "t.csv"])


def test_no_text_is_a_formula(tmp_path: Path) -> None:
    judged = systems(1, 40, texts=HOSTILE)
    of = campaign("likert", [replace(judged[0])], num_segments=40, attention_check_share=0)
    for row in rows_of(of):
        for cell in row.values():
            assert not re.match(r"[\s'\"]*[=+\-@＝＋－＠\t\r]", cell) or cell.startswith("'")
    assert [escape_formula(text) for text in ("=1", "＝1", " \x0b=1", '"=1"', "\0=1", "a=1", "1-2", "")] == [
        *("'=1", "'＝1", "' \x0b=1", '\'"=1"', "'\0=1", "a=1", "1-2", ""),
    ]


def test_no_part_of_a_text_is_a_formula_where_the_separator_is_another(tmp_path: Path) -> None:
    texts = ("a;=1+1", "a\t=1", 'a;"=1"', "a\r@x", "a; - b", "a,=1")
    assert [escape_formula(text) for text in texts] == [
        *("a;'=1+1", "a\t'=1", 'a;\'"=1"', "a\r'@x", "a; - b", "a,=1"),
    ]
    of = campaign(
        "esa", systems(1, 40, texts=["a;=1+1"]), repeat_share=0, attention_check_share=0, num_segments=1, num_judges=1
    )

    def fill(row: dict[str, str], number: int) -> None:
        row[column(row, "score")], row[column(row, "minor errors")] = "1", row["hypothesis"]

    assert read_answers(of, [filled(of, tmp_path / "t", fill)])[0].ratings["A"].spans == (ErrorSpan(0, 6, "minor"),)
