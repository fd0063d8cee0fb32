"""Programs of others that ask `tfm serve`: OpenAI's client, LibreTranslate's for asyncio; and many hostile ones."""

import asyncio
import json
import random
import socket
import string
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.user import Stages, tfm
from tests.serving import Server, running_server

SMALL = ("layers=1", "dim=16", "heads=2", "feed_forward_dim=16")
FIELDS = {"q": "eins zwei drei", "source": "de", "target": "en"}


@pytest.fixture(scope="module")
def served(stages: Stages, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of a model that translates and one that writes."""
    folder = tmp_path_factory.mktemp("clients")
    verse = folder / "verse"
    settings = ("task=language_model", "architecture=decoder_only", *(f"decoder.{each}" for each in SMALL))
    flags = [word for setting in settings for word in ("--set", f"model.{setting}")]
    words = ("train", "--data", stages.folder / "dataset", "--max-steps", "10", *flags, "--device", "cpu")
    done = tfm(*words, "--out", verse)
    assert done.code == 0, done.err
    named = f"{stages.folder.name}=de:en"
    with running_server(stages.folder, verse, "--languages", named, "--workers", "2", folder=folder) as server:
        yield server


@pytest.mark.slow
def test_the_client_of_openai_works_streaming_too(served: Server) -> None:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"{served.url}/v1", api_key="none")
    assert "verse" in {model.id for model in client.models.list()}
    asked = {"model": "verse", "prompt": "one two", "max_tokens": 8, "seed": 3}
    whole = client.completions.create(**asked)
    parts = [part.choices[0] for part in client.completions.create(**asked, stream=True)]
    assert "".join(part.text for part in parts) == whole.choices[0].text
    assert parts[-1].finish_reason == whole.choices[0].finish_reason
    assert whole.usage.completion_tokens <= 8
    with pytest.raises(openai.BadRequestError, match=r"n \(2\) is 1"):
        client.completions.create(**asked, n=2)


@pytest.mark.slow
def test_the_client_of_libretranslate_for_asyncio_works(served: Server) -> None:
    libretranslate = pytest.importorskip("libretranslate_aio")

    async def ask() -> None:
        async with libretranslate.AsyncLibreTranslate(served.url) as client:
            found = await client.translate("eins zwei drei", source="de", target="en")
            several = await client.translate(["eins", "zwei"], source="auto", target="en", alternatives=1)
            languages, settings = await client.languages(), await client.frontend_settings()
            with pytest.raises(libretranslate.BadRequestError, match="may be 9 at most"):
                await client.translate("eins", source="de", target="en", alternatives=10_000)
        assert found.translated_text == served.ask("/translate", FIELDS)[1]["translatedText"]
        assert len(several.translated_text) == 2
        assert [language.code for language in languages] == ["de"]
        assert settings.char_limit == 50_000

    asyncio.run(ask())


KINDS = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x")
PATHS = ("translate", "v1/completions", "v1/classify", "detect", "static/../app.py", "%00", "v1/caption")


def hostile(draw: random.Random) -> bytes:
    """The bytes of a request that means harm, or of half of one."""
    body = json.dumps(FIELDS).encode()
    junk = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 400)))
    wrong = {draw.choice(["beam", "alternatives", "q", "glossary"]): draw.choice([-1, 10**30, None, {}, [[]]])}
    bodies = [
        body[: draw.randrange(len(body))],
        junk,
        b'{"q": ' + b"[" * 5_000,
        b'{"q": "' + b"\\ud83d" * 50 + b'", "source": "de", "target": "en"}',
        json.dumps({**FIELDS, **wrong}).encode(),
        b"x" * draw.choice([5_000, 5_000, 5_000, 1_100_000, 10_000_000]),
        b'--x\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n' + junk + b"\r\n--x--\r\n",
    ]
    sent = draw.choice(bodies)
    length = draw.choice([len(sent), len(sent) + 100, max(0, len(sent) - 5)])
    first = f"POST /{draw.choice(PATHS)} HTTP/1.1\r\nHost: x\r\nContent-Type: {draw.choice(KINDS)}\r\n"
    head = f"{first}Content-Length: {length}\r\n\r\n".encode()
    whole = draw.choice([head + sent, head, junk, 2 * (head + sent), b"GET /\r\n", head.replace(b"1.1", b"0.9")])
    return whole[: draw.randrange(len(whole) + 1)] if draw.random() < 0.3 else whole


def send(port: int, sent: bytes) -> bytes:
    """The answer of a server to some bytes."""
    received = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
            line.sendall(sent)
            line.shutdown(socket.SHUT_WR)
            while part := line.recv(1 << 16):
                received += part
    except OSError:  # of which those of a line that the server has closed are some
        pass
    return received


def memory_kib(server: Server) -> int:
    """The memory of a server and its decoding processes."""
    texts = [Path(f"/proc/{pid}/status").read_text("ascii") for pid in (server.process.pid, *server.workers())]
    return sum(int(text.partition("VmRSS:")[2].split()[0]) for text in texts)


@pytest.mark.slow
def test_ten_thousand_requests_of_which_some_are_hostile(served: Server) -> None:
    """Nothing goes wrong, memory stays as it is, no traceback."""
    draw = random.Random(1)
    right = served.ask("/translate", FIELDS)
    assert right[0] == 200
    texts = ["".join(draw.choices(string.ascii_lowercase, k=5)) for _ in range(200)]
    failures: list[object] = []

    def ask_many(count: int) -> None:
        for number in range(count):
            found = served.ask(
                "/translate", {**FIELDS, "q": f"eins {texts[number % 200]} drei", "beam": 1 + number % 3}
            )
            if found[0] != 200:
                failures.append(found)

    def run(count: int) -> None:
        threads = [threading.Thread(target=ask_many, args=(count // 8,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for _ in range(count // 50):
            received = send(served.port, hostile(draw))
            if received and not received.startswith(b"HTTP/1.1 "):
                failures.append(received)
        for thread in threads:
            thread.join()

    run(2_000)
    before = memory_kib(served)
    run(8_000)
    assert failures == []
    assert memory_kib(served) < 1.05 * before
    assert served.ask("/translate", FIELDS) == right
    assert served.process.poll() is None


@pytest.mark.slow
def test_no_traceback_was_logged(served: Server, tmp_path_factory: pytest.TempPathFactory) -> None:
    log = (tmp_path_factory.getbasetemp() / "clients0" / "serve.log").read_text("utf-8")
    assert "Traceback" not in log
    assert " 500 " not in log
    assert {line for line in log.splitlines() if "Error" in line} == set()
