"""Spans of entities, as spaCy, doccano, prodigy, Label Studio, Rasa, CLUENER, SNIPS and brat have them, as a word and
its tag a line (IOB2).

    python docs/external/spans_to_conll.py entities.jsonl > train.conll
    python docs/external/spans_to_conll.py document.ann > train.conll        # brat: its text is in document.txt
    python docs/external/spans_to_conll.py --words < new.txt > words.txt

Words are letters and numbers with their marks, or single other characters; a word has the tag of the entity that any
part of it is of. `--words` divides lines of text likewise, as a model that learns these tags has to read them.
"""

import argparse
import json
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SPAN_KEYS = ("entities", "spans", "label", "labels", "annotations", "ents")
LABEL_KEYS = ("label", "labels", "tag", "entity", "entity_group")
Span = tuple[int, int, str]
Word = tuple[int, int]


def main() -> None:
    """Print the words of each text with their tags, and on stderr what could not be written."""
    arguments = argparse.ArgumentParser(description="Spans of entities to a word and its tag a line.")
    arguments.add_argument("file", nargs="?", type=Path, help="JSON Lines, one JSON array, or a .ann of brat")
    arguments.add_argument("--words", action="store_true", help="divide the lines of stdin into words")
    given = arguments.parse_args()
    if given.words:
        for line in sys.stdin:
            print(*(line[begin:end] for begin, end in find_words(line)))
        return
    if given.file is None:
        arguments.error("give a file of spans, or --words")
    num_partial = num_overlapping = 0
    for row in read_rows(given.file):
        if isinstance(row, dict) and row.get("answer", "accept") != "accept":
            continue  # prodigy's
        text, spans = text_and_spans(row)
        words = find_words(text)
        tags, overlapping = tag_words(words, spans)
        num_overlapping += overlapping
        edges = {edge for word in words for edge in word}
        num_partial += sum(not edges.issuperset(span[:2]) for span in spans)
        for (begin, end), tag in zip(words, tags, strict=True):
            print(text[begin:end], tag, sep="\t")
        if words:
            print()
    if num_partial:
        print("spans that begin or end within a word, whose words are whole:", num_partial, file=sys.stderr)
    if num_overlapping:
        print("spans that overlap a longer one and are left out:", num_overlapping, file=sys.stderr)


def read_rows(file: Path) -> Iterator[Any]:
    """The rows of a file of JSON Lines, of one array, or of brat."""
    if file.suffix == ".ann":
        return read_brat(file)
    content = file.read_text("utf-8-sig").strip()
    try:
        document = json.loads(content)
    except ValueError:
        return (json.loads(line) for line in content.split("\n") if line.strip())
    while isinstance(document, dict) and len(document) == 1:  # by the name of an intent, or of Rasa's data
        document = next(iter(document.values()))
    if isinstance(document, dict) and "common_examples" in document:
        document = document["common_examples"]
    is_rows = isinstance(document, list) and not (len(document) == 2 and isinstance(document[0], str))
    return iter(document if is_rows else [document])


def read_brat(file: Path) -> Iterator[dict[str, Any]]:
    """The lines of the text beside a file of brat, with their spans. A span of several parts is one from first to last.

    Its characters are counted over the whole text; a span over several lines is refused.
    """
    entities = (line.split("\t") for line in file.read_text("utf-8").splitlines() if line.startswith("T"))
    spans = []
    for _, name_and_places, *_ in entities:
        label, *places = name_and_places.replace(";", " ").split()
        spans.append((min(map(int, places)), max(map(int, places)), label))
    begin = 0
    with open(file.with_suffix(".txt"), encoding="utf-8", newline="") as stream:
        for line in stream:
            text, end = line.rstrip("\r\n"), begin + len(line)
            inside = [span for span in spans if begin <= span[0] < end]
            yield {"text": text, "spans": [[first - begin, last - begin, label] for first, last, label in inside]}
            begin = end


def text_and_spans(row: Any) -> tuple[str, list[Span]]:
    """The text of a row, and its spans in characters from 0. Raises SystemExit where there are none."""
    if isinstance(row, list) and len(row) == 2 and isinstance(row[1], dict):  # spaCy's training data
        row = {**row[1], "text": row[0]}
    if isinstance(row, dict) and isinstance(row.get("data"), list):
        row = join_parts(row["data"])
    fields = {**row, **(row.get("data") or {})} if isinstance(row, dict) else {}
    text = fields.get("text")
    if isinstance(fields.get("label"), dict):
        fields["label"] = spans_by_text(fields["label"])
    found = next((fields[key] for key in SPAN_KEYS if isinstance(fields.get(key), list)), None)
    if not isinstance(text, str) or found is None:
        sys.exit(f"a row has no `text` or no spans ({', '.join(SPAN_KEYS)}): {json.dumps(row)[:200]}")
    if found and isinstance(found[0], dict) and "result" in found[0]:  # Label Studio's, of the first annotator
        found = [each["value"] for each in found[0]["result"] if "value" in each and "start" in each["value"]]
    spans = [parse_span(each) for each in found]
    if wrong := [span for span in spans if not 0 <= span[0] < span[1] <= len(text)]:
        sys.exit(f"{wrong[0]} is no span of {text[:60]!r}, which has {len(text)} characters")
    return text, spans


def join_parts(parts: list[dict[str, str]]) -> dict[str, Any]:
    """The text of parts, as of SNIPS, of which some are entities, and the spans of these."""
    text, spans = "", []
    for part in parts:
        if "entity" in part:
            spans.append((len(text), len(text) + len(part["text"]), part["entity"]))
        text += part["text"]
    return {"text": text, "spans": spans}


def spans_by_text(places_by_text: dict[str, dict[str, list[list[int]]]]) -> list[list[Any]]:
    """The spans of CLUENER, by kind and text: their ends are the places of the last characters."""
    return [
        [begin, last + 1, kind]
        for kind, texts in places_by_text.items()
        for places in texts.values()
        for begin, last in places
    ]


def parse_span(span: Any) -> Span:
    """Begin, end and label of a span. Raises SystemExit where it is none."""
    if isinstance(span, dict):
        labels = next((span[key] for key in LABEL_KEYS if span.get(key) is not None), None)
        label = labels[0] if isinstance(labels, list) and labels else labels
        span = [span.get("start", span.get("start_offset")), span.get("end", span.get("end_offset")), label]
    if len(span) < 3 or not all(isinstance(each, int) for each in span[:2]) or not isinstance(span[2], str):
        sys.exit(f"{span!r:.200} is no span: its begin, end and label are asked for")
    return span[0], span[1], "_".join(span[2].split())


def find_words(text: str) -> list[Word]:
    """Begin and end of each word."""
    words: list[Word] = []
    goes_on = False
    for place, character in enumerate(text):
        kind = unicodedata.category(character)
        if character.isspace():
            goes_on = False
            continue
        is_joined = kind[0] == "M" or kind == "Cf"
        if words and words[-1][1] == place and (is_joined or (goes_on and kind[0] in "LN")):
            words[-1] = words[-1][0], place + 1
        else:
            words.append((place, place + 1))
        goes_on = kind[0] in "LN" or (is_joined and goes_on)
    return words


def tag_words(words: list[Word], spans: list[Span]) -> tuple[list[str], int]:
    """The tag of each word, and how many spans are left out since they overlap a longer one."""
    tags = ["O"] * len(words)
    num_overlapping = 0
    for begin, end, label in sorted({*spans}, key=lambda span: (span[0] - span[1], span)):
        places = [place for place, word in enumerate(words) if word[0] < end and begin < word[1]]
        if any(tags[place] != "O" for place in places):
            num_overlapping += 1
            continue
        for place in places:
            tags[place] = f"{'I' if place > places[0] else 'B'}-{label}"
    return tags, num_overlapping


if __name__ == "__main__":
    main()
