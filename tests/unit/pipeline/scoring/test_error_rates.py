"""Error rates against jiwer, plain Levenshtein and the definition of SIGMORPHON's task 1."""

import gzip
import json
import random
from pathlib import Path

import jiwer
import pytest

from tests.cli.user import tfm, write_lines
from tests.meaning import plain_scores as plain
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.evaluation.assess import evaluate_segments
from tfm.pipeline.scoring.evaluation.evaluation import Evaluation
from tfm.pipeline.scoring.evaluation.scores_json import evaluations_as_json, evaluations_from_json
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics.error_rates import ERROR_RATES, count_errors
from tfm.pipeline.scoring.metrics.inapplicable_metrics import inapplicable_metrics
from tfm.pipeline.scoring.metrics.registry import score_texts
from tfm.pipeline.scoring.tables.errors import error_tables
from tfm.pipeline.significance.segment_statistics import segment_statistics

G2P = Path("../shared/data/g2p")
CONFIG = EvaluationConfig(metrics=ERROR_RATES)
LINES = EvaluationConfig(metrics=ERROR_RATES, words="line")


def pairs(count: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """Hypotheses that are references with words and letters changed, left out, doubled; some of nothing."""
    draw = random.Random(seed)
    references = [
        " ".join(draw.choices(["ab", "ba", "é", "한", "cab", "t͡s", "A"], k=draw.randint(1, 9))) for _ in range(count)
    ]
    hypotheses = []
    for text in references:
        letters = list(text)
        for _ in range(draw.randint(0, 6)):
            place = draw.randrange(len(letters) + 1)
            letters[place : place + draw.randint(0, 2)] = draw.choice([[], ["b"], [" ", "a"], ["한"]])
        hypotheses.append("".join(letters))
    return hypotheses, references


def scores(hypotheses: list[str], *references: list[str], config: EvaluationConfig = CONFIG) -> dict[str, float]:
    return {name: each.score for name, each in score_texts(hypotheses, references, config).items()}


def test_rates_and_kinds_of_edits_are_jiwers_and_rates_plain_ones() -> None:
    hypotheses, references = pairs(1000)
    found = scores(hypotheses, references)
    words, characters = jiwer.process_words(references, hypotheses), jiwer.process_characters(references, hypotheses)
    assert found["wer"] == pytest.approx(100 * words.wer, abs=1e-9)
    assert found["cer"] == pytest.approx(100 * characters.cer, abs=1e-9)
    assert found["per"] == found["wer"], "its units are between spaces"
    for name, theirs in ("wer", words), ("cer", characters):
        mine = count_errors(name, hypotheses, [references], CONFIG)
        assert (mine.insertions, mine.deletions, mine.substitutions) == (
            *(theirs.insertions, theirs.deletions),
            theirs.substitutions,
        )
        assert mine.units == theirs.hits + theirs.deletions + theirs.substitutions
    by_hand = sum(plain.edits(a.split(), b.split()) for a, b in zip(hypotheses, references, strict=True))
    assert found["wer"] == pytest.approx(100 * by_hand / sum(len(text.split()) for text in references), abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_each_pair_alone_is_jiwers(seed: int) -> None:
    hypotheses, references = pairs(1, seed)
    assert scores(hypotheses, references)["cer"] == pytest.approx(100 * jiwer.cer(references, hypotheses), abs=1e-9)


def test_confusions_are_counted_once_for_each_edit() -> None:
    hypotheses, references = pairs(60)
    found = count_errors("wer", hypotheses, [references], CONFIG)
    assert sum(count for _, _, count in found.confusions) <= found.insertions + found.deletions + found.substitutions
    assert all(wanted != given for wanted, given, _ in found.confusions)
    known = count_errors("wer", ["a x c", "x", "c d"], [["a b c", "b", "c"]], CONFIG)
    assert known.confusions == (("b", "x", 2), ("", "d", 1))
    assert (known.units, known.insertions, known.deletions, known.substitutions) == (5, 1, 0, 2)
    ((_, _, rows), (title, _, confused)) = error_tables({"wer": known})
    assert rows == [["wer", "word", "5", "1", "0", "2"]]
    assert (title, confused) == ("commonest confusions of wer", [["b", "x", "2"], ["(none)", "d", "1"]])


def test_of_several_references_the_nearest_counts_then_the_longest() -> None:
    found = scores(["a b c d"], ["a b c x"], ["a b c"], ["y"])
    assert found["wer"] == pytest.approx(100 / 4), "one edit beside four words, not beside three"
    first, second = pairs(80, 5)[1], pairs(80, 6)[1]
    hypotheses = pairs(80, 5)[0]
    edits = units = 0
    for text, *segment in zip(hypotheses, first, second, strict=True):
        best = min((plain.edits(text.split(), each.split()), -len(each.split())) for each in segment)
        edits, units = edits + best[0], units - best[1]
    assert scores(hypotheses, first, second)["wer"] == pytest.approx(100 * edits / units)
    assert scores(hypotheses, first, [""] * 80) == scores(hypotheses, first), "a blank line is no reference"
    assert "refs:fewest-edits" in score_texts(hypotheses, [first, second], CONFIG)["wer"].signature


def test_units_of_per_are_characters_where_no_reference_has_a_space() -> None:
    found = score_texts(["ging", "lief"], [["geht", "lief"]], CONFIG)
    assert found["per"].score == found["cer"].score == pytest.approx(100 * 3 / 8)
    assert "unit:code-point" in found["per"].signature
    assert "unit:between-spaces" in score_texts(["a b"], [["a c"]], CONFIG)["per"].signature


def test_blank_lines() -> None:
    assert scores(["", "a"], ["", "a"]) == dict.fromkeys(ERROR_RATES, 0.0)
    assert scores(["b", "a"], ["", "a"])["wer"] == 100, "what is said of nothing is an insertion"
    assert scores(["", "a"], ["b", "a"])["wer"] == 50
    assert inapplicable_metrics(["a"], [[""]], CONFIG) == dict.fromkeys(
        ERROR_RATES, "all references are blank: there is no unit to count errors in"
    )
    long = "a " * 50_001
    reasons = inapplicable_metrics([long], [["a"]], CONFIG)
    assert reasons["wer"] == "line 1 has 50,001 units; compared are at most 50,000"


@pytest.mark.parametrize("config", [CONFIG, LINES])
@pytest.mark.parametrize("name", ERROR_RATES)
def test_statistics_of_segments_give_the_score(name: str, config: EvaluationConfig) -> None:
    hypotheses, references = pairs(50)
    others = pairs(50, 3)[1]
    for columns in ([references], [references, others]):
        (found,) = segment_statistics(name, [hypotheses], columns, config)
        assert found.value == pytest.approx(scores(hypotheses, *columns, config=config)[name], abs=1e-9)
        assert not found.higher_is_better
        assert found.is_share == (config.words == "line" and name == "wer")


def sigmorphon(hypotheses: list[str], references: list[str]) -> tuple[float, float]:
    """WER and PER as the task defines them: words whose transcription is not the gold one; edits / phones of gold."""
    wrong = edits = phones = 0
    for given, gold in zip(hypotheses, references, strict=True):
        wrong += given.split() != gold.split()
        edits += plain.edits(given.split(), gold.split())
        phones += len(gold.split())
    return 100 * wrong / len(references), 100 * edits / phones


@pytest.mark.parametrize("language", ["dut", "kor"])
def test_rates_of_pronunciations_are_the_shared_tasks(language: str) -> None:
    file = G2P / f"{language}_dev.tsv.gz"
    if not file.exists():
        pytest.skip("needs ../shared/data/g2p")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        references = [line.rstrip("\n").split("\t")[1] for line in lines]
    draw = random.Random(2)
    hypotheses = [" ".join(phone for phone in text.split() if draw.random() < 0.95) for text in references]
    found = scores(hypotheses, references, config=LINES)
    assert (found["wer"], found["per"]) == pytest.approx(sigmorphon(hypotheses, references))


def test_errors_are_in_scores_json_and_in_the_report(tmp_path: Path) -> None:
    hypotheses, references = ["a <b> c", "x"], ["a b c", "y y"]
    found = evaluate_segments(Segments("test", None, hypotheses, [references]), CONFIG, seed=1, reporter=NullReporter())
    (again,) = evaluations_from_json(json.loads(json.dumps(evaluations_as_json([found]))))
    assert isinstance(again, Evaluation)
    assert again.errors == found.errors
    assert found.errors.keys() == {*ERROR_RATES}
    files = [write_lines(tmp_path / name, lines) for name, lines in (("h", hypotheses), ("r", references))]
    words = [word for name in ERROR_RATES for word in ("--metric", name)]
    done = tfm("evaluate", "--hypotheses", files[0], "--reference", files[1], *words, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert "commonest confusions of wer" in done.out
    assert "insertions" in done.out
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "Commonest confusions of wer on r" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
