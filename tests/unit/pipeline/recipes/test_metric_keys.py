"""Keys of [evaluation] that single metrics read: used if evaluation, validation or early stopping has such a metric."""

from pathlib import Path

import pytest

from tests.cli.user import RECIPE, tfm, write_lines
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.recipe import load_recipe

METRICS_BY_KEY = {
    "words=line": "wer",
    "entities=IOBES": "entity_f1",
    "rouge_stemmer=true": "rouge1",
    "rouge_tokenize=rouge-score": "rougeLsum",
    "wordnet=/": "meteor",
    "labels=word": "macro_f1",
}


@pytest.mark.parametrize("setting", METRICS_BY_KEY)
def test_a_key_of_a_metric_is_used_where_the_metric_is_computed(setting: str, tmp_path: Path) -> None:
    metric = METRICS_BY_KEY[setting]
    file = tmp_path / "recipe.toml"
    file.write_text(RECIPE.format(folder=tmp_path), encoding="utf-8")
    sets = [f"evaluation.{setting}", 'evaluation.metrics=["cer"]']
    for place in ("training.early_stopping.metric={}", 'training.validation.metrics=["{}"]'):
        load_recipe(file, [*sets, place.format(metric)])
    load_recipe(file, [sets[0], f'evaluation.metrics=["{metric}"]'])
    for more in ([], ["training.early_stopping.metric=cer"], ['training.validation.metrics=["chrf"]']):
        with pytest.raises(RecipeError, match=r"has no effect with .*evaluation\.metrics = \[\"cer\"\] and training\."):
            load_recipe(file, [*sets, *more])


@pytest.mark.parametrize("setting", ["words=line", "wordnet=/", "rouge_stemmer=true"])
def test_training_by_flags_reads_the_keys_of_its_metric(setting: str, tmp_path: Path) -> None:
    words = ("train", "--data", tmp_path / "none", "--out", tmp_path / "out", "--set", f"evaluation.{setting}")
    for place in ("training.early_stopping.metric={}", 'training.validation.metrics=["{}"]'):
        done = tfm(*words, "--set", place.format(METRICS_BY_KEY[setting]))
        assert (done.code, "none" in done.err) == (65, True), done.err  # nothing but the dataset is missing


def test_without_a_recipe_the_metrics_of_the_command_decide(tmp_path: Path) -> None:
    write_lines(tmp_path / "a", ["x y"])
    words = ("evaluate", "--hypotheses", tmp_path / "a", "--reference", tmp_path / "a", "--set")
    done = tfm(*words, "evaluation.words=line", "--metric", "cer")
    assert (done.code, 'has no effect with evaluation.metrics = ["cer"]: no WER' in done.err) == (2, True)
    assert tfm(*words, "evaluation.words=line", "--metric", "wer").code == 0
