"""A stand-in for the Hugging Face Hub's interface, on loopback: repositories in memory, with branches and commits."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Files = dict[str, bytes]
TOKEN = "hf_" + "x" * 34


@dataclass
class Hub:
    """The repositories: by name and branch, or commit, their files."""

    repositories: dict[str, dict[str, Files]] = field(default_factory=dict)
    private: set[str] = field(default_factory=set)
    requests: list[str] = field(default_factory=list)
    url: str = ""

    def commit(self, name: str, branch: str, files: Files) -> str:
        """Set the files of a branch; the hash of the commit."""
        oid = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        self.repositories.setdefault(name, {})
        self.repositories[name][branch] = self.repositories[name][oid] = files
        return oid


class Answer(Exception):
    """The end of a request: a status, and what the hub says."""

    def __init__(self, status: int, content: object, **headers: str) -> None:
        self.status, self.content, self.headers = status, content, headers


def handle(hub: Hub, method: str, path: str, token: str | None, body: bytes) -> Answer:
    """Answer a request as the hub does."""
    path, _, _ = path.partition("?")
    if path == "/api/validate-yaml":
        return Answer(200, {"errors": [], "warnings": []})
    if path == "/api/repos/create" and method == "POST":
        if token != TOKEN:
            return Answer(401, {"error": "Invalid username or password."})
        asked = json.loads(body)
        owner = asked.get("organization") or "me"
        name = f"{owner}/{asked['name']}"
        if name in hub.repositories:
            return Answer(409, {"error": "You already created this model repo", "url": f"{hub.url}/{name}"})
        hub.commit(name, "main", {".gitattributes": b""})
        if asked.get("private") or asked.get("visibility") == "private":
            hub.private.add(name)
        return Answer(200, {"url": f"{hub.url}/{name}", "name": name})
    if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(\w+)/(.+))?", path):
        name, what, revision = match.groups()
        if name not in hub.repositories or (name in hub.private and token != TOKEN):
            return Answer(401 if token is None else 404, {"error": "Repository not found"}, code="RepoNotFound")
        if method == "POST" and token != TOKEN:
            return Answer(401, {"error": "Invalid username or password."})
        repository = hub.repositories[name]
        revision = (revision or "main").partition("/")[0] if what != "branch" else revision
        if what == "branch":
            if revision in repository:
                return Answer(409, {"error": "Reference already exists"})
            hub.commit(name, revision, repository["main"])
            return Answer(200, {})
        if revision not in repository:
            return Answer(404, {"error": f"Invalid rev id: {revision}"}, code="RevisionNotFound")
        return answer_model(hub, name, what, revision, body)
    if match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
        name, revision, file = match.groups()
        if name not in hub.repositories or (name in hub.private and token != TOKEN):
            return Answer(401, {"error": "Repository not found"}, code="RepoNotFound")
        if revision not in hub.repositories[name]:
            return Answer(404, {"error": "Invalid rev id"}, code="RevisionNotFound")
        files = hub.repositories[name][revision]
        if file not in files:
            return Answer(404, {"error": "Entry not found"}, code="EntryNotFound")
        return Answer(200, files[file], oid=oid_of(hub.repositories[name], files))
    return Answer(404, {"error": "no such place"})


def oid_of(repository: dict[str, Files], files: Files) -> str:
    return next(name for name, each in repository.items() if each is files and len(name) == 40)


def answer_model(hub: Hub, name: str, what: str | None, revision: str, body: bytes) -> Answer:
    """Answer a request about a repository that there is."""
    files = hub.repositories[name][revision]
    if what in (None, "revision"):
        names = [{"rfilename": each} for each in files]
        return Answer(200, {"id": name, "sha": oid_of(hub.repositories[name], files), "siblings": names})
    if what == "tree":
        return Answer(200, [{"type": "file", "path": each, "size": len(files[each]), "oid": "0"} for each in files])
    if what == "preupload":
        asked = json.loads(body)["files"]
        modes = [{"path": each["path"], "uploadMode": "regular", "shouldIgnore": False} for each in asked]
        return Answer(200, {"files": modes})
    assert what == "commit"
    changed = dict(files)
    for line in body.splitlines():
        each = json.loads(line)
        if each["key"] == "file":
            assert each["value"]["encoding"] == "base64"
            changed[each["value"]["path"]] = base64.b64decode(each["value"]["content"])
        if each["key"] == "deletedFile":
            del changed[each["value"]["path"]]
    oid = hub.commit(name, revision, changed)
    return Answer(
        200, {"success": True, "commitOid": oid, "commitUrl": f"{hub.url}/{name}/commit/{oid}", "pullRequestUrl": None}
    )


@contextmanager
def serve_hub() -> Iterator[Hub]:
    """A hub that answers on loopback while this is open."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            hub.requests.append(f"{self.command} {self.path}")
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
            found = handle(hub, self.command, self.path, token, body)
            content = found.content if isinstance(found.content, bytes) else json.dumps(found.content).encode()
            self.send_response(found.status)
            if code := found.headers.get("code"):
                self.send_header("X-Error-Code", code)
            if oid := found.headers.get("oid"):
                self.send_header("X-Repo-Commit", oid)
                self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = answer  # noqa: N815

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
