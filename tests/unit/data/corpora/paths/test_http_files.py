"""Corpora behind http://, from a server of the test: copied once, again when they change, whole or refused in words."""

import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, tfm, write_corpora
from tfm.data.corpora.paths import remote_files
from tfm.data.corpora.paths.remote_files import cache_folder, fetch_local_copy
from tfm.data.corpora.sources import read_pairs
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError

pytest.importorskip("fsspec")
aiohttp = pytest.importorskip("aiohttp", reason="fsspec reads http:// by aiohttp (extra remote)")
HTTPFileSystem = pytest.importorskip("fsspec.implementations.http").HTTPFileSystem
TEXT = b"eins\tone\nzwei\ttwo\n"
PAIRS = [("eins", "one"), ("zwei", "two")]


@dataclass
class Answer:
    """The answer of the server at a path."""

    body: bytes = TEXT
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = -1
    """Content-Length; -1: that of the body; None: none is said."""
    pause: float = 0.0
    """Seconds before each byte of the body."""


class Server(ThreadingHTTPServer):
    """A server that notes what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, str]] = []
        self.credentials: list[str | None] = []

    def url(self, path: str = "/train.tsv", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.server_port}{path}"

    def gets(self) -> int:
        return sum(method == "GET" for method, _ in self.asked)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def answer(self, *, with_body: bool) -> None:
        self.server.asked.append((self.command, self.path))
        self.server.credentials.append(self.headers.get("Authorization"))
        found = self.server.answers.get(self.path, Answer(b"", 404))
        self.send_response(found.status)
        for name, value in found.headers.items():
            self.send_header(name, value)
        if found.length is not None:
            self.send_header("Content-Length", str(len(found.body) if found.length < 0 else found.length))
        self.end_headers()
        if with_body and not found.pause:
            self.wfile.write(found.body)
        elif with_body:
            for byte in found.body:
                threading.Event().wait(found.pause)
                self.wfile.write(bytes([byte]))

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(remote_files, "_refreshed_copies_by_url", {})
    HTTPFileSystem.clear_instance_cache()  # with connections of another test
    with Server() as started:
        thread = threading.Thread(target=started.serve_forever, args=(0.01,))
        thread.start()
        yield started
        started.shutdown()
        thread.join()


@pytest.fixture
def copy(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], bytes]:
    """The bytes that a new process reads at a URL."""

    def read(url: str) -> bytes:
        monkeypatch.setattr(remote_files, "_refreshed_copies_by_url", {})
        return fetch_local_copy(url, online=True).read_bytes()

    return read


Copy = Callable[[str], bytes]


def nothing_is_kept() -> bool:
    return not [each for each in cache_folder().rglob("*") if each.is_file()]


@pytest.mark.parametrize(
    "mark", [{"ETag": '"1"'}, {"ETag": 'W/"1"'}, {"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}]
)
def test_a_file_is_got_once(server: Server, copy: Copy, mark: dict[str, str]) -> None:
    server.answers["/train.tsv"] = Answer(headers=mark)
    assert [copy(server.url()) for _ in range(3)] == [TEXT] * 3
    assert server.gets() == 1
    assert fetch_local_copy(server.url(), online=False).read_bytes() == TEXT


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Answer(headers={"ETag": '"1"'}), Answer(b"drei\tthree\nvi\tf\n", headers={"ETag": '"2"'})),
        (
            Answer(headers={"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}),
            Answer(b"drei\tthree\nvi\tf\n", headers={"Last-Modified": "Mon, 01 Jan 2024 00:00:01 GMT"}),
        ),
        (Answer(), Answer(b"drei\tthree\n")),
        (Answer(), Answer(TEXT.upper())),
        (Answer(length=None), Answer(TEXT.upper(), length=None)),
    ],
    ids=["ETag", "Last-Modified", "size", "nothing but the same size", "nothing at all"],
)
def test_a_file_that_changes_is_got_again(server: Server, copy: Copy, before: Answer, after: Answer) -> None:
    server.answers["/train.tsv"] = before
    assert copy(server.url()) == before.body
    server.answers["/train.tsv"] = after
    assert copy(server.url()) == after.body


def test_a_body_that_is_cut_is_refused(server: Server, copy: Copy) -> None:
    server.answers["/train.tsv"] = Answer(length=len(TEXT) + 50)
    with pytest.raises(DataError, match=r"cannot be downloaded|bytes, but") as caught:
        copy(server.url())
    assert server.url() in str(caught.value)
    assert nothing_is_kept()


def test_a_copy_stays_where_its_new_version_is_cut(server: Server, copy: Copy) -> None:
    server.answers["/train.tsv"] = Answer(headers={"ETag": '"1"'})
    copy(server.url())
    server.answers["/train.tsv"] = Answer(b"drei", headers={"ETag": '"2"'}, length=50)
    with pytest.raises(DataError):
        copy(server.url())
    assert fetch_local_copy(server.url(), online=False).read_bytes() == TEXT


@pytest.mark.parametrize(
    ("status", "reason"),
    [(404, "404"), (410, "410"), (403, "403"), (401, "401"), (500, "500"), (503, "503")],
)
def test_a_status_is_told(server: Server, copy: Copy, status: int, reason: str) -> None:
    server.answers["/train.tsv"] = Answer(b"<html>no</html>", status)
    with pytest.raises(DataError, match="cannot be downloaded") as caught:
        copy(server.url())
    assert server.url() in str(caught.value)
    assert reason in str(caught.value).replace(server.url(), "")
    assert nothing_is_kept()


def test_a_closed_port_is_told(server: Server, copy: Copy) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/train.tsv"
    with pytest.raises(DataError, match=r"cannot be downloaded \(.*(onnect|refused)") as caught:
        copy(url)
    assert url in str(caught.value)


def test_a_server_that_knows_no_head_is_asked_by_get(
    server: Server, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Handler, "do_HEAD", lambda self: self.send_error(405))
    server.answers["/train.tsv"] = Answer(headers={"ETag": '"1"'})
    assert copy(server.url()) == TEXT


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_followed_without_credentials(server: Server, copy: Copy, status: int) -> None:
    server.answers["/old.tsv"] = Answer(b"", status, {"Location": server.url("/train.tsv", "localhost")})
    server.answers["/train.tsv"] = Answer(headers={"ETag": '"1"'})
    assert copy(server.url("/old.tsv", "me:hunter22@127.0.0.1")) == TEXT
    said = {path: mark for (_, path), mark in zip(server.asked, server.credentials, strict=True)}
    assert said["/train.tsv"] is None
    server.answers["/train.tsv"] = Answer(TEXT * 2, headers={"ETag": '"2"'})
    assert copy(server.url("/old.tsv", "me:hunter22@127.0.0.1")) == TEXT * 2


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "/old.tsv"])
def test_a_redirect_to_elsewhere_than_http_or_in_circles_is_refused(server: Server, copy: Copy, target: str) -> None:
    server.answers["/old.tsv"] = Answer(b"", 302, {"Location": target})
    with pytest.raises(DataError, match="cannot be downloaded"):
        copy(server.url("/old.tsv"))
    assert nothing_is_kept()


@pytest.mark.parametrize("name", ["train.tsv", "train.tsv.gz"])
@pytest.mark.parametrize("has_encoding", [False, True])
@pytest.mark.parametrize("length", [-1, None])
def test_compressed_bytes_are_read_as_the_texts_they_are(
    server: Server, copy: Copy, name: str, has_encoding: bool, length: int | None
) -> None:
    headers = {"ETag": '"1"', **({"Content-Encoding": "gzip"} if has_encoding else {})}
    server.answers[f"/{name}"] = Answer(gzip.compress(TEXT), headers=headers, length=length)
    corpus = CorpusConfig(format="tsv", path=server.url(f"/{name}"), source="0", target="1")
    assert list(read_pairs(corpus, online=True)) == PAIRS


def test_an_encoding_that_nobody_asked_for_is_refused(server: Server, copy: Copy) -> None:
    server.answers["/train.tsv"] = Answer(b"\x0b\x02\x80abc\x03", headers={"Content-Encoding": "br"})
    with pytest.raises(DataError, match="is sent as br"):
        copy(server.url())
    assert nothing_is_kept()


def test_a_download_may_take_longer_than_five_minutes(
    server: Server, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of aiohttp for a whole file is 300 seconds, here 0.2."""
    monkeypatch.setattr(aiohttp.client, "DEFAULT_TIMEOUT", aiohttp.ClientTimeout(total=0.2))
    server.answers["/train.tsv"] = Answer(pause=0.03)
    assert copy(server.url()) == TEXT


def test_a_file_is_got_in_one_piece(server: Server, copy: Copy) -> None:
    """Parts of two versions would be a third one."""
    body = b"a\tb\n" * 3_000_000
    server.answers["/train.tsv"] = Answer(body, headers={"ETag": '"1"', "Accept-Ranges": "bytes"})
    assert copy(server.url()) == body
    assert server.gets() == 1


def test_the_command_says_it_in_words(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_corpora(tmp_path)
    text = (
        RECIPE.format(folder=".")
        .replace("./train.de", server.url("/train.de"))
        .replace("[data]", "[data]\nonline = true")
    )
    Path("tiny.toml").write_text(text, "utf-8")
    done = tfm("tokenize", "--recipe", "tiny.toml")
    assert done.code == 65
    assert server.url("/train.de") in "".join(done.err.split())
    assert "404" in done.err
    server.answers["/train.de"] = Answer(Path("train.de").read_bytes())
    done = tfm("tokenize", "--recipe", "tiny.toml")
    assert done.code == 0, done.err
