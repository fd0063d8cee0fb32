"""Names, keys and texts that steer a terminal: as they are, no command prints them but as data into a file or pipe."""

import io
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, ROOT, WORDS, Result, write_lines
from tests.tiny_runs import add_texts, make_run
from tfm.cli import app
from tfm.pipeline.scoring.evaluation.segments import Segments

STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
EVIL = "x\x1b[31m\x1b]0;title\x07\x9b2J\x08\u202e\u2066"
KEPT = "می\u200cروم 👩\u200d👧 a\u00a0b"
Type = Callable[..., Result]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Type:
    """Run a command as the console script does; nothing that it prints may steer a terminal."""

    def run(*words: str | Path, is_data: bool = False) -> Result:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["tfm", *map(str, words)])
            patch.setattr(sys, "stderr", sys.stderr)  # main puts a screen before it
            with pytest.raises(SystemExit) as end:
                app.main()
        out, err = capsys.readouterr()
        assert not STEERING.search(err), (words, err)
        assert is_data or not STEERING.search(out), (words, out)
        return Result(int(end.value.code or 0), out, err)

    return run


@pytest.mark.parametrize("command", ["tokenize", "preprocess", "train", "translate", "generate", "evaluate", "run",
                                     "compare", "attend", "embed", "export", "import", "inspect", "recipe", "search",
                                     "judge", EVIL])  # fmt: skip
@pytest.mark.few(4)
def test_words_that_are_none_of_a_command(command: str, typed: Type, tmp_path: Path) -> None:
    rest = ([EVIL], [tmp_path / EVIL, EVIL], [f"--{EVIL}"], [f"--set={EVIL}={EVIL}", EVIL], ["--out", EVIL, EVIL, EVIL],
            ["--device", EVIL, EVIL])  # fmt: skip
    for words in rest:
        assert typed(command, *words).code != 0
    assert typed("--debug", command, EVIL).code != 0


@pytest.mark.slow
def test_runs_and_systems(typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = [f"{EVIL} {number} der Satz dazu" for number in range(20)]
    for name in (f"one{EVIL}", "<img src=x onerror=alert(1)> $\\frac$ two"):
        said = [f"{name}: {text}" for text in texts]
        add_texts(make_run(tmp_path / name), {EVIL: Segments(EVIL, texts, said, [texts])})
    runs = [folder for folder in tmp_path.iterdir() if folder.is_dir()]
    for words in ((), ("--markdown",), ("--latex",), ("--each", "--sort", "seconds")):
        done = typed("compare", *runs, *words)
        assert done.code == 0, done.err
        assert "x1b" in done.out
    done = typed("compare", *runs, "--html", f"{EVIL}.html", "--plot", "plot.svg")
    assert done.code == 0, done.err
    for file in (Path(f"{EVIL}.html"), Path("plot.svg")):
        text = file.read_text("utf-8")
        assert not STEERING.search(text)
        assert "<img" not in text
    assert typed("inspect", runs[0]).code == 0
    judged = ("judge", "make", *runs, "--kind", "pairwise", "--out", tmp_path / EVIL, "--segments", "10")
    source = write_lines(tmp_path / f"source{EVIL}", texts)
    assert typed(*judged, f"--system={EVIL}={source}").code == 0
    assert typed("judge", "score", tmp_path / EVIL, source).code == 65


def test_data_to_a_terminal_is_spelled_out_and_to_a_pipe_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tfm.cli.streams import print_data, print_json

    def printed(is_terminal: bool) -> str:
        stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stream)
            print_data(f"{EVIL}\t{KEPT}\r")
            print_json({EVIL: KEPT})
        stream.flush()
        return stream.buffer.getvalue().decode()  # type: ignore[attr-defined,no-any-return]

    piped, shown = printed(False), printed(True)
    assert piped == f"{EVIL}\t{KEPT}\r\n" + json.dumps({EVIL: KEPT}, ensure_ascii=False) + "\n"
    assert not STEERING.search(shown)
    assert KEPT in shown
    assert json.loads(shown.splitlines()[1]) == {EVIL: KEPT}


WRITERS = {"console.py", "reporter.py", "streams.py"}
PRINTS = re.compile(r"(?<![\w.])print\(|echo\(|\.print\(|print_exc|std(?:out|err)(?:\.buffer)?\.write|Console\(")


def test_one_place_prints() -> None:
    """Commands print through the reporter, print_message, print_data and print_json; typer prints its own help."""
    for file in sorted((ROOT / "cli").rglob("*.py")):
        if file.name not in WRITERS:
            found = [line for line in file.read_text("utf-8").splitlines() if PRINTS.search(line)]
            assert found == [], file


@pytest.mark.slow
def test_a_whole_run(typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Corpora whose words, files and folder steer a terminal, through every command that reads them."""
    base = tmp_path / f"corpora{EVIL}"
    base.mkdir()
    monkeypatch.chdir(base)
    for split, size in (("train", 60), ("valid", 8), ("test", 8)):
        pairs = [(list(WORDS)[row % 5], list(WORDS)[row % 6]) for row in range(size)]
        for side, words in (("de", dict(zip(WORDS, WORDS, strict=True))), ("en", WORDS)):
            lines = [f"{EVIL} {words[a]} {words[b]} \x1b[31m{KEPT}" for a, b in pairs]
            write_lines(base / f"{split}.{side}", lines)
    Path("tiny.toml").write_text(RECIPE.format(folder=".").replace("max_steps = 10", "max_steps = 4"), "utf-8")
    assert typed("run", "tiny.toml").code == 0
    shutil.copytree("runs/tiny", f"runs/{EVIL}")
    run = Path("runs") / EVIL
    for words in (
        ("tokenize", "train.de", "--kind", "bpe", "--vocab-size", "60", "--out", f"tokenizer{EVIL}"),
        ("run", "tiny.toml"),
        ("evaluate", "--recipe", "tiny.toml"),
        ("evaluate", "--model", run, "--source", "test.de", "--reference", "test.en", "--out", f"scores{EVIL}"),
        ("evaluate", "--hypotheses", "test.de", "--reference", "test.en"),
        ("compare", run, "runs/tiny"),
        ("inspect", run),
        ("inspect", run / "model"),
        ("attend", run, EVIL, "--out", f"{EVIL}.html"),
        ("attend", run, "--head-report", "test.de"),
        ("embed", run, "--nearest", "eins", "--out", f"{EVIL}.txt"),
        ("export", run, "--to", "huggingface", "--out", f"export{EVIL}", "--name", EVIL),
        ("import", f"export{EVIL}", "--out", f"import{EVIL}"),
    ):
        done = typed(*words)
        assert done.code == 0 or words[0] in ("embed", "import"), (words, done.err)
    assert typed("translate", run, "test.de", is_data=True).code == 0
    assert typed("generate", run, "--prompt", EVIL, is_data=True).code != 0
    assert not STEERING.search(Path(f"{EVIL}.html").read_text("utf-8"))
    Path("search.toml").write_text(
        '[search]\nbase = "tiny.toml"\nmethod = "grid"\n[search.space]\n'
        '"data.tests.main.source" = { choices = ["\\u001b[31m$\\\\frac$", "test.de"] }\n', "utf-8"
    )  # fmt: skip
    for words in ((), ("--report",)):
        typed("search", "search.toml", *words)
    for log in Path("runs").rglob("log.txt"):
        assert not STEERING.search(log.read_text("utf-8"))
