"""CIDEr-D is the paper's: by hand, by plain code of its equations, and beside what it says of itself."""

import hashlib
import json
import math
import random
from pathlib import Path

import pytest

from tests.cli.user import tfm
from tests.meaning import plain_scores as plain
from tests.meaning.plain_tokens import tokens_of_words
from tests.meaning.scripts import SCRIPTS
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.reports.evaluation_report import render_report, score_rows
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.evaluation.assess import evaluate_segments
from tfm.pipeline.scoring.evaluation.scores_json import evaluations_as_json, evaluations_from_json
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics.cider import (
    cider_d,
    cider_d_of_segments,
    document_frequencies,
    references_of_segments,
)
from tfm.pipeline.scoring.metrics.inapplicable_metrics import inapplicable_metrics
from tfm.pipeline.scoring.metrics.registry import score_texts

NUM = 8  # segments of a noisy corpus
CONFIG = EvaluationConfig(metrics=("cider_d",))


def values(hypotheses: list[str], *references: list[str]) -> list[float]:
    segments = references_of_segments(references)
    return cider_d_of_segments(hypotheses, segments, document_frequencies(segments))


def noisy(name: str, num_references: int) -> tuple[list[str], list[list[str]]]:
    """Captions of a script: words are left out, doubled or exchanged; some references are missing."""
    script, draw = SCRIPTS[name], random.Random(name)
    lines = [target for _, target in script.pairs(NUM, 3)]

    def said(line: str) -> str:
        words = list(line) if script.space == "" else line.split()
        for _ in range(draw.randint(0, 3)):
            place = draw.randrange(len(words))
            words[place : place + 1] = draw.choice(([], [words[place]] * 3, [draw.choice(words)]))
            words = words or ["x"]
        return script.space.join(words)

    columns = [lines, *([said(line) for line in lines] for _ in range(num_references - 1))]
    for column in columns[1:]:
        column[draw.randrange(NUM)] = ""
    hypotheses = [said(line) for line in lines]
    return ["", lines[1], *hypotheses[2:]], columns


@pytest.mark.parametrize("num_references", [1, 3])
@pytest.mark.parametrize("name", SCRIPTS)
def test_it_is_that_of_plain_code_in_every_script(name: str, num_references: int) -> None:
    hypotheses, references = noisy(name, num_references)
    documents = [[tokens_of_words(text) for text in each] for each in zip(*references, strict=True)]
    wanted = plain.cider_d([*map(tokens_of_words, hypotheses)], documents)
    assert values(hypotheses, *references) == pytest.approx(wanted, abs=1e-9)
    assert wanted[0] == 0 < max(wanted) <= 10 + 1e-9
    assert len(set(wanted)) > 2
    mean = score_texts(hypotheses, references, CONFIG)["cider_d"].score
    assert mean == pytest.approx(sum(wanted) / NUM, abs=1e-9)


def test_cases_by_hand() -> None:
    """Two documents: "a" is in both and weighs ln(2 / 2) = 0, every other n-gram ln 2."""
    references = ["a b c d e", "a x"]
    # equal texts: each of the four cosines is 1; of "a x" there are none of 3-grams and 4-grams
    assert values(["a b c d e", "a x"], references) == pytest.approx([10, 5])
    # "b c" beside "a b c d e": 2 of 4 weighted words, 1 of 4 pairs, lengths 3 apart
    cosines = 2 / math.sqrt(2 * 4) + 1 / math.sqrt(1 * 4)
    assert values(["b c", ""], references) == pytest.approx([10 / 4 * math.exp(-9 / 72) * cosines, 0])
    # 4 of 5 and 4 words, 3 of 4 pairs, 2 of 3 and 1 of 2; y and q, which no reference has, weigh ln 2; "a" nothing
    cosines = 4 / math.sqrt(5 * 4) + 3 / 4 + 2 / 3 + 1 / 2
    assert values(["b c d e y", "q"], references) == pytest.approx([10 / 4 * cosines, 0])
    assert values(["a", "a"], references) == [0, 0]


def test_repeating_a_word_gains_nothing() -> None:
    """Clipping: of "b b b b", one b counts, and the vector's length is that of four."""
    once, often = values(["b", "x"], ["b", "x"])[0], values(["b b b b", "x"], ["b", "x"])[0]
    assert once == pytest.approx(10 / 4)
    assert often == pytest.approx(10 / 4 * math.exp(-9 / 72) / 4)


def test_several_references_are_a_document_and_their_mean_counts() -> None:
    """A reference that a segment lacks, or that has no words, counts neither in the mean nor as a document."""
    one = values(["a b", "x y"], ["a b", "x y"], ["a c", ""])
    # document 1 has a, b, c: each n-gram is in one of two documents; "a c" shares one word of two
    assert one == pytest.approx([10 / 4 * ((1 + 1) + 1 / 2) / 2, 5])
    assert values(["a b", "x y"], ["a b", "x y"], ["a c", "..."]) == one
    assert values(["a b", "x y"], ["a b", ""], ["a c", "x y"]) == one


def test_a_segment_without_references_scores_zero_and_is_no_document() -> None:
    score = cider_d(["a b", "x y", "z"], [["a b", "x y", " !"]], CONFIG)
    assert score.score == pytest.approx((5 + 5 + 0) / 3)
    assert "|documents:2|" in score.signature
    assert "|without-words:1|" in score.signature


def test_capitals_marks_and_forms_of_unicode_are_the_same_words() -> None:
    references = ["EIN GRÜNER Hund.", "كلب كبير!", "一只狗"]
    same = ["ein gru\u0308ner hund", "كلب، كبير", "一 只 狗。"]
    assert values(same, references) == pytest.approx(values(references, references))
    assert values(same, references) == pytest.approx([7.5, 5, 7.5])


def test_the_signature_holds_the_documents_and_a_hash_of_their_frequencies() -> None:
    references = [["a b", "A."]]
    score = cider_d(["a", "b"], references, CONFIG)
    digest = hashlib.sha256(json.dumps([2, [["a", 2], ["a b", 1], ["b", 1]]], separators=(",", ":")).encode())
    assert score.signature == (
        "nrefs:1|case:lc|tok:unicode-words|norm:nfc|n:4|sigma:6|df:references|documents:2"
        f"|df-sha256:{digest.hexdigest()[:12]}|stat:mean*10"
    )
    assert cider_d(["c", "d"], [["A b!", "a"]], CONFIG).signature == score.signature
    for others in (["a b", "b"], ["a b", "c"], ["a b", "a b"]):
        assert cider_d(["a", "b"], [others], CONFIG).signature != score.signature
    assert cider_d(["a", "b"], [["a b", "a"], ["", ""]], CONFIG).signature == score.signature, "blank: no reference"
    assert "nrefs:2|refs:mean|" in cider_d(["a", "b"], [["a b", "a"], ["c", "d"]], CONFIG).signature
    assert "nrefs:var|refs:mean|" in cider_d(["a", "b"], [["a b", "a"], ["", "c"]], CONFIG).signature


@pytest.mark.parametrize(
    ("references", "why"),
    [
        (["a dog"], "one segment alone has references with words: every n-gram's weight would be ln(1 / 1) = 0"),
        (
            ["a dog", "?", ""],
            "one segment alone has references with words: every n-gram's weight would be ln(1 / 1) = 0",
        ),
        (["a dog", "A dog."], "the references of all 2 texts have the same n-grams: every weight would be ln 1 = 0"),
        (["!", "?"], "no reference has 1 token (tok:unicode-words): it could only be 0"),
        (["", ""], "no reference has a word"),
    ],
    ids=["one segment", "one with words", "equal", "no words", "empty"],
)
def test_it_is_left_out_where_it_could_only_be_zero(references: list[str], why: str) -> None:
    hypotheses = ["a dog"] * len(references)
    assert inapplicable_metrics(hypotheses, [references], CONFIG) == {"cider_d": why}
    assert score_texts(hypotheses, [references], CONFIG) == {}
    found = evaluate_segments(Segments("test", None, hypotheses, [references]), CONFIG, seed=1, reporter=NullReporter())
    assert score_rows(found) == [("CIDEr-D", "–", why)]


def test_it_is_left_out_of_a_segment_that_would_take_gigabytes() -> None:
    why = "line 1 has 50,001 words; compared are at most 50,000"
    assert inapplicable_metrics(["a", "b"], [["ab " * 50_001, "b"]], CONFIG) == {"cider_d": why}
    assert inapplicable_metrics(["a", "b"], [["ab " * 50_000, "b"]], CONFIG) == {}
    assert inapplicable_metrics([], [], CONFIG) == {}


def test_tables_and_pages_have_it_with_four_digits() -> None:
    found = evaluate_segments(
        Segments("test", None, ["b c", "x"], [["a b c d e", "a x"]]), CONFIG, seed=1, reporter=NullReporter()
    )
    ((name, shown, signature),) = score_rows(found)
    assert (name, shown) == ("CIDEr-D", f"{found.scores['cider_d'].score:.4f}")
    page = render_report("test", [found], curves=None, inputs={})
    assert f'<td>CIDEr-D</td><td class="number">{shown}</td><td><code>{signature}</code>' in page
    assert evaluations_from_json(evaluations_as_json([found])) == [found]


def test_it_is_asked_for_and_not_among_the_default_metrics(tmp_path: Path) -> None:
    assert "cider_d" not in EvaluationConfig().metrics
    for name, text in (("given", "a b c d e\n\n"), ("asked", "a b c d e\na x\n"), ("other", "\nx\n")):
        (tmp_path / name).write_text(text)
    words = ("evaluate", "--hypotheses", tmp_path / "given", "--reference", tmp_path / "asked", "--json")
    done = tfm(*words, "--metric", "cider_d")
    assert done.code == 0
    assert json.loads(done.out)["metrics"]["cider_d"]["score"] == pytest.approx(5)
    several = json.loads(tfm(*words, "--reference", tmp_path / "other", "--metric", "cider_d").out)
    assert "nrefs:var|refs:mean|" in several["metrics"]["cider_d"]["signature"]
    (tmp_path / "asked").write_text("a b c d e\n")
    assert tfm(*words, "--metric", "cider_d").code == 65
