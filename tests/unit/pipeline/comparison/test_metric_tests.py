"""Scores with intervals, and tests against the baseline: what is tested with what, and what is not and why."""

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest
from scipy import stats

from tests.tiny_artifact import rewritten, signed
from tests.tiny_runs import add_texts, make_run
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.comparison import metric_tests
from tfm.pipeline.comparison.metric_tests import SignificanceResults, run_significance_tests
from tfm.pipeline.comparison.runs import compare_runs
from tfm.pipeline.comparison.seeds import group_by_seed, one_row_per_run
from tfm.pipeline.comparison.tables.as_json import comparison_as_json
from tfm.pipeline.comparison.tables.columns import comparison_columns
from tfm.pipeline.comparison.tables.latex import comparison_latex
from tfm.pipeline.comparison.tables.legend import legend_sentences
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.scoring.evaluation.segments import Segments
from tfm.pipeline.scoring.ledger import LedgerEntry, append_entries, texts_fingerprint
from tfm.pipeline.scoring.metrics.registry import Score
from tfm.pipeline.significance.paired_tests import PairedDifference, SystemResult, compare_systems
from tfm.pipeline.significance.seeds import SeedDifference
from tfm.pipeline.significance.segment_statistics import SegmentStatistics

WORDS = "der hund läuft über die straße und ein kind sieht ihn ÄPFEL كلب 狗 schnell".split()
DRAW = random.Random(1)
REFERENCES = [" ".join(DRAW.choices(WORDS, k=DRAW.randint(4, 9))) for _ in range(119)] + [""]


def said(share: float, seed: int = 1) -> list[str]:
    """The references, but that a share of the lines, drawn by a seed, has lost its last word."""
    draw = random.Random(f"{share} {seed}")
    return [text.rpartition(" ")[0] if draw.random() < share else text for text in REFERENCES]


def run_of(
    folder: Path,
    hypotheses: Sequence[str],
    metrics: Sequence[str] = ("exact_match",),
    references: Sequence[str] = REFERENCES,
    *,
    seed: int = 1,
    norm: str = "pre",
    images: Mapping[str, Any] = {},
    **more: Any,
) -> Path:
    segments = Segments("test", references, hypotheses, [references], **images)
    run = make_run(folder, seed=seed, model={"norm": norm})
    return add_texts(run, {"test": segments}, metrics=metrics, **more)


def outcome(
    folders: Sequence[Path], metrics: Sequence[str] = ("exact_match",), *, each: bool = False, **more: Any
) -> SignificanceResults:
    return run_significance_tests(
        compare_runs(folders, group_runs=one_row_per_run if each else group_by_seed, **more), metrics, NullReporter()
    )


def versus_of(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: measured.versus for name, measured in found.items() if measured.versus is not None}


@pytest.mark.slow
def test_chrf_is_tested_as_sacrebleu_tests_it(tmp_path: Path) -> None:
    systems = {"base": said(0.6), "good": said(0.2)}
    runs = [run_of(tmp_path / name, texts, ["chrf"]) for name, texts in systems.items()]
    found = outcome(runs, ["chrf"])
    assert (found.test, found.num_segments, found.notes) == ("test", 120, [])
    theirs: dict[str, list[Any]] = {}
    for kind in ("bs", "ar"):
        _, scores = PairedTest(list(systems.items()), {"chrf": CHRF()}, [REFERENCES], test_type=kind)()
        theirs[kind] = scores["chrF2"]
    for place, name in enumerate(systems):
        measured, bootstrap = found.runs["chrf"][name], theirs["bs"][place]
        assert measured.value == pytest.approx(bootstrap.score, abs=1e-9)
        assert measured.spread == bootstrap.ci
        assert measured.low < measured.value < measured.high
    versus = found.runs["chrf"]["good"].versus
    assert isinstance(versus, PairedDifference)
    assert (versus.p_bootstrap, versus.p_randomisation) == (theirs["bs"][1].p_value, theirs["ar"][1].p_value)
    assert versus.is_significant
    assert found.rows == found.runs


def test_a_note_says_where_sacrebleu_s_p_and_that_which_decides_disagree(tmp_path: Path) -> None:
    """Systems that differ in one segment: as far apart in every draw, which sacrebleu does not count."""
    base = said(0.5)
    other = ["what nobody asked for", *base[1:]]
    runs = [run_of(tmp_path / name, texts, ["chrf"]) for name, texts in (("base", base), ("other", other))]
    found = outcome(runs, ["chrf"])
    versus = found.rows["chrf"]["other"].versus
    assert isinstance(versus, PairedDifference)
    assert versus.p_randomisation < 0.001 < 0.9 < versus.p
    (note,) = found.notes
    assert note.startswith("other: chrf: p randomisation is sacrebleu's, which leaves out draws")
    assert note.endswith("with them p is 1.0000")


def test_captions_of_other_images_of_the_same_names_are_not_tested(tmp_path: Path) -> None:
    """They are told apart by their contents; and the same images under other names are tested."""
    base, others = said(0.5), {"same": "one", "dark": "other"}
    runs = [run_of(tmp_path / "base", base, images={"sources_are_names": True, "image_contents": "one"})]
    for name, contents in others.items():
        images = {"sources_are_names": True, "image_contents": contents}
        runs.append(run_of(tmp_path / name, said(0.3), images=images, norm=name))
    found = outcome(runs)
    assert list(versus_of(found.rows["exact_match"])) == ["same"]
    (warning,) = compare_runs(runs).notes
    assert "images:other instead of images:one" in warning


def test_holm_s_correction_is_over_all_runs_beside_the_baseline(tmp_path: Path) -> None:
    base = said(0.5)
    better = [list(base) for _ in range(3)]
    for system, num_mended in zip(better, (14, 8, 6), strict=True):
        wrong = [line for line, text in enumerate(base) if text != REFERENCES[line]]
        for line in wrong[:num_mended]:
            system[line] = REFERENCES[line]
    runs = [run_of(tmp_path / str(place), texts) for place, texts in enumerate([base, *better])]
    tests = versus_of(outcome(runs).runs["exact_match"])
    p = [tests[name].p for name in "123"]
    # swapping any of n lines that one side alone has right: 2 of 2^n ways are as far apart
    assert p == pytest.approx([2 * 0.5**14, 2 * 0.5**8, 2 * 0.5**6], rel=0.5, abs=3e-4)
    assert [tests[name].p_holm for name in "123"] == pytest.approx([3 * p[0], 2 * p[1], p[2]], rel=1e-12)
    other = versus_of(outcome(runs, baseline=runs[3]).runs["exact_match"])
    assert list(other) == ["0", "1", "2"]
    assert not other["2"].is_significant
    assert other["0"].difference == -tests["3"].difference


def test_an_interval_is_there_for_each_score_whether_it_compares_or_not(tmp_path: Path) -> None:
    others = [*REFERENCES[:-1], "another text"]
    runs = [
        run_of(tmp_path / "base", said(0.5)),
        run_of(tmp_path / "lower", said(0.4), lowercase=True),
        run_of(tmp_path / "other", said(0.4), references=others),
        run_of(tmp_path / "like", said(0.4, 2)),
    ]
    found = outcome(runs)
    assert list(versus_of(found.rows["exact_match"])) == ["like"]
    for measured in found.rows["exact_match"].values():
        # of a share of right lines the bootstrap is close to the binomial's normal interval
        share = measured.value / 100
        assert measured.spread == pytest.approx(196 * math.sqrt(share * (1 - share) / 120), rel=0.15)
    assert found.notes == []


def test_several_seeds_are_tested_over_seeds_and_segments(tmp_path: Path) -> None:
    shares = {"pre": (0.50, 0.55, 0.45), "post": (0.15, 0.10, 0.20)}
    runs = [
        run_of(tmp_path / f"{norm}-{seed}", said(share, seed), norm=norm, seed=seed)
        for norm, each in shares.items()
        for seed, share in enumerate(each, 1)
    ]
    found = outcome(runs)
    versus = found.rows["exact_match"]["post"].versus
    assert isinstance(versus, SeedDifference)
    assert versus.is_significant
    values = {norm: [found.runs["exact_match"][f"{norm}-{seed}"].value for seed in (1, 2, 3)] for norm in shares}
    assert versus.difference == pytest.approx(np.mean(values["post"]) - np.mean(values["pre"]), abs=1e-9)
    assert found.rows["exact_match"]["pre"].spread == pytest.approx(np.std(values["pre"], ddof=1), abs=1e-9)
    assert versus.p >= 0.2 * stats.ttest_ind(values["post"], values["pre"]).pvalue
    assert list(versus_of(found.runs["exact_match"])) == ["pre-2", "pre-3", "post-1", "post-2", "post-3"]
    quick = run_significance_tests(compare_runs(runs), ["exact_match"], NullReporter(), each_run=False)
    assert quick.rows == found.rows
    assert quick.runs == {}
    apart_ = outcome(runs, each=True)
    assert apart_.rows == found.runs


def test_one_seed_beside_several_is_not_tested_and_that_is_said(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / f"a-{seed}", said(0.5, seed), seed=seed) for seed in (1, 2)]
    runs += [run_of(tmp_path / "b", said(0.1), norm="post"), run_of(tmp_path / "c", said(0.1, 2), norm="other")]
    found = outcome(runs)
    assert versus_of(found.rows["exact_match"]) == {}
    assert found.rows["exact_match"]["b"].spread is not None
    assert found.notes == [f"b, c: exact_match: {metric_tests.ONE_SEED_REASON}"]
    beside_one = outcome([runs[2], *runs[:2], runs[3]])
    assert list(versus_of(beside_one.rows["exact_match"])) == ["c"]
    assert beside_one.notes == [f"a: exact_match: {metric_tests.ONE_SEED_REASON}"]


@pytest.mark.parametrize("lacking", ["a-2", "a-1"])
def test_where_a_seed_of_the_baseline_lacks_the_score_no_run_is_tested(tmp_path: Path, lacking: str) -> None:
    """Nor starred, in any form: what was tested is the difference from the baseline's first seed."""
    runs = []
    for seed in (1, 2):
        run = run_of(tmp_path / f"a-{seed}", said(0.9, seed), seed=seed)
        if run.name == lacking:
            content = json.loads((run / "scores" / "scores.json").read_text("utf-8"))
            del content["metrics"]["exact_match"]
            (run / "scores" / "scores.json").write_text(json.dumps(content), "utf-8")
            signed(run / "scores")
        runs.append(run)
    runs.append(run_of(tmp_path / "b", said(0.1), norm="post"))
    compared = compare_runs(runs)
    assert [row.name for row in compared.rows] == ["a", "b"]
    tested = run_significance_tests(compared, ["exact_match"], NullReporter())
    assert versus_of(tested.rows["exact_match"]) == {}
    assert f"a: exact_match: {metric_tests.MISSING_SEEDS_REASON}" in tested.notes
    assert any(note.startswith("b: exact_match: not tested: ") for note in tested.notes)
    assert not any(
        cell.is_significant
        for column in comparison_columns(compared, tested, ["exact_match"], format_duration=str)
        for cell in column.cells
    )
    assert "^{*}" not in comparison_latex(compared, tested, ["exact_match"])
    rows = {row["name"]: row["figures"]["test.exact_match"] for row in comparison_as_json(compared, tested)["rows"]}
    assert "versus" not in rows["b"]


@pytest.mark.parametrize("seeds", [1, 2])
def test_one_segment_is_not_tested_and_has_no_interval(tmp_path: Path, seeds: int) -> None:
    runs = [
        run_of(
            tmp_path / f"{norm}-{seed}",
            [text],
            references=["a b c d e"],
            norm=norm,
            seed=seed,
            metrics=["chrf", "exact_match"],
        )
        for norm, text in (("pre", "a b c d"), ("post", "a b c d e"))
        for seed in range(1, seeds + 1)
    ]
    for found in (outcome(runs, ["chrf", "exact_match"]), outcome(runs, ["chrf", "exact_match"], each=True)):
        for rows in (*found.rows.values(), *found.runs.values()):
            for measured in rows.values():
                assert (measured.low, measured.high, measured.versus) == (None, None, None)
        assert any(metric_tests.ONE_SEGMENT_REASON in note for note in found.notes)
    compared = compare_runs(runs)
    text = comparison_latex(compared, outcome(runs, ["chrf"]), ["chrf"])
    assert seeds > 1 or r"\pm" not in text
    assert "Holm" not in text


def test_a_share_that_is_all_right_has_an_interval(tmp_path: Path) -> None:
    """Each draw of 20 right lines has 20 right ones: Wilson's interval knows that there could be wrong ones."""
    runs = [run_of(tmp_path / name, REFERENCES[:20], references=REFERENCES[:20], norm=name) for name in ("pre", "post")]
    for measured in outcome(runs).rows["exact_match"].values():
        assert (measured.low, measured.high) == (pytest.approx(83.8875, abs=1e-3), pytest.approx(100))
        assert measured.spread == pytest.approx((100 - 83.8875) / 2, abs=1e-3)


def test_the_correction_of_rows_is_over_the_tests_of_rows_as_the_legend_says(tmp_path: Path) -> None:
    """Seeds that share a row are not tested beside a baseline of one seed, and are none of its tests."""
    runs = [run_of(tmp_path / "base", said(0.5)), run_of(tmp_path / "y", said(0.3, 2), norm="post")]
    runs += [run_of(tmp_path / f"x-{seed}", said(0.45, seed + 3), norm="other", seed=seed) for seed in (1, 2)]
    runs += [run_of(tmp_path / "z", said(0.4, 9), norm="third")]
    compared = compare_runs(runs)
    tested = run_significance_tests(compared, ["exact_match"], NullReporter())
    tests = versus_of(tested.rows["exact_match"])
    assert list(tests) == ["y", "z"]
    assert len(versus_of(tested.runs["exact_match"])) == 4
    first, second = sorted(tests.values(), key=lambda each: each.p)
    assert (first.p_holm, second.p_holm) == (min(1, 2 * first.p), max(2 * first.p, second.p))
    (sentence,) = [each for each in legend_sentences(compared, tested, ["exact_match"], []) if "Holm" in each]
    assert sentence.endswith("after Holm's correction over 2 tests")


def noted(log_probs: Sequence[float | None], external: Sequence[float] = ()) -> list[dict[str, Any]]:
    """segments.jsonl of the test set."""
    rows = []
    for row, (log_prob, text) in enumerate(zip(log_probs, REFERENCES, strict=True)):
        known = {"log_prob": log_prob, "pieces": len(text.split()) + 1, "words": len(text.split())}
        numbers = {"länge": external[row]} if external else {}
        rows.append({"split": "test", "line": row + 1, **(known if log_prob is not None else dict.fromkeys(known))})
        rows[-1]["external"] = numbers
    return rows


def test_perplexity_is_tested_by_what_was_noted_of_each_segment(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    runs = []
    for name, worse in (("base", 1.0), ("better", 0.8)):
        nats = [None if not text else worse * len(text.split()) * draw.uniform(0.9, 1.1) for text in REFERENCES]
        lines = noted([None if each is None else -each for each in nats])
        total = sum(each or 0 for each in nats)
        units = {unit: sum(line[unit] or 0 for line in lines) for unit in ("pieces", "words")}
        characters = sum(map(len, REFERENCES))
        extra = {
            "perplexity": Score(math.exp(total / units["pieces"]), "unit:token"),
            "word_perplexity": Score(math.exp(total / units["words"]), "unit:word|count:1"),
            "bits_per_character": Score(total / math.log(2) / characters, "unit:code-point|count:1"),
        }
        runs.append(run_of(tmp_path / name, REFERENCES, noted=lines, extra=extra))
    names = ["perplexity", "word_perplexity", "bits_per_character"]
    found = outcome(runs, names)
    assert found.notes == []
    for name in names:
        versus = found.rows[name]["better"].versus
        assert versus is not None
        assert versus.is_significant
        assert versus.difference < 0
        assert versus.better


def test_an_external_metric_is_tested_by_its_numbers_and_its_signature_says_which_is_better(tmp_path: Path) -> None:
    runs = []
    for name, numbers in (("base", [0.5] * 120), ("more", [0.5 + (place % 3) / 10 for place in range(120)])):
        extra = {"länge": Score(float(np.mean(numbers)), "external:länge|better:lower|stat:mean")}
        runs.append(run_of(tmp_path / name, REFERENCES, noted=noted([None] * 120, numbers), extra=extra))
    versus = outcome(runs, ["länge"]).rows["länge"]["more"].versus
    assert versus is not None
    assert (versus.is_significant, versus.better) == (True, False)
    assert versus.difference == pytest.approx(0.1)
    found = compare_runs(runs, "länge")
    assert [run.name for run in found.runs] == ["base", "more"]


@pytest.mark.parametrize(
    ("extra", "lines", "why"),
    [
        ({"perplexity": Score(2.0, "unit:token")}, None, "scores/ has no figures per segment"),
        ({"perplexity": Score(2.0, "unit:token")}, noted([-1.0] * 120), "2.0000 in scores/, but 1.1"),
        (
            {"bits_per_character": Score(2.0, "unit:code-point")},
            noted([-1.0] * 120),
            "this metric has no figures per segment",
        ),
        ({"perplexity": Score(2.0, "unit:token")}, noted([None] * 120), "this metric has no figures per segment"),
        ({"token_accuracy": Score(2.0, "unit:token")}, noted([-1.0] * 120), "this metric has no figures per segment"),
    ],
)
def test_what_cannot_be_tested_is_said_with_the_reason(
    tmp_path: Path, extra: dict[str, Score], lines: list[dict[str, Any]] | None, why: str
) -> None:
    runs = [run_of(tmp_path / name, REFERENCES, noted=lines, extra=extra) for name in ("a", "b")]
    (metric,) = extra
    found = outcome(runs, [metric])
    assert versus_of(found.rows[metric]) == {}
    (note,) = found.notes
    assert note.startswith(f"a, b: {metric}: ")
    assert why in note


def test_without_the_baseline_s_score_others_have_an_interval_alone(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / "base", said(0.5)), *(run_of(tmp_path / n, said(0.4), ["accuracy"]) for n in "ab")]
    found = outcome(runs, ["accuracy"])
    assert {name: each.versus for name, each in found.rows["accuracy"].items()} == {"a": None, "b": None}
    assert found.notes == ["a, b: accuracy: not tested: the baseline has no such score"]


def test_a_metric_that_fails_costs_itself_alone(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / name, said(0.5), ["exact_match", "meteor"]) for name in "ab"]
    for run in runs:  # a folder that was there when it was scored
        config = {"metrics": ["meteor", "exact_match"], "wordnet": str(tmp_path / "nowhere")}
        rewritten(run / "scores", config={"evaluation": config})
    found = outcome(runs, ["meteor", "exact_match"])
    assert set(found.rows["exact_match"]) == {"a", "b"}
    assert found.rows["meteor"] == {}
    (note,) = found.notes
    assert note.startswith(f"a, b: meteor: not tested: {tmp_path}/nowhere")


def test_a_significant_difference_whose_interval_holds_0_is_called_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of two systems that write little else than punctuation, one three times as much as the other."""
    folders = [run_of(tmp_path / "good", REFERENCES), run_of(tmp_path / "bad", said(0.8), norm="post")]
    assert outcome(folders).notes == []

    def around_zero(systems: Sequence[SegmentStatistics], **more: Any) -> list[SystemResult]:
        first, second = compare_systems(systems, **more)
        assert second.versus is not None
        return [first, replace(second, versus=replace(second.versus, low=-90.0, high=0.0))]

    monkeypatch.setattr(metric_tests, "compare_systems", around_zero)
    found = outcome(folders)
    assert versus_of(found.rows["exact_match"])["bad"].is_significant
    assert found.notes == [f"bad: exact_match: {metric_tests.ZERO_IN_INTERVAL_MESSAGE}"]


def test_another_test_set_and_the_validation_split_are_tested_when_asked_for(tmp_path: Path) -> None:
    runs = []
    for name, share, other in (("a", 0.5, 0.2), ("b", 0.4, 0.9)):
        texts = {"test": said(share), "هارد 2": said(other)}
        run = make_run(tmp_path / name, model={"norm": name})
        segments = {test: Segments(test, REFERENCES, lines, [REFERENCES]) for test, lines in texts.items()}
        add_texts(run, segments, metrics=["exact_match"])
        valid = Segments("valid", REFERENCES[:20], said(other)[:20], [REFERENCES[:20]])
        runs.append(add_texts(run, {"valid": valid}, metrics=["exact_match"], ending="-valid"))
    main, hard, valid_ = (outcome(runs, test=test) for test in (None, "هارد 2", "valid"))
    assert [(each.test, each.num_segments) for each in (main, hard, valid_)] == [
        ("test", 120),
        ("هارد 2", 120),
        ("valid", 20),
    ]
    for found, shares, size in ((main, (0.5, 0.4), 120), (hard, (0.2, 0.9), 120), (valid_, (0.2, 0.9), 20)):
        equal = [np.array(said(share)[:size]) == np.array(REFERENCES[:size]) for share in shares]
        values = [measured.value for measured in found.rows["exact_match"].values()]
        assert values == pytest.approx([100 * each.mean() for each in equal], abs=1e-9)
    assert hard.rows["exact_match"]["b"].versus is not None
    assert hard.rows["exact_match"]["b"].versus.is_significant
    sorted_ = {test: compare_runs(runs, "test.exact_match", test=test).notes for test in ("هارد 2", "valid")}
    assert [len(notes) for notes in sorted_.values()] == [1, 0]  # validation is there to choose
    with pytest.raises(
        RecipeError, match=r"--test x: no run was scored on it: a was not scored on x, but on test, هارد 2"
    ):
        compare_runs(runs, test="x")


def test_scored_runs_that_the_ledger_does_not_have_are_named(tmp_path: Path) -> None:
    """Scored before it was begun, or elsewhere: "scored once" alone would be wrong."""
    runs = [run_of(tmp_path / name, said(0.5, place), norm=name) for place, name in enumerate(("pre", "post"))]
    assert list(outcome(runs).looked_at) == [], "where there is no ledger nothing is known"
    model = open_artifact(runs[0] / "model").fingerprint
    append_entries(
        tmp_path, [LedgerEntry(texts_fingerprint(REFERENCES), "test", model, "pre", "recipe")], NullReporter()
    )
    (look,) = outcome(runs).looked_at
    assert (look.num_models, look.unlisted) == (1, ("post",))
    assert "scored once, by 1 model of this folder, and by post, which the ledger does not have (" in str(look)
    append_entries(
        tmp_path,
        [LedgerEntry(texts_fingerprint(REFERENCES), "test", open_artifact(runs[1] / "model").fingerprint, "post", "")],
        NullReporter(),
    )
    (look,) = outcome(runs).looked_at
    assert (look.num_models, look.unlisted) == (2, ())


def test_a_wrong_seed_of_the_tests_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", "x")
    with pytest.raises(RecipeError, match="SACREBLEU_SEED"):
        outcome([run_of(tmp_path / "a", said(0.5))])
