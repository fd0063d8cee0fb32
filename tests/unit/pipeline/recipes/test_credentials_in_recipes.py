"""A recipe that holds a credential is refused; no name of ours is taken for that of one."""

from pathlib import Path

import pytest

from tfm.data.credentials import redact_command_line
from tfm.pipeline.config import EvaluationConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.recipes.recipe import load_recipe, recipe_schema
from tfm.pipeline.recipes.section_validation import section_from_flags

CORPUS = '[data]\ntrain = [{format = "huggingface", path = "PATH", source = "a", target = "b"}]\n'


@pytest.mark.parametrize(
    "content",
    [
        CORPUS.replace("PATH", "https://user:hush@host/corpus"),
        CORPUS.replace("PATH", "https://host/corpus?token=hush"),
        *(
            CORPUS.replace("PATH", "corpus") + f'[[evaluation.external]]\nname = "x"\ncommand = {command}\n'
            for command in ('["score", "--api-key", "hush"]', '"score --token=hush"', '["score", "https://u:hush@h/"]')
        ),
    ],
)
def test_a_credential_is_refused_and_not_said(content: str, tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text(content, "utf-8")
    with pytest.raises(RecipeError, match="holds a credential") as error:
        load_recipe(file)
    assert "r.toml" in str(error.value)
    assert "hush" not in str(error.value)


def test_texts_that_are_data_are_not_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text(CORPUS.replace("PATH", "corpus") + '[decoding]\nforbidden = ["password=a", "--token"]\n', "utf-8")
    assert load_recipe(file).decoding.forbidden == ("password=a", "--token")


def test_flags_are_looked_at_too() -> None:
    command = '[{name = "x", command = ["score", "--secret", "hush"]}]'
    with pytest.raises(RecipeError, match="holds a credential") as error:
        section_from_flags(EvaluationConfig, {}, [f"evaluation.external={command}"])
    assert "hush" not in str(error.value)


def test_no_key_of_a_recipe_looks_like_a_credential() -> None:
    def keys(node: object) -> set[str]:
        if isinstance(node, dict):
            return {*node.get("properties", ())} | {name for each in node.values() for name in keys(each)}
        return {name for each in node for name in keys(each)} if isinstance(node, list) else set()

    known = keys(recipe_schema())
    assert "batch_tokens" in known
    for key in known:
        assert redact_command_line([f"a.{key}=1", f"--{key}", "1"]) == [f"a.{key}=1", f"--{key}", "1"]
