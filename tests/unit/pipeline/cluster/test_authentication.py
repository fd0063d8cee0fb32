"""Tokens of Ray's clusters: a missing, unreadable or refused one is told in a line with its remedy, and never shown."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tfm.pipeline.cluster import authentication, session
from tfm.pipeline.cluster.authentication import capture_stderr, missing_token_problem, refused_token_problem
from tfm.pipeline.errors import RecipeError

SAID = "gcs_client.cc:210: Unauthenticated: RPC error: InvalidAuthToken: Authentication token is missing or incorrect\n"
SECRET = "s3cret"
ENV_VARS = authentication.MODE_ENV_VAR, authentication.TOKEN_ENV_VAR, authentication.TOKEN_PATH_ENV_VAR


@pytest.fixture
def default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The default file of the token, which is not there; nor is any of Ray's variables."""
    for name in ENV_VARS:
        monkeypatch.setenv(name, "")  # so that it is afterwards as it was, whoever sets it
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ray").mkdir()
    return tmp_path / ".ray" / "auth_token"


def test_where_ray_needs_no_token_none_is_missing(default: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_token_problem(is_new_cluster=False) is None
    assert missing_token_problem(is_new_cluster=True) is None
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(default))
    assert missing_token_problem(is_new_cluster=False) is None
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert missing_token_problem(is_new_cluster=True) is None


@pytest.mark.parametrize("mode", ["token", "Token"])
def test_a_missing_token_is_told(mode: str, default: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", mode)
    assert missing_token_problem(is_new_cluster=True) is None  # Ray makes one
    for content in (None, ""):
        if content is not None:
            default.write_text(content, "utf-8")
        problem = str(missing_token_problem(is_new_cluster=False))
        assert problem.startswith("RAY_AUTH_MODE=token, and there is no token; put what `ray get-auth-token` prints")
        assert problem.endswith(f" into {default}")
    default.write_text(SECRET, "utf-8")
    assert missing_token_problem(is_new_cluster=False) is None


def test_a_file_without_a_token_is_told(default: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    for place in (default, default.parent):
        monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(place))
        for is_new_cluster in (True, False):
            problem = str(missing_token_problem(is_new_cluster=is_new_cluster))
            assert problem.startswith(f"RAY_AUTH_TOKEN_PATH: {place} holds no token; ")
    monkeypatch.setenv("RAY_AUTH_TOKEN", SECRET)
    assert missing_token_problem(is_new_cluster=False) is None


def test_a_refused_token_is_told_with_the_place_it_came_from(default: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def problem() -> str:
        found = refused_token_problem(f"before\n{SAID}after\n")
        assert found is not None
        assert SECRET not in found
        return found

    assert refused_token_problem("Failed to get cluster ID from GCS server: TimedOut") is None
    assert problem().startswith("the cluster asks for a token; set RAY_AUTH_MODE=token, and put what `ray get-auth-tok")
    default.write_text(SECRET, "utf-8")
    assert problem().endswith(f"set RAY_AUTH_MODE=token, and that of {default} is then sent")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    assert problem().startswith(f"the cluster refuses the token of {default}; ")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(default))
    assert problem().startswith(f"the cluster refuses the token of RAY_AUTH_TOKEN_PATH ({default}); ")
    monkeypatch.setenv("RAY_AUTH_TOKEN", SECRET)
    assert problem().startswith("the cluster refuses the token of RAY_AUTH_TOKEN; ")


def test_stderr_is_kept_and_the_descriptor_given_back(capfd: pytest.CaptureFixture[str]) -> None:
    kept: list[str] = []

    def fail() -> None:
        nonlocal kept
        with capture_stderr() as kept:
            os.write(2, b"of C++\n")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert kept == ["of C++\n"]
    os.write(2, b"later\n")
    assert capfd.readouterr().err == "later\n"


def test_a_cluster_of_this_machine_has_a_token_of_its_own(default: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = []
    for name, value in (("RAY_AUTH_MODE", "disabled"), ("RAY_AUTH_TOKEN_PATH", str(default)), ("", "")):
        with monkeypatch.context() as patch:
            patch.setenv(name or "RAY_AUTH_MODE", value or "token")
            authentication.set_token_for_new_cluster()
            tokens.append(os.environ.pop("RAY_AUTH_TOKEN", None))
    assert tokens[:2] == [None, None]
    assert len(str(tokens[2])) == 64
    authentication.set_token_for_new_cluster()
    assert os.environ.pop("RAY_AUTH_TOKEN") not in tokens
    assert not default.exists()
    default.write_text(SECRET, "utf-8")
    authentication.set_token_for_new_cluster()
    assert "RAY_AUTH_TOKEN" not in os.environ


def ray_that(init: Callable[[], None]) -> Any:
    """A stand-in for Ray that does this when it is started."""
    ray: Any = ModuleType("ray")
    ray.init, ray.shutdown = lambda **_: init(), lambda: None
    ray.job_config = SimpleNamespace(JobConfig=SimpleNamespace)
    return ray


@pytest.mark.parametrize(("said", "expected"), [(SAID, "the cluster asks for a token"), ("", "Ray does not start or")])
def test_a_refusal_is_one_line(
    said: str, expected: str, default: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def init() -> None:
        os.write(2, said.encode())
        raise ConnectionError("Failed to connect")

    monkeypatch.setitem(sys.modules, "ray", ray_that(init))
    monkeypatch.setattr(session, "check_cluster_answers", lambda address: None)
    with (
        pytest.raises(RecipeError, match=f"^--cluster 10.0.0.1:6379: {expected}"),
        session.connect_to_cluster("10.0.0.1:6379"),
    ):
        pass
    assert capfd.readouterr() == ("", "")


def test_what_ray_prints_does_not_go_to_stdout(
    default: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def init() -> None:
        print("a worker died")

    monkeypatch.setitem(sys.modules, "ray", ray_that(init))
    with session.connect_to_cluster("auto"):
        print("another worker died")
    print("result")
    assert capsys.readouterr() == ("result\n", "a worker died\nanother worker died\n")
