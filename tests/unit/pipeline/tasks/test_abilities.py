"""What tasks can do is said in one table, which agrees with the tasks themselves; nothing else goes by their names."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.sources import parse_modules
from tfm.model.config import SUPPORTED_TASKS, ModelConfig, Task
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.reports.evaluation_report import METRIC_NAMES
from tfm.pipeline.scoring.metrics.registry import METRIC_FUNCTIONS
from tfm.pipeline.scoring.metrics.wrong_language import LanguageIdentifier, wrong_language
from tfm.pipeline.tasks.abilities import LOWER_IS_BETTER, TASK_SPECS, select_tasks, task_evaluation_config
from tfm.pipeline.tasks.registry import TASKS

ROOT = Path(__file__).parents[4]
TASK_NAMES = get_args(Task)
MAY_NAME_TASKS = {
    "pipeline/tasks/abilities.py": "the table",
    "pipeline/tasks/registry.py": "the class of each task",
    "pipeline/model_io/huggingface/encoder_decoders.py": "translation, the Hub's name of a task",
    "pipeline/model_io/huggingface/marian.py": "translation, the Hub's name of a task",
    "pipeline/training/init_from.py": "word_vectors and span_corruption, keys of [model]",
    "pipeline/stages/train.py": "span_corruption, a key of [model]",
    "pipeline/serving/routes/labels.py": "translation, a field of a request",
    "pipeline/reranking/features.py": "language_model, a feature",
    "pipeline/reranking/weights.py": "language_model, a feature",
    "pipeline/reports/model_figures.py": "word_vectors, a key of [model]",
}


def named_tasks(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every text of a module that is a task's name, as (line, name): to compare it with, or a row of another table."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in TASK_NAMES:
            yield node.lineno, node.value


def test_only_the_table_goes_by_names_of_tasks() -> None:
    modules = {path: tree for path, tree in parse_modules().items() if path.startswith(("pipeline/", "cli/"))}
    found = {path: list(named_tasks(tree)) for path, tree in modules.items()}
    assert {name: each for name, each in found.items() if each and name not in MAY_NAME_TASKS} == {}
    assert all(found[name] for name in MAY_NAME_TASKS), "who names none needs no leave"


@pytest.mark.parametrize(
    "source",
    ['if config.task == "tagging":\n    pass', 'x = task in ("a", "language_model")', 'X = {"translation": 1}'],
)
def test_a_task_s_name_is_seen(source: str) -> None:
    assert len(list(named_tasks(ast.parse(source)))) == 1


def test_every_task_has_a_row_in_the_order_of_their_names() -> None:
    assert tuple(TASK_SPECS) == tuple(TASKS)
    assert set(TASK_SPECS) == set(TASK_NAMES)


def test_the_table_imports_no_torch() -> None:
    program = "import sys; import tfm.pipeline.tasks.abilities; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("name", TASK_NAMES)
def test_the_table_agrees_with_the_task(name: str) -> None:
    abilities, made_by = TASK_SPECS[name], TASKS[name]
    task: Any = getattr(made_by, "__self__")  # noqa: B009  the class whose `of` it is
    assert (abilities.labels is not None) == hasattr(task, "predict")
    assert abilities.flat_layout == ("flat_rows" in inspect.signature(task).parameters)
    assert abilities.gives_hypotheses == (abilities.instead is None)
    assert not abilities.translates or abilities.writes


def test_a_model_of_one_table_embeds_the_side_that_its_tasks_read() -> None:
    alone = 0
    for architecture, tasks in SUPPORTED_TASKS.items():
        for task in tasks:
            sides = ModelConfig(architecture=architecture, task=task).embedded_sides
            if len(sides) == 1 and not TASK_SPECS[task].translates:
                alone += 1
                assert sides == (TASK_SPECS[task].reads,)
    assert alone == 9


def test_figures_are_known_by_name_and_the_main_one_of_translation_is_bleu() -> None:
    assert {figure for each in TASK_SPECS.values() for figure in each.figures} <= {*METRIC_NAMES, "loss"}
    assert LOWER_IS_BETTER.issubset({*METRIC_NAMES, "loss"})
    assert TASK_SPECS["translation"].figures[0] == "bleu"
    assert "bleu" not in LOWER_IS_BETTER


def test_what_is_better_is_so_by_the_metrics_themselves() -> None:
    """A hypothesis that is its reference is better than one with two words wrong; the rest are sums of -log p."""
    good, bad = "a dog runs over the wide green field".split(), "a cat runs over the wide green house".split()
    config, worse_is_higher = EvaluationConfig(), set()
    for name, metric in METRIC_FUNCTIONS.items():
        if name == "entity_f1":  # of tags alone
            continue
        other = "nobody is there"  # of one segment alone no n-gram has a weight in CIDEr-D
        best, worst = (
            metric([" ".join(words), other], [[" ".join(good), other]], config).score for words in (good, bad)
        )
        assert best != worst, name
        if worst > best:
            worse_is_higher.add(name)
    knows = LanguageIdentifier({"eng": [" ".join(good)], "deu": ["ein Hund läuft über die weite grüne Wiese"]})
    right, wrong = (wrong_language([" ".join(good)], [asked], knows).score for asked in ("eng", "deu"))
    if wrong > right:
        worse_is_higher.add("wrong_language")
    of_likelihood = {"loss", "objective", "perplexity", "word_perplexity", "bits_per_character"}
    assert worse_is_higher | of_likelihood == LOWER_IS_BETTER


def test_tasks_are_found_by_what_they_can() -> None:
    assert select_tasks(lambda task: task.labels) == ("classification", "tagging")
    assert select_tasks(lambda task: task.writes) == ("translation", "language_model")
    assert select_tasks(lambda task: task.continues_text) == ("language_model",)
    assert select_tasks(lambda task: not task.gives_hypotheses) == (
        "language_model",
        "masked_language_model",
        "span_corruption",
        "word_vectors",
    )


def test_how_many_hypotheses_a_task_can_give() -> None:
    many = DecodingConfig(beam=2, n_best=3)
    assert TASK_SPECS["classification"].n_best_problem(many) is None
    assert "only the most probable tag" in str(TASK_SPECS["tagging"].n_best_problem(many))
    assert TASK_SPECS["translation"].n_best_problem(many) == "decoding.n_best (3) cannot exceed beam (2)"
    assert TASK_SPECS["translation"].n_best_problem(DecodingConfig(strategy="sample", n_best=9)) is None


@pytest.mark.parametrize("setting", [{"temperature": 0.0}, {"top_k": 1}])
def test_samples_that_are_all_the_same_are_one(setting: dict[str, Any]) -> None:
    single, several = (DecodingConfig(strategy="sample", n_best=number, **setting) for number in (1, 2))
    assert TASK_SPECS["translation"].n_best_problem(single) is None
    assert "all samples are the same" in str(TASK_SPECS["translation"].n_best_problem(several))
    candidates = DecodingConfig(strategy="mbr", **setting)
    assert "all samples are the same" in str(TASK_SPECS["translation"].n_best_problem(candidates))
    assert TASK_SPECS["classification"].n_best_problem(several) is None


def test_what_is_scored_by_default_depends_on_the_task() -> None:
    asked = EvaluationConfig()
    assert task_evaluation_config("tagging", asked).metrics == ("accuracy", "macro_f1", "exact_match")
    assert task_evaluation_config("tagging", EvaluationConfig(metrics=("bleu",))).metrics == ("bleu",)
    assert task_evaluation_config("translation", asked) == task_evaluation_config("of another version", asked) == asked
