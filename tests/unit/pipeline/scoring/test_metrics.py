"""Scores equal those of the tools whose names they carry, and say what they are."""

import json
import math
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rouge_score.rouge_scorer import RougeScorer

from tfm.data.errors import DataError
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.reports.evaluation_report import render_report, score_rows
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.breakdown import breakdown_by_length, random_samples, worst_samples
from tfm.pipeline.scoring.evaluation.assess import evaluate_segments
from tfm.pipeline.scoring.evaluation.scores_json import evaluations_as_json, evaluations_from_json
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.metrics.inapplicable_metrics import inapplicable_metrics
from tfm.pipeline.scoring.metrics.registry import METRIC_FUNCTIONS, bleu_effective_order, looks_tokenized, score_texts
from tfm.pipeline.scoring.perplexity import LikelihoodCounts, perplexity_scores
from tfm.pipeline.scoring.text_counts import CharacterCounts
from tfm.pipeline.scoring.validation import ValidationTranslator

WORDS = "der die das Hund Katze für läuft, schläft; sieht. 3,5 Übel-keit nicht! \u2028 (weiß) U.S.".split(" ")
CONFIG = EvaluationConfig()


def corpus(num_references: int, size: int = 60) -> tuple[list[str], list[list[str]]]:
    """Hypotheses and references that share about three words in four; the first hypothesis is empty."""
    draw = random.Random(7)
    references = [
        # none is white space alone, which would be no reference
        [" ".join(["Der", *draw.choices(WORDS, k=draw.randint(0, 14))]) for _ in range(size)]
        for _ in range(num_references)
    ]
    hypotheses = [
        " ".join(word for word in draw.choice(segment).split(" ") if draw.random() < 0.9) + draw.choice(["", " ja"])
        for segment in zip(*references, strict=True)
    ]
    return ["", *hypotheses[1:]], references


def write(file: Path, lines: list[str]) -> str:
    file.write_bytes("".join(line + "\n" for line in lines).encode())
    return str(file)


@pytest.mark.parametrize("num_references", [1, 2])
def test_bleu_chrf_and_ter_equal_the_sacrebleu_command(tmp_path: Path, num_references: int) -> None:
    hypotheses, references = corpus(num_references)
    files = [write(tmp_path / f"reference{i}", lines) for i, lines in enumerate(references)]
    command = [sys.executable, "-m", "sacrebleu", *files, "-i", write(tmp_path / "hypotheses", hypotheses)]
    # -b prints the bare number; width 15 shows every digit of a double
    bare = subprocess.run([*command, "-b", "-w", "15"], capture_output=True, text=True, check=True).stdout
    scores = score_texts(hypotheses, references, CONFIG)
    assert f"{scores['bleu'].score:.15f}" == bare.strip()
    assert 20 < scores["bleu"].score < 95
    told = subprocess.run(
        [*command, "-m", "bleu", "chrf", "ter", "-w", "15"], capture_output=True, text=True, check=True
    ).stdout
    with_words = subprocess.run(
        [*command, "-m", "chrf", "--chrf-word-order", "2", "-w", "15"], capture_output=True, text=True, check=True
    ).stdout
    entries = [*json.loads(told), json.loads(with_words)]
    for entry, name in zip(entries, ("bleu", "chrf", "ter", "chrf++"), strict=True):
        assert scores[name].score == pytest.approx(entry["score"], abs=1e-13)
        assert scores[name].signature == entry["signature"]
    assert f"nrefs:{num_references}|" in scores["bleu"].signature


def test_lowercase_and_tokenizer_are_in_the_signature() -> None:
    config = EvaluationConfig(lowercase=True, bleu_tokenize="char", metrics=("bleu", "chrf", "chrf++", "exact_match"))
    scores = score_texts(["der HUND"], [["Der Hund"]], config)
    assert "case:lc" in scores["chrf++"].signature
    assert "case:lc" in scores["bleu"].signature
    assert "tok:char" in scores["bleu"].signature
    assert "case:lc" in scores["chrf"].signature
    assert scores["bleu"].score == pytest.approx(100)
    assert scores["exact_match"].score == 100
    assert score_texts(["der HUND"], [["Der Hund"]], CONFIG)["exact_match"].score == 0


@pytest.mark.parametrize("kind", ["rouge1", "rouge2", "rougeL", "rougeLsum"])
def test_rouge_equals_rouge_score(kind: str) -> None:
    hypotheses, references = corpus(1)
    scorer = RougeScorer([kind])
    found = [
        scorer.score(reference, hypothesis)[kind]
        for hypothesis, reference in zip(hypotheses, references[0], strict=True)
    ]
    score = METRIC_FUNCTIONS[kind](hypotheses, references, EvaluationConfig(rouge_tokenize="rouge-score"))
    for mine, name in ((score.score, "fmeasure"), (score.recall, "recall"), (score.precision, "precision")):
        assert mine == pytest.approx(100 * sum(getattr(each, name) for each in found) / len(found), abs=1e-12)
    assert score.recall != pytest.approx(cast(float, score.precision), abs=1)
    for part in ("nrefs:1", "tok:[a-z0-9]+", "stem:no", "split:newline", "version:rouge-score-"):
        assert part in score.signature


def test_rouge_takes_the_best_reference_of_each_segment() -> None:
    hypotheses = ["a b", "c d"]
    score = METRIC_FUNCTIONS["rouge1"](hypotheses, [["a b", "x y"], ["x y", "c d"]], CONFIG)
    assert score.score == 100
    assert "nrefs:2|refs:best-f1|" in score.signature
    assert METRIC_FUNCTIONS["rouge1"](hypotheses, [["a b", "x y"]], CONFIG).score == 50


@pytest.mark.parametrize("kind", ["rouge1", "rouge2", "rougeL", "rougeLsum"])
def test_recall_and_precision_of_rouge_are_of_the_reference_with_the_best_f1(kind: str) -> None:
    hypotheses, references = corpus(3)
    scorer = RougeScorer([kind])
    best = [
        max((scorer.score(text, hypothesis)[kind] for text in segment), key=lambda each: each.fmeasure)
        for hypothesis, *segment in zip(hypotheses, *references, strict=True)
    ]
    score = METRIC_FUNCTIONS[kind](hypotheses, references, EvaluationConfig(rouge_tokenize="rouge-score"))
    assert score.recall == pytest.approx(100 * sum(each.recall for each in best) / len(best), abs=1e-12)
    assert score.precision == pytest.approx(100 * sum(each.precision for each in best) / len(best), abs=1e-12)
    # a short reference would have the greater recall, and the other one has the greater F1
    score = METRIC_FUNCTIONS["rouge1"](["a b c d"], [["a"], ["a b c x y"]], CONFIG)
    assert (score.recall, score.precision) == (pytest.approx(60), pytest.approx(75))


def test_the_table_and_the_page_have_rouge_s_recall() -> None:
    segments = Segments("test", None, ["a b c d"], [["a b c x y"]])
    found = evaluate_segments(segments, EvaluationConfig(metrics=("rouge1", "bleu")), seed=1, reporter=NullReporter())
    (_, f1, signature), (name, recall, of_recall), *others = score_rows(found)
    assert (f1, name, recall) == ("66.67", "ROUGE-1 recall", "60.00")
    assert of_recall == signature.replace("|stat:mean-f1*100|", "|stat:mean-recall*100|") != signature
    assert [row[0] for row in others] == ["BLEU"]
    page = render_report("test", [found], curves=None, inputs={})
    assert '<td>ROUGE-1 recall</td><td class="number">60.00</td>' in page
    content = evaluations_as_json([found])
    assert content["metrics"]["rouge1"].keys() == {"score", "signature", "recall", "precision"}
    assert evaluations_from_json(content) == [found]
    del content["metrics"]["rouge1"]["recall"], content["metrics"]["rouge1"]["precision"]  # as of former times
    (old,) = evaluations_from_json(content)
    assert [row[0] for row in score_rows(old)] == ["ROUGE-1", "BLEU"]


def test_exact_match_counts_any_reference_and_no_outer_space() -> None:
    score = METRIC_FUNCTIONS["exact_match"](["a ", "b", "c"], [["a", "x", "C"], ["x", "b", "x"]], CONFIG)
    assert score.score == pytest.approx(200 / 3)
    assert "nrefs:2" in score.signature


def test_empty_hypotheses_score_at_the_bottom() -> None:
    scores = score_texts(["", ""], [["ein Hund lief davon", "eine Katze"]], CONFIG)
    assert list(scores) == ["bleu", "chrf", "chrf++", "ter", "rouge1", "rouge2", "rougeL", "rougeLsum", "exact_match"]
    assert {name: score.score for name, score in scores.items()} == {**dict.fromkeys(scores, 0.0), "ter": 100.0}


def test_only_the_metrics_asked_for_are_computed_in_their_order() -> None:
    done: list[str] = []
    scores = score_texts(["a b c d"], [["a b c d"]], EvaluationConfig(metrics=("ter", "bleu")), done.append)
    assert list(scores) == done == ["ter", "bleu"]


@pytest.mark.promise("text")
@pytest.mark.parametrize(
    ("text", "without", "why"),
    [
        ("ab " * 1000, [], ""),
        ("ab " * 1001, ["ter"], "line 2 has 1,001 words; compared are at most 1,000"),
        ("ab " * 5001, ["ter", "rougeL", "rougeLsum"], "line 2 has 5,001 words; compared are at most 1,000"),
        ("a-" * 5001, ["rougeL", "rougeLsum"], "line 2 has 5,001 words; compared are at most 5,000"),
        ("a" * 200_001, ["bleu", "chrf"], "line 2 has 200,001 characters; compared are at most 200,000"),
    ],
    ids=["at the limit", "words", "more words", "marks that separate", "characters"],
)
def test_what_would_take_hours_for_a_long_segment_is_not_computed(text: str, without: list[str], why: str) -> None:
    config = EvaluationConfig(samples=2, metrics=("bleu", "chrf", "ter", "rouge1", "rougeL", "rougeLsum"))
    for hypothesis, reference in ((text, text[:2]), (text[:2], text)):
        hypotheses, references = ["ab", hypothesis], [["ab " * 4, reference]]
        missing = inapplicable_metrics(hypotheses, references, config)
        assert [name for name in config.metrics if name in missing] == without
        assert next(iter(missing.values()), "").startswith(why)
        segments = Segments("long", None, hypotheses, references)
        found = evaluate_segments(segments, config, seed=1, reporter=NullReporter())
        assert set(found.scores) == set(config.metrics) - set(without)
        assert found.missing == missing
        assert "</html>" in render_report("long", [found], curves=None, inputs={})


@pytest.mark.promise("text")
def test_a_validation_target_too_long_for_bleu_is_refused_before_training() -> None:
    split: Any = SimpleNamespace(
        source=SimpleNamespace(to_lists=list), images=None, texts=lambda: ([], ["a", "b" * 200_001])
    )
    with pytest.raises(DataError, match=r"line 2 has 200,001 characters.* for BLEU; .*validation\.bleu = false"):
        ValidationTranslator(split, cast(Any, None), DecodingConfig(), CONFIG)


def test_differing_counts_are_refused_with_both() -> None:
    with pytest.raises(DataError, match="3 hypotheses but 2 lines in reference 2"):
        score_texts(["a", "b", "c"], [["a", "b", "c"], ["a", "b"]], CONFIG)
    with pytest.raises(DataError, match="nothing to score"):
        score_texts([], [[]], CONFIG)


def test_tokenised_text_is_noticed_from_a_hundred_lines() -> None:
    assert not looks_tokenized(["ein Hund ."] * 99 + ["ein Hund."] * 50)
    assert looks_tokenized(["ein Hund ."] * 100)


def test_perplexity_divides_one_sum_by_tokens_words_and_characters() -> None:
    counts = LikelihoodCounts(
        num_references=1,
        num_segments=2,
        num_tokens=8,
        num_unknown=1,
        num_words=4,
        characters=CharacterCounts(20, 25),
        num_empty=3,
    )
    scores = perplexity_scores(-8 * math.log(2), counts, vocab_size=100)
    assert scores["perplexity"].score == pytest.approx(2)
    assert scores["word_perplexity"].score == pytest.approx(4)
    assert scores["bits_per_character"].score == pytest.approx(8 / 20)
    for part in ("unit:token", "count:8", "vocab:100", "segments:2", "unknown:1", "left-out-empty:3"):
        assert part in scores["perplexity"].signature
    assert "left-out-long" not in scores["perplexity"].signature


def test_perplexity_of_the_impossible_is_infinite() -> None:
    counts = LikelihoodCounts(
        num_references=1, num_segments=1, num_tokens=1, num_unknown=0, num_words=1, characters=CharacterCounts(1, 1)
    )
    assert perplexity_scores(-1e6, counts, vocab_size=9)["perplexity"].score == math.inf


def test_length_bins_hold_every_segment_once_in_about_equal_shares() -> None:
    texts = [" ".join("w" * (1 + row % 12)) for row in range(240)]
    hypotheses, references = corpus(2, 240)
    bins = breakdown_by_length(texts, hypotheses, references, CONFIG)
    assert [(group.shortest, group.longest) for group in bins] == [(1, 2), (3, 4), (5, 6), (7, 8), (9, 10), (11, 12)]
    assert [group.num_segments for group in bins] == [40] * 6
    rows = [row for row in range(240) if len(texts[row].split()) in (1, 2)]
    segments = [hypotheses[r] for r in rows], [[ref[r] for r in rows] for ref in references]
    assert bins[0].scores == {
        "bleu": bleu_effective_order(*segments, CONFIG),
        "chrf": METRIC_FUNCTIONS["chrf"](*segments, CONFIG),
    }


@pytest.mark.parametrize("lengths", [[5] * 50, [1] * 49 + [30], [3], list(range(1, 8))])
def test_length_bins_of_odd_corpora(lengths: list[int]) -> None:
    texts = [" ".join("w" * length) for length in lengths]
    bins = breakdown_by_length(texts, texts, [texts], CONFIG)
    assert sum(group.num_segments for group in bins) == len(lengths)
    assert 1 <= len(bins) <= 6
    assert all(one.longest < other.shortest for one, other in zip(bins, bins[1:], strict=False))


def test_samples_are_the_worst_and_the_same_random_ones_for_a_seed() -> None:
    references = [["guten Morgen", "gute Nacht", "bis bald", "danke"]]
    hypotheses = ["guten Morgen", "xyz", "bis balde", "danke"]
    worst = worst_samples(None, hypotheses, references, 2, config=CONFIG)
    assert [(sample.line, sample.hypothesis) for sample in worst] == [(2, "xyz"), (3, "bis balde")]
    assert worst[0].chrf < worst[1].chrf < 100
    drawn = random_samples(["a", "b", "c", "d"], hypotheses, references, 3, seed=1, config=CONFIG)
    assert drawn == random_samples(["a", "b", "c", "d"], hypotheses, references, 3, seed=1, config=CONFIG)
    assert len({sample.line for sample in drawn}) == 3
    assert all(sample.source == "abcd"[sample.line - 1] for sample in drawn)
    assert len(random_samples(None, hypotheses, references, 9, seed=1, config=CONFIG)) == 4
    assert worst_samples(None, hypotheses, references, 0, config=CONFIG) == []


def test_short_targets_are_as_good_by_length_as_they_are() -> None:
    """Of targets of three words, BLEU of four words would be 0 beside chrF 100."""
    texts = ["ein Hund läuft", "eine Katze schläft", "vier Mäuse laufen schnell weg"]
    bins = breakdown_by_length(texts, texts, [texts], CONFIG)
    assert [group.scores["bleu"].score for group in bins] == pytest.approx([100, 100])
    assert all("|eff:yes|" in group.scores["bleu"].signature for group in bins)
    found = evaluate_segments(Segments("short", texts, texts, [texts]), CONFIG, seed=1, reporter=NullReporter())
    assert "BLEU (effective order)" in render_report("short", [found], curves=None, inputs={})


def test_a_bin_of_lengths_without_a_reference_has_a_dash() -> None:
    sources, references = ["a", "b c", "d e f"], [["", "eins zwei drei vier", " "]]
    found = evaluate_segments(
        Segments("holes", sources, ["x"] * 3, references), CONFIG, seed=1, reporter=NullReporter()
    )
    assert [set(group.scores) for group in found.lengths] == [set(), {"bleu", "chrf"}, set()]
    assert render_report("holes", [found], curves=None, inputs={}).count('<td class="number">–</td>') == 4


def test_worst_samples_of_labels_are_those_with_fewest_right() -> None:
    """Not by chrF, to which POSITIVE beside NEGATIVE is half right, and 0 beside 1 no worse than 0 beside 10."""
    hypotheses, references = ["VERB", "10 7", "NEGATIVE", "5"], [["VERB", "10 8", "POSITIVE", ""]]
    config = EvaluationConfig(metrics=("accuracy",), samples=3)
    found = evaluate_segments(Segments("labels", None, hypotheses, references), config, seed=1, reporter=NullReporter())
    assert [(sample.line, sample.accuracy) for sample in found.worst] == [(3, 0), (4, 0), (2, 0.5)]
    page = render_report("labels", [found], curves=None, inputs={})
    assert "lowest share of right labels of the segment first" in page
    assert "line 2, 50 % of labels right" in page
    assert "chrF" not in page


def test_worst_samples_ignore_case_where_scores_do() -> None:
    hypotheses, references = ["EIN HUND", "ein Hund"], [["ein hund", "ein Bund"]]
    for lowercase, worst in ((False, 1), (True, 2)):
        (sample,) = worst_samples(None, hypotheses, references, 1, config=EvaluationConfig(lowercase=lowercase))
        assert sample.line == worst


@pytest.mark.parametrize(
    ("texts", "unit"),
    [
        (["x" * n for n in (2, 5, 9, 14)] * 5, "characters"),
        (["a b", "a b c"] * 5 + ["a b c d"], "words"),
        ([*["ab"] * 6, "a b c"], "words"),  # characters spread no further
        (["狗" * n for n in (2, 5, 9, 14)], "words"),  # each letter of these scripts is one
    ],
)
def test_lengths_are_of_characters_where_most_texts_have_as_many_words(texts: list[str], unit: str) -> None:
    bins = breakdown_by_length(texts, texts, [texts], EvaluationConfig())
    assert {each.unit for each in bins} == {unit}
    assert sum(each.num_segments for each in bins) == len(texts)
    assert len(bins) > 1
