"""The stage: its files, its order, what it does after a kill, and how later stages read it."""

import json
import random
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.recording_reporter import Listening
from tfm.data.config import DataConfig
from tfm.data.corpora.remarks import collect_remarks
from tfm.data.corpora.sources import read_pairs, resolve_splits
from tfm.data.corpora.splits import Splits
from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.artifacts.artifact import open_artifact, stale_reason
from tfm.pipeline.cleaning import cleaner, corpora, late_scores, measurement, output, work_folder
from tfm.pipeline.cleaning.config import CleanConfig
from tfm.pipeline.cleaning.corpora import cleaned_splits
from tfm.pipeline.cleaning.decisions import apply_rules, percentile_limit
from tfm.pipeline.cleaning.limits import REPEATED_LIMIT, Limit
from tfm.pipeline.cleaning.rules.registry import CleaningRule
from tfm.pipeline.errors import DataError, WriteError
from tfm.pipeline.stages.clean import clean, plan_clean, show_dry_run

SCORER = "import json, sys\nfor line in sys.stdin: print(len(json.loads(line)['hypothesis']), flush=True)"
EXTERNAL = {"name": "size", "command": [sys.executable, "-c", SCORER], "percentile": 10}
CONFIG = CleanConfig.model_validate(
    {
        "length": {"max": 8},
        "ratio": {"max": 2.0},
        "copies": {"percentile": 10.0},
        "boilerplate": {"max": 1},
        "duplicates": {"ignore": "case"},
        "external": [EXTERNAL],
    }
)


def text_pairs(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Pairs of which each rule of CONFIG drops some, with characters that lines and files may stumble over."""
    draw = random.Random(seed)
    words = ["one", "two", "Drei", "vier", "\u2028", "a\x00b", "é", "\ufeffx", "7", "end\r"]

    def text(most: int) -> str:
        return " ".join(draw.choice(words) for _ in range(draw.randrange(most)))

    pairs = [(text(10), text(9)) for _ in range(count)]
    return [(source, source) if draw.random() < 0.05 else (source, target) for source, target in pairs]


@pytest.fixture
def data(tmp_path: Path) -> DataConfig:
    """Two training corpora, one of which is JSON, and a test set."""
    lines = [json.dumps({"source": source, "target": target}) for source, target in text_pairs(150)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    for side in (0, 1):
        for name, seed, count in (("b", 2, 60), ("test", 3, 4)):
            text = "".join(f"{each[side]}\n" for each in text_pairs(count, seed))
            (tmp_path / f"{name}.{side}").write_text(text, "utf-8", newline="")
    second = CorpusConfig(source=str(tmp_path / "b.0"), target=str(tmp_path / "b.1"), weight=2.0, epochs=(1, 3))
    first = CorpusConfig(format="jsonl", path=str(tmp_path / "a.jsonl"))
    test = CorpusConfig(source=str(tmp_path / "test.0"), target=str(tmp_path / "test.1"))
    return DataConfig(train=(first, second), valid=(test,), tests={"test": test})


def run(data: DataConfig, out: Path, config: CleanConfig = CONFIG) -> Listening:
    heard = Listening()
    clean(config, data, out, command=["tfm", "clean"], reporter=heard)
    return heard


def contents(out: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in out.iterdir() if each.name != "manifest.json"}


def dropped(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "dropped.jsonl").read_text("utf-8").split("\n")[:-1]]


def test_each_pair_is_either_kept_as_later_stages_read_it_or_listed_with_its_reason(
    data: DataConfig, tmp_path: Path
) -> None:
    run(data, tmp_path / "clean")
    lost: dict[tuple[int, int], dict[str, Any]] = {
        (each["corpus"], each["pair"]): each for each in dropped(tmp_path / "clean")
    }
    assert {each["rule"] for each in lost.values()} >= {"length", "ratio", "copies", "boilerplate", "empty", "size"}
    kept = cleaned_splits(resolve_splits(data), tmp_path / "clean").train
    assert [(each.weight, each.epochs) for each in kept] == [(1.0, None), (2.0, (1, 3))]
    for number, (before, after) in enumerate(zip(data.train, kept, strict=True)):
        left = iter(read_pairs(after))
        for row, pair in enumerate(read_pairs(before), 1):
            wanted = tuple(side.replace("\x00", "").replace("\ufeff", "") for side in pair)
            entry = lost.pop((number, row), None)
            assert (next(left) if entry is None else (entry["source"], entry["target"])) == wanted
        assert next(left, None) is None
    assert not lost


@pytest.mark.parametrize(
    "texts",
    [
        ("a dog\r", "a cat\r"),
        ("<html><p>a dog</p></html>", "<html><p>a cat</p></html>"),
        ("dog B-LOC", "cat O"),
        ('{"id": 1}', '{"id": 2}'),
        ("a\tb", "c\td", "e\tf", "g\th"),
    ],
)
def test_clean_text_is_read_as_texts_whatever_it_looks_like(tmp_path: Path, texts: tuple[str, ...]) -> None:
    """Each is fine in a table, of which a file of such lines is neither a part nor a document."""
    pairs = [(text, text.upper()) for text in texts]
    lines = [json.dumps({"source": source, "target": target}) for source, target in pairs]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    data = DataConfig(train=(CorpusConfig(format="jsonl", path=str(tmp_path / "a.jsonl")),))
    assert list(read_pairs(data.train[0])) == pairs
    config = CleanConfig(letters=None, copies=None)
    clean(config, data, tmp_path / "clean", whole_corpora=True, command=(), reporter=Listening())
    with collect_remarks() as remarks:
        (kept,) = cleaned_splits(Splits(data.train, (), {}), tmp_path / "clean").train
        assert list(read_pairs(kept)) == pairs
    assert not remarks


def test_the_table_of_scores_says_the_same_of_each_pair(data: DataConfig, tmp_path: Path) -> None:
    run(data, tmp_path / "clean")
    table = pq.read_table(tmp_path / "clean" / "scores.parquet").to_pylist()
    assert len(table) == 210
    reasons = {(each["corpus"], each["pair"]): each["dropped_by"] for each in table}
    found = {(each["corpus"], each["pair"]): each["rule"] for each in dropped(tmp_path / "clean")}
    assert {place: reason for place, reason in reasons.items() if reason is not None} == found
    first = [pair for corpus in data.train for pair in read_pairs(corpus)]
    for row, (source, target) in zip(table, first, strict=True):
        lengths = sorted(len(side.replace("\x00", "").split()) for side in (source, target))
        assert [row["length.shorter"], row["length.longer"]] == lengths
        assert (row["dropped_by"] == "length") <= (lengths[0] < 1 or lengths[1] > 8)
    measured = [row["size"] for row in table if row["size"] is not None]
    limit = sorted(measured)[len(measured) // 10]
    assert all((row["dropped_by"] == "size") == (row["size"] < limit) for row in table if row["size"] is not None)


def test_the_report_counts_what_was_dropped_and_shows_at_most_ten_of_each(data: DataConfig, tmp_path: Path) -> None:
    heard = run(data, tmp_path / "clean")
    report = json.loads((tmp_path / "clean" / "report.json").read_text("utf-8"))
    assert [each["read"] for each in report["corpora"]] == [150, 60]
    lost = dropped(tmp_path / "clean")
    for rule in report["rules"]:
        of_rule = [each for each in lost if each["rule"] == rule["rule"]]
        assert rule["dropped"] == len(of_rule)
        assert rule["alone"] >= rule["dropped"]
        if rule["changed"] is None:
            assert len(rule["examples"]) == min(10, len(of_rule))
    kept = sum(each["kept"] for each in report["corpora"])
    assert kept == 210 - len(lost)
    assert f"210 pairs read, {kept} kept ({kept / 210:.1%})" in heard.lines
    page = (tmp_path / "clean" / "report.html").read_text("utf-8")
    assert "<script" not in page
    assert "boilerplate: pairs that it dropped" in page


def test_made_once_it_is_up_to_date_until_rules_texts_or_tests_change(data: DataConfig, tmp_path: Path) -> None:
    out = tmp_path / "clean"
    run(data, out)
    assert stale_reason(plan_clean(CONFIG, data, out)) is None
    other = CONFIG.model_copy(update={"numbers": None, "length": None})
    assert "config changed: clean.length" in str(stale_reason(plan_clean(other, data, out)))
    with open(tmp_path / "b.0", "a", encoding="utf-8") as file:
        file.write("more\n")
    assert str(stale_reason(plan_clean(CONFIG, data, out))).startswith("input train: ")
    without = CONFIG.model_copy(update={"overlap": None})
    assert not [label for label in plan_clean(without, data, out).inputs if label.startswith("test")]


@pytest.mark.parametrize("workers", [1, 2])
def test_chunks_and_processes_change_no_byte(
    data: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    run(data, tmp_path / "whole")
    monkeypatch.setattr(corpora, "CHUNK_ROWS", 17)
    monkeypatch.setattr(late_scores, "ROWS_PER_SAVE", 5)
    monkeypatch.setattr(measurement, "num_processors", lambda: workers)
    run(data, tmp_path / "parts")
    whole, parts = contents(tmp_path / "whole"), contents(tmp_path / "parts")
    tables = [pq.read_table(tmp_path / name / "scores.parquet") for name in ("whole", "parts")]
    assert tables[0].to_pylist() == tables[1].to_pylist()  # row groups differ
    assert {**whole, "scores.parquet": b""} == {**parts, "scores.parquet": b""}


class Killed(BaseException):
    """The end at a moment that no code of ours foresees."""


@pytest.mark.few(1)
@pytest.mark.parametrize("moment", ["measuring", "scoring", "writing"])
def test_killed_it_goes_on_where_it_was_and_ends_with_the_same_bytes(
    data: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    monkeypatch.setattr(corpora, "CHUNK_ROWS", 20)
    monkeypatch.setattr(cleaner, "SECONDS_PER_SAVE", 0)
    monkeypatch.setattr(late_scores, "ROWS_PER_SAVE", 20)
    monkeypatch.setattr(measurement, "num_processors", lambda: 1)
    run(data, tmp_path / "whole")
    calls: list[int] = []
    owner, name, last = {
        "measuring": (measurement.ChunkMeasurer, "__call__", 5),
        "scoring": (late_scores, "_spread_scores", 3),
        "writing": (output, "format_lines", 6),
    }[moment]
    real = getattr(owner, name)

    def counted(*given: Any, **more: Any) -> Any:
        calls.append(1)
        if len(calls) == last:
            raise Killed
        return real(*given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, counted)
        with pytest.raises(Killed):
            run(data, tmp_path / "again")
        assert (tmp_path / ".again.work" / "progress.json").exists()
    seen: list[int] = []
    measure = measurement.ChunkMeasurer.__call__

    def watched(self: measurement.ChunkMeasurer, chunk: measurement.PairChunk) -> measurement.ChunkMeasurement:
        seen.append(len(chunk))
        return measure(self, chunk)

    monkeypatch.setattr(measurement.ChunkMeasurer, "__call__", watched)
    run(data, tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "whole")
    assert not (tmp_path / ".again.work").exists()
    assert sum(seen) == (210 - 4 * 20 if moment == "measuring" else 0)


@pytest.mark.slow
def test_work_of_another_plan_or_damaged_begins_again(data: DataConfig, tmp_path: Path) -> None:
    run(data, tmp_path / "whole")
    place = tmp_path / ".clean.work"
    for progress in (
        "{}",
        "[" * 50_000,
        "nonsense",
        '{"plan": "", "rows": 3, "changes": 0}',
        json.dumps({"plan": "x", "rows": -1, "changes": "many"}),
    ):
        place.mkdir()
        (place / "progress.json").write_text(progress)
        (place / "ratio.column").write_bytes(b"\x00" * 24)
        run(data, tmp_path / "clean")
        assert contents(tmp_path / "clean") == contents(tmp_path / "whole")
        (tmp_path / "clean" / "report.json").unlink()  # so that it is made anew


def test_a_link_in_place_of_the_work_is_refused(data: DataConfig, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "progress.json").write_text("precious")
    (tmp_path / ".clean.work").symlink_to(tmp_path / "mine")
    with pytest.raises(WriteError, match="is a link that tfm did not make"):
        run(data, tmp_path / "clean")
    (tmp_path / ".clean.work").unlink()
    (tmp_path / ".clean.work").mkdir()
    (tmp_path / ".clean.work" / "progress.json").symlink_to(tmp_path / "mine" / "progress.json")
    with pytest.raises(WriteError, match="is a link that tfm did not make"):
        run(data, tmp_path / "clean")
    assert (tmp_path / "mine" / "progress.json").read_text() == "precious"


def test_a_dry_run_lets_every_rule_look_at_every_pair_and_writes_a_page_alone(data: DataConfig, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    tables: list[list[list[object]]] = []
    heard = Listening()
    heard.table = lambda title, columns, rows: tables.append(rows)  # type: ignore[method-assign]
    show_dry_run(CONFIG, data, tmp_path / "page.html", reporter=heard)
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "page.html"])
    assert {row[0]: row[2] for row in tables[0]}["size"] == "210"
    run(data, tmp_path / "clean")
    assert [row[4] for row in tables[0]] == [
        "–" if each["changed"] is not None else f"{each['dropped']:,}"
        for each in json.loads((tmp_path / "clean" / "report.json").read_text("utf-8"))["rules"]
    ]


def test_where_no_pair_is_left_it_says_which_rules_dropped_them(data: DataConfig, tmp_path: Path) -> None:
    config = CleanConfig.model_validate({"length": {"min": 100, "max": 200}})
    with pytest.raises(DataError, match=r"no training pair is left; dropped: empty: \d+, length: \d+"):
        run(data, tmp_path / "clean", config)


def test_where_no_pair_is_left_and_a_script_has_no_spaces_the_remedy_is_said(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("今天天气很好，我们去公园。\n" * 3, "utf-8")
    (tmp_path / "target").write_text("The weather is very nice today, so we go to the park.\n" * 3, "utf-8")
    train = CorpusConfig(format="text", source=str(tmp_path / "source"), target=str(tmp_path / "target"))
    with pytest.raises(DataError, match=r"dropped: ratio: 3; clean\.ratio counts words .* set clean\.ratio\.unit"):
        clean(
            CleanConfig(),
            DataConfig(train=(train,)),
            tmp_path / "clean",
            whole_corpora=True,
            command=(),
            reporter=Listening(),
        )


def test_a_least_length_in_words_is_warned_of_where_a_script_has_no_spaces(tmp_path: Path) -> None:
    """Two corpora, of which one is lost by it; with Latin letters alone there is no such remedy."""
    texts = {
        "a": "今天天气很好，我们去公园。{}",
        "b": "Gut !{}",
        "c": "The weather is nice today, so we go to the park.{}",
    }
    for name, line in texts.items():
        (tmp_path / name).write_text("".join(line.format(number) + "\n" for number in range(4)), "utf-8")
    config = CleanConfig.model_validate({"length": {"min": 3}, "ratio": None})
    for name, is_warned_of in (("a", True), ("b", False)):
        pairs = [(name, "c"), ("c", "c")]
        train = [CorpusConfig(source=str(tmp_path / one), target=str(tmp_path / other)) for one, other in pairs]
        reporter, rules = Listening(), config.model_copy(update={"copies": None})
        clean(rules, DataConfig(train=tuple(train)), tmp_path / f"clean-{name}", whole_corpora=True, command=(),
              reporter=reporter)  # fmt: skip
        found = ["clean.length counts words" in each for each in reporter.warnings]
        assert found.count(True) == is_warned_of, reporter.warnings


def test_a_percentile_by_itself_is_of_all_pairs_that_the_rule_looked_at(tmp_path: Path) -> None:
    sources = ["1 2 3 4 5 6 7 8 9"] * 40 + [f"{'word' * number} {60 - number}" for number in range(1, 61)]
    for name in ("source", "target"):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in sources), "utf-8")
    train = CorpusConfig(format="text", source=str(tmp_path / "source"), target=str(tmp_path / "target"))
    given = {"length": {"max": 8}, "letters": {"percentile": 10}, "copies": None}
    clean(
        CleanConfig.model_validate(given),
        DataConfig(train=(train,)),
        tmp_path / "clean",
        whole_corpora=True,
        command=(),
        reporter=Listening(),
    )
    rules = json.loads((tmp_path / "clean" / "report.json").read_text("utf-8"))["rules"]
    (letters,) = (each for each in rules if each["rule"] == "letters")
    assert letters["dropped"] == 6  # of 60
    assert letters["alone"] == 0  # of 100, the worst of which are 40 equal ones


def test_the_report_is_json_where_the_worst_scores_are_infinite(tmp_path: Path) -> None:
    """A ratio with an empty side: equal scores have the same fate, so that no pair is dropped."""
    (tmp_path / "source").write_text("".join(f"a b {number}\n" for number in range(50)), "utf-8")
    (tmp_path / "target").write_text("\n" * 3 + "".join(f"c {number}\n" for number in range(47)), "utf-8")
    train = CorpusConfig(format="text", source=str(tmp_path / "source"), target=str(tmp_path / "target"))
    given = {"ratio": {"percentile": 2}, "empty": None, "length": None, "letters": None}
    out = tmp_path / "clean"
    data = DataConfig(train=(train,))
    clean(CleanConfig.model_validate(given), data, out, whole_corpora=True, command=(), reporter=Listening())

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    rules = json.loads((out / "report.json").read_text("utf-8"), parse_constant=refuse)["rules"]
    (ratio,) = (each for each in rules if each["rule"] == "ratio")
    assert ratio["dropped"] == 0
    assert ratio["limits"] == [{"score": "score", "percentile": 2.0}]


def test_a_corpus_that_is_lost_is_warned_of_with_the_rule(data: DataConfig, tmp_path: Path) -> None:
    for side in (0, 1):
        text = "".join(f"the same line {number} as on the other side\n" for number in range(9)) + "\n"
        (tmp_path / f"b.{side}").write_text(text, "utf-8")
    dry, real = Listening(), Listening()
    show_dry_run(CleanConfig(), data, None, whole_corpora=True, reporter=dry)
    clean(CleanConfig(), data, tmp_path / "clean", whole_corpora=True, command=(), reporter=real)
    assert dry.warnings == real.warnings
    (warning,) = real.warnings
    assert "no pair is left of 10 pairs, above all by the rule copies" in warning
    assert "b.0" in warning


def test_a_corpus_without_pairs_left_is_left_out(data: DataConfig, tmp_path: Path) -> None:
    (tmp_path / "b.0").write_text("\n\n", "utf-8")
    (tmp_path / "b.1").write_text("\n\n", "utf-8")
    run(data, tmp_path / "clean")
    assert open_artifact(tmp_path / "clean").figures["kept"][1] == 0
    assert len(cleaned_splits(resolve_splits(data), tmp_path / "clean").train) == 1
    fewer = data.model_copy(update={"train": data.train[:1]})
    with pytest.raises(DataError, match="is of other corpora"):
        cleaned_splits(resolve_splits(fewer), tmp_path / "clean")


def test_texts_without_a_source_and_those_that_are_both_sides(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a b\na b\n\n", "utf-8")
    for source in (None, str(tmp_path / "text")):
        corpus = CorpusConfig(source=source, target=str(tmp_path / "text"))
        data = DataConfig(train=(corpus,), valid=(corpus,), tests={"t": corpus})
        out = tmp_path / f"out{source is None}"
        run(data, out, CleanConfig(overlap=None))
        (kept,) = cleaned_splits(resolve_splits(data), out).train
        assert [*read_pairs(kept)] == [("" if source is None else "a b", "a b")]
        assert [each["rule"] for each in dropped(out)] == ["duplicates", "empty"]


@pytest.mark.parametrize("name", ["duplicates", "near_duplicates", "boilerplate"])
def test_an_index_of_keys_takes_at_most_100_bytes_a_pair(tmp_path: Path, name: str) -> None:
    count, num_keys = 100_000, {"duplicates": 1, "boilerplate": 2, "near_duplicates": 4}[name]
    work = work_folder.MeasurementFolder(tmp_path / "work", "plan", {name: num_keys})
    work.append({name: np.random.default_rng(1).integers(0, 2**63, (count, num_keys)).astype(np.uint64)}, {})
    work.save_progress()
    rule = CleaningRule(name, "dedup_keys", (REPEATED_LIMIT,), num_keys=num_keys)
    tracemalloc.start()
    try:
        apply_rules([rule], work, lambda rule, is_needed: np.zeros(len(is_needed)))
        assert tracemalloc.get_traced_memory()[1] <= 100 * count
    finally:
        tracemalloc.stop()
        work.close()


@pytest.mark.parametrize("higher", [True, False])
def test_a_percentile_drops_at_most_its_share_and_equal_scores_alike(higher: bool) -> None:
    limit = Limit("score", None, None, 30.0, higher)
    scores = np.array([3.0, 1.0, np.nan, 2.0, 1.0, 5.0, 4.0, 9.0, 8.0, 7.0, 6.0])
    found = percentile_limit(scores, limit)
    value = found.low if higher else found.high
    assert value == (3.0 if higher else 6.0)
    worse = scores < value if higher else scores > value
    assert worse.sum() == 3
    tied = np.array([1.0, 1.0, 1.0, 2.0])
    assert percentile_limit(tied, limit)[1:3] == ((1.0, None) if higher else (None, 1.0))
    assert percentile_limit(np.array([np.nan]), limit) == limit
    hundred = np.arange(100.0)
    for percent in range(1, 100):  # 29 / 100 * 100 is less than 29 in floating point
        found = percentile_limit(hundred, limit._replace(percentile=float(percent)))
        assert (found.low if higher else found.high) == (percent if higher else 99 - percent)


def test_a_corpus_that_changes_meanwhile_is_noticed(
    data: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = cleaner.iterate_chunks
    calls = 0

    def shorter(*given: Any, **more: Any) -> Iterator[measurement.PairChunk]:
        nonlocal calls
        calls += 1
        found = real(*given, **more)
        return found if calls == 1 else iter([next(found)])

    monkeypatch.setattr(cleaner, "iterate_chunks", shorter)
    with pytest.raises(DataError, match="a corpus was changed while it was cleaned"):
        run(data, tmp_path / "clean", CONFIG.model_copy(update={"external": ()}))


@pytest.mark.parametrize(
    ("sources", "ratio", "is_warned_of"),
    [
        ("今天天气很好，我们去公园。", {}, True),
        ("วันนี้อากาศดีมาก", {}, True),
        ("今天天气很好，我们去公园。", {"unit": "character", "max": 2.0}, False),
        ("Kurz", {}, False),
    ],
)
def test_a_ratio_of_words_is_warned_of_where_a_script_has_no_spaces(
    sources: str, ratio: dict[str, Any], is_warned_of: bool, tmp_path: Path
) -> None:
    english = ["The weather is very nice today, so we go to the park."] * 5 + ["Good day."]
    for name, lines in (("source", [f"{sources}{number}" for number in range(6)]), ("target", english)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    train = CorpusConfig(format="text", source=str(tmp_path / "source"), target=str(tmp_path / "target"))
    config = CleanConfig.model_validate({"ratio": ratio})
    data, dry, real = DataConfig(train=(train,)), Listening(), Listening()
    show_dry_run(config, data, None, whole_corpora=True, reporter=dry)
    clean(config, data, tmp_path / "clean", whole_corpora=True, command=(), reporter=real)
    assert dry.warnings == real.warnings
    assert ["clean.ratio counts words" in each for each in real.warnings] == [True] * is_warned_of
