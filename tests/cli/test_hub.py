"""`tfm push` and `tfm pull`: what is pulled is what was pushed, or nothing; no token is written anywhere."""

import json
import shutil
from pathlib import Path

import pytest
from huggingface_hub import constants

from tests.cli.user import ROOT, Result, tfm
from tests.hub import TOKEN, Hub
from tfm.pipeline.artifacts.manifest import open_artifact

MODELS = ROOT / "tests" / "releases" / "0.1.0"


@pytest.fixture
def hub(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """A hub, in an empty working folder."""
    monkeypatch.chdir(tmp_path)
    return hub


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "mine"
    shutil.copytree(MODELS / "transformer", folder)
    return folder


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def ok(*words: str | Path) -> Result:
    done = tfm(*words)
    assert done.code == 0, done.err
    return done


def test_what_is_pulled_is_what_was_pushed(hub: Hub, run: Path, tmp_path: Path) -> None:
    pushed = ok("push", run, "--to", "me/mine", "--license", "mit", "--language", "de")
    (oid,) = {name for name in hub.repositories["me/mine"] if pushed.out == f"{hub.url}/me/mine/commit/{name}\n"}
    card = hub.repositories["me/mine"]["main"]["README.md"].decode()
    assert 'license: "mit"' in card
    assert open_artifact(run / "model").fingerprint in card
    assert "tfm pull me/mine" in card
    for words in ((), ("--revision", oid)):
        out = tmp_path / f"pulled{len(words)}"
        ok("pull", "me/mine", "--out", out, *words)
        assert files_below(out / "model") == files_below(run / "model")
        assert sorted(each.name for each in out.iterdir()) == [".model.lock", "model"]
    assert ok("inspect", tmp_path / "pulled0").out


@pytest.mark.slow
def test_a_later_model_replaces_the_earlier_one_and_branches_are_apart(hub: Hub, run: Path, tmp_path: Path) -> None:
    ok("push", run, "--to", "me/mine")
    ok("push", MODELS / "rotary" / "model", "--to", "me/mine")
    there = hub.repositories["me/mine"]["main"]
    assert {name for name in there if name.startswith("model/")} == {
        f"model/{name}" for name in files_below(MODELS / "rotary" / "model")
    }
    ok("push", run, "--to", "me/mine", "--revision", "small")
    for branch, made in (("main", MODELS / "rotary"), ("small", run)):
        ok("pull", "me/mine", "--out", tmp_path / "out", "--revision", branch)
        assert files_below(tmp_path / "out" / "model") == files_below(made / "model")


def test_no_token_is_written_or_shown(hub: Hub, run: Path, tmp_path: Path) -> None:
    said = [ok("push", run, "--to", "me/secret", "--private"), ok("pull", "me/secret", "--out", tmp_path / "out")]
    said.append(tfm("pull", "me/none", "--out", tmp_path / "other"))
    kept = [*files_below(tmp_path).values(), *hub.repositories["me/secret"]["main"].values()]
    assert hub.private == {"me/secret"}
    assert not any(TOKEN in each.out + each.err for each in said)
    assert not any(TOKEN.encode() in content for content in kept)
    assert not any(TOKEN in each for each in hub.requests)


def spoiled(files: dict[str, bytes], how: str) -> dict[str, bytes]:
    """The files of a repository that somebody else has changed."""
    manifest = json.loads(files["model/manifest.json"])
    if how == "weights":
        return {**files, "model/model.safetensors": files["model/model.safetensors"][:-1] + b"x"}
    if how == "cut":
        return {**files, "model/model.safetensors": files["model/model.safetensors"][:100]}
    if how == "missing":
        return {name: content for name, content in files.items() if name != "model/config.json"}
    if how == "no model":
        return {"README.md": b""}
    if how == "outside":
        manifest["files"]["../../outside.txt"] = {"size": 1, "sha256": "0" * 64}
    if how == "absolute":
        manifest["files"]["/tmp/outside.txt"] = {"size": 1, "sha256": "0" * 64}
    if how == "huge":
        manifest["files"]["model.safetensors"]["size"] = 2**60
    content = b"[]" if how == "no object" else json.dumps(manifest).encode()
    return {**files, "model/../../outside.txt": b"x", "model/manifest.json": content}


@pytest.mark.parametrize("how", ["weights", "cut", "missing", "no model", "outside", "absolute", "huge", "no object"])
@pytest.mark.few(4)
def test_what_is_not_what_its_manifest_says_is_refused(hub: Hub, run: Path, tmp_path: Path, how: str) -> None:
    ok("push", run, "--to", "me/mine")
    ok("pull", "me/mine", "--out", tmp_path / "out")
    before = files_below(tmp_path)
    hub.commit("me/mine", "main", spoiled(hub.repositories["me/mine"]["main"], how))
    done = tfm("pull", "me/mine", "--out", tmp_path / "out")
    assert done.code in (65, 73), done.err
    assert 1 <= len(done.err.splitlines()) <= 2
    assert files_below(tmp_path) == before


def test_errors_say_what_to_do(hub: Hub, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ok("push", run, "--to", "me/mine")
    asked = {
        ("me/none",): ("me/none", "not on", "hf auth login"),
        ("me/mine", "--revision", "old"): ("me/mine", "no revision 'old'"),
    }
    for words, wanted in asked.items():
        done = tfm("pull", *words, "--out", tmp_path / "out")
        assert done.code == 65
        assert all(each in done.err for each in wanted), done.err
    for name in ("../x", "a/b/c", "https://x/y", "", "a..b", "-x"):
        done = tfm("pull", "--out", tmp_path / "out", "--", name)
        assert done.code == 2, name
        assert not (tmp_path / "out" / "model").exists()
    (run / "model" / "config.json").write_text("{}")
    done = tfm("push", run, "--to", "me/mine")
    assert done.code == 65
    assert "config.json" in done.err
    monkeypatch.setenv("HF_TOKEN", "wrong")
    done = tfm("push", MODELS / "lstm", "--to", "me/mine")
    assert done.code == 65
    assert "hf auth login" in done.err


@pytest.mark.slow  # huggingface_hub tries again for half a minute
def test_a_hub_that_does_not_answer_is_an_error_of_input_and_output(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = "http://127.0.0.1:9/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    for words in (("pull", "me/mine", "--out", tmp_path / "out"), ("push", MODELS / "lstm", "--to", "me/mine")):
        done = tfm(*words)
        assert done.code == 74, done.err
        assert "me/mine: http://127.0.0.1:9 cannot be reached" in done.err
