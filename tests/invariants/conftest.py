"""What tests of tiny trainings share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.tiny_training import write_dataset
from tfm.pipeline.training import session


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset")


@pytest.fixture(scope="module")
def no_curves() -> Iterator[None]:
    """Drawing takes most of such a short run's time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "draw_curves", lambda metrics, file: None)
        yield


@pytest.fixture
def threads_as_they_were() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
