"""`tfm serve` as a user starts it: a real process, real decoding processes, a tiny model."""

import os
import re
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.user import TINY, Stages, tfm
from tests.serving import Server, running_server, wait_until

pytestmark = pytest.mark.slow  # its processes compile the search; tests/unit/pipeline/serving has what is quick

FIELDS = {"q": "eins zwei drei\nvier", "source": "de", "target": "en"}


@pytest.fixture(scope="module")
def served(stages: Stages, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of the tiny model with two processes."""
    folder = tmp_path_factory.mktemp("served")
    with running_server(stages.folder, "--workers", "2", "--languages", _languages(stages), folder=folder) as server:
        yield server


def _languages(stages: Stages) -> str:
    return f"{stages.folder.name}=de:en"


def test_a_text_is_translated_as_tfm_translate_does(served: Server, stages: Stages) -> None:
    status, found = served.ask("/translate", FIELDS)
    lines = tfm("translate", stages.folder, "-", stdin="eins zwei drei\nvier\n").out
    assert (status, found) == (200, {"translatedText": lines.rstrip("\n")})


def test_the_client_of_libretranslate_works(served: Server) -> None:
    client = pytest.importorskip("libretranslatepy").LibreTranslateAPI(served.url)
    assert client.languages() == [{"code": "de", "name": "German", "targets": ["en"]}]
    assert client.translate("eins zwei drei\nvier", "de", "en") == served.ask("/translate", FIELDS)[1]["translatedText"]


def test_attention_glossary_and_alternatives_are_those_of_the_model(served: Server) -> None:
    status, attention = served.ask("/v1/attend", {"text": "eins zwei", "translation": "one two"})
    assert status == 200
    assert {each["kind"] for each in attention["attentions"]} == {"encoder", "decoder", "cross"}
    status, found = served.ask("/translate", {**FIELDS, "q": "eins zwei", "glossary": {"zwei": "six"}})
    assert status == 200
    assert "six" in found["translatedText"].split()
    status, found = served.ask("/translate", {**FIELDS, "q": "eins zwei", "alternatives": 2})
    assert (status, len(found["alternatives"])) == (200, 2)


def test_html_is_translated_with_its_tags(served: Server) -> None:
    html = "<p>eins <b>zwei</b> drei</p><!-- vier -->"
    status, found = served.ask("/translate", {**FIELDS, "q": html, "format": "html"})
    text = served.ask("/translate", {**FIELDS, "q": "eins zwei drei"})[1]["translatedText"]
    assert status == 200
    assert found["translatedText"].startswith("<p>")
    assert found["translatedText"].endswith("</p><!-- vier -->")
    assert found["translatedText"].count("<b>") == found["translatedText"].count("</b>") == 1
    assert re.sub("<[^>]*>", "", found["translatedText"]).split() == text.split()


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/0.9\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{",
        b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{}",
        b"POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 20,
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x00\xff" * 500,
        b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n" + b"x" * 100_000,
        b"POST /translate HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=range(11),
)
def test_a_hostile_request_does_no_harm(served: Server, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as line:
        line.sendall(sent)
        line.shutdown(socket.SHUT_WR)
        received = b""
        try:
            while part := line.recv(1 << 16):
                received += part
        except ConnectionError:
            pass
    assert received == b"" or received.startswith(b"HTTP/1.1 ")
    assert b"Traceback" not in received
    assert served.ask("/translate", FIELDS)[0] == 200


def test_a_client_that_hangs_up_frees_its_place(served: Server) -> None:
    body = b'{"q": "' + b"eins zwei drei vier. " * 800 + b'", "source": "de", "target": "en", "alternatives": 4}'
    head = f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as line:
        line.sendall(head + body)
    wait_until(lambda: _figure(served, "tfm_pending_sentences") == 0)
    assert served.ask("/translate", FIELDS)[0] == 200


def _figure(server: Server, name: str) -> float:
    from urllib.request import urlopen

    with urlopen(f"{server.url}/metrics", timeout=20) as response:
        lines = response.read().decode().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"{name} ")))


def test_what_a_killed_process_had_is_answered_all_the_same(served: Server) -> None:
    before = served.workers()
    texts = [f"eins {'zwei ' * (n % 10)}{'drei ' * (n // 10)}vier" for n in range(200)]
    found: list[tuple[int, Any]] = []
    asking = threading.Thread(
        target=lambda: found.append(served.ask("/translate", {**FIELDS, "q": texts, "alternatives": 9}))
    )
    asking.start()
    wait_until(lambda: _figure(served, "tfm_pending_sentences") > 0)
    os.kill(before[0], signal.SIGKILL)
    asking.join()
    (status, answer) = found[0]
    assert status == 200
    assert len(answer["translatedText"]) == 200
    wait_until(lambda: len(served.workers()) == 2 and before[0] not in served.workers())
    wait_until(lambda: _figure(served, "tfm_worker_restarts") == 1)
    assert served.ask("/translate", {**FIELDS, "q": texts, "alternatives": 9})[1] == answer


def test_a_model_that_is_published_anew_is_taken_over_without_a_gap(stages: Stages, tmp_path: Path) -> None:
    run = tmp_path / "mine"
    shutil.copytree(stages.folder, run)
    with running_server(run, "--languages", "mine=de:en", "--no-cache", folder=tmp_path) as server:
        first = server.ask("/v1/models")[1]["data"][0]["fingerprint"]
        statuses, is_done = set(), threading.Event()

        def ask_again() -> None:
            while not is_done.is_set():
                statuses.add(server.ask("/translate", FIELDS)[0])

        asking = threading.Thread(target=ask_again)
        asking.start()
        trained = tfm(
            *("train", "--data", run / "dataset", "--max-steps", "30", *TINY, "--device", "cpu", "--out", run)
        )
        assert trained.code == 0, trained.err
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: server.ask("/v1/models")[1]["data"][0]["fingerprint"] != first)
        again = server.ask("/translate", FIELDS)
        is_done.set()
        asking.join()
    assert statuses == {200}
    lines = tfm("translate", run, "-", stdin="eins zwei drei\nvier\n").out
    assert again == (200, {"translatedText": lines.rstrip("\n")})


def test_a_server_that_is_asked_to_stop_answers_what_it_has_taken_and_leaves_nothing(
    stages: Stages, tmp_path: Path
) -> None:
    temporary = set(os.listdir("/tmp"))
    with running_server(stages.folder, "--languages", _languages(stages), folder=tmp_path) as server:
        workers = server.workers()
        found: list[tuple[int, Any]] = []
        texts = ["eins zwei drei " * (1 + n % 5) for n in range(100)]
        fields = {**FIELDS, "q": texts, "alternatives": 4}
        asking = threading.Thread(target=lambda: found.append(server.ask("/translate", fields)))
        asking.start()
        wait_until(lambda: _figure(server, "tfm_pending_sentences") > 0)
        server.process.send_signal(signal.SIGTERM)
        asking.join()
        assert server.process.wait(20) == 0
        assert found[0][0] == 200
        for _ in range(100):
            if not any(Path(f"/proc/{each}").exists() for each in workers):
                break
            time.sleep(0.05)
        assert not any(Path(f"/proc/{each}").exists() for each in workers)
    assert {name for name in set(os.listdir("/tmp")) - temporary if "tfm-image" in name or "serve" in name} == set()
    assert "Traceback" not in (tmp_path / "serve.log").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nowhere",), 65, "nowhere"),
        (("RUN", "RUN"), 2, "rename one of the two folders"),
        (("RUN", "--languages", "other=de:en"), 2, "there is no model of this name"),
        (("RUN", "--languages", "deen"), 2, "write NAME=SOURCE:TARGET"),
        (("RUN", "--cors", "https://example.org/"), 2, "--cors https://example.org/: no browser sends this"),
        (("RUN", "--cors", "example.org"), 2, "no browser sends this"),
        (("RUN", "--cors", "https://Example.org"), 2, "no browser sends this"),
        (("RUN", "--cors", "https://example.org:443"), 2, "no browser sends this"),
        (("RUN", "--host", "1.2.3.4"), 2, "name another with --host"),
        (("RUN", "--keys", "nowhere.txt"), 65, "nowhere.txt"),
        (("RUN", "--host", "no such host"), 2, "--host no such host"),
        (("RUN", "--beam", "20"), 2, "wider than --max-beam"),
        (("RUN/tokenizer",), 65, "expected what train makes"),
    ],
)
def test_what_cannot_be_served_is_said(stages: Stages, words: tuple[str, ...], code: int, said: str) -> None:
    done = tfm("serve", *(word.replace("RUN", str(stages.folder)) for word in words))
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_a_port_that_is_taken_is_said(stages: Stages) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = tfm("serve", stages.folder, "--port", str(taken.getsockname()[1]))
    assert done.code == 2
    assert "name another with --port" in done.err
