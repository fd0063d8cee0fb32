"""A command runs only if the user named it in this call or allowed it once, wherever else a configuration has it."""

import json
import shlex
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, Result, tfm, write_corpora
from tests.tiny_artifact import rewritten
from tfm.data.errors import escape_unprintable
from tfm.pipeline.training.checkpoints.checkpoint import document_sha256

QUICK = ("--set", "training.validation.every_steps=5", "--set", "training.validation.bleu=false")
FINAL = '\n[evaluation]\ntests = "final"\nmetrics = ["bleu"]\n'
SEARCH = """
[search]
base = "tiny.toml"
method = "grid"
keep = 1

[search.space]
"training.schedule.peak" = { values = [0.001, 0.01] }
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that has scores of its validation split, and a finished search; neither names a command."""
    folder = tmp_path_factory.mktemp("made")
    write_corpora(folder)
    (folder / "tiny.toml").write_text(RECIPE.format(folder=folder) + FINAL, "utf-8")
    (folder / "some.toml").write_text(SEARCH, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for words in ("run", "tiny.toml"), ("search", "some.toml", *QUICK):
            done = tfm(*words)
            assert done.code == 0, done.err
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, which is the working folder, for a user who has allowed nothing."""
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "here"


@pytest.fixture
def sentinel(tmp_path: Path) -> Path:
    """A file that exists once the command has run."""
    return tmp_path / "sentinel"


def metric_of(sentinel: Path) -> dict[str, object]:
    code = f"open({str(sentinel)!r}, 'w').close()\nimport sys\nfor line in sys.stdin: print(1)"
    return {"name": "mine", "command": ["python3", "-I", "-c", code], "limit": 60.0, "higher_is_better": True}


def shown(metric: dict[str, object]) -> str:
    words = metric["command"]
    assert isinstance(words, list)
    return escape_unprintable(shlex.join(words))


def plant(artifact: Path, metric: dict[str, object]) -> None:
    """Give the manifest of an artifact an evaluation with the metric, with every checksum in order."""
    manifest = json.loads((artifact / "manifest.json").read_text("utf-8"))
    evaluation = manifest["config"].get("evaluation", {})
    rewritten(artifact, config={**manifest["config"], "evaluation": {**evaluation, "external": [metric]}})


@pytest.mark.slow
def test_final_runs_the_commands_of_a_received_run_only_if_allowed(here: Path, sentinel: Path) -> None:
    metric = metric_of(sentinel)
    plant(here / "runs/tiny/scores-valid", metric)
    for _ in range(2):
        refused = tfm("evaluate", "--final", "runs/tiny")
        assert refused.code == 2
        assert refused.err.splitlines()[-2].startswith("runs/tiny/scores-valid: its settings would run the command `")
        assert shown(metric) in refused.err
        assert "--allow-external" in refused.err.splitlines()[-1]
        assert not (here / "runs/tiny/translations").exists()
    assert not sentinel.exists()

    allowed = tfm("evaluate", "--final", "runs/tiny", "--allow-external", "--json")
    assert allowed.code == 0, allowed.err
    assert allowed.err.index(shown(metric)) < allowed.err.index("report:")
    assert json.loads(allowed.out)["metrics"]["mine"]["score"] == 1.0
    sentinel.unlink()
    shutil.rmtree("runs/tiny/scores")
    assert tfm("evaluate", "--final", "runs/tiny", "--again").code == 0  # it was allowed once
    assert sentinel.exists()
    sentinel.unlink()
    shutil.rmtree("runs/tiny/scores")
    plant(here / "runs/tiny/scores-valid", {**metric, "limit": 61.0})  # another artifact
    assert tfm("evaluate", "--final", "runs/tiny", "--again").code == 2
    assert not sentinel.exists()


def test_final_runs_what_the_recipe_names_that_the_user_names(here: Path, sentinel: Path) -> None:
    metric = metric_of(sentinel)
    words = ("--set", f"evaluation.external=[{{name='mine', command={json.dumps(metric['command'])}, limit=60.0}}]")
    done = tfm("evaluate", "--final", "--recipe", "tiny.toml", *words)
    assert done.code == 0, done.err
    assert sentinel.exists()
    sentinel.unlink()
    shutil.rmtree("runs/tiny/scores")
    assert tfm("evaluate", "--final", "runs/tiny", "--again").code == 2  # the run alone is named here
    assert not sentinel.exists()


def test_a_folder_that_only_the_artifact_names_is_not_read(here: Path) -> None:
    manifest = json.loads((here / "runs/tiny/scores-valid/manifest.json").read_text("utf-8"))
    evaluation = {**manifest["config"]["evaluation"], "metrics": ["meteor"], "wordnet": "/etc"}
    rewritten(here / "runs/tiny/scores-valid", config={**manifest["config"], "evaluation": evaluation})
    refused = tfm("evaluate", "--final", "runs/tiny", "--by", "bleu")
    assert refused.code == 2
    assert "its settings would read the folder '/etc'" in refused.err


def test_a_file_of_what_was_allowed_that_is_damaged_allows_nothing(here: Path, sentinel: Path, tmp_path: Path) -> None:
    plant(here / "runs/tiny/scores-valid", metric_of(sentinel))
    kept = tmp_path / "state" / "tfm" / "allowed.json"
    kept.parent.mkdir(parents=True)
    for content in b"", b"[", b'{"a": 1}', b"[1, null]", b"[" * 100_000:
        kept.write_bytes(content)
        assert tfm("evaluate", "--final", "runs/tiny").code == 2
    kept.unlink()
    kept.symlink_to("/dev/zero")
    assert tfm("evaluate", "--final", "runs/tiny").code == 2
    assert not sentinel.exists()


def every_command() -> Iterator[tuple[str, ...]]:
    """Commands that read a run or a search; none names a command of a metric."""
    run, files = "runs/tiny", ("--source", "test.de", "--reference", "test.en")
    yield "inspect", run
    for part in "tokenizer", "dataset", "model", "translations-valid", "scores-valid":
        yield "inspect", f"{run}/{part}"
    yield "compare", run, run
    yield "compare", run, "runs/some/trials/0000", "--html", "page.html"
    yield "translate", run, "test.de"
    yield "evaluate", "--model", run, *files, "--metric", "bleu"
    yield "evaluate", "--hypotheses", f"{run}/translations-valid/valid.hypothesis.txt", "--reference", "valid.en"
    yield "evaluate", "--final", run
    yield "attend", run, "eins zwei", "--out", "attention.html"
    yield "embed", run, "--text", "eins"
    yield "export", run, "--format", "huggingface", "--out", "exported"
    yield "judge", "make", run, run, "--out", "judging"
    for stage in "tokenize", "preprocess", "train", "translate", "evaluate":
        yield stage, "--recipe", "tiny.toml"
    yield "run", "tiny.toml"
    yield "search", "some.toml", "--report", *QUICK
    yield "search", "some.toml", *QUICK
    yield "search", "some.toml", "--final", *QUICK


@pytest.mark.slow
def test_no_command_runs_one_that_is_stored(here: Path, sentinel: Path) -> None:
    """The sentinel stands in every manifest, training, and trial."""
    metric = metric_of(sentinel)
    artifacts = [file.parent for file in sorted(here.rglob("manifest.json"))]
    assert len(artifacts) > 8
    for artifact in artifacts:
        plant(artifact, metric)
    states = sorted(here.glob("runs/**/checkpoints/*/state.json"))
    assert states
    for file in states:  # of checkpoints
        document = json.loads(file.read_text("utf-8"))
        document.pop("sha256")
        document["state"]["plan"]["config"]["evaluation"] = {"external": [metric]}
        document["sha256"] = document_sha256(document)
        file.write_text(json.dumps(document, indent=1), "utf-8")
    codes = {words: tfm(*words).code for words in every_command()}
    assert not sentinel.exists(), codes
    assert set(codes.values()) <= {0, 2, 65, 73}, codes


@pytest.mark.parametrize("words", [("--report",), ("--final",), ()])
def test_a_search_runs_no_command_of_its_journal(here: Path, sentinel: Path, words: tuple[str, ...]) -> None:
    journal = here / "runs/some/trials.journal"
    before, setting = journal.read_text("utf-8"), json.dumps({"evaluation.external": [metric_of(sentinel)]})[1:-1]
    journal.write_text(before.replace('"configuration":{', f'"configuration":{{{setting},'), "utf-8")
    assert journal.read_text("utf-8") != before
    done = tfm("search", "some.toml", *words, *QUICK)
    assert not sentinel.exists(), done.err
    if words == ("--final",):
        assert_refused(done)


@pytest.mark.slow
def test_a_search_runs_no_command_of_a_database(here: Path, sentinel: Path) -> None:
    words = ("search", "some.toml", "--storage", f"sqlite:///{here / 'trials.db'}", *QUICK)
    shutil.rmtree("runs/some")
    done = tfm(*words)
    assert done.code == 0, done.err
    with closing(sqlite3.connect(here / "trials.db")) as database, database:
        rows = database.execute(
            "SELECT trial_user_attribute_id, value_json FROM trial_user_attributes WHERE key = 'configuration'"
        ).fetchall()
        for number, text in rows:
            planted = json.dumps({**json.loads(text), "evaluation.external": [metric_of(sentinel)]})
            change = "UPDATE trial_user_attributes SET value_json = ? WHERE trial_user_attribute_id = ?"
            database.execute(change, (planted, number))
    assert rows
    for more in ("--report",), (), ("--final",):
        assert_refused(tfm(*words, *more))
    assert not sentinel.exists()


def assert_refused(done: Result) -> None:
    assert done.code == 65
    assert "evaluation.external" in done.err


def test_inspect_compare_and_reports_show_commands(here: Path, sentinel: Path) -> None:
    metric = metric_of(sentinel)
    words = ("--set", f"evaluation.external=[{{name='mine', command={json.dumps(metric['command'])}}}]")
    assert tfm("run", "tiny.toml", *words).code == 0
    assert shown(metric) in tfm("inspect", "runs/tiny").out
    assert shown(metric) in tfm("inspect", "runs/tiny/scores-valid").out
    assert "for line in sys.stdin" in Path("runs/tiny/scores-valid/report.html").read_text("utf-8")
    compared = tfm("compare", "runs/tiny", "runs/tiny", "--test", "valid")
    assert "has scores by the command: " in compared.err + compared.out, compared
