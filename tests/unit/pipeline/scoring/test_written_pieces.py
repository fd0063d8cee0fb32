"""Lines of one side in pieces, with escapes or marks, in another case or moved by a line are warned of."""

import os
import random
import subprocess
from collections.abc import Callable

import pytest

from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.scoring.evaluation.text_warnings import hypothesis_warnings, reference_warnings
from tfm.pipeline.scoring.evaluation.written_pieces import written_pieces_warnings

TEXTS = ["unbelievable it's", "a house", "two houses", "x & y"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["un@@ believ@@ able it's", "a hou@@ se", "two hou@@ ses", "x"], "3 of 4 {side} hold pieces of subword"),
        (["\u2581un believ able", "\u2581a \u2581house", "\u2581x", "\u2581y"], "4 of 4 {side} hold pieces of Sen"),
        (["un ##believ ##able", "a hou ##se", "hou ##ses", "x"], "3 of 4 {side} hold pieces of WordPiece"),
        (["it \uffed's", "a house\uffed", "x \uffed.", "y"], "3 of 4 {side} hold joiners of OpenNMT"),
        (["it &apos;s", "&quot; a &quot;", "x &amp; y", "x"], "3 of 4 {side} hold Moses' escapes"),
        (["it&#39;s", "caf&eacute;", "a&nbsp;b", "&#x2019;"], "4 of 4 {side} hold escapes of HTML"),
        (["<s> a", "a </s>", "a <pad> <pad>", "[CLS] a [SEP]"], "4 of 4 {side} hold marks of a model"),
        (["a<|endoftext|>", "a <|im_end|>", "<|im_start|> a", "a </s>"], "3 of 4 {side} hold marks of a model"),
        (["deu_Latn a", "de_DE b", "__de__ c", ">>deu<< d"], "4 of 4 {side} begin with the code of a language"),
        (["a\u200bb", "a\u200e b", "sch\u00adiff", "x"], "3 of 4 {side} have marks that nobody sees"),
        (["\u6211 \u4eec", "\u6211 a \u4eec \u4eec", "\u0e01 \u0e02", "x"], "3 of 4 {side} have spaces between words"),
        (["\u6211,\u4eec", "\u306f?", "\u6211!", "x,"], "3 of 4 {side} have half-width marks"),
        (["a a\u02d0 l b", "h ou s e", "w x y z", "x y"], "3 of 4 {side} are letters between spaces"),
        (["cafe\u0301", "A\u030angstrom", "u\u0308ber", "x"], "3 of 4 {side} are not in NFC"),
    ],
)
def test_forms_of_one_side_alone_are_warned_of(lines: list[str], said: str) -> None:
    """BLEU of decomposed letters, of marks of a model or of references in pieces was low without a word."""
    for side, pair in (("hypotheses", (lines, TEXTS)), ("references", (TEXTS, lines))):
        (warning,) = written_pieces_warnings(*pair)
        assert warning.startswith(said.format(side=side))
        assert warning.endswith("; of the references none" if side == "hypotheses" else "; of the hypotheses none")
    assert written_pieces_warnings(lines, lines) == []
    assert written_pieces_warnings([lines[0], *TEXTS[1:]], TEXTS) == []


@pytest.mark.parametrize(
    ("line", "form", "text"),
    [
        ("un@@ believ@@ able a@@", "subword", "unbelievable a"),
        ("un ##believ ##able", "WordPiece", "unbelievable"),
        ("it&#39;s &eacute;", "escapes of HTML", "it's \u00e9"),
        ("deu_Latn a b", "code of a language", "a b"),
        ("a\u200bb \u200ec\u2066 \u0645\u06cc\u200c\u062e\u0648", "nobody sees", "ab c \u0645\u06cc\u200c\u062e\u0648"),
        ("cafe\u0301", "NFC", "caf\u00e9"),
    ],
)
def test_the_advised_command_gives_the_text(line: str, form: str, text: str) -> None:
    (warning,) = (each for each in written_pieces_warnings([line] * 3, ["x"] * 3) if form in each)
    command = warning.partition("as by ")[2].partition("; of the references")[0]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    given = subprocess.run(
        command.removesuffix(" FILE"), shell=True, input=f"{line}\n".encode(), capture_output=True, env=environment
    )
    assert given.stdout.decode() == f"{text}\n"


def test_of_many_lines_some_are_looked_at_all_over_the_file() -> None:
    plain = ["a plain house"] * 29_000
    pieces = [*plain[:20_000], *["a hou@@ se"] * 9_000]
    (warning,) = written_pieces_warnings(pieces, plain)
    assert warning.startswith("62 of 200 hypotheses that were looked at hold pieces of subword-nmt")
    assert written_pieces_warnings(plain, plain) == []
    words = [" ".join(random.Random(row).choices("abcdefghij", k=9)) for row in range(2_000)]
    moved, wanted = ["the header", *words[:-1]], words
    (warning,) = hypothesis_warnings(moved, [wanted], EvaluationConfig(), {})
    assert "of 200 hypotheses that were looked at are nearer to the reference in the line before" in warning


def test_texts_are_not() -> None:
    assert written_pieces_warnings(TEXTS, TEXTS) == []
    for lines in (
        ["me@@home", "a@@b c", "x@@y", "@@"],
        ["un@@ able", "a", "b", "c"],
        ["## a title", "C# #1", "a##b", "##"],
        ["AT&T; x", "R&D; y", "a & b;", "x"],
        ["a < s > b", "[1] x", "de a", "deu b"],
        ["\u0645\u06cc\u200c\u062e", "\U0001f469\u200d\U0001f52c", "caf\u00e9", "\u0938\u094d\u200d"],
        ["\u6211\u4eec a", "\uc548\ub155 \uc138\uacc4", "\u6211\u4eec", "x"],
    ):
        assert written_pieces_warnings(lines, TEXTS) == []


LINES = [f"The dog {row} sees cat {row * 7} near House {row % 9}." for row in range(40)]


@pytest.mark.parametrize(("change", "case"), [(str.lower, "lower"), (str.upper, "upper")])
def test_one_side_in_one_case_is_warned_of(change: Callable[[str], str], case: str) -> None:
    """BLEU of upper-case transcripts was 0.06 without a word."""
    config, changed = EvaluationConfig(), list(map(change, LINES))
    (warning,) = hypothesis_warnings(changed, [LINES], config, {})
    assert warning.startswith(f"the hypotheses are in {case} case, the references are not: --lowercase")
    (warning,) = hypothesis_warnings(LINES, [changed], config, {})
    assert warning.startswith(f"the references are in {case} case, the hypotheses are not")
    for quiet in (EvaluationConfig(lowercase=True), EvaluationConfig(metrics=("ter", "rouge1"))):
        assert hypothesis_warnings(changed, [LINES], quiet, {}) == []
    assert hypothesis_warnings(changed, [changed], config, {}) == []
    assert hypothesis_warnings([*changed[:36], *LINES[36:]], [LINES], config, {}) == []


@pytest.mark.parametrize("separator", [" ", ""])
def test_lines_moved_by_one_are_warned_of(separator: str) -> None:
    """A header above hypotheses and their last line missing gave a BLEU of nearly 0 without a word."""
    texts = [separator.join(chr(0x4E00 + (row * 37 + k * k) % 500) for k in range(12)) for row in range(60)]
    config = EvaluationConfig(metrics=("chrf",))
    for moved, place in ((["hypothesis", *texts[:-1]], "before"), ([*texts[1:], "x"], "after")):
        (warning,) = hypothesis_warnings(moved, [texts], config, {})
        assert f"hypotheses are nearer to the reference in the line {place} theirs" in warning
    for others in (texts, [*texts[:29], *texts[29:][::-1]], [texts[3]] * 60, ["x"] * 59 + texts[:1]):
        warnings = hypothesis_warnings(others, [texts], config, {})
        assert not [warning for warning in warnings if "another line" in warning or "theirs" in warning]


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_hypotheses_in_another_order_are_warned_of(share: float) -> None:
    """Output of fairseq-generate, not sorted or sorted as letters, had a BLEU of nearly 0 without a word."""
    draw = random.Random(1)
    words = [f"w{number}" for number in range(400)]
    texts = [" ".join(draw.choices(words, k=9)) for _ in range(120)]
    given = [" ".join(word if draw.random() >= share else "x" for word in text.split()) for text in texts]
    order = sorted(range(120), key=str)
    config = EvaluationConfig(metrics=("chrf",))
    assert hypothesis_warnings(given, [texts], config, {}) == []
    (warning,) = hypothesis_warnings([given[row] for row in order], [texts], config, {})
    assert "hypotheses are nearly the reference of another line: bring them into" in warning
    others = [" ".join(draw.choices(words, k=9)) for _ in range(120)]
    assert hypothesis_warnings(others, [texts], config, {}) == []


@pytest.mark.parametrize("character", ["\0", "\x07", "\x1b", "\r", "\x7f", "\x85", "\ufeff", "\ufffd"])
def test_characters_that_nobody_sees_are_warned_of_where_a_side_lacks_them(character: str) -> None:
    config = EvaluationConfig()
    damaged = [TEXTS[0], f"a{character} house", *TEXTS[2:]]
    (warning,) = hypothesis_warnings(damaged, [TEXTS], config, {})
    assert warning.startswith("1 of 4 hypotheses have ")
    assert f"(U+{ord(character):04X}, the first in line 2)" in warning
    assert hypothesis_warnings(damaged, [damaged], config, {}) == []
    assert any(each.startswith("1 of 4 references have ") for each in reference_warnings([TEXTS, damaged], config))


@pytest.mark.parametrize(
    "text", ["a\tb", "\u1780\u200b\u1780", "\U0001f469\u200d\U0001f52c", "a\u00a0\u2028b", "\u200fab"]
)
def test_tabs_joiners_and_marks_of_direction_are_text(text: str) -> None:
    assert hypothesis_warnings([text], [["a b"]], EvaluationConfig(), {}) == []
    assert reference_warnings([[text]], EvaluationConfig()) == []


def test_blank_hypotheses_are_warned_of_where_their_reference_is_not() -> None:
    config = EvaluationConfig()
    (warning,) = hypothesis_warnings(["", " ", "a", ""], [["a b", "b c", "c d", ""]], config, {})
    assert warning.startswith("2 of 4 hypotheses are blank, where references have text")
    assert hypothesis_warnings(["a", ""], [["a b", " "]], config, {}) == []
    assert len(hypothesis_warnings(["a", ""], [["a b", " "], ["", "b"]], config, {})) == 1


@pytest.mark.parametrize(
    "text", ["我爱北京天安门，天安门上太阳升。", "私は東京に行きますが、猫は家にいます。", "สวัสดีชาวโลกหนังสือเล่มใหม่"]
)
def test_word_error_rates_of_lines_without_spaces_are_warned_of(text: str) -> None:
    """WER was the share of wrong lines, unsaid, where chrF++ is a dash."""
    config = EvaluationConfig(metrics=["wer", "cer"])
    (warning,) = reference_warnings([[text, text]], config)
    assert warning.startswith("wer counts what stands between white space, which holds 0 % of the references' letters")
    for other in (config.model_copy(update={"words": "line"}), EvaluationConfig(metrics=["cer"])):
        assert reference_warnings([[text]], other) == []
    assert reference_warnings([[" ".join(text), "a dog", "안녕하세요 세계 새로운 책이"]], config) == []
