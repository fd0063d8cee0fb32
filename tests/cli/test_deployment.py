"""`tfm serve` as it is deployed: behind nginx with TLS, one of two servers killed; the steps of the container."""

import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.cli.user import Stages, tfm, write_lines
from tests.serving import Server, running_server
from tests.test_docs import ROOT

DEPLOY = ROOT / "docs" / "deploy"
NUM_REQUESTS = 200
pytestmark = pytest.mark.slow


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=DNS:localhost", "-keyout", "server.key", "-out", "server.crt"]
    subprocess.run(["openssl", *words], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


@pytest.fixture
def nginx() -> str:
    found = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if found is None:
        pytest.skip("no nginx")
    return found


def written_config(folder: Path, port: int, upstreams: list[int]) -> Path:
    """docs/deploy/nginx.conf with the ports and places of a test, which needs no rights."""
    text = (DEPLOY / "nginx.conf").read_text("utf-8")
    text = text.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl").replace("/etc/nginx/tls/", f"{folder}/")
    for number, upstream in zip((8001, 8002), upstreams, strict=True):
        assert f"127.0.0.1:{number}" in text
        text = text.replace(f"127.0.0.1:{number}", f"127.0.0.1:{upstream}")
    text = text.replace("rate=50r/s", "rate=5000r/s").replace("burst=100", "burst=5000")
    temporary = "".join(
        f"    {kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = text.replace("http {\n", f"http {{\n    access_log off;\n{temporary}", 1)
    file = folder / "nginx.conf"
    file.write_text(f"daemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\n{text}", "utf-8")
    return file


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def servers(stages: Stages, tmp_path: Path) -> Iterator[list[Server]]:
    """Two servers of the tiny model."""
    words = (stages.folder, "--no-cache", "--languages", f"{stages.folder.name}=de:en")
    with ExitStack() as held:
        folders = [tmp_path / "first", tmp_path / "second"]
        for each in folders:
            each.mkdir()
        yield [held.enter_context(running_server(*words, folder=each)) for each in folders]


def test_no_request_is_lost_when_a_server_behind_nginx_is_killed(
    nginx: str, certificate: Path, servers: list[Server], tmp_path: Path
) -> None:
    port = free_port()
    config = written_config(certificate, port, [each.port for each in servers])
    trusted = ssl.create_default_context(cafile=str(certificate / "server.crt"))

    def translate(number: int) -> tuple[int, str]:
        body = json.dumps({"q": f"eins zwei {number}", "source": "de", "target": "en"}).encode()
        request = Request(
            f"https://localhost:{port}/translate", body, {"Content-Type": "application/json"}, method="POST"
        )
        with urlopen(request, timeout=60, context=trusted) as answer:
            return answer.status, json.loads(answer.read())["translatedText"]

    proxy = subprocess.Popen([nginx, "-c", str(config), "-p", str(tmp_path)], stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            try:
                urlopen(f"https://localhost:{port}/health", timeout=5, context=trusted).close()
                break
            except OSError:
                assert proxy.poll() is None, (certificate / "error.log").read_text("utf-8")
                time.sleep(0.1)
        before = [translate(number) for number in range(20)]
        with ThreadPoolExecutor(8) as pool:
            answers = []
            for number in range(NUM_REQUESTS):
                answers.append(pool.submit(translate, number % 20))
                if number == NUM_REQUESTS // 4:
                    servers[0].process.send_signal(signal.SIGKILL)
            found = [answer.result() for answer in answers]
        assert found == [before[number % 20] for number in range(NUM_REQUESTS)]
    finally:
        proxy.terminate()
        proxy.wait(20)


def test_the_steps_of_the_container_are_commands_that_are_there() -> None:
    """Each step in its file: users, paths and the health check are those of the others."""
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    steps = re.findall(r"^(FROM|RUN|COPY|USER|ENTRYPOINT|CMD|HEALTHCHECK)\b", text, re.MULTILINE)
    assert steps == ["FROM", "RUN", "COPY", "RUN", "RUN", "USER", "RUN", "HEALTHCHECK", "ENTRYPOINT", "CMD"]
    entry = json.loads(re.search(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)[1])  # type: ignore[index]
    assert entry == ["/opt/tfm/bin/tfm", "serve"]
    command = json.loads(re.search(r"^CMD (.*)$", text, re.MULTILINE)[1])  # type: ignore[index]
    done = subprocess.run([sys.executable, "-m", "tfm.cli.app", "serve", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert all(word in done.stdout for word in command if word.startswith("--"))


@pytest.mark.parametrize(("accelerator", "version", "code"), [("cpu", None, 0), ("cuda", "12.8", 0), ("cuda", None, 1)])
def test_the_container_is_built_for_cuda_alone_by_a_torch_for_cuda(
    tmp_path: Path, accelerator: str, version: str | None, code: int
) -> None:
    """The last part of the step that installs, with a torch of the test's."""
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    check = re.search(r"&& (\{ \[ .*\})$", text, re.MULTILINE)[1]  # type: ignore[index]
    (tmp_path / "torch.py").write_text(f"class version:\n    cuda = {version!r}\n", "utf-8")
    done = subprocess.run(
        ["sh", "-c", check.replace("/opt/tfm/bin/python", sys.executable)],
        env={"ACCELERATOR": accelerator, "PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert done.returncode == code


def test_the_service_is_valid_for_systemd(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze")
    unit = tmp_path / "tfm.service"
    unit.write_text(
        (DEPLOY / "tfm.service").read_text("utf-8").replace("/opt/tfm/bin/tfm", sys.executable), encoding="utf-8"
    )
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


RUN_DEPLOYMENT = """
import sys, time
from ray import serve
from serving import app
serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])})
serve.run(app)
print("ready", flush=True)
sys.stdin.read()
serve.shutdown()
"""


def test_the_deployment_of_ray_serve_translates_as_tfm_translate_does(stages: Stages, tmp_path: Path) -> None:
    """The example of docs/serving/operation.md, with the model of the tests."""
    pytest.importorskip("ray.serve", reason="no ray[serve]")
    text = (ROOT / "docs" / "serving" / "operation.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert "/models/demo" in example
    (tmp_path / "serving.py").write_text(example.replace("/models/demo", str(stages.folder)), "utf-8")
    lines = ["eins zwei", "drei"]
    source = write_lines(tmp_path / "source.txt", lines)
    expected = tfm("translate", stages.folder, source, "--device", "cpu").out.splitlines()
    port = free_port()
    command = [sys.executable, "-c", RUN_DEPLOYMENT, str(port)]
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}", "OMP_NUM_THREADS": "1"}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, **pipes) as process:
        assert process.stdout is not None
        while "ready" not in (line := process.stdout.readline()):
            assert line, "it ended"
        body = json.dumps({"q": lines}).encode()
        with urlopen(Request(f"http://127.0.0.1:{port}/", body), timeout=60) as answer:
            found = json.load(answer)
        process.communicate("", timeout=60)
    assert found == {"translatedText": expected}
