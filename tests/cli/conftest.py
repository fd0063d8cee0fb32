"""What the tests of the commands start from: small corpora, and what the first stages made of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, Stages, commands_of, tfm, write_corpora
from tests.hub import TOKEN, Hub, serve_hub


@pytest.fixture(scope="session")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpora")
    write_corpora(folder)
    return folder


@pytest.fixture(scope="session")
def stages(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Stages:
    """The first three stages, by flags alone."""
    run = tmp_path_factory.mktemp("run")
    commands = commands_of(corpora, run)
    said = {}
    for name, words in commands.items():
        said[name] = tfm(*words)
        assert said[name].code == 0, said[name].err
    return Stages(run, said)


@pytest.fixture
def recipe(corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe in an empty folder, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "tiny.toml"
    file.write_text(RECIPE.format(folder=corpora), encoding="utf-8")
    return file


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that huggingface_hub takes for its own, with the token of a user."""
    from huggingface_hub import constants, hf_api

    with serve_hub() as served:
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        for module in (constants, hf_api):
            monkeypatch.setattr(module, "ENDPOINT", served.url, raising=False)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", served.url + "/{repo_id}/resolve/{revision}/{filename}"
        )
        yield served
