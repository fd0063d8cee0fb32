"""The wheel: built, installed beside nothing of ours, and its console script run."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("cli", "data", "model", "pipeline", "tokenizer")


def run(*words: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without isolation (so without network) from a copy, so that the checkout stays clean."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            copy = source / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    build = "import sys, setuptools.build_meta as backend; print(backend.build_wheel(sys.argv[1]))"
    run(sys.executable, "-c", build, out, cwd=source)
    (built,) = out.glob("*.whl")
    return built


def test_wheel_holds_every_module_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {str(f.relative_to(ROOT)) for package in PACKAGES for f in (ROOT / package).rglob("*.py")}
    info = {name for name in names if ".dist-info/" in name}
    assert names - info == modules
    assert any(name.endswith("licenses/LICENSE") for name in info)


def test_console_script_of_the_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    site = next(home.glob("lib/python*/site-packages"))
    # Our own dependencies come from this environment, found after what is installed here.
    outer = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "outer.pth").write_text(outer + "\n")
    pip = (sys.executable, "-m", "pip", "--python", home / "bin" / "python", "--disable-pip-version-check")
    run(*pip, "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    assert run(home / "bin" / "tfm", "--version", cwd=tmp_path).strip() == "tfm 0.1.0"
    assert "properties" in run(home / "bin" / "tfm", "recipe", "--schema", cwd=tmp_path)
    where = run(home / "bin" / "python", "-c", "import cli.app; print(cli.app.__file__)", cwd=tmp_path)
    assert Path(where).is_relative_to(home) or Path(where).is_relative_to(home.resolve())
