"""Addresses of clusters: a server of another kind is told from Ray's before Ray tries it for minutes."""

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import pytest

from tfm.pipeline.cluster.reachability import (
    HTTP2_EMPTY_SETTINGS,
    TLS_ENV_VAR,
    check_cluster_accepts,
    check_cluster_answers,
)
from tfm.pipeline.errors import RecipeError


@contextmanager
def serving(*answers: bytes, closes: bool = True) -> Iterator[str]:
    """The address of a server that gives these parts of an answer to the first connection."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1)
                for part in answers:
                    connection.sendall(part)
                    time.sleep(0.01)
                if not closes:
                    over.wait(10)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        over.set()
        thread.join()


@pytest.mark.parametrize(
    "answers",
    [(), (b"HTTP/1.0 400 Bad request\r\n\r\n",), (b"SSH-2.0-OpenSSH_9.2\r\n",), (b"-ERR\r\n",), (b"\0\0\0",)],
    ids=["nothing", "a web server", "ssh", "redis", "a part of a frame"],
)
def test_a_server_of_another_kind_is_refused(answers: tuple[bytes, ...]) -> None:
    with serving(*answers) as address, pytest.raises(RecipeError, match=f"--cluster {address}: a server answers that"):
        check_cluster_answers(address)


def test_a_server_that_says_nothing_is_refused_in_time() -> None:
    with serving(closes=False) as address, pytest.raises(RecipeError, match="a server answers that is not Ray's"):
        check_cluster_answers(address, seconds=0.1)


@pytest.mark.parametrize("parts", [1, 3])
def test_a_server_of_grpc_may_be_ray(parts: int) -> None:
    size = len(HTTP2_EMPTY_SETTINGS) // parts
    with serving(*(HTTP2_EMPTY_SETTINGS[first : first + size] for first in range(0, 9, size)), closes=False) as address:
        check_cluster_answers(address)


def test_a_server_behind_tls_may_be_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TLS_ENV_VAR, "1")
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_cluster_answers(f"127.0.0.1:{server.getsockname()[1]}")


class ClusterError(Exception):
    """As Ray's: that of a call that a server refuses."""


RAY = SimpleNamespace(exceptions=SimpleNamespace(RayError=ClusterError))


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("RPC error: InvalidAuthToken: Authentication token is missing", "the cluster asks for a token; set RAY_AUTH"),
        ("RPC error: Method not found!", r"no cluster of Ray answers \(RPC error: Method not found!\); give auto, or"),
    ],
    ids=["token", "the port of Ray's client"],
)
def test_a_server_that_refuses_the_first_call_is_not_asked_again(
    said: str, problem: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    module, asked = ModuleType("ray._raylet"), list[str]()

    def call_cluster(address: str) -> None:
        asked.append(address)
        os.write(2, b"gcs_client.cc:210: Failed to get cluster ID\n")
        raise ClusterError(said)

    module.GcsClient = call_cluster  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray._raylet", module)
    with pytest.raises(RecipeError, match=f"^--cluster 10.0.0.1:6379: {problem}"):
        check_cluster_accepts(RAY, "10.0.0.1:6379")
    assert (asked, capfd.readouterr().err) == (["10.0.0.1:6379"], "")
    module.GcsClient = lambda address: asked.append(address)  # type: ignore[attr-defined]
    check_cluster_accepts(RAY, "10.0.0.1:6379")
    del module.GcsClient  # type: ignore[attr-defined]
    check_cluster_accepts(RAY, "10.0.0.1:6379")
