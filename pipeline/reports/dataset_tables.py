"""The report on a dataset as text: tables, and a sentence on the cost of padding."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from unicodedata import combining

from tfm.data.errors import escape_unprintable, format_count
from tfm.pipeline.reports.dataset_report import LENGTH_BIN_EDGES, length_bin

MAX_CHARACTERS_SHOWN = 8
Table: TypeAlias = tuple[str, list[str], list[list[object]]]
_SIDES: Sequence[str] = ("source", "target")


def report_tables(report: Mapping[str, Any]) -> list[Table]:
    """The report as text: tables as (title, columns, rows). A side without any text is omitted."""
    splits = report["splits"]
    sides = [side for side in _SIDES if any(split[side]["tokens"] for split in splits.values())]
    return [
        *_image_table(splits),
        _size_table(splits, sides),
        _length_table(splits, sides),
        _dropped_table(splits["train"], "training", _row_noun(splits)),
        *([_dropped_table(splits["valid"], "held-out", _row_noun(splits))] if splits["valid"]["dropped"] else []),
        _overlap_table(report, sides),
        *_unwritable_table(splits),
    ]


def describe_batches(report: Mapping[str, Any]) -> str:
    """The cost of padding in a sentence. A task of one side may have other batches; another seed one more or less."""
    cost, train, noun = report["batches"], report["splits"]["train"], _row_noun(report["splits"])
    batches = " a side, as translation has them" if noun == "pair" else ", a row each"
    return (
        f"{'the first' if any('epochs' in each for each in train['corpora']) else 'an'} epoch: "
        f"{format_count(cost['rows_an_epoch'], noun)} in "
        f"{format_count(cost['batches_an_epoch'], 'batch', 'batches')} of at most "
        f"{cost['batch_tokens']:,} padded tokens{batches}; {cost['padding']:.1%} of the positions are padding"
    )


def _row_noun(splits: Mapping[str, Any]) -> str:
    """The word for a row of the training data: images have captions or labels beside them."""
    train = splits["train"]
    return "pair" if "images" in train or all(train[side]["tokens"] for side in _SIDES) else "text"


def _size_table(splits: Mapping[str, Any], sides: Sequence[str]) -> Table:
    rows: list[list[object]] = []
    for name, split in splits.items():
        tokens = [f"{split[side]['tokens']:,}" for side in sides]
        unknown = " | ".join(f"{split[side]['unknown_rate']:.3%}" for side in sides)
        rows.append([name, f"{split['rows']:,}", f"{split['share']:.1%}", *tokens, unknown, f"{split['repeated']:,}"])
    return "splits", ["split", "pairs", "share", *(f"{side} tokens" for side in sides), "unknown", "repeated"], rows


def _image_table(splits: Mapping[str, Any]) -> list[Table]:
    """Table of the counts of images, where sources are images."""
    rows: list[list[object]] = []
    for name, split in splits.items():
        if (images := split.get("images")) is not None:
            conversions = [f"{each['what']} {each['images']:,}" for each in images["conversions"]]
            counts = [f"{count:,}" for count in (images["refused"]["images"], images["left_out"]["files"])]
            rows.append([name, f"{images['stored']:,}", ", ".join(conversions) or "none", *counts])
    return [("images", ["split", "images", "conversions", "refused", "other files"], rows)] if rows else []


def _length_table(splits: Mapping[str, Any], sides: Sequence[str]) -> Table:
    """Lengths in tokens, each bin as shares of the sides."""
    rows: list[list[object]] = []
    for i in range(len(LENGTH_BIN_EDGES)):
        counts = [[split[side]["lengths"][length_bin(i)] for side in sides] for split in splits.values()]
        totals = [split["rows"] for split in splits.values()]
        if any(map(any, counts)):
            shares = [
                [f"{count / total:.1%}" if count else "" for count in split_values]
                for split_values, total in zip(counts, totals, strict=True)
            ]
            rows.append(
                [length_bin(i), *(" | ".join(f"{share:>6}" for share in split_values) for split_values in shares)]
            )
    return f"lengths in tokens, {' | '.join(sides)}", ["tokens", *splits], rows


def _dropped_table(split: Mapping[str, Any], kind: str, noun: str) -> Table:
    num_read = split["read"]
    rows: list[list[object]] = [[reason, f"{n:,}", f"{n / num_read:.2%}"] for reason, n in split["dropped"].items()]
    return f"dropped from the {num_read:,} {kind} {noun}s read", ["reason", f"{noun}s", "share"], rows


def _overlap_table(report: Mapping[str, Any], sides: Sequence[str]) -> Table:
    rows: list[list[object]] = []
    pair_columns = {"pairs": "whole pairs", "sources": "sources", "targets": "targets"}
    columns = pair_columns if "source" in sides else {"pairs": "whole texts"}
    if "images" in report["splits"]["train"]:
        columns = pair_columns | {"sources": "images"}
    for name, overlap in report["overlap"].items():
        total = report["splits"][name]["rows"]
        rows.append([name, *(f"{overlap[kind]:,} ({overlap[kind] / total:.1%})" for kind in columns)])
    return "also in the training data", ["split", *columns.values()], rows


def _unwritable_table(splits: Mapping[str, Any]) -> list[Table]:
    """The references that no model with this tokenizer can write, if there are any."""
    rows: list[list[object]] = []
    for name, split in splits.items():
        unwritable = split.get("unwritable")
        if unwritable and unwritable["segments"]:
            counts = [
                f"{unwritable[kind]:,} ({unwritable[kind] / split['rows']:.1%})"
                for kind in ("segments", "changed_by_normalization", "with_unknown_pieces")
            ]
            words = [f"{escape_unprintable(each['word'])} {each['times']:,}" for each in unwritable.get("words", ())]
            characters = [f"{_format_character(each)} {each['times']:,}" for each in unwritable["characters"]]
            items = (words or characters)[:MAX_CHARACTERS_SHOWN]
            rows.append([name, *counts, ", ".join(items)])
    unit = "words" if any((split.get("unwritable") or {}).get("words") for split in splits.values()) else "characters"
    columns = ["split", "references", "changed by normalization", "unknown pieces", f"{unit}, how often"]
    return [("references that the tokenizer cannot give back as they are", columns, rows)] if rows else []


def _format_character(entry: Mapping[str, Any]) -> str:
    """A character and its code point; only the code point if the character is not printable."""
    character, code_point = entry["character"], entry["code_point"]
    return f"{character} {code_point}" if character.isprintable() and not combining(character) else str(code_point)
