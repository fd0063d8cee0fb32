"""The five stages as a user types them, by flags alone."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.user import Stages, commands_of, tfm, write_lines

METRICS = {"bleu", "chrf", "ter", "rouge1", "rougeL", "perplexity"}


def test_each_stage_leaves_its_artifact(stages: Stages) -> None:
    for file in (
        "tokenizer/tokenizer.json",
        "dataset/report.json",
        "training/metrics.jsonl",
        "training/curves.svg",
        "model/config.json",
        "model/model.safetensors",
        "model/tokenizer.json",
    ):
        assert (stages.folder / file).is_file(), file
    for artifact in ("tokenizer", "dataset", "model"):
        manifest = json.loads((stages.folder / artifact / "manifest.json").read_text("utf-8"))
        assert manifest["command"][0] == "tfm"


def test_preprocess_and_train_count_the_same_batches(stages: Stages) -> None:
    counted, trained = (
        re.search(r"([\d,]+) (?:pairs|examples) in ([\d,]+) batches", stages.said[stage].err)
        for stage in ("preprocess", "train")
    )
    assert counted is not None
    assert trained is not None
    assert counted.groups() == trained.groups()
    assert "as translation has them" in stages.said["preprocess"].err


def test_stages_talk_on_stderr_only(stages: Stages) -> None:
    for name, result in stages.said.items():
        assert result.out == "", name
        assert result.err != "", name


@pytest.mark.parametrize("stage", ["tokenize", "preprocess", "train"])
def test_a_stage_that_is_done_says_so(stages: Stages, corpora: Path, stage: str) -> None:
    result = tfm(*commands_of(corpora, stages.folder)[stage])
    assert result.code == 0
    assert "nothing to do" in result.err


def test_translate_gives_a_line_for_a_line(stages: Stages, corpora: Path) -> None:
    result = tfm("translate", stages.folder / "model", corpora / "test.de", "--beam", "2", "--max-length", "9")
    assert result.code == 0, result.err
    assert result.out.count("\n") == 12


def test_translate_reads_stdin_and_takes_the_run_for_the_model(stages: Stages) -> None:
    text = b"eins zwei\n\ndrei\r\n"
    piped = tfm("translate", stages.folder, "-", "--beam", "1", "--max-length", "9", stdin=text)
    unnamed = tfm("translate", stages.folder / "model", "--beam", "1", "--max-length", "9", stdin=text)
    assert piped.code == unnamed.code == 0
    assert piped.out == unnamed.out
    lines = piped.out.split("\n")
    assert len(lines) == 4
    assert lines[1] == lines[3] == ""


def test_translate_names_the_byte_of_stdin_that_is_not_text(stages: Stages) -> None:
    result = tfm("translate", stages.folder, stdin=b"eins\nzwei \xff\n")
    assert result.code == 65
    assert result.err.startswith("stdin, line 2, byte 6: ")


def test_a_damaged_model_is_refused(stages: Stages, corpora: Path, tmp_path: Path) -> None:
    shutil.copytree(stages.folder / "model", tmp_path / "model")
    weights = tmp_path / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x7f")
    test = ("--source", corpora / "test.de", "--reference", corpora / "test.en")
    for words in (("translate", tmp_path / "model", test[1]), ("evaluate", "--model", tmp_path / "model", *test)):
        result = tfm(*words)
        assert result.code == 65
        assert "model.safetensors" in result.err
        assert result.out == ""


def test_what_another_stage_made_is_no_model(stages: Stages) -> None:
    result = tfm("translate", stages.folder / "dataset", stdin="eins\n")
    assert result.code == 65
    assert "was made by 'preprocess'" in result.err


def test_translate_n_best(stages: Stages, corpora: Path) -> None:
    result = tfm("translate", stages.folder, corpora / "test.de", "--beam", "3", "--n-best", "3", "--max-length", "9")
    assert result.code == 0, result.err
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert [int(number) for number, _, _ in rows] == [line for line in range(1, 13) for _ in range(3)]
    scores = [float(score) for _, score, _ in rows]
    assert all(scores[first] >= scores[first + 1] >= scores[first + 2] for first in range(0, 36, 3))


def test_translate_jsonl(stages: Stages, corpora: Path) -> None:
    words = ("translate", stages.folder, corpora / "test.de", "--beam", "2", "--max-length", "9")
    plain, result = tfm(*words), tfm(*words, "--n-best", "2", "--jsonl")
    assert result.code == 0, result.err
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert [row["source"] for row in rows] == (corpora / "test.de").read_text("utf-8").splitlines()
    assert [row["translations"][0]["text"] for row in rows] == plain.out.splitlines()
    assert all(len(row["translations"]) == 2 for row in rows)


def test_translate_begins_as_told(stages: Stages, tmp_path: Path) -> None:
    source = write_lines(tmp_path / "source", ["eins zwei", "drei vier"])
    starts = write_lines(tmp_path / "starts", ["six six", "five"])
    search = ("--beam", "2", "--max-length", "9")
    each = tfm("translate", stages.folder, source, *search, "--prefixes", starts)
    assert each.code == 0, each.err
    first, second = each.out.splitlines()
    assert first.startswith("six six")
    assert second.startswith("five")
    same = tfm("translate", stages.folder, source, *search, "--prefix", "two one")
    assert all(line.startswith("two one") for line in same.out.splitlines())
    assert tfm("translate", stages.folder, source, "--prefix", "two", "--prefixes", starts).code == 2


def test_translate_into_a_folder(stages: Stages, corpora: Path, tmp_path: Path) -> None:
    search = ("--beam", "2", "--max-length", "9")
    printed = tfm("translate", stages.folder, corpora / "test.de", *search)
    kept = tfm("translate", stages.folder, corpora / "test.de", *search, "--out", tmp_path / "out")
    assert kept.code == 0, kept.err
    assert kept.out == ""
    assert (tmp_path / "out" / "hypotheses.txt").read_text("utf-8") == printed.out
    again = tfm("translate", stages.folder, corpora / "test.de", *search, "--out", tmp_path / "out")
    assert "nothing to do" in again.err
    piped = tfm("translate", stages.folder, "-", *search, "--out", tmp_path / "piped", stdin="eins\nzwei\n")
    assert piped.code == 0, piped.err
    assert (tmp_path / "piped" / "hypotheses.txt").read_text("utf-8").count("\n") == 2


def test_evaluate_a_model(stages: Stages, corpora: Path, tmp_path: Path) -> None:
    test = ("--source", corpora / "test.de", "--reference", corpora / "test.en")
    words = (
        "evaluate",
        "--model",
        stages.folder,
        *test,
        "--set",
        "decoding.max_length=9",
        "--out",
        tmp_path / "scores",
    )
    result = tfm(*words, "--json")
    assert result.code == 0, result.err
    scores = json.loads(result.out)
    assert set(scores["metrics"]) >= METRICS
    for name, each in scores["metrics"].items():
        assert set(each) == {"score", "signature"} | ({"recall", "precision"} if name.startswith("rouge") else set())
    assert json.loads((tmp_path / "scores" / "scores.json").read_text("utf-8")) == scores
    assert "<html" in (tmp_path / "scores" / "report.html").read_text("utf-8").lower()
    again = tfm(*words)
    assert "nothing to do" in again.err
    assert "BLEU" in again.out
    assert scores["metrics"]["bleu"]["signature"] in again.out


def test_evaluate_files_alone_with_two_references(tmp_path: Path) -> None:
    hypotheses = write_lines(tmp_path / "hypotheses", ["the cat sat on the mat", "a dog ran over there"])
    first = write_lines(tmp_path / "first", ["a cat sat on a mat", "a dog ran over there"])
    second = write_lines(tmp_path / "second", ["the cat sat on the mat", "one dog runs"])
    words = ("evaluate", "--hypotheses", hypotheses, "--reference", first)
    one = json.loads(tfm(*words, "--json").out)["metrics"]["bleu"]
    two = json.loads(tfm(*words, "--reference", second, "--json").out)["metrics"]["bleu"]
    assert one["score"] < two["score"] == pytest.approx(100)
    assert "nrefs:1" in one["signature"]
    assert "nrefs:2" in two["signature"]
    table = tfm(*words)
    assert f"{one['score']:.2f}" in table.out
    only = json.loads(tfm(*words, "--metric", "chrf", "--metric", "ter", "--json").out)["metrics"]
    assert list(only) == ["chrf", "ter"]


def test_evaluate_refuses_files_of_different_length(tmp_path: Path) -> None:
    hypotheses = write_lines(tmp_path / "hypotheses", ["a", "b", "c"])
    reference = write_lines(tmp_path / "reference", ["a", "b"])
    result = tfm("evaluate", "--hypotheses", hypotheses, "--reference", reference)
    assert result.code == 65
    assert "3 lines" in result.err
    assert "2" in result.err
    assert result.out == ""


def test_inspect_shows_where_a_model_comes_from(stages: Stages, corpora: Path) -> None:
    result = tfm("inspect", stages.folder / "model")
    assert result.code == 0, result.err
    for part in ("train", "preprocess", "tokenize", str(corpora / "train.de"), "seed 1"):
        assert part in result.out
    report = json.loads(tfm("inspect", stages.folder / "model", "--json").out)
    assert report["stage"] == "train"
    assert "model.safetensors" in report["files"]


def test_a_tokenizer_from_elsewhere_is_taken(stages: Stages, corpora: Path, tmp_path: Path) -> None:
    file = stages.folder / "tokenizer" / "tokenizer.json"
    done = tfm("tokenize", "--from", file, corpora / "test.de", "--out", tmp_path / "t")
    assert done.code == 0, done.err
    assert (tmp_path / "t" / "tokenizer.json").read_bytes() == file.read_bytes()
    assert "file: sha256" in tfm("inspect", tmp_path / "t").out
    refused = tfm("tokenize", "--from", file, corpora / "test.de", "--kind", "char", "--out", tmp_path / "u")
    assert refused.code == 2
    assert "remove kind" in refused.err
    other = write_lines(tmp_path / "x.json", ["{}"])
    assert tfm("tokenize", "--from", other, corpora / "test.de", "--out", tmp_path / "u").code == 65


def test_inspect_finds_a_changed_file(stages: Stages, corpora: Path, tmp_path: Path) -> None:
    assert tfm("tokenize", corpora / "train.de", "--kind", "char", "--out", tmp_path / "t").code == 0
    file = tmp_path / "t" / "tokenizer.json"
    file.write_bytes(file.read_bytes().replace(b'"', b"'", 1))
    result = tfm("inspect", tmp_path / "t")
    assert result.code == 65
    assert "tokenizer.json" in result.err


def test_init_from_another_model(stages: Stages, tmp_path: Path) -> None:
    words = commands_of(Path(), stages.folder)["train"]
    words = (
        *words[: words.index("--out")],
        "--out",
        tmp_path / "second",
        "--init-from",
        stages.folder / "model",
    )
    result = tfm(*words, "--set", "training.schedule.warmup_steps=2", "--max-steps", "2")
    assert result.code == 0, result.err
    assert "init_from" in json.loads(tfm("inspect", tmp_path / "second" / "model", "--json").out)["inputs"]
