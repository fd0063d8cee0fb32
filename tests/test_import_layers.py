"""The floors of the house: what each package may import, read from the source without running it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources import ROOT, parse_modules

MAY_IMPORT = {
    "cli": {"pipeline"},
    "pipeline": {"model", "data", "tokenizer"},
    "model": set(),
    "data": {"tokenizer"},
    "tokenizer": set(),
}
# Flags become the configs of all floors, which hold no work; and text is opened in one way.
ALSO_FOR_CLI = {"data.config", "model.config", "tokenizer.config", "data.lines", "data.live_input"}
ONLY_IN = {"typer": "cli", "rich": "cli", "tokenizers": "tokenizer"}
# From the top floor down: a folder or file imports what stands below it in its list, never what stands above.
FOLDERS = {
    "pipeline": (
        *(
            "serving",
            "api",
            "planning",
            "tuning",
            "recipes",
            "stages",
            "judging",
            "synthesis",
            "reranking",
            "cleaning",
            "hub",
        ),
        *("dataset_encoding",),
        *("cluster", "tokenizer_training"),
        *("comparison", "training", "reports"),
        *("significance",),
        *(
            "words",
            "scoring",
            "inference",
            "alignment",
            "attention_page",
            "model_io",
            "decoding",
            "artifacts",
            "guided_alignment",
            "tasks",
            "text_files",
        ),
        *(
            "runtime",
            "sharded_training",
            "training_config",
            "update_config",
            "config",
            "external_metric",
            "page_frame",
            "label_fonts",
        ),
        *("errors", "distribution"),
    ),
    "model": (
        *(
            "fused",
            "build",
            "build_images",
            "build_recurrent",
            "characters",
            "transformer",
            "recurrent",
            "vision",
            "attention",
            "word_vectors",
        ),
        *("layers", "cpu_kernels", "numpy_inference"),
        *("masks", "layout", "config", "config_checks", "config_fields", "config_tables"),
    ),
    "data": (
        *("batching", "dataset", "corpora", "images", "formats", "synthetic", "artifact_tokenizers"),
        *("foreign_tokenizers",),
        *(
            "arrays",
            "typing_errors",
            "scripts",
            "live_input",
            "lines",
            "compression",
            "json_documents",
            "safe_files",
            "config",
            "corpus_config",
            "image_config",
            "corpus_keys",
            "errors",
            "credentials",
        ),
    ),
}
APART = {"pipeline.stages"}  # none of its files imports another
MOST_FILES = 14  # in a folder
FORBIDDEN = {"pickle", "dill", "cloudpickle", "transformers"}


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every import of a module as (line, full module name), wherever in the file it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import; floors are named in full"
            assert node.module is not None
            yield node.lineno, node.module


def violations(package: str, tree: ast.Module) -> list[str]:
    """What in a module of `package` reaches where it may not."""
    found = []
    for line, name in imports(tree):
        if name.split(".")[0] in MAY_IMPORT:
            found.append(f"line {line}: {name} is tfm.{name}")
        module = name.removeprefix("tfm.")
        top = module.split(".")[0]
        allowed = top not in MAY_IMPORT or top == package or top in MAY_IMPORT[package]
        if not allowed and not (package == "cli" and module in ALSO_FOR_CLI):
            found.append(f"line {line}: {package} may not import {module}")
        if ONLY_IN.get(top, package) != package:
            found.append(f"line {line}: only {ONLY_IN[top]} imports {top}")
        if top in FORBIDDEN or top in {"tests", "bench"}:
            found.append(f"line {line}: no package of ours imports {top}")
    return found


def upward(package: str, place: Path, tree: ast.Module) -> list[str]:
    """What in a file of `package` (its path within) comes from a folder above it, or from beside it in one of APART."""
    order, found = FOLDERS[package], []
    own = place.with_suffix("").parts[0]
    for line, name in _names(tree):
        parts = name.split(".")
        if parts[:2] != ["tfm", package] or len(parts) < 3:
            continue
        if order.index(parts[2]) < order.index(own):
            found.append(f"line {line}: {own} stands below {parts[2]}")
        if parts[2] == own and f"{package}.{own}" in APART:
            found.append(f"line {line}: the files of {own} import none of one another")
    return found


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every import as (line, full name); of `from tfm.model import masks` that is tfm.model.masks."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


@pytest.mark.parametrize("package", FOLDERS)
def test_a_folder_imports_only_from_below(package: str) -> None:
    modules = {Path(path): tree for path, tree in parse_modules().items() if path.startswith(f"{package}/")}
    modules = {file.relative_to(package): tree for file, tree in modules.items() if file.name != "__init__.py"}
    own = {file.with_suffix("").parts[0] for file in modules}
    assert own == set(FOLDERS[package]), "each folder and file has its place in the list"
    found = {str(file): upward(package, file, tree) for file, tree in modules.items()}
    assert {file: each for file, each in found.items() if each} == {}


@pytest.mark.parametrize(
    ("package", "place", "source"),
    [
        ("model", "layers/linear.py", "def f():\n    from tfm.model.attention import scores"),
        ("model", "masks.py", "from tfm.model import build"),
        ("pipeline", "scoring/validation.py", "from tfm.pipeline.training.update import UpdateSums"),
        ("pipeline", "stages/evaluate.py", "from tfm.pipeline.stages.translate import translate_tests"),
        ("data", "lines.py", "import tfm.data.corpora.sources"),
    ],
)
def test_an_import_from_above_is_seen(package: str, place: str, source: str) -> None:
    assert len(upward(package, Path(place), ast.parse(source))) == 1


def test_no_folder_holds_more_than_one_can_read() -> None:
    folders = [each for package in MAY_IMPORT for each in (ROOT / package, *(ROOT / package).rglob("*/"))]
    counts = {str(folder): sum(file.name != "__init__.py" for file in folder.glob("*.py")) for folder in folders}
    assert {folder: count for folder, count in counts.items() if count > MOST_FILES} == {}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_from_below(package: str) -> None:
    modules = {path: tree for path, tree in parse_modules().items() if path.startswith(f"{package}/")}
    assert modules
    wrong = {path: violations(package, tree) for path, tree in modules.items()}
    assert {file: found for file, found in wrong.items() if found} == {}


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("tokenizer", "import tfm.data.config"),
        ("data", "def f():\n    from tfm.model.layout import Layout"),
        ("model", "import tfm.tokenizer"),
        ("model", "import model.config"),
        ("pipeline", "from rich.table import Table"),
        ("pipeline", "import typer"),
        ("data", "from tokenizers import Tokenizer"),
        ("cli", "from tfm.model.build import build"),
        ("cli", "from tfm.data.dataset.store import load_split"),
        ("pipeline", "import pickle"),
    ],
)
def test_a_forbidden_import_is_seen(package: str, source: str) -> None:
    assert len(violations(package, ast.parse(source))) == 1


def test_modules_do_not_import_in_a_circle() -> None:
    """Top-level imports between our modules form no circle (one inside a function is there to defer, not to dodge)."""
    graph: dict[str, set[str]] = {}
    for path, tree in parse_modules().items():
        name = "tfm." + path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        graph[name] = set(_top_level_imports(tree))
    graph = {name: {other for other in others if other in graph} for name, others in graph.items()}
    while free := {name for name, others in graph.items() if not others}:
        graph = {name: others - free for name, others in graph.items() if name not in free}
    assert graph == {}


def _top_level_imports(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
