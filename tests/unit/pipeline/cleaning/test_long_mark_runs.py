"""Rules of `tfm clean` on lines of tens of thousands of combining marks, which `unicodedata` sorts by insertion."""

import unicodedata
from collections import Counter
from collections.abc import Callable

import pytest

from tfm.data.lines import MIN_LONG_RUN_CHARS, normalize_whitespace
from tfm.pipeline.cleaning.rules.corpora.text_keys import fold_numbers, fold_spelling
from tfm.pipeline.cleaning.rules.texts.config import RepairConfig
from tfm.pipeline.cleaning.rules.texts.repair import make_repair

NUM_MARKS = 4_000
TEXTS = {
    "in turn": "a" + "\u0301\u0323" * (NUM_MARKS // 2),
    "backwards": "a" + "\u035d" * (NUM_MARKS // 2) + "\u0323" * (NUM_MARKS // 2),
    "of two marks each": "\u0f40" + "\u0f73" * NUM_MARKS,
    "behind each word": ("a" + "\u035d\u0323" * 100 + " ") * 20,
}


@pytest.fixture
def insertion_steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The exchanges of neighbouring marks by which `unicodedata` sorts each text that it is given."""
    steps, original = list[int](), unicodedata.normalize

    def normalize_and_count(form: str, text: str) -> str:
        preceding, exchanges = Counter[int](), 0
        for character in "".join(original("NFD", each) for each in text):
            combining_class = unicodedata.combining(character)
            if combining_class == 0:
                preceding.clear()
            exchanges += sum(count for other, count in preceding.items() if other > combining_class > 0)
            preceding[combining_class] += combining_class > 0
        steps.append(exchanges)
        return original(form, text)  # type: ignore[arg-type]

    monkeypatch.setattr(unicodedata, "normalize", normalize_and_count)
    return steps


def repair(normal_form: str) -> Callable[[str], str]:
    return lambda text: make_repair(RepairConfig.model_validate({"normal_form": normal_form}))([text])[0]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    "rule", [fold_spelling, fold_numbers, normalize_whitespace, repair("nfc"), repair("nfkc")], ids=lambda _: ""
)
def test_steps_are_linear_in_the_number_of_marks(
    text: str, rule: Callable[[str], str], insertion_steps: list[int]
) -> None:
    result = rule(TEXTS[text])
    assert insertion_steps, "the text was normalized"
    assert sum(insertion_steps) <= MIN_LONG_RUN_CHARS * NUM_MARKS
    assert unicodedata.is_normalized("NFC", result)
    assert unicodedata.normalize("NFC", result.strip()) == unicodedata.normalize("NFC", TEXTS[text]).strip()
