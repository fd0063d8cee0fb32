"""Names of utterances on the lines of transcripts, and numbers of lines."""

import subprocess

import pytest

from tfm.pipeline.scoring.evaluation.identifiers import identifier_warnings

TEXTS = ["hello world", "yes", "", "no no"]


def named(texts: list[str], form: str) -> list[str]:
    return [form.format(text=text, name=f"utt_{number:03}") for number, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("form", "where"), [("{name} {text}", "begins with a name"), ("{text} ({name})", r"ends in a name")]
)
def test_names_of_utterances_are_warned_of(form: str, where: str) -> None:
    references, hypotheses = named(TEXTS, form), named(["hallo", "yes", "x", ""], form)
    (said,) = identifier_warnings(hypotheses, references)
    assert where in said
    assert "utt_000" in said
    assert said.endswith("which counts as a word: cut it from both files")
    (said,) = identifier_warnings(hypotheses[::-1], references)
    assert "are in another order than the references: sort both, and cut the names" in said
    assert identifier_warnings(hypotheses[:2], references[:2]) == []


@pytest.mark.parametrize(
    ("form", "place"), [("{name} {text} x", "begins with a name"), ("{text} x ({name})", "ends in a name")]
)
def test_names_of_one_side_alone_are_warned_of(form: str, place: str) -> None:
    """Each line had a word too many, and only names on both sides were told."""
    for hypotheses, references, side in ((named(TEXTS, form), TEXTS, "hypotheses"), (TEXTS, named(TEXTS, form), "ref")):
        (said,) = identifier_warnings(hypotheses, references)
        assert said.startswith(f"each line of the {side}")
        assert place in said
        command = said.partition("as by ")[2]
        cut = subprocess.run(command, shell=True, input="\n".join(named(TEXTS, form)), capture_output=True, text=True)
        assert [line.split() for line in cut.stdout.split("\n")] == [[*text.split(), "x"] for text in TEXTS]


@pytest.mark.parametrize("form", ["{} {}", "{}. {}", "{}) {}", "{}\t{}"])
@pytest.mark.parametrize("first", [0, 1, 998])
def test_numbers_of_lines_are_warned_of(form: str, first: int) -> None:
    numbered = [form.format(first + row, f"a {text}") for row, text in enumerate(TEXTS)]
    (said,) = identifier_warnings(numbered, TEXTS)
    assert said.startswith("each line of the hypotheses begins with its number, which counts as a word")
    command = said.partition("as by ")[2]
    cut = subprocess.run(command, shell=True, input="\n".join(numbered), capture_output=True, text=True)
    assert cut.stdout.split("\n") == [f"a {text}" for text in TEXTS]
    assert len(identifier_warnings(numbered, numbered)) == 2
    assert identifier_warnings(numbered[::-1], TEXTS) == []


def test_texts_without_names() -> None:
    assert identifier_warnings(TEXTS, TEXTS) == []
    for side in (["1 a", "1 b", "1 c"], ["12 7", "-5", "3.5 x"], ["1", "2", "3"]):
        assert identifier_warnings(side, side[::-1]) == []
    for side in (["1", "2", "3"], ["a1", "b2", "c3"]):
        assert identifier_warnings(side, ["a", "b", "c"]) == []
    assert identifier_warnings(["a1 x", "b2 y", "c3 z"], ["a1 x", "b2 y", "d3 z"]) == []
    names = ["1089-13-00 A", "1089-13-01 B", "2-3-4"]
    assert len(identifier_warnings(names, [*names[:2], "2-3-4 C"])) == 1
