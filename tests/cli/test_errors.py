"""What goes wrong ends in one or two lines on stderr and the exit code that the design gives it."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.user import TINY, Stages, commands_of, start, tfm, write_lines


def test_version_and_help() -> None:
    assert tfm("--version").out.startswith("tfm")
    assert tfm("--help").code == 0
    assert "tokenize" in tfm("--help").out


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",),
        ("tokenize",),
        ("tokenize", "text.en"),
        ("tokenize", "text.en", "--recipe", "r.toml"),
        ("preprocess", "--train", "only-one"),
        ("preprocess", "--train", "a", "b"),
        ("train", "--data", "d"),
        ("train", "--device", "tpu"),
        ("train", "--data", "d", "--out", "o", "--seed", "-1"),
        ("translate",),
        ("translate", "model", "--recipe", "r.toml"),
        ("evaluate", "--hypotheses", "h"),
        ("evaluate", "--reference", "r"),
        ("recipe",),
        ("recipe", "--recipe", "missing.toml"),
    ],
    ids=" ".join,
)
def test_usage_errors_are_typers_own(words: tuple[str, ...]) -> None:
    result = tfm(*words)
    assert result.code == 2
    assert "Error: " in result.err
    assert result.out == ""


@pytest.mark.parametrize(
    "words",
    [
        ("tokenize", "mine.toml"),
        ("preprocess", "mine.toml"),
        ("train", "mine.toml"),
        ("train", "mine.toml", "--set", "seed=2"),
        ("evaluate", "mine.toml"),
        ("clean", "mine.toml"),
        ("synthesize", "mine.toml"),
    ],
    ids=" ".join,
)
def test_a_recipe_without_its_flag_is_told_the_flag(words: tuple[str, ...]) -> None:
    result = tfm(*words)
    assert result.code == 2
    assert result.err.endswith("; a recipe is given by --recipe mine.toml\n")


@pytest.mark.parametrize(
    "words",
    [
        ("tokenize", "text.en"),
        ("tokenize", "--vocab-size", "mine.toml"),
        ("train", "mine.toml", "--recipe", "other.toml"),
        ("train", "mine.toml", "--recipe=other.toml"),
        ("embed", "--count", "x", "mine.toml"),
        ("nonsense", "mine.toml"),
    ],
    ids=" ".join,
)
def test_other_mistakes_are_told_no_flag_of_recipes(words: tuple[str, ...]) -> None:
    result = tfm(*words)
    assert result.code == 2
    assert "a recipe is given" not in result.err


@pytest.mark.parametrize("command", ["run", "plan", "recipe"])
def test_a_recipe_without_its_suffix_is_told_the_file(tmp_path: Path, command: str) -> None:
    (tmp_path / "mine.toml").write_text("")
    assert tfm(command, tmp_path / "mine").err.endswith(
        f"there is no such recipe; did you mean {tmp_path / 'mine.toml'}?\n"
    )
    assert tfm(command, tmp_path / "yours").err.endswith("there is no such recipe\n")
    assert "there is no such recipe" in tfm(command, tmp_path / ("a" * 252)).err  # with .toml it is too long a name


def test_a_search_and_a_recipe_are_told_their_commands(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('[search]\nbase = "r.toml"\n')
    (tmp_path / "r.toml").write_text('data.path = "corpus"\n')
    assert "has [search], and is for `tfm search`" in tfm("run", tmp_path / "s.toml").err
    assert "has no [search]; a recipe is trained by `tfm run`" in tfm("search", tmp_path / "r.toml").err
    assert "a setting is given by --set seed=2" in tfm("run", "seed=2").err


def test_a_folder_in_place_of_a_corpus_is_called_so(tmp_path: Path) -> None:
    done = tfm("tokenize", tmp_path, "--kind", "bpe", "--vocab-size", "300", "--out", tmp_path / "vocabulary")
    assert (done.code, done.err) == (65, f"{tmp_path}: is a folder, not a file\n")


def test_a_url_in_place_of_a_text_is_called_so(stages: Stages) -> None:
    done = tfm("translate", stages.folder, "https://example.org/a.txt")
    assert done.code == 2
    assert "is a URL: download its file, and give that" in " ".join(done.err.split())
    assert "is a URL" not in tfm("translate", stages.folder, "https://example.org is a/site", "--beam", "1").err


def test_what_reads_values_is_not_named() -> None:
    done = tfm("run", "r.toml", "--device", "gpu")
    assert done.code == 2
    assert "Invalid value for '--device': 'gpu' is not one of" in done.err


@pytest.mark.parametrize("words", [("inspect",), ("translate",), ("compare",), ("generate",), ("attend",), ("serve",)])
def test_a_folder_of_runs_is_told_one_of_them(stages: Stages, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "of the first\x1b").symlink_to(stages.folder)
    more = ("a text", "--out", tmp_path / "page.html") if words == ("attend",) else ()
    result = tfm(*words, tmp_path, *more)
    assert result.code == 65
    assert f"it holds runs: give one, such as {tmp_path}/of the first\\x1b" in result.err.replace("\n", " ")


def test_files_that_are_not_aligned(corpora: Path, stages: Stages, tmp_path: Path) -> None:
    short = write_lines(tmp_path / "short.en", ["one", "two"])
    words = ("preprocess", "--train", corpora / "train.de", short, "--tokenizer", stages.folder / "tokenizer")
    result = tfm(*words, "--out", tmp_path / "dataset")
    assert result.code == 65
    assert len(result.err.strip().splitlines()) <= 2
    for part in ("has 200 lines", "has 2:", "train.de", "short.en"):
        assert part in result.err
    assert not (tmp_path / "dataset").exists()


def test_text_that_is_not_utf8(stages: Stages, tmp_path: Path) -> None:
    source = tmp_path / "bad.de"
    source.write_bytes(b"eins\nzw\xffei\ndrei\n")
    target = write_lines(tmp_path / "good.en", ["one", "two", "three"])
    words = ("preprocess", "--train", source, target, "--tokenizer", stages.folder / "tokenizer")
    result = tfm(*words, "--out", tmp_path / "dataset")
    assert result.code == 65
    for part in ("bad.de", "line 2", "byte 3"):
        assert part in result.err


def test_a_missing_file(tmp_path: Path) -> None:
    result = tfm("tokenize", tmp_path / "nowhere.en", "--out", tmp_path / "t")
    assert result.code in (65, 74)
    assert "nowhere.en" in result.err
    assert len(result.err.strip().splitlines()) <= 2


def test_no_model_there(tmp_path: Path) -> None:
    result = tfm("translate", tmp_path / "nothing", stdin="eins\n")
    assert result.code in (65, 74)
    assert "nothing" in result.err


def test_no_place_to_write(corpora: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    result = tfm("tokenize", corpora / "train.de", "--kind", "char", "--out", tmp_path / "taken")
    assert result.code == 73
    assert "taken" in result.err
    assert (tmp_path / "taken").read_text() == "mine"


def test_debug_adds_the_traceback(tmp_path: Path) -> None:
    words = ("inspect", tmp_path / "nothing")
    assert "Traceback" not in tfm(*words).err
    result = tfm("--debug", *words)
    assert result.code == 65
    assert "Traceback" in result.err
    assert result.err.strip().splitlines()[-1] == tfm(*words).err.strip().splitlines()[-1]


def test_a_reader_that_has_seen_enough(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = start("recipe", "--schema", folder=tmp_path, stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=60)
    assert err == ""
    assert process.returncode == 74


@pytest.mark.parametrize(
    ("words", "stopped_in", "code"),
    [
        (("run", "recipe.toml"), "tfm.pipeline.recipes.recipe_batch.load_recipes", 75),
        (("compare", "run"), "tfm.pipeline.comparison.runs.compare_runs", 130),
        (("inspect", "run"), "tfm.pipeline.artifacts.artifact.inspect_artifact", 130),
    ],
)
def test_ctrl_c_promises_to_go_on_only_where_something_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...], stopped_in: str, code: int
) -> None:
    def stop(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stopped_in, stop)
    monkeypatch.chdir(tmp_path)
    result = tfm(*words)
    assert result.code == code
    assert ("the same command resumes" in result.err) == (code == 75)
    assert ("the same command begins again" in result.err) == (code == 130)


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)], ids=["SIGINT", "SIGTERM"]
)
def test_training_stopped_by_a_signal_says_how_to_go_on(stages: Stages, tmp_path: Path, number: int) -> None:
    words = commands_of(Path(), stages.folder)["train"]
    words = (*words[: words.index("--max-steps")], *TINY, "--device", "cpu", "--out", tmp_path / "run")
    process = start(*words, "--max-steps", "100000", folder=tmp_path)
    wait_for(tmp_path / "run" / "training" / "metrics.jsonl", process)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 75, err
    assert out == ""
    assert "same command" in err or "tfm train" in err
    assert "Traceback" not in err
    assert not (tmp_path / "run" / "model").exists()


def wait_for(file: Path, process: subprocess.Popen[str]) -> None:
    """Until `file` holds something, for a minute at most."""
    for _ in range(600):
        if file.exists() and file.stat().st_size:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    raise AssertionError(f"{file} did not come")
