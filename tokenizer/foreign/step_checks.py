"""Steps of a tokenizer.json that somebody else may have made: no text becomes far longer by them, and no pattern tries
the same characters again and again."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import tokenizers

MAX_EXPANSION_FACTOR = 10_000
"""The maximum of characters that all steps make of one; published tokenizers have up to 1,000 (NFKD: 18)."""
INNER_STEP_KEYS = ("normalizers", "decoders", "pretokenizers")
MAX_EXPANSION_BY_STEP = {
    "NFKD": 18,
    "NFKC": 18,
    "NFD": 4,
    "NFC": 3,
    "Lowercase": 3,
    "BertNormalizer": 4,
    "ByteLevel": 4,
}
MAX_REGEX_REPEAT_COUNT = 16
"""A part of a pattern that may be repeated more often counts as one without a bound."""
_PATTERN_PART = re.compile(r"\\[gk]<|\\.|\[|\(|\)|\||\*|\+|\{(\d*)(,?)(\d*)\}", re.DOTALL)


def check_steps_bounded(backend: tokenizers.Tokenizer) -> None:
    """Raise ValueError for a tokenizer that makes far more of a text than any published one, or takes far longer."""
    steps = [json.loads(step.__getstate__()) for step in (backend.normalizer, backend.decoder) if step is not None]
    if total_expansion_factor(steps) > MAX_EXPANSION_FACTOR:
        raise ValueError("its normalizer or decoder makes a text too long: steps replace a character by many")
    if backend.pre_tokenizer is not None:
        steps.append(json.loads(backend.pre_tokenizer.__getstate__()))
    for pattern in (pattern for step in steps for pattern in step_patterns(step)):
        if has_nested_quantifier(pattern):
            raise ValueError(f"its pattern {pattern!r:.60} repeats what repeats, which may take forever")


def total_expansion_factor(steps: Sequence[Mapping[str, Any]]) -> float:
    """How many characters at most all steps make of one: the product over them.

    A Unicode form counts once, however often it is applied: what it has made it leaves as it is.
    """
    flat_steps = list(_flatten_steps(steps))
    forms = {str(step.get("type")) for step in flat_steps} & MAX_EXPANSION_BY_STEP.keys()
    return float(
        prod(MAX_EXPANSION_BY_STEP[form] for form in forms) * prod(_max_expansion_factor(step) for step in flat_steps)
    )


def _flatten_steps(steps: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for step in steps:
        inner = _inner_steps(step)
        yield from [step] if inner is None else _flatten_steps(inner)


def _max_expansion_factor(step: Mapping[str, Any]) -> float:
    """How many characters at most a step with a text of its own makes of one; 1 of other steps."""
    kind = step.get("type")
    if kind == "Replace":
        may_be_empty = "Regex" in step["pattern"] or not step["pattern"]["String"]
        return max(1, len(step["content"])) + bool(step["content"] and may_be_empty)
    if kind == "Prepend":
        return 1.0 + len(step["prepend"])
    return 18 if kind == "Precompiled" else 1


def step_patterns(step: Mapping[str, Any]) -> Iterator[str]:
    """The regular expressions of a step and of those inside it."""
    for inner in _inner_steps(step) or ():
        yield from step_patterns(inner)
    pattern = step.get("pattern")
    if isinstance(pattern, Mapping) and "Regex" in pattern:
        yield pattern["Regex"]


def has_nested_quantifier(pattern: str) -> bool:
    """Whether a group that repeats, chooses or refers to another is itself repeated without a bound, as `(a+)+` is.

    Such a pattern may try every way to divide a text, whose number doubles with each character.
    """
    varies, varies_before, position = [False], False, 0  # of each open group, and of the group just closed
    while (part := _PATTERN_PART.search(pattern, position)) is not None:
        varies_before = varies_before and part.start() == position
        text, position = part.group(), part.end()
        if text.startswith(("\\g", "\\k")):
            return True
        if text == "[":
            position, varies_before = _character_class_end(pattern, position), False
        elif text == "(":
            varies.append(False)
        elif text == ")" and len(varies) > 1:
            varies_before = varies.pop()
            varies[-1] |= varies_before
            continue
        elif text == "|":
            varies[-1] |= len(varies) > 1
        elif text in "*+" or (text[0] == "{" and _is_unbounded(part)):
            if varies_before:
                return True
            varies[-1] = True
        varies_before = False
    return False


def _is_unbounded(repetition: re.Match[str]) -> bool:
    low, comma, high = repetition.groups()
    return int(high or (0 if comma else low) or 0) > MAX_REGEX_REPEAT_COUNT or bool(comma and not high)


def _character_class_end(pattern: str, index: int) -> int:
    """The index at which a class of characters ends, which may hold others."""
    depth = 1
    while depth and index < len(pattern):
        num_skipped = 2 if pattern[index] == "\\" else 1
        depth += {"[": 1, "]": -1}.get(pattern[index], 0)
        index += num_skipped
    return index


def _inner_steps(step: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    return next((step[key] for key in INNER_STEP_KEYS if key in step), None)
