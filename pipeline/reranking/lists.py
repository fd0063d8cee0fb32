"""Lists of the best translations of sources, as `tfm translate --n-best N --jsonl` prints them."""

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tfm.data.json_documents import parse_json
from tfm.pipeline.errors import DataError
from tfm.pipeline.inference.translation_records import Translation, join_to_one_line

MAX_LOG_PROB = 1e-3
"""The logarithm of a probability of 1, and what floating point may add to it."""
MIN_LOG_PROB = -1e9
"""No translation of a text is less likely: its weighted sums are finite numbers."""
OTHER_FORMS = {
    "Moses' n-best lists": re.compile(r"\s*\d+ \|\|\| .* \|\|\| "),
    "fairseq-generate": re.compile(r"[STHDP]-\d+\t"),
}
"""Lines of other programs that have translations and their scores, but not source and log-probability together."""
NOT_JSON = re.compile(r"is damaged \((.*)\)")
"""The problem of a file of ours that is not JSON: of a list that a person gives the part between brackets is true."""
MAKE_LISTS_ADVICE = "give what `tfm translate MODEL FILE --n-best 20 --beam 20 --jsonl` prints"


@dataclass(frozen=True)
class NBestList:
    """A source and its translations, the best first as the model that wrote them has it; line: from 1, of its file."""

    source: str
    translations: tuple[Translation, ...]
    line: int = field(default=1, compare=False)


def read_lists(lines: Iterable[str], name: str) -> Iterator[NBestList]:
    """Read lists, a JSON document a line.

    Args:
        lines: the documents.
        name: of the file, for messages.

    Raises:
        DataError: a line is no list; the error names it.
    """
    for number, line in enumerate(lines, 1):
        try:
            yield _parse_list(line, number)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            reason = next(
                (f"a line of {form}" for form, pattern in OTHER_FORMS.items() if pattern.match(line)),
                f"there is no `{error.args[0]}`" if isinstance(error, KeyError) else " ".join(str(error).split()),
            )
            reason = NOT_JSON.sub(r"\1", reason)
            problem = f"is no list of translations ({reason:.100}): {MAKE_LISTS_ADVICE}"
            raise DataError(problem, file=name, line=number) from None


def no_choice_problem(lists: Iterable[NBestList]) -> str | None:
    """Return why there is nothing to choose, where each list has one translation; None where one has two."""
    if any(len(each.translations) > 1 for each in lists):
        return None
    return f"each list has one translation, so that there is nothing to choose: {MAKE_LISTS_ADVICE}"


def _parse_list(line: str, number: int) -> NBestList:
    document: Any = parse_json(line.encode("utf-8", "surrogatepass"))
    source, records = document["source"], document["translations"]
    if not isinstance(source, str) or not isinstance(records, list) or not records:
        raise ValueError("a source and one translation at least are wanted")
    if not all(isinstance(each, dict) for each in records):
        raise ValueError("a translation is no JSON object")
    translations = tuple(_parse_translation(each) for each in records)
    return NBestList(source, translations, number)


def _parse_translation(record: Any) -> Translation:
    text, count = record["text"], record["num_tokens"]
    score, log_prob = record["score"], record["log_prob"]
    if not isinstance(text, str) or type(count) is not int or not 0 <= count < 2**31:
        raise ValueError("`text` and `num_tokens` are a text and a whole number")
    if not all(type(each) in (int, float) and math.isfinite(each) for each in (score, log_prob)):
        raise ValueError("`score` and `log_prob` are finite numbers")
    if log_prob > MAX_LOG_PROB:
        raise ValueError(f"`log_prob` is {log_prob:g}, and no logarithm of a probability is above 0")
    if log_prob < MIN_LOG_PROB:
        raise ValueError(f"`log_prob` is {log_prob:g}, and that of no translation is below {MIN_LOG_PROB:g}")
    if text != join_to_one_line(text):
        raise ValueError("a translation is one line, and this one has a line break")
    return Translation(text, float(score), float(log_prob), count)


def list_as_json(nbest: NBestList, features: dict[str, list[float]], scores: list[float]) -> str:
    """Return a list with the features and the score of each translation, as a line.

    Args:
        nbest: the list, in the order that it has now.
        features: by name, of each translation.
        scores: of each translation.
    """
    translations = [
        {
            "text": translation.text,
            "score": scores[rank],
            "features": {name: values[rank] for name, values in features.items()},
        }
        for rank, translation in enumerate(nbest.translations)
    ]
    return json.dumps({"source": nbest.source, "translations": translations}, ensure_ascii=False)
