"""Files of answers, in any form that judges give them back, read into one list."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tfm.data.errors import format_count
from tfm.data.json_documents import parse_json
from tfm.data.safe_files import read_bounded_file
from tfm.pipeline.errors import DataError
from tfm.pipeline.judging.answers import Answer, make_tie_answers, missing_items, parse_answer, quote_value
from tfm.pipeline.judging.campaign import MAX_CAMPAIGN_BYTES, Campaign, check_json_value_count
from tfm.pipeline.judging.forms.pearmut import read_pearmut
from tfm.pipeline.judging.forms.spreadsheet import parse_filled_spreadsheet

ZIP_MAGIC = b"PK\x03\x04"
ANSWERS_REMEDY = "the page saves them as JUDGE-answers.json, and Pearmut as annotations"


def read_answers(campaign: Campaign, files: Sequence[Path], *, partial: bool = False) -> list[Answer]:
    """All answers of some files, in the order given, and then the ties that these judges were not shown.

    partial: whether a judge may have left items out. Raises DataError, which names the file and the item, where an
    answer does not fit the campaign, where two files answer for the same judge, and, unless `partial`, where a judge
    has left out an item.
    """
    answers: list[Answer] = []
    came_from: dict[str, Path] = {}
    for file in files:
        file_answers = list(_read_answers(campaign, file))
        if not file_answers:
            raise DataError("holds no answer", file=file)
        for name in dict.fromkeys(answer.judge for answer in file_answers):
            if name in came_from:
                raise DataError(f"answers for {name}, for whom {came_from[name]} answers too", file=file)
            came_from[name] = file
        answers += file_answers
    missing = {} if partial else missing_items(campaign, answers)
    for name, items in missing.items():
        rest = f" and {len(items) - 1} more" if items[1:] else ""
        raise DataError(f"{name} has not answered item {items[0]}{rest}", file=came_from[name])
    judges = [judge for judge in campaign.judges if judge.name in came_from]
    return answers + [tie for judge in judges for tie in make_tie_answers(campaign, judge)]


def _read_answers(campaign: Campaign, file: Path) -> Iterator[Answer]:
    if not file.exists():
        raise DataError("no such file", file=file)
    try:
        data = read_bounded_file(file, max_bytes=MAX_CAMPAIGN_BYTES, follow_symlinks=True)
        if data.startswith(ZIP_MAGIC):
            raise DataError(
                "is a zip archive, as Excel workbooks and OpenDocument files are: save the sheet as CSV UTF-8, and "
                "give that",
                file=file,
            )
        if not data.strip():
            raise DataError("is empty", file=file)
        check_json_value_count(data)
        text = data.decode("utf-8")
        yield from _choose_reader(text)(campaign, text)
    except UnicodeDecodeError:
        raise DataError("is not UTF-8; save it as CSV UTF-8, or convert it", file=file) from None
    except ValueError as error:
        raise DataError(str(error), file=file) from None


def _choose_reader(text: str) -> Callable[[Campaign, str], Iterator[Answer]]:
    """The reader of a file, chosen by how the file begins, whatever its name. Raises ValueError for a judge's page."""
    begin = text.removeprefix("\ufeff").lstrip()[:1]
    if begin == "<":
        raise ValueError(f"is the page of a judge, not the answers: {ANSWERS_REMEDY}")
    if begin not in ("{", "["):
        return parse_filled_spreadsheet
    try:
        content = parse_json(text.encode())
    except ValueError:
        return (
            read_pearmut if '"annotation"' in text else _read_page_answers
        )  # of the two only Pearmut's has several lines
    lists = all(isinstance(each, list) for each in content.values())
    return (
        read_pearmut
        if "annotation" in content or (content and lists and "answers" not in content)
        else _read_page_answers
    )


def _read_page_answers(campaign: Campaign, text: str) -> Iterator[Answer]:
    """The answers of the file that the page gives at its end."""
    content = parse_json(text.encode())
    if content.get("format") is True or content.get("format") != 1 or not isinstance(content.get("answers"), list):
        raise ValueError(f"holds no answers of format 1: {ANSWERS_REMEDY}")
    campaign.check_fingerprint(content.get("campaign"))
    judge = campaign.find_judge(content.get("judge"))
    if judge is None:
        raise ValueError(
            f"{quote_value(content.get('judge'))} is not one of the campaign's "
            f"{format_count(len(campaign.judges), 'judge')}"
        )
    item_ids: set[object] = set()
    for number, entry in enumerate(content["answers"], 1):
        if not isinstance(entry, dict) or not {"item", "answer"} <= entry.keys():
            raise ValueError(f"answer {number} has no item and answer")
        answer = parse_answer(campaign, judge, entry["item"], entry["answer"], entry.get("seconds"))
        if answer.item.id in item_ids:
            raise ValueError(f"item {answer.item.id}: answered twice")
        item_ids.add(answer.item.id)
        yield answer
