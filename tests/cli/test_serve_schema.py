"""A program that asks whatever the description of the routes allows, and what it does not: schemathesis."""

import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="no uvicorn (extra: serve)")

from tests.cli.user import Stages
from tests.serving import running_server

SECONDS = 10
LEFT_OUT = "positive_data_acceptance"
"""A request may fit its description and yet name a language or a model that the server does not have."""


@pytest.mark.slow
def test_the_routes_keep_to_their_description(stages: Stages, tmp_path: Path) -> None:
    program = shutil.which("schemathesis")
    if program is None:
        pytest.skip("there is no schemathesis on the path")
    with running_server(stages.folder, "--languages", f"{stages.folder.name}=de:en", folder=tmp_path) as server:
        words = ["run", f"{server.url}/openapi.json", "--checks", "all", "--exclude-checks", LEFT_OUT]
        limits = ["--max-time", str(SECONDS), "--request-timeout", "60", "--continue-on-failure", "--no-color"]
        done = subprocess.run([program, *words, *limits], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stdout
        assert server.process.poll() is None
    assert "Traceback" not in (tmp_path / "serve.log").read_text("utf-8")
