"""The container of docs/deploy: each step of its Containerfile done in a plain Debian, and the server it starts.

With `CUDA_CONTAINER=1` also the one for GPUs, where pip finds a torch for CUDA: it takes 10 GB and a while.
"""

import importlib
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, ROOT, Stages, tfm, write_corpora, write_lines
from tests.containers import Image, chroot_problem, copied_files, read_instructions

FILE = ROOT / "docs" / "deploy" / "Containerfile"
TEXT = "eins zwei drei"
START_SECONDS = 120
ASK = """
import json, sys
from urllib.request import Request, urlopen
body = json.dumps({"q": sys.argv[1], "source": "auto", "target": "und"}).encode()
request = Request("http://127.0.0.1:8000/translate", body, {"Content-Type": "application/json"})
print(json.loads(urlopen(request, timeout=100).read())["translatedText"])
"""


def test_a_context_holds_what_is_installed_and_nothing_else() -> None:
    """`COPY . /src` of a checkout with runs and an environment copies neither."""
    tops = {name.split("/")[0] for name in copied_files(ROOT)}
    assert {"pyproject.toml", "constraints.txt", "README.md", "LICENSE", "tfm", "cli", "pipeline", "model"} <= tops
    assert tops.isdisjoint({"tests", "docs", "bench", "runs", "corpora", ".git", ".venv"})


def test_the_functions_that_its_steps_call_exist() -> None:
    steps = [value for _, value in read_instructions(FILE.read_text("utf-8"))]
    called = re.findall(r"from (tfm[\w.]*) import (\w+); \2\(\)", "\n".join(steps))
    assert called
    assert [name for module, name in called if not callable(getattr(importlib.import_module(module), name, None))] == []


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    problem = chroot_problem()
    if problem is not None:
        pytest.skip(problem)
    root = tmp_path_factory.mktemp("container") / "root"
    root.mkdir()
    image = Image(root)
    image.build(FILE, ROOT)
    yield image
    shutil.rmtree(root)


@pytest.mark.slow
def test_a_container_for_cuda_trains_by_a_torch_for_cuda(tmp_path: Path) -> None:
    """Built with `ACCELERATOR=cuda`, its torch is one for CUDA; without a GPU the same program trains on the CPU."""
    if not os.environ.get("CUDA_CONTAINER"):
        pytest.skip("needs CUDA_CONTAINER=1, and pip an index that has torch for CUDA")
    problem = chroot_problem()
    if problem is not None:
        pytest.skip(problem)
    folder, root = tmp_path / "work", tmp_path / "root"
    folder.mkdir()
    root.mkdir()
    write_corpora(folder)
    (folder / "tiny.toml").write_text(RECIPE.format(folder="."), "utf-8")
    for place in (folder, *folder.iterdir()):
        place.chmod(0o777)
    image = Image(root)
    image.build(FILE, ROOT, {"ACCELERATOR": "cuda"})
    show = "import torch; print(torch.version.cuda, torch.cuda.is_available())"
    train = "cd /models && /opt/tfm/bin/tfm run tiny.toml --set training.max_steps=2"
    process = image.run(["/bin/sh", "-c", f"/opt/tfm/bin/python -c '{show}' && {train}"], folder, writable=True)
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert re.match(r"\d+\.\d+ (True|False)$", said.splitlines()[0]), said
    assert (folder / "runs/tiny/scores/scores.json").exists(), said
    shutil.rmtree(root)


@pytest.mark.slow
def test_the_container_serves_a_model_as_a_user_without_rights(image: Image, stages: Stages, tmp_path: Path) -> None:
    """Its own command, health check, user and read-only root; the text is the one that `tfm translate` writes."""
    models = tmp_path / "models"
    shutil.copytree(stages.folder, models / "demo")
    (models / "demo").chmod(0o755)  # the user of the container is another
    lines = write_lines(tmp_path / "source.txt", [TEXT])
    done = tfm("translate", stages.folder, lines, "--beam", "5", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    expected = (tmp_path / "out" / "hypotheses.txt").read_text("utf-8").rstrip("\n")

    compiled = {file.name for file in (image.root / "cache/numba").rglob("*.nb?")}
    process = image.run([*image.commands["ENTRYPOINT"], *image.commands["CMD"]], models)
    try:
        end = time.monotonic() + START_SECONDS
        while image.execute(process, image.commands["HEALTHCHECK"]).returncode != 0:
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < end, "it is not healthy"
            time.sleep(0.5)
        assert image.execute(process, ["id", "-u"]).stdout.strip() == "10001"
        assert image.execute(process, ["touch", "/opt/tfm/x"]).returncode != 0
        assert image.execute(process, ["touch", "/models/demo/x"]).returncode != 0
        asked = image.execute(process, ["/opt/tfm/bin/python", "-c", ASK, TEXT])
        assert asked.stdout.rstrip("\n") == expected, asked.stderr
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=30)
        assert process.returncode == 0, said
        assert "Traceback" not in said
        kept = {file.name for file in (image.volume("/cache") / "numba").rglob("*.nb?")}
        assert compiled
        assert kept == compiled, "the start has compiled what the image should hold"
    finally:
        process.kill()
