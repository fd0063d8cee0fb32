"""Help comes at once: no command's `--help` loads a heavy library, and neither does `--version`."""

import ast
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tfm.cli.options import config_section, has_required_keys
from tfm.model.config import ModelConfig
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.recipes.section_validation import Section, section_from_flags
from tfm.pipeline.training_config import TrainingConfig
from tfm.tokenizer.config import TokenizerConfig

ROOT = Path(__file__).parent.parent
HEAVY = {"torch", "numpy", "datasets", "pyarrow", "tokenizers", "safetensors", "sacrebleu", "rich", "ctranslate2"}
COMMANDS = (
    *("tokenize", "preprocess", "train", "translate", "generate", "evaluate", "run"),
    *("compare", "attend", "embed", "export", "import", "inspect", "recipe", "judge"),
    *("serve", "align"),
)
RECIPE = """
name = "cat"
[tokenizer]
vocab_size = 40
[[data.train]]
source = "{text}"
target = "{text}"
[model.encoder]
layers = 1
dim = 8
heads = 2
feed_forward_dim = 8
[model.decoder]
layers = 1
dim = 8
heads = 2
feed_forward_dim = 8
[training]
max_steps = 2
parallel = "{parallel}"
"""
OF_JUDGE = ("make", "score")
PROGRAM = """
import json, sys
from tfm.cli.app import main
sys.argv = ["tfm", *json.loads(sys.argv[1])]
try:
    main()
except SystemExit as end:
    print(json.dumps({"code": end.code, "modules": sorted({name.split(".")[0] for name in sys.modules})}))
"""


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "words",
    [
        *(("--help",), ("--version",)),
        *((command, "--help") for command in COMMANDS),
        *(("judge", command, "--help") for command in OF_JUDGE),
    ],
    ids=" ".join,
)
def test_help_loads_no_heavy_library(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(words)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    end = json.loads(done.stdout.splitlines()[-1])
    assert end["code"] in (0, None)
    # Newer typer itself loads pydantic as soon as it parses a command's options.
    heavy = HEAVY if words[0] in COMMANDS else HEAVY | {"pydantic"}
    assert heavy & set(end["modules"]) == set()
    assert done.stderr == ""


def test_import_tfm_loads_no_heavy_library() -> None:
    """Its names are found when they are asked for; the errors need nothing heavy at all."""
    program = "import sys, tfm; tfm.TfmError; print(sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (HEAVY | {"pydantic", "typer"}) & set(ast.literal_eval(done.stdout)) == set()


def test_scores_of_files_load_what_they_compute_with(tmp_path: Path) -> None:
    """BLEU, chrF, TER, ROUGE and exact match need no network, no table and no statistics of other libraries."""
    (tmp_path / "a.txt").write_text("the cat sat on the mat\n", "utf-8")
    words = ("evaluate", "--hypotheses", str(tmp_path / "a.txt"), "--reference", str(tmp_path / "a.txt"))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(words)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    *table, end = done.stdout.splitlines()
    assert any("ROUGE-L" in line and "100.00" in line for line in table)
    unneeded = {"torch", "nltk", "sklearn", "pandas", "scipy", "matplotlib", "datasets", "optuna", "numba"}
    unneeded |= {"PIL", "pyarrow", "tokenizers", "rapidfuzz"}
    assert unneeded & set(json.loads(end)["modules"]) == set()


def test_bleu_chrf_and_ter_of_files_do_without_numpy(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the cat sat on the mat\n", "utf-8")
    metrics = ("--metric", "bleu", "--metric", "chrf", "--metric", "ter")
    words = ("evaluate", "--hypotheses", str(tmp_path / "a.txt"), "--reference", str(tmp_path / "a.txt"), *metrics)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(words)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "100.00" in done.stdout
    assert {"numpy", "torch"} & set(json.loads(done.stdout.splitlines()[-1])["modules"]) == set()


@pytest.mark.parametrize("metrics", [("bleu",), ("bleu", "chrf", "ter")], ids=" ".join)
def test_scores_of_files_load_nothing_that_most_files_do_without(tmp_path: Path, metrics: tuple[str, ...]) -> None:
    """Other commands, bars and tables of a terminal, patterns of scripts, artifacts, other figures of scores."""
    (tmp_path / "a.txt").write_text("Der Käfer – so schön! – saß hier.\n" * 30, "utf-8")
    words = ("evaluate", "--hypotheses", str(tmp_path / "a.txt"), "--reference", str(tmp_path / "a.txt"))
    chosen = [word for metric in metrics for word in ("--metric", metric)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace('name.split(".")[0]', "name"), json.dumps((*words, *chosen))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(json.loads(done.stdout.splitlines()[-1])["modules"])
    assert {name for name in loaded if name.startswith("tfm.cli.commands.")} == {"tfm.cli.commands.evaluate"}
    unneeded = {"rich", "regex", "tomllib", "tfm.cli.terminal.reporter", "tfm.data.typing_errors"}
    unneeded |= {f"tfm.pipeline.artifacts.{name}" for name in ("artifact", "manifest", "compatibility", "swap")}
    assert unneeded & loaded == set()


@pytest.mark.parametrize("words", [("evaluate",), ("judge", "make")], ids=" ".join)
def test_a_command_loads_no_other(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace('name.split(".")[0]', "name"), json.dumps((*words, "--help"))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(json.loads(done.stdout.splitlines()[-1])["modules"])
    commands = {name.removeprefix("tfm.cli.commands.") for name in loaded if name.startswith("tfm.cli.commands.")}
    assert commands == {".".join(words[:number]) for number in range(1, len(words) + 1)}


def test_garbage_is_collected_as_soon_as_a_command_begins() -> None:
    program = """
import gc, sys
from tfm.cli import app
states = []
app.is_idle_rank = lambda name: states.append((gc.isenabled(), gc.get_freeze_count() > 1000)) or True
sys.argv = ["tfm", "inspect", "."]
try:
    app.main()
except SystemExit:
    print(states)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[(True, True)]\n"


def test_without_a_recipe_none_of_its_other_parts_is_loaded(tmp_path: Path) -> None:
    """All that a recipe may have, and its checks, are a seventh of the time that the scores of 1,000 lines take."""
    (tmp_path / "a.txt").write_text("the cat sat on the mat\n", "utf-8")
    words = ("evaluate", "--hypotheses", str(tmp_path / "a.txt"), "--reference", str(tmp_path / "a.txt"))
    program = PROGRAM.replace('name.split(".")[0]', "name")
    for more in (), ("--metric", "bleu"), ("--set", "evaluation.lowercase=true"):
        done = subprocess.run(
            [sys.executable, "-c", program, json.dumps((*words, *more))],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        loaded = json.loads(done.stdout.splitlines()[-1])["modules"]
        assert {"tfm.pipeline.recipes.recipe", "tfm.pipeline.training_config", "tfm.data.config"} & {*loaded} == set()
        assert "tfm.pipeline.config" in loaded


@pytest.mark.parametrize("section", [TokenizerConfig, DecodingConfig, EvaluationConfig, ModelConfig, TrainingConfig])
def test_a_section_without_settings_is_that_of_a_recipe(section: type[Section]) -> None:
    assert not has_required_keys(section)
    assert config_section(section, None, {"a.b": None}) == section_from_flags(section, {})


def test_a_vocabulary_of_files_loads_what_it_is_learned_with(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the cat sat on the mat\n" * 9, "utf-8")
    words = ("tokenize", str(tmp_path / "a.txt"), "--vocab-size", "40", "--out", str(tmp_path / "tokenizer"))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(words)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    unneeded = {"torch", "scipy", "sklearn", "pandas", "matplotlib", "datasets", "sacrebleu", "optuna"}
    assert unneeded & set(json.loads(done.stdout.splitlines()[-1])["modules"]) == set()
    assert (tmp_path / "tokenizer" / "tokenizer.json").is_file()


@pytest.mark.slow
def test_knowing_a_model_s_shapes_does_not_load_torch_s_compiler() -> None:
    """It is a second of modules, which every `tfm translate` would wait for."""
    program = """
import sys
from tfm.model.config import ModelConfig
from tfm.pipeline.model_io.loaded_model import model_weight_shapes
assert model_weight_shapes(ModelConfig(), source_vocab=9, target_vocab=9)
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.slow
@pytest.mark.parametrize("parallel", ["threads", "processes"])
def test_a_training_loads_neither_torch_s_compiler_nor_pandas(tmp_path: Path, parallel: str) -> None:
    """torch's optimizers and Arrow's arrays do so at their first step and first look, two seconds before a training."""
    (tmp_path / "a.txt").write_text("".join(f"cat {n} sat on mat {n * n}\n" for n in range(40)), "utf-8")
    (tmp_path / "cat.toml").write_text(RECIPE.format(text=tmp_path / "a.txt", parallel=parallel), "utf-8")
    ends = [
        subprocess.run(
            [
                sys.executable,
                "-c",
                PROGRAM.replace('name.split(".")[0]', "name"),
                json.dumps((stage, "--recipe", "cat.toml")),
            ],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        for stage in ("tokenize", "preprocess", "train")
    ]
    assert (tmp_path / "runs" / "cat" / "model" / "model.safetensors").is_file(), ends[-1].stderr
    loaded = set(json.loads(ends[-1].stdout.splitlines()[-1])["modules"])
    assert "torch.optim" in loaded
    assert {"torch._dynamo", "torch._inductor", "scipy", "pandas"} & loaded == set()


def test_the_end_of_a_command_looks_through_nothing() -> None:
    """After torch was loaded, that is a third of a second for objects which the end of the process frees anyway."""
    program = """
import atexit, gc, sys
atexit.register(lambda: print(gc.get_freeze_count() > 1000))  # what is registered first is called last
from tfm.cli.app import main
sys.argv = ["tfm", "--version"]
main()
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True"


def test_help_names_every_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tfm.cli.app", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    listed = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")}
    assert set(COMMANDS) <= listed


def test_help_takes_a_third_of_a_second_of_work_at_most() -> None:
    """Of the processor's time, which other programs do not lengthen; the best of some tries."""
    seconds = []
    for _ in range(8):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "tfm.cli.app", "--help"], cwd=ROOT, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if seconds[-1] <= 0.35:
            return
    raise AssertionError(f"tfm --help took {min(seconds):.2f} s at best")
