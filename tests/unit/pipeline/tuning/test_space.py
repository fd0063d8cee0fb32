"""The space of a search: what a file may say of a key, and every value it then has."""

from itertools import product
from pathlib import Path

import optuna
import pytest

from tfm.pipeline.errors import RecipeError
from tfm.pipeline.tuning.config import ParameterConfig, load_search
from tfm.pipeline.tuning.space import list_configurations, make_parameters, suggest_configuration


def space(**keys: dict[str, object]) -> dict[str, ParameterConfig]:
    return {key: ParameterConfig.model_validate(value) for key, value in keys.items()}


@pytest.mark.parametrize(
    ("config", "values"),
    [
        ({"values": [3, 1, 2]}, (3, 1, 2)),
        ({"choices": ["pre", "post"]}, ("pre", "post")),
        ({"low": 0.0, "high": 0.3, "step": 0.1}, (0.0, 0.1, 0.2, 0.3)),
        ({"low": 64, "high": 256, "step": 64}, (64, 128, 192, 256)),
        ({"low": 1e-4, "high": 1e-2, "factor": 10}, (0.0001, 0.001, 0.01)),
        ({"low": 100, "high": 1000, "factor": 2}, (100, 200, 400, 800)),
        ({"low": 0.1, "high": 0.45, "step": 0.2}, (0.1, 0.3)),
        ({"low": 0.5, "high": 2.0, "log": True}, None),
    ],
)
def test_the_values_of_a_key(config: dict[str, object], values: tuple[object, ...] | None) -> None:
    (parameter,) = make_parameters(space(key=config))
    assert parameter.values == values
    if values and all(isinstance(each, int) for each in values):
        assert all(isinstance(each, int) for each in parameter.values or ())


def test_every_configuration_of_a_space_without_conditions_is_the_product() -> None:
    found = list_configurations(make_parameters(space(a={"values": [1, 2, 3]}, b={"choices": ["x", "y"]})))
    assert found == [{"a": a, "b": b} for a, b in product((1, 2, 3), ("x", "y"))]


def test_a_condition_leaves_a_key_out() -> None:
    parameters = make_parameters(
        space(norm={"choices": ["pre", "post"]}, warmup={"values": [10, 20], "only_if": {"norm": "post"}})
    )
    found = list_configurations(parameters)
    assert found == [{"norm": "pre"}, {"norm": "post", "warmup": 10}, {"norm": "post", "warmup": 20}]
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    seen = [suggest_configuration(parameters, study.ask()) for _ in range(30)]
    assert {tuple(each.items()) for each in seen} == {tuple(each.items()) for each in found}


def test_what_is_drawn_is_a_value_and_what_optuna_keeps_is_its_place() -> None:
    parameters = make_parameters(
        space(peak={"low": 0.001, "high": 0.004, "factor": 2}, share={"low": 0.0, "high": 1.0})
    )
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=3))
    for _ in range(20):
        trial = study.ask()
        found = suggest_configuration(parameters, trial)
        assert found["peak"] == (0.001, 0.002, 0.004)[trial.params["peak"]]
        assert found["share"] == trial.params["share"]
        assert 0 <= float(found["share"]) <= 1
        assert suggest_configuration(parameters, trial) == found


def test_infinitely_many_values_have_no_grid() -> None:
    with pytest.raises(RecipeError, match=r'"share" has infinitely many values'):
        list_configurations(make_parameters(space(share={"low": 0.0, "high": 1.0})))
    with pytest.raises(RecipeError, match=r'"share" has 1,000,001 values'):
        make_parameters(space(share={"low": 0.0, "high": 1.0, "step": 1e-6}))


HEAD = '[search]\nbase = "b.toml"\ntrials = 3\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", r"s\.toml: has no \[search\]"),
        ("[search", r"s\.toml: cannot be read as a recipe of a search"),
        (HEAD + "[search.space]\n[model]\ndim = 3\n", "has model beside \\[search\\]; settings belong to the base"),
        (HEAD + "[search.space]\n", r"search\.space = \{\}"),
        (HEAD + "[search.space]\na = { values = [1], choices = [2] }", "give one of values, choices, or low and high"),
        (HEAD + "[search.space]\na = { values = [1, 1] }", "values has one of them twice"),
        (HEAD + "[search.space]\na = { values = [1, 0.1, 1.0] }", "values has one of them twice"),
        (HEAD + "[search.space]\na = { values = [true, 2, 1] }", "values has one of them twice"),
        (HEAD + "[search.space]\na = { choices = [0, false] }", "choices has one of them twice"),
        (HEAD + "[search.space]\na = { values = [0.1, nan] }", r"search\.space\.a: values has nan"),
        (HEAD + "[search.space]\na = { choices = [-inf, 1] }", r"search\.space\.a: choices has -inf"),
        (HEAD + "[search.space]\na = { low = 2, high = 1 }", "low must be given and below high"),
        (HEAD + "[search.space]\na = { low = 0, high = 1, log = true }", r"low \(0\) must be above 0 for a logarithm"),
        (HEAD + "[search.space]\na = { low = 1, high = inf, step = 1 }", r"search\.space\.a\.high"),
        (HEAD + "[search.space]\na = { low = nan, high = 1 }", r"search\.space\.a\.low"),
        (HEAD + "[search.space]\na = { values = [1], log = true }", "step, factor and log belong to low and high"),
        (HEAD + "[search.space]\na = { values = [1], only_if = { b = 2 } }", "b is no other key of the space"),
        (HEAD + 'method = "luck"\n[search.space]\na = { values = [1] }', r'method = "luck" is not allowed'),
        (HEAD + 'trials = "many"\n', "cannot be read"),
        ('[search]\nbase = "b.toml"\n[search.space]\na = { values = [1] }', "give an end: trials, hours or updates"),
        (HEAD + 'name = "../x"\n[search.space]\na = { values = [1] }', r"search\.name"),
        (
            HEAD + "[search.evolution]\npopulation = 4\nsurvivors = 4\n[search.space]\na = { values = [1] }",
            "fewer than",
        ),
    ],
)
def test_a_file_that_is_no_search_is_refused_with_file_and_key(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError, match=problem) as found:
        load_search(file)
    assert "s.toml" in str(found.value)


def test_a_search_has_the_name_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(HEAD + "[search.space]\na = { values = [1] }\n", encoding="utf-8")
    found = load_search(tmp_path / "mine.toml")
    assert (found.name, found.method, found.metric, found.trials) == ("mine", "tpe", "loss", 3)


@pytest.mark.parametrize(
    ("first", "needed", "problem"),
    [
        ({"low": 1, "high": 9, "step": 2}, 4, "a is never 4; it is 1, 3, 5, 7, 9"),
        ({"low": 1, "high": 8, "factor": 2}, 3, "a is never 3; it is 1, 2, 4, 8"),
        ({"low": 1, "high": 9, "step": 2}, "3", "a is never '3'"),
        ({"low": 0.0, "high": 1.0}, 0.5, "a has no steps, so that it is never exactly 0.5"),
        ({"low": 1.0, "high": 9.0, "log": True}, 11, "a has no steps"),
    ],
)
def test_a_key_that_never_has_a_value_is_refused(first: dict[str, object], needed: object, problem: str) -> None:
    with pytest.raises(RecipeError) as refused:
        make_parameters(space(a=first, b={"values": [1, 2], "only_if": {"a": needed}}))
    assert f'search.space."b".only_if: {problem}' in str(refused.value)


def test_conditions_that_exclude_each_other_are_refused() -> None:
    b = {"values": [1, 2], "only_if": {"a": 1}}
    assert len(make_parameters(space(a={"values": [1, 2]}, b=b, c={"values": [1], "only_if": {"a": 1, "b": 2}}))) == 3
    with pytest.raises(RecipeError, match=r'space\."c"\.only_if is never so: it needs a = 1 and a = 2'):
        make_parameters(space(a={"values": [1, 2]}, b=b, c={"values": [1], "only_if": {"a": 2, "b": 2}}))
