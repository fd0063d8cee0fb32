"""One run of each script, for all that look at it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.meaning import campaign, scripts
from tests.meaning.scripts import Corpora, Script


@dataclass(frozen=True)
class Case:
    """A script, its corpora, and the run of all stages on them."""

    script: Script
    corpora: Corpora
    run: campaign.Run
    recipe: Path


@pytest.fixture(scope="session", params=scripts.SCRIPTS.values(), ids=scripts.SCRIPTS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    script: Script = request.param
    folder = tmp_path_factory.mktemp(script.name)
    corpora = scripts.write(folder / "corpora", script)
    recipe = campaign.write_recipe(folder / f"{script.name.lower()}.toml", corpora.folder, script.kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run = campaign.run(recipe)
    return Case(script, corpora, campaign.Run(folder / run.folder, run.said), recipe)
