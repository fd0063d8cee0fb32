"""Pairs that a model made: what stands in the artifact, and that no number of processes, stop or chunk changes it."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import sacrebleu

import tfm
from tests.recording_reporter import Listening
from tests.tiny_model import publish_model
from tfm.pipeline.artifacts.artifact import open_artifact
from tfm.pipeline.cluster import translation
from tfm.pipeline.errors import DataError
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages import synthesize as stage
from tfm.pipeline.synthesis.config import SynthesisConfig

LINES = [
    "a dog runs",
    "the sea is cold !",
    "",
    "two dogs and a cat",
    "a cat sit by the sea",
    "  ",
    "snow",
    "a dog runs",
]
FILES = ("input.txt", "output.txt", "scores.parquet", "dropped.jsonl")
SHORT = {"max_length": 8}
Make = Callable[..., Path]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {name: publish_model(root / name, norm=norm) for name, norm in (("one", "pre"), ("other", "post"))}


@pytest.fixture
def make(models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Publish what the model makes of LINES, in chunks of three lines."""
    monkeypatch.setattr(stage, "CHUNK_LINES", 3)
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in LINES), "utf-8")

    def publish(name: str, workers: int = 0, decoding: object = SHORT, **settings: object) -> Path:
        text = {"source": None, "target": str(tmp_path / "text")}
        config = SynthesisConfig.model_validate({"text": text, "decoding": decoding} | settings)
        out = tmp_path / name
        stage.synthesize(
            config, models["one"], out, command=["tfm"], reporter=NullReporter(), device="cpu", workers=workers
        )
        return out

    return publish


def content(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in FILES]


def lines_of(file: Path) -> list[str]:
    return file.read_text("utf-8").splitlines()


def test_pairs_have_the_translations_and_log_probabilities_of_the_model(make: Make, models: dict[str, Path]) -> None:
    made = make("made")
    read, written = lines_of(made / "input.txt"), lines_of(made / "output.txt")
    scores = pq.read_table(made / "scores.parquet").to_pydict()
    lost = [json.loads(line) for line in lines_of(made / "dropped.jsonl")]
    loaded = tfm.load(models["one"], device="cpu")
    expected = loaded.translate(LINES, beam=5, max_length=8)
    empty = [number for number, line in enumerate(LINES, 1) if not line.strip()]
    assert [each["line"] for each in lost if each["reason"] == "empty"] == empty == [3, 6]
    assert [(LINES[line - 1], expected[line - 1]) for line in scores["line"]] == list(zip(read, written, strict=True))
    again = loaded.score(read, written)
    close = np.isclose(scores["log_prob"], again.log_probs, rtol=1e-4)
    assert close.mean() > 0.8, "but for one text, written in other pieces than it is read in"
    per_token = again.log_probs / again.num_tokens
    np.testing.assert_allclose(np.array(scores["score"])[close], per_token[close], rtol=1e-4)
    figures = open_artifact(made, "synthesize").figures
    assert (figures["lines"], figures["pairs"], figures["dropped"]["empty"]) == (8, len(read), 2)
    assert {*open_artifact(made).inputs} == {"model", f"text: {made.parent / 'text'}"}


@pytest.mark.parametrize(
    "decoding", [SHORT | {"strategy": "sample", "n_best": 2}, pytest.param(SHORT, marks=pytest.mark.slow)]
)
def test_bytes_are_the_same_whatever_the_number_of_processes(make: Make, decoding: dict[str, Any]) -> None:
    alone = content(make("alone", workers=0, decoding=decoding))
    for workers in (1, 2):
        assert content(make(f"by {workers}", workers=workers, decoding=decoding)) == alone


def test_a_line_gives_the_same_pair_in_other_chunks(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    decoding = SHORT | {"strategy": "sample", "n_best": 2, "seed": 3}
    small = make("small", decoding=decoding)
    monkeypatch.setattr(stage, "CHUNK_LINES", 100)
    large = make("large", decoding=decoding)
    assert (small / "output.txt").read_bytes() == (large / "output.txt").read_bytes()
    found = [pq.read_table(each / "scores.parquet")["log_prob"].to_numpy() for each in (small, large)]
    np.testing.assert_allclose(*found, atol=1e-4)
    first, last = lines_of(large / "output.txt")[:2], lines_of(large / "output.txt")[-2:]
    assert first == last, "a draw is a function of seed and line, wherever the line is"
    others = make("others", decoding=decoding | {"seed": 4})
    assert (others / "output.txt").read_bytes() != (large / "output.txt").read_bytes()


def test_work_that_was_stopped_goes_on_with_what_was_kept(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = content(make("whole"))
    real, calls = translation.translate_chunk, []

    def fail_at_the_second(*arguments: Any) -> bytes:
        calls.append(arguments)
        if len(calls) == 2:
            raise MemoryError("killed")
        return real(*arguments)

    monkeypatch.setattr(translation, "translate_chunk", fail_at_the_second)
    with pytest.raises(MemoryError):
        make("stopped")
    resumed = make("stopped")
    assert content(resumed) == whole
    assert len(calls) == 3, "two chunks of lines with pieces: the first is not translated again"
    assert not [each for each in resumed.parent.iterdir() if each.name.endswith(".chunks")]


def test_a_limit_that_left_nothing_is_changed_without_another_translation(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remedy is another limit, or a percentile; noise, too, is of what was written."""
    whole = content(make("whole", percentile=30, noise={"fill": 0.5}))
    with pytest.raises(DataError, match=r"no pair is left; .* give a lower min_score, or a percentile in its place"):
        make("made", min_score=-1e-9)
    monkeypatch.setattr(translation, "translate_chunk", lambda *_, **__: pytest.fail("lines were translated again"))
    assert content(make("made", percentile=30, noise={"fill": 0.5})) == whole


@pytest.mark.slow
def test_low_scores_are_dropped_by_value_and_by_share(make: Make) -> None:
    scores = sorted(pq.read_table(make("all") / "scores.parquet")["score"].to_pylist())
    limit = (scores[1] + scores[2]) / 2
    by_value = make("value", min_score=limit)
    assert len(lines_of(by_value / "input.txt")) == sum(score >= limit for score in scores) < len(scores)
    lost = [json.loads(line) for line in lines_of(by_value / "dropped.jsonl")]
    assert [each["score"] < limit for each in lost if each["reason"] == "score"] == [True, True]
    by_share = make("share", percentile=40)
    assert min(pq.read_table(by_share / "scores.parquet")["score"].to_pylist()) == scores[int(len(scores) * 0.4)]
    with pytest.raises(DataError, match=r"no pair is left; dropped: .*score: 6; give a lower min_score"):
        make("none", min_score=-1e-9)


def test_noise_is_in_what_was_written_alone(make: Make) -> None:
    plain, noisy = make("plain"), make("noisy", noise={"delete": 0.3})
    assert (plain / "input.txt").read_bytes() == (noisy / "input.txt").read_bytes()
    assert (plain / "scores.parquet").read_bytes() == (noisy / "scores.parquet").read_bytes()
    assert (plain / "output.txt").read_bytes() != (noisy / "output.txt").read_bytes()


@pytest.mark.slow
def test_several_models_are_an_ensemble(make: Make, models: dict[str, Path]) -> None:
    made = make("both", models=[str(models["other"])])
    assert {"model", "model 2"} < {*open_artifact(made).inputs}
    alone = pq.read_table(make("alone") / "scores.parquet")["log_prob"].to_pylist()
    assert pq.read_table(made / "scores.parquet")["log_prob"].to_pylist() != alone


def test_a_model_that_is_in_the_ensemble_twice_is_warned_of(
    make: Make, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    reporter = Listening()
    monkeypatch.setattr(sys.modules[__name__], "NullReporter", lambda: reporter)
    make("twice", models=[str(models["one"])])
    (warning,) = (each for each in reporter.warnings if "is in the ensemble more than once" in each)
    assert str(models["one"]) in warning


def test_texts_of_test_files_are_not_translated(make: Make, tmp_path: Path) -> None:
    (tmp_path / "test").write_text("The  SEA is cold !\nelse\n", "utf-8")
    made = make("made", tests=[str(tmp_path / "test")])
    lost = [json.loads(line) for line in lines_of(made / "dropped.jsonl")]
    assert {"line": 2, "reason": "held out", "input": LINES[1]} in lost
    assert LINES[1] not in lines_of(made / "input.txt")


@pytest.mark.parametrize("utility", ["bleu", pytest.param("chrf", marks=pytest.mark.slow)])
def test_of_a_line_with_references_the_closest_of_the_best_is_kept(make: Make, tmp_path: Path, utility: str) -> None:
    decoding = SHORT | {"strategy": "sample", "n_best": 6}
    n_best = make("n best", decoding=decoding)
    rows = zip(lines_of(n_best / "output.txt"), pq.read_table(n_best / "scores.parquet").to_pylist(), strict=True)
    candidates: dict[int, list[tuple[str, dict[str, Any]]]] = {}
    for text, row in rows:
        candidates.setdefault(row["line"], []).append((text, row))
    references = [candidates[line][3][0] + " ." if line in candidates else "" for line in range(1, len(LINES) + 1)]
    (tmp_path / "references").write_text("".join(f"{each}\n" for each in references), "utf-8")
    metric: Any = sacrebleu.BLEU(effective_order=True) if utility == "bleu" else sacrebleu.CHRF()
    expected = [
        max(texts, key=lambda each: metric.sentence_score(each[0], [references[line - 1]]).score)
        for line, texts in candidates.items()
    ]
    pairs = {"source": str(tmp_path / "text"), "target": str(tmp_path / "references")}
    made = make("closest", decoding=decoding, text=pairs, utility=utility)
    assert [
        *zip(lines_of(made / "output.txt"), pq.read_table(made / "scores.parquet").to_pylist(), strict=True)
    ] == expected
    assert {row["rank"] for _, row in expected} - {1}
    assert open_artifact(made).figures["pairs"] == len(candidates)


def test_a_line_whose_reference_is_held_out_is_not_translated(make: Make, tmp_path: Path) -> None:
    (tmp_path / "references").write_text("".join(f"{number}\n" for number in range(len(LINES))), "utf-8")
    (tmp_path / "test").write_text("7\n", "utf-8")
    pairs = {"source": str(tmp_path / "text"), "target": str(tmp_path / "references")}
    made = make("closest", decoding=SHORT | {"n_best": 2}, text=pairs, tests=[str(tmp_path / "test")])
    lost = [json.loads(line) for line in lines_of(made / "dropped.jsonl")]
    assert [each["line"] for each in lost if each["reason"] == "held out"] == [8]


@pytest.mark.parametrize(
    ("more", "reference_lines", "reason"),
    [(b"", 3, "has 3 lines, but"), (b"a \xff cat\n", len(LINES) + 1, "UTF-8")],
)
def test_a_text_that_is_not_in_order_is_refused_before_any_line_is_translated(
    more: bytes, reference_lines: int, reason: str, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "synthesize_pairs", lambda *_: pytest.fail("translated"))
    with open(tmp_path / "text", "ab") as text:
        text.write(more)
    (tmp_path / "references").write_text("one\n" * reference_lines, "utf-8")
    pairs = {"source": str(tmp_path / "references"), "target": str(tmp_path / "text")}
    with pytest.raises(DataError, match=reason):
        make("made", decoding=SHORT | {"n_best": 2}, text=pairs)


def test_what_readers_remark_of_the_text_is_shown(models: dict[str, Path], tmp_path: Path) -> None:
    """As by `tfm clean`: a table that is read as texts would be translated with its other columns."""
    (tmp_path / "text").write_text("".join(f"{number}\t{line}\n" for number, line in enumerate(LINES * 2)), "utf-8")
    config = SynthesisConfig.model_validate(
        {"text": {"source": None, "target": str(tmp_path / "text")}, "decoding": SHORT}
    )
    reporter = Listening()
    stage.synthesize(
        config, models["one"], tmp_path / "out", command=["tfm"], reporter=reporter, device="cpu", workers=0
    )
    remarks = [line for line in reporter.warnings if "/text: " in line]
    assert len(remarks) == 1
    assert "tab" in remarks[0]


def test_a_model_that_does_not_translate_is_refused(tmp_path: Path) -> None:
    model = publish_model(tmp_path / "lm", architecture="decoder_only", task="language_model")
    (tmp_path / "text").write_text("a dog\n", "utf-8")
    config = SynthesisConfig.model_validate({"text": {"source": None, "target": str(tmp_path / "text")}})
    with pytest.raises(DataError, match="give a model that translates"):
        stage.synthesize(config, model, tmp_path / "out", command=["tfm"], reporter=NullReporter(), device="cpu")


def test_a_line_that_is_longer_than_a_model_reads_is_no_pair(
    make: Make, models: dict[str, Path], tmp_path: Path
) -> None:
    loaded = load_model(models["one"], "cpu")
    limit = loaded.model.max_length - 1
    words = ["snow"] * limit
    while len(loaded.source_tokenizer.encode(" ".join(words))) > limit:
        words.pop()
    fits, too_long = " ".join(words), " ".join([*words, "snow"])
    (tmp_path / "text").write_text(f"{fits}\n{too_long}\na cat\n", "utf-8")
    made = make("long")
    assert lines_of(made / "input.txt") == [fits, "a cat"]
    (lost,) = map(json.loads, lines_of(made / "dropped.jsonl"))
    assert lost == {"line": 2, "reason": "too long", "input": too_long}
    assert open_artifact(made).figures["dropped"]["too long"] == 1
