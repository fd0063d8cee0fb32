"""The wheel: built, installed beside packages and files that are called as our folders are, and run."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("cli", "data", "model", "pipeline", "tokenizer")
PAGE = ROOT / "pipeline" / "serving" / "page"
IN_THE_WAY = 'raise ImportError("somebody else\'s module")\n'
RECIPE = """
[tokenizer]
kind = "word"
vocab_size = 50
min_frequency = 1

[data]
train = [{ format = "generated", path = "copy", split = "train", size = 60 }]
valid = { format = "generated", path = "copy", split = "valid", size = 10 }
tests = { test = { format = "generated", path = "copy", split = "test", size = 10 } }

[model]
encoder = { layers = 1, dim = 16, heads = 2, feed_forward_dim = 16 }
decoder = { layers = 1, dim = 16, heads = 2, feed_forward_dim = 16 }

[training]
max_steps = 2
"""
SEARCH = """
[search]
base = "small.toml"
metric = "loss"
trials = 2
space = { "training.schedule.peak" = { low = 0.001, high = 0.01 } }
"""
TRIED_EXTRAS = ("clean", "fast", "search", "serve", "tensorboard")


def run(*words: str | Path, cwd: Path, **environment: str) -> str:
    """What a command prints, in an environment without our own PYTHONPATH."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | environment
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without isolation (so without network) from a copy, so that the checkout stays clean."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    for file in (*(file for package in PACKAGES for file in (ROOT / package).rglob("*.py")), *PAGE.iterdir()):
        copy = source / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    (source / "tfm").mkdir()
    for name in ("__init__.py", "__main__.py", "py.typed"):
        (source / "tfm" / name).write_bytes((ROOT / "tfm" / name).read_bytes())
    for package in PACKAGES:
        (source / "tfm" / package).symlink_to((ROOT / "tfm" / package).readlink())
    build = "import sys, setuptools.build_meta as backend; print(backend.build_wheel(sys.argv[1]))"
    run(sys.executable, "-c", build, out, cwd=source)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def home(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, and beside it packages of others that are called data, model and cli."""
    home = tmp_path_factory.mktemp("home") / "venv"
    venv.create(home, with_pip=False)
    site = next(home.glob("lib/python*/site-packages"))
    # Our own dependencies come from this environment, found after what is installed here.
    outer = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "outer.pth").write_text(outer + "\n")
    for name in ("data", "model", "cli"):
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(IN_THE_WAY)
    pip = (sys.executable, "-m", "pip", "--python", home / "bin" / "python", "--disable-pip-version-check")
    run(*pip, "install", "--no-deps", "--no-index", wheel, cwd=home)
    return home


def test_the_wheel_holds_every_module_of_tfm_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {f"tfm/{file.relative_to(ROOT)}" for package in PACKAGES for file in (ROOT / package).rglob("*.py")}
    info = {name for name in names if ".dist-info/" in name}
    page = {f"tfm/{file.relative_to(ROOT)}" for file in PAGE.iterdir()}
    assert {"tfm/pipeline/serving/page/index.html", "tfm/pipeline/serving/page/main.js"} < page
    assert names - info == modules | page | {"tfm/__init__.py", "tfm/__main__.py", "tfm/py.typed"}
    assert any(name.endswith("licenses/LICENSE") for name in info)


def test_every_package_has_a_link() -> None:
    links = {path.name: path.readlink() for path in (ROOT / "tfm").iterdir() if path.is_symlink()}
    assert links == {package: Path("..", package) for package in PACKAGES}


@pytest.mark.slow
def test_console_script_of_the_installed_wheel(home: Path, tmp_path: Path) -> None:
    assert run(home / "bin" / "tfm", "--version", cwd=tmp_path).strip() == "tfm 0.1.0"
    assert "properties" in run(home / "bin" / "tfm", "recipe", "--schema", cwd=tmp_path)
    where = run(home / "bin" / "python", "-c", "import tfm.cli.app; print(tfm.cli.app.__file__)", cwd=tmp_path)
    assert Path(where).resolve().is_relative_to(home.resolve())


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [pytest.param({}, id="plain", marks=pytest.mark.slow), pytest.param({"PYTHONPATH": "."}, id="PYTHONPATH=.")],
)
def test_the_chain_runs_where_files_of_the_user_are_called_as_our_folders(
    home: Path, tmp_path: Path, path: dict[str, str]
) -> None:
    for name in ("model.py", "data.py", "cli.py", "data/__init__.py", "pipeline/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(IN_THE_WAY)
    (tmp_path / "small.toml").write_text(RECIPE)
    run(home / "bin" / "tfm", "run", "small.toml", cwd=tmp_path, **path)
    assert (tmp_path / "runs" / "small" / "scores" / "scores.json").is_file()
    translated = run(home / "bin" / "tfm", "translate", "runs/small/model", "small.toml", cwd=tmp_path, **path)
    assert translated.count("\n") == RECIPE.count("\n")


@pytest.mark.slow
@pytest.mark.parametrize("resolution", ["lowest-direct", "highest"])
def test_the_chain_runs_with_the_lowest_and_the_newest_versions(wheel: Path, tmp_path: Path, resolution: str) -> None:
    """An environment of its own, with what pyproject.toml allows at one end. It needs uv and a package index."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("no uv")
    extras = [word for extra in TRIED_EXTRAS for word in ("--extra", extra)]
    asked = [ROOT / "pyproject.toml", *extras, "--resolution", resolution, "--python-version", "3.11"]
    python = tmp_path / "venv" / "bin" / "python"
    run(uv, "pip", "compile", *asked, "--output-file", "versions.txt", cwd=tmp_path)
    run(uv, "venv", "--python", sys.executable, "venv", cwd=tmp_path)
    run(uv, "pip", "install", "--python", python, "--requirement", "versions.txt", wheel, cwd=tmp_path)
    (tmp_path / "small.toml").write_text(RECIPE)
    run(python, "-m", "tfm", "run", "small.toml", cwd=tmp_path)
    assert (tmp_path / "runs" / "small" / "scores" / "scores.json").is_file()
    (tmp_path / "search.toml").write_text(SEARCH)
    run(python, "-m", "tfm", "search", "search.toml", cwd=tmp_path)
    run(python, "-c", "import tfm.pipeline.serving.app, numba, torch.utils.tensorboard", cwd=tmp_path)
