"""A received folder makes no command write, replace or remove anything outside it, whatever lies under its names."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, Result, tfm, write_corpora
from tests.planted import PLANTS, tree, write_outside

pytestmark = pytest.mark.promise("hostile")
SECONDS = 20
RUN = Path("runs/tiny")
HASH = "0123456789abcdef"
Words = tuple[str | Path, ...]
Record = Callable[[str, object], None]

# Each command with the names below the run that it may write, remove or read back; `*`: all that is there.
COMMANDS: dict[str, tuple[Words, Sequence[str]]] = {
    "clean": (("clean", "--recipe", "tiny.toml", "--set", "clean.length.max=5"), ("clean", ".clean.work")),
    "synthesize": (
        ("synthesize", RUN, "--source", "test.de", "--beam", "1", "--out", RUN / "made"),
        ("made", ".made.chunks", "model", "dataset"),
    ),
    "tokenize": (("tokenize", "--recipe", "tiny.toml", "--set", "tokenizer.min_frequency=3"), ("tokenizer",)),
    "tokenize again": (("tokenize", "--recipe", "tiny.toml"), ("tokenizer",)),
    "preprocess": (("preprocess", "--recipe", "tiny.toml", "--set", "data.limits.max_length=99"), ("dataset",)),
    "preprocess again": (("preprocess", "--recipe", "tiny.toml"), ("dataset", "tokenizer")),
    "train": (("train", "--recipe", "tiny.toml", "--set", "seed=2"), ("model", "training/*")),
    "train on": (("train", "--recipe", "tiny.toml", "--max-steps", "5"), ("model", "training/*")),
    "train again": (("train", "--recipe", "tiny.toml"), ("model", "training", "dataset")),
    "translate": (("translate", "--recipe", "tiny.toml", "--set", "decoding.beam=1"), ("translations",)),
    "translate again": (("translate", "--recipe", "tiny.toml"), ("translations", "model")),
    "translate a checkpoint": (("translate", RUN, "--step", "last", "test.de"), ("training/*",)),
    "evaluate": (("evaluate", "--recipe", "tiny.toml", "--metric", "bleu"), ("scores", "../ledger.jsonl", "training")),
    "evaluate again": (("evaluate", "--recipe", "tiny.toml"), ("scores", "../ledger.jsonl", "translations")),
    "evaluate files": (
        ("evaluate", "--hypotheses", RUN / "translations/main.txt", "--reference", "test.en", "--out", RUN / "other"),
        ("other", "../ledger.jsonl", "model", "translations"),
    ),
    "run": (("run", "tiny.toml"), ("tokenizer", "dataset", "training", "model", "translations", "scores")),
    "judge": (
        ("judge", "make", RUN, "--kind", "likert", "--segments", "4", "--judges", "1", "--out", RUN / "judging"),
        ("judging/*",),
    ),
    "export": (("export", RUN, "--to", "huggingface", "--out", RUN / "exported"), ("exported",)),
    "import": (("import", "exported", "--out", RUN / "imported"), ("imported",)),
    "attend": (("attend", RUN, "eins zwei", "--out", RUN / "page.html"), ("page.html",)),
    "compare": (
        ("compare", RUN, RUN, "--html", RUN / "page.html", "--plot", RUN / "plot.svg"),
        ("page.html", "plot.svg", "training", "scores"),
    ),
    "embed": (("embed", RUN, "--out", RUN / "vectors.txt"), ("vectors.txt",)),
    "inspect": (("inspect", RUN), ("model", "training", "training/checkpoints")),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with corpora, a recipe and all that it gives."""
    base = tmp_path_factory.mktemp("base")
    write_corpora(base)
    (base / "tiny.toml").write_text(RECIPE.format(folder=".").replace("max_steps = 10", "max_steps = 4"), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(base)
        judge = COMMANDS["judge"][0]
        for words in (("run", "tiny.toml"), ("export", RUN, "--to", "huggingface", "--out", "exported"), judge):
            done = tfm(*words)
            assert done.code == 0, done.err
    return base


def places(run: Path, names: Sequence[str]) -> Iterator[Path]:
    """The places of some names: each itself, its lock, drafts and what was set aside, all below it for `*`."""
    for name in names:
        place = run / name.removesuffix("/*")
        if name != "judging/*":  # which the user names, so that it may be a link
            yield place
        yield from (place.with_name(f".{place.name}.lock"), place.with_name(f".{place.name}.draft"))
        yield from (place.with_name(f".{place.name}.{HASH}"), place.with_name(f".{place.name}.{HASH}.aside"))
        if (place / "manifest.json").exists():
            yield place / "manifest.json"
        if name == "training/*":
            yield from (place / each for each in ("tensorboard", ".metrics.jsonl.draft", ".curves.svg.draft"))
            yield from (
                place / "checkpoints" / each for each in (".draft-0000004", ".draft-0000005", ".dropped-0000004")
            )
            yield run / "training.old-1"
        if name.endswith("/*"):
            yield from sorted(place.rglob("*"))


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Within, what waits for longer is interrupted, and fails."""

    def interrupt(*_: object) -> None:
        raise AssertionError(f"it took more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def planted(made: Path, folder: Path, name: str, kind: str, words: Words, patch: pytest.MonkeyPatch) -> Result:
    """The result of a command with something planted under a name, after which all outside is as it was."""
    base, outside = shutil.copytree(made, folder / "copy", symlinks=True), folder / "outside"
    write_outside(outside)
    PLANTS[kind](base / name, outside)
    corpora = [each for each in base.iterdir() if each.is_file()]
    before, texts = tree(outside), [each.read_bytes() for each in corpora]
    patch.chdir(base)
    with at_most(SECONDS):
        result = tfm(*words)
    assert tree(outside) == before
    assert [each.read_bytes() for each in corpora] == texts
    assert not (outside / "nothing").exists()
    shutil.rmtree(folder)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_outside_is_touched(
    made: Path, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    words, names = COMMANDS[command]
    found = dict.fromkeys(os.path.relpath(place, made) for place in places(made / RUN, names))
    own = {Path(each).name for each in names}
    cases = [
        (name, kind)
        for row, name in enumerate(found)
        for column, kind in enumerate(PLANTS)
        if Path(name).name in own or (row + column) % 6 == 0  # the others in turn
    ]
    failed = []
    for name, kind in cases:
        try:
            result = planted(made, tmp_path / "x", name, kind, words, monkeypatch)
            assert result.code in (0, 2, 65, 73, 74), result  # 2: typer's own, of a folder where a file is written
            assert "Traceback" not in result.err
        except Exception as error:  # all that fail are named at once
            failed.append(f"{name}, {kind}: {type(error).__name__} {str(error)[:600]}")
            monkeypatch.chdir(made)
            shutil.rmtree(tmp_path / "x", ignore_errors=True)
    assert not failed, "\n".join(failed)
    record_property("names", len(cases))
