"""Texts without a source: refused by tasks that read sources, running text where a model reads windows of it."""

from pathlib import Path

import pytest

from tfm.model.config import SUPPORTED_TASKS
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.tasks.abilities import TASK_SPECS

CORPORA = {
    "data.train.0": 'train = { source = "none", target = "a" }',
    "data.valid": 'train = { source = "b", target = "a" }\nvalid = { source = "none", target = "a" }',
    "data.tests.main": 'train = { source = "b", target = "a" }\ntests.main = { source = "none", target = "a" }',
    "data": 'path = "corpus"\nsource = "none"',
}
ARCHITECTURES = {task: architecture for architecture, tasks in SUPPORTED_TASKS.items() for task in tasks}
MORE = {
    "word_vectors": "[tokenizer]\nkind = 'word'\n",
    "span_corruption": "[tokenizer]\nsentinels = 100\n",
    "masked_language_model": "[tokenizer]\nshared = false\n",
}


def recipe(folder: Path, task: str, corpora: str, more: str = "") -> Path:
    architecture = "transformer" if task in ("translation", "span_corruption") else ARCHITECTURES[task]
    model = f'[model]\narchitecture = "{architecture}"\ntask = "{task}"\n{more}'
    file = folder / "texts.toml"
    file.write_text(f"{MORE.get(task, '')}[data]\n{corpora}\n{model}", encoding="utf-8")
    return file


@pytest.mark.parametrize("where", CORPORA)
@pytest.mark.parametrize("task", TASK_SPECS)
def test_a_task_that_reads_sources_is_refused_where_there_are_none(task: str, where: str, tmp_path: Path) -> None:
    file = recipe(tmp_path, task, CORPORA[where])
    if TASK_SPECS[task].reads == "target" or (TASK_SPECS[task].hides_pieces and where != "data"):
        assert load_recipe(file).model.task == task
        return
    with pytest.raises(RecipeError, match=f'model.task = "{task}" reads sources, and {where} has source = "none"'):
        load_recipe(file)


@pytest.mark.parametrize(
    "corpora",
    [
        'train = { source = "none", target = "a" }\nvalid = { source = "a" }',
        'train = [{ source = "a", target = "none" }]\nvalid = [{ source = "a", target = "a" }]',
        'train = { source = "a" }\nvalid = { source = "a", target = "none" }\ntests.main = { source = "a" }',
        'path = "corpus"\nsource = "none"\ntarget = "a"',
        'path = "corpus"\nsource = "a"\ntarget = "none"',
    ],
)
def test_a_masked_language_model_reads_a_text_that_is_named_on_either_side(corpora: str, tmp_path: Path) -> None:
    data = load_recipe(recipe(tmp_path, "masked_language_model", corpora)).data
    named = [data] if data.path else list(data.corpora_by_name.values())
    assert {(corpus.source, corpus.target) for corpus in named} == {("a", "a")}


def test_a_text_and_its_tags_stay_what_they_are(tmp_path: Path) -> None:
    corpora = 'train = { format = "conllu", path = "a" }\nvalid = { source = "a", target = "b" }'
    data = load_recipe(recipe(tmp_path, "masked_language_model", corpora)).data
    assert [(corpus.source, corpus.target) for corpus in data.corpora_by_name.values()] == [
        ("source", "target"),
        ("a", "b"),
    ]


def test_the_default_task_is_refused_too(tmp_path: Path) -> None:
    file = tmp_path / "texts.toml"
    file.write_text(f"[data]\n{CORPORA['data']}\n", encoding="utf-8")
    with pytest.raises(RecipeError, match=r'model\.task = "translation".*set model\.task = "language_model"'):
        load_recipe(file)


@pytest.mark.parametrize(
    ("data", "model", "running"),
    [
        ("", "block = 8", True),
        ("", "", False),
        ("", 'block = "none"', False),
        ('limits.empty = "keep"', "", True),
        ('limits.empty = "keep"\nrunning_text = false', "block = 8", False),
        ("running_text = true", "", True),
    ],
)
def test_texts_are_running_text_where_a_model_reads_windows_or_blank_lines_are_kept(
    data: str, model: str, running: bool, tmp_path: Path
) -> None:
    file = recipe(tmp_path, "language_model", f"{CORPORA['data.train.0']}\n{data}", model)
    assert load_recipe(file).data.has_running_text is running


@pytest.mark.parametrize("where", ["data.train.0", "data"])
@pytest.mark.parametrize("task", ["language_model", "word_vectors"])
def test_a_vocabulary_of_sources_is_refused_where_there_are_none(task: str, where: str, tmp_path: Path) -> None:
    file = recipe(tmp_path, task, CORPORA[where])
    with pytest.raises(RecipeError, match=r'learns pieces of sources, and .* has source = "none": set shared = true'):
        load_recipe(file, ["tokenizer.shared=false"])
    assert load_recipe(file, ["tokenizer.shared=true"]).model.task == task


@pytest.mark.parametrize(("task", "generates"), [("language_model", True), ("masked_language_model", False)])
def test_settings_of_decoding_send_to_generate_where_it_can(task: str, generates: bool, tmp_path: Path) -> None:
    corpora = 'train = { source = "a", target = "a" }\nvalid = { source = "a", target = "a" }'
    with pytest.raises(RecipeError, match="a run of this task decodes nothing") as caught:
        load_recipe(recipe(tmp_path, task, corpora), ["decoding.beam=2"])
    assert ("tfm generate" in str(caught.value)) == generates
