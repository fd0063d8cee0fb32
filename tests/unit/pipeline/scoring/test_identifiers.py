"""Names of utterances on the lines of transcripts."""

import pytest

from tfm.pipeline.scoring.evaluation.identifiers import identifier_warning

TEXTS = ["hello world", "yes", "", "no no"]


def named(texts: list[str], form: str) -> list[str]:
    return [form.format(text=text, name=f"utt_{number:03}") for number, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("form", "where"), [("{name} {text}", "begins with a name"), ("{text} ({name})", r"ends in a name")]
)
def test_names_of_utterances_are_warned_of(form: str, where: str) -> None:
    references, hypotheses = named(TEXTS, form), named(["hallo", "yes", "x", ""], form)
    said = identifier_warning(hypotheses, references)
    assert said is not None
    assert where in said
    assert "utt_000" in said
    assert said.endswith("which counts as a word: cut it from both files")
    said = identifier_warning(hypotheses[::-1], references)
    assert said is not None
    assert "are in another order than the references: sort both, and cut the names" in said
    assert identifier_warning(hypotheses[:2], references[:2]) is None


def test_texts_without_names() -> None:
    assert identifier_warning(TEXTS, TEXTS) is None
    assert identifier_warning(TEXTS, named(TEXTS, "{name} {text}")) is None
    assert identifier_warning(["1 a", "1 b", "1 c"], ["1 a", "1 b", "1 c"]) is None
    assert identifier_warning(["a1 x", "b2 y", "c3 z"], ["a1 x", "b2 y", "d3 z"]) is None
    assert identifier_warning(["12 7", "-5", "3.5 x"], ["12 7", "-5", "3.5 x"]) is None
    assert identifier_warning(["1089-13-00 A", "1089-13-01 B", "2-3-4"], ["1089-13-00 A", "1089-13-01 B", "2-3-4 C"])
