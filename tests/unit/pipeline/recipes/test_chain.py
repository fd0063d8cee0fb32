"""The chain: which stage gets what, in which order, and what is said when one is missing."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.tiny_model import publish_model
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.recipes.chain import STAGES_BY_NAME, run_recipe_stages, run_stage
from tfm.pipeline.recipes.recipe import Recipe
from tfm.pipeline.recipes.run_paths import RunPaths
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.synthesis.config import SynthesisConfig

RECIPE = Recipe.model_validate(
    {"name": "small", "seed": 7, "data": {"path": "corpus"}, "training": {"max_steps": 1, "device": "cpu"}}
)
Called = list[tuple[str, tuple[Any, ...], dict[str, Any]]]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Called:
    """Stands in for the five stages; every call is noted, and makes its folder."""
    calls: Called = []

    def stand_in(name: str, out_of: Callable[[tuple[Any, ...]], Path]) -> Callable[..., None]:
        def stage(*args: Any, **more: Any) -> None:
            calls.append((name, args, more))
            out_of(args).mkdir(parents=True)

        return stage

    functions = {
        "tokenize": ("tokenize", lambda args: args[-1]),
        "preprocess": ("preprocess", lambda args: args[-1]),
        "train": ("train", lambda args: args[-1] / "model"),
        "translate": ("translate_tests", lambda args: args[-1]),
        "evaluate": ("evaluate_tests", lambda args: args[-1]),
    }
    for name, (function, out_of) in functions.items():
        module = ModuleType(f"tfm.pipeline.stages.{name}")
        setattr(module, function, stand_in(name, out_of))
        monkeypatch.setitem(sys.modules, f"tfm.pipeline.stages.{name}", module)
    return calls


def test_the_five_stages_run_in_order_on_each_other_s_artifacts(tmp_path: Path, called: Called) -> None:
    command = ["tfm", "run", "x.toml"]
    made = run_recipe_stages(RECIPE, root=tmp_path, command=command, reporter=NullReporter())
    place = tmp_path / "small"
    assert made == RunPaths(place)
    config = RECIPE
    assert [(name, args) for name, args, _ in called] == [
        ("tokenize", (config.tokenizer, config.data, place / "tokenizer")),
        ("preprocess", (config.data, place / "tokenizer", place / "dataset")),
        ("train", (config.training, config.model, config.decoding, place / "dataset", place)),
        ("translate", (place / "model", place / "dataset", config.decoding, place / "translations")),
        (
            "evaluate",
            (
                place / "model",
                place / "dataset",
                place / "translations",
                place / "training",
                config.evaluation,
                place / "scores",
            ),
        ),
    ]
    assert all(more["command"] == command for _, _, more in called)
    assert [more.get("seed") for _, _, more in called] == [None, None, 7, 7, 7]
    assert [more.get("device") for _, _, more in called] == [None, None, None, "cpu", "cpu"]


def test_a_stage_before_its_input_says_what_to_run(tmp_path: Path, called: Called) -> None:
    with pytest.raises(DataError, match=r"small/tokenizer: not made yet: run `tfm tokenize` with the same recipe"):
        run_stage(RECIPE, "preprocess", root=tmp_path, command=[], reporter=NullReporter())
    assert called == []


def test_out_reaches_the_stage(tmp_path: Path, called: Called) -> None:
    run_stage(RECIPE, "tokenize", root=tmp_path, command=[], reporter=NullReporter())
    out = tmp_path / "elsewhere"
    run_stage(RECIPE, "preprocess", root=tmp_path, out=out, command=[], reporter=NullReporter())
    assert called[-1][1][-1] == out
    (tmp_path / "small" / "dataset").mkdir()
    run_stage(RECIPE, "train", root=tmp_path, out=out, command=[], reporter=NullReporter())
    assert called[-1][1][-1] == out


def test_a_precision_that_is_missing_is_told_before_the_stages_ahead_of_translation(
    tmp_path: Path, called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfm.pipeline.runtime.devices.int8_unsupported_reason", lambda: "no VNNI")
    decoding = RECIPE.decoding.model_copy(update={"precision": "int8"})
    recipe = RECIPE.model_copy(update={"decoding": decoding})

    def run(*only: str) -> None:
        run_recipe_stages(
            recipe, root=tmp_path, command=["tfm"], reporter=NullReporter(), only=only or tuple(STAGES_BY_NAME)
        )

    with pytest.raises(RecipeError, match=r'"int8" is not available here: no VNNI; choose fp32 or bf16'):
        run()
    assert not called
    run("tokenize", "preprocess", "train")
    (tmp_path / "small" / "translations").mkdir()  # as another machine has made it
    run("evaluate")
    assert [name for name, *_ in called] == ["tokenize", "preprocess", "train", "evaluate"]


def test_the_chain_is_closed() -> None:
    """What a stage reads is made by the stage that it names, which stands before it."""
    stages = list(STAGES_BY_NAME)
    for name, stage in STAGES_BY_NAME.items():
        for folder, maker in stage.reads.items():
            assert STAGES_BY_NAME[maker].makes == folder
            assert stages.index(maker) < stages.index(name)
            assert hasattr(RunPaths, folder)
    assert RunPaths(Path("x")).training == Path("x/training")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"text": {"source": None, "target": "gone"}}, "gone: no such file"),
        ({"text": {"source": None, "target": "text"}, "tests": ["gone"]}, "gone: no such file"),
        ({"text": {"source": None, "target": "text"}, "models": ["gone"]}, "gone: there is nothing here"),
        ({"text": {"source": None, "target": "text"}, "models": ["lm"]}, "lm: was trained for language_model"),
    ],
)
def test_inputs_of_a_synthesis_are_looked_for_before_the_stages_ahead_of_it(
    settings: dict[str, Any], problem: str, tmp_path: Path, called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts that the run itself makes are there by then."""
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("a dog\n", "utf-8")
    publish_model(Path("lm"), architecture="decoder_only", task="language_model")
    synthesize = ModuleType("tfm.pipeline.stages.synthesize")
    synthesize.synthesize = lambda *_, **__: called.append(("synthesize", (), {}))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tfm.pipeline.stages.synthesize", synthesize)

    def run(settings: dict[str, Any]) -> None:
        recipe = RECIPE.model_copy(update={"synthesis": SynthesisConfig.model_validate(settings)})
        run_recipe_stages(recipe, command=[], reporter=NullReporter())

    with pytest.raises(DataError, match=f"^{problem}"):
        run(settings)
    assert called == []
    run({"text": {"source": None, "target": "runs/small/clean/train.0.target.txt"}})
    assert [name for name, *_ in called][-1] == "synthesize"
