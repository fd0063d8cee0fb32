"""The campaign as Pearmut 1.1 opens it, and the annotations it writes (Zouhar and Kocmi 2026, arXiv 2601.02933).

Pearmut knows scores, sliders and error spans. A preference is a slider `best` under each text: 0 or 1, the larger wins.
It sends the names of models to the browser and takes some tags in a text for HTML, so it gets labels, and `<` before
what could be a tag as U+FF1C, which is as long.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from html import escape
from itertools import accumulate
from types import NoneType
from typing import Any

from tfm.data.errors import format_count
from tfm.data.json_documents import parse_json
from tfm.pipeline.judging.answers import TIE_ANSWER, Answer, check_names, parse_answer, quote_value
from tfm.pipeline.judging.campaign import SCALE_RANGES, Campaign, CampaignItem, CampaignKind
from tfm.pipeline.judging.forms.instructions import SCALE_STEPS, judge_instructions

RESET_EVENT = "__RESET__"  # an entry by which Pearmut takes back all that a user answered before
BEST_QUESTION = "best"
MAX_TIMESTAMP = 10**15
"""Seconds since 1970, or thousandths of them."""
MAX_APPENDED_LINES = 16
"""Units of what Pearmut appends to a text."""
PREFERENCE_INSTRUCTION = "Give 1 to each text that is best, and 0 to the others; the same number is a tie."


def campaign_id(campaign: Campaign) -> str:
    """The name under which Pearmut keeps the campaign."""
    return f"tfm-{campaign.fingerprint[:16]}"


def format_pearmut(campaign: Campaign) -> str:
    """The JSON file for `pearmut add`: one user a judge, each item a document of its own, in the order shown."""
    data = [[[_item_json(campaign, campaign.items_by_id[name])] for name in judge.items] for judge in campaign.judges]
    content = {"campaign_id": campaign_id(campaign), "info": _campaign_info(campaign), "data": data}
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _campaign_info(campaign: Campaign) -> dict[str, object]:
    scales = SCALE_RANGES[campaign.kind] or {BEST_QUESTION: (0, 1)}
    instructions = [*judge_instructions(campaign), *([] if SCALE_RANGES[campaign.kind] else [PREFERENCE_INSTRUCTION])]
    instructions += [f"{name}: {step}" for name in scales for step in SCALE_STEPS.get(name, ())]
    info: dict[str, object] = {
        "assignment": "task-based",
        "protocol": "ESA" if campaign.kind == "esa" else "DA",
        "users": [judge.name for judge in campaign.judges],
        "shuffle": False,  # the order of the texts is drawn already
        "show_model_names": False,
        "instructions": "<ul>" + "".join(f"<li>{escape(each)}</li>" for each in instructions) + "</ul>",
    }
    if campaign.kind != "esa":
        info["sliders"] = [{"name": name, "min": low, "max": high, "step": 1} for name, (low, high) in scales.items()]
    return info


def _item_json(campaign: Campaign, item: CampaignItem) -> dict[str, object]:
    texts = {shown.label: _escape_tags(shown.text) for shown in item.shown}
    fields: dict[str, object] = {"item_id": item.id, "campaign": campaign.fingerprint, "src": _escape_tags(item.source)}
    if campaign.show_reference and item.references:
        fields["ref"] = _escape_tags(item.references[0])
    return {**fields, "tgt": texts}


def _escape_tags(text: str) -> str:
    return re.sub(r"<(?=[A-Za-z/!?])", "＜", text)


def read_pearmut(campaign: Campaign, text: str) -> Iterator[Answer]:
    """The answers in annotations/ID.jsonl of its server, or in the annotations.json that its dashboard gives.

    The last of several answers to an item counts, as in Pearmut. Raises ValueError naming the line and the item.
    """
    last: dict[tuple[object, object], tuple[int, Answer]] = {}
    for line, entry in _log_entries(campaign, text):
        user, annotation = entry.get("user_id"), entry.get("annotation")
        if annotation == RESET_EVENT:
            last = {key: each for key, each in last.items() if key[0] != user}
            continue
        items = entry.get("item")
        if not isinstance(items, list) or not isinstance(annotation, list) or len(items) != len(annotation):
            raise ValueError(f"line {line}: has no items with an annotation each")
        for item, item_annotation in zip(items, annotation, strict=True):
            try:
                answer = _parse_answer(campaign, user, item, item_annotation, _answer_seconds(entry))
            except ValueError as error:
                raise ValueError(f"line {line}: {error}") from None
            last[user, answer.item.id] = line, answer
    yield from (answer for _, answer in last.values())


def _log_entries(campaign: Campaign, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The entries of the log with their line, or, of what the dashboard gives, their number."""
    try:
        content = parse_json(text.encode())
    except ValueError:
        content = {}
    if content and "annotation" not in content:
        entries = content.get(campaign_id(campaign))
        if not isinstance(entries, list):
            raise ValueError(f"has no annotations of campaign {campaign_id(campaign)}, but of {', '.join(content):.60}")
        for number, entry in enumerate(entries, 1):
            if not isinstance(entry, dict):
                raise ValueError(f"line {number}: {quote_value(entry)} is no entry of its log")
            yield number, entry
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, parse_json(line.encode())
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None


def _parse_answer(
    campaign: Campaign, user: object, item: object, item_annotation: object, seconds: float | None
) -> Answer:
    judge = campaign.find_judge(user)
    if judge is None:
        raise ValueError(
            f"user {quote_value(user)} is not one of the campaign's {format_count(len(campaign.judges), 'judge')}"
        )
    if not isinstance(item, dict) or not isinstance(item_annotation, dict):
        raise ValueError("an item or its annotation is no object")
    campaign.check_fingerprint(item.get("campaign"))
    name = item.get("item_id")
    campaign_item = campaign.items_by_id.get(name) if isinstance(name, str) else None
    if campaign_item is None:
        raise ValueError(f"item {quote_value(name)}: no item of the campaign")
    try:
        content = _answer_content(campaign.kind, campaign_item, item_annotation)
    except ValueError as error:
        raise ValueError(f"item {campaign_item.id}: {error}") from None
    return parse_answer(campaign, judge, campaign_item.id, content, seconds)


def _answer_content(kind: CampaignKind, item: CampaignItem, annotations: Mapping[str, Any]) -> dict[str, object]:
    """An annotation in the form of the page's file."""
    check_names(annotations, item.texts_by_label, "label")
    for label, annotation in annotations.items():
        if not isinstance(annotation, dict):
            raise ValueError(f"{label}: {quote_value(annotation)} is no annotation")
    if kind == "esa":
        return {
            label: {"score": annotation.get("score"), "spans": _parse_spans(item, label, annotation)}
            for label, annotation in annotations.items()
        }
    sliders = {label: each.get("sliders") for label, each in annotations.items()}
    for label, values in sliders.items():
        if not isinstance(values, dict):
            raise ValueError(f"{label}: sliders: {quote_value(values)} is no object")
    if kind == "likert":
        return sliders
    numbers = {label: values.get(BEST_QUESTION) for label, values in sliders.items()}
    for label, number in numbers.items():
        if isinstance(number, bool) or number not in (0, 1):
            raise ValueError(f"{label}: {BEST_QUESTION}: {quote_value(number)} is neither 0 nor 1")
    best = [label for label, number in numbers.items() if number == max(numbers.values())]
    if kind == "best":
        return {"best": best}
    return {"preferred": TIE_ANSWER if len(best) == 2 else best[0]}


def _parse_spans(item: CampaignItem, label: str, annotation: Mapping[str, Any]) -> list[dict[str, object]]:
    """Parse spans of errors: Pearmut counts UTF-16 units and includes the last; an added mark after the text means
    missing words.
    """
    sizes = (2 if character > "\uffff" else 1 for character in item.texts_by_label[label].text)
    units = list(accumulate(sizes, initial=0))  # before each character and, last, in the whole text
    parsed_spans: list[dict[str, object]] = []
    spans = annotation.get("error_spans")
    if not isinstance(spans, (list, NoneType)):
        raise ValueError(f"{label}: error_spans: {quote_value(spans)} is no list")
    for span in spans or ():
        if not isinstance(span, dict):
            raise ValueError(f"{label}: {quote_value(span)} is no span")
        first, last = span.get("start_i"), span.get("end_i")
        if type(first) is not int or type(last) is not int or not 0 <= first <= last < units[-1] + MAX_APPENDED_LINES:
            raise ValueError(f"{label}: a span from {first!r:.20} to {last!r:.20}, of {units[-1]:,} UTF-16 units")
        start = bisect_right(units, first) - 1
        end = min(bisect_right(units, last), len(units) - 1)
        parsed_spans.append({"start": start, "end": end, "severity": span.get("severity")})
    return parsed_spans


def _answer_seconds(entry: Mapping[str, Any]) -> float | None:
    """From the first to the last action on the document."""
    actions = entry.get("actions")
    if not isinstance(actions, (list, NoneType)):
        raise ValueError(f"actions: {quote_value(actions)} is no list")
    times = [_action_time(each) for each in actions or () if not isinstance(each, dict) or "time" in each]
    return max(times) - min(times) if times else None


def _action_time(action: object) -> float:
    time = action.get("time") if isinstance(action, dict) else None
    if isinstance(time, bool) or not isinstance(time, (int, float)) or not abs(time) <= MAX_TIMESTAMP:
        raise ValueError(f"actions: {quote_value(action)} has no time in seconds")
    return float(time)
