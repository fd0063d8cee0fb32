"""`training.batch_tokens`: another budget than the dataset's, given or searched for in what memory there is."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.tiny_training import MODEL, run, training, write_dataset
from tfm.data.dataset.store import load_dataset
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.training import batch_size_search
from tfm.pipeline.training.batch_size_search import search_maximum
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints
from tfm.pipeline.training.checkpoints.train_state import ExecutionSettings, read_progress


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset", num_train=300)


@pytest.fixture
def memory_for(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let this computer's memory be searched as a GPU's, and hold so much: a unit a token of either side, and a half
    for each pair of tokens of a source, as padded attention takes."""
    real, asked = Translation.loss, []

    def limit(most: int) -> list[int]:
        def loss(self: Translation, model: Any, batch: Any) -> Any:
            pairs = len(batch.source_lengths) * int(batch.source_lengths.max()) ** 2
            asked.append(len(batch.source) + len(batch.target_in) + pairs // 2)
            if asked[-1] > most:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")
            return real(self, model, batch)

        monkeypatch.setattr(batch_size_search, "SEARCHABLE_DEVICES", ("cpu",))
        monkeypatch.setattr(Translation, "loss", loss)
        return asked

    return limit


def settings(out: Path) -> ExecutionSettings:
    checkpoints = Checkpoints(out / "training" / "checkpoints")
    return read_progress(checkpoints.read(max(checkpoints.steps()))).settings


def weights(out: Path) -> bytes:
    return (out / "model" / "model.safetensors").read_bytes()


@given(limit=st.integers(1, 10**6), least=st.integers(1, 500), enough=st.integers(1, 10**6))
def test_the_largest_that_fits_is_found_to_an_eighth(limit: int, least: int, enough: int) -> None:
    asked: list[int] = []

    def fits(number: int) -> bool:
        asked.append(number)
        return number <= limit

    found = search_maximum(fits, least, lambda number: number >= enough)
    assert found == least or found in asked  # it was tried
    assert found <= max(least, limit)
    assert found >= enough or found + max(1, found // 8) >= limit or found == least > limit
    assert len(asked) < 30


@pytest.mark.slow
def test_no_batch_is_larger_than_fits_and_hardly_smaller(dataset: Path, tmp_path: Path, memory_for: Any) -> None:
    for seed in range(2):
        asked = memory_for(3000)
        run(dataset, tmp_path / str(seed), training(batch_tokens="auto", max_steps=30), seed=seed)
        assert max(asked[-30:]) > 2000


@pytest.mark.slow
def test_it_is_stored_and_a_resumed_training_does_not_search(dataset: Path, tmp_path: Path, memory_for: Any) -> None:
    memory_for(3000)
    config = training(batch_tokens="auto", max_steps=6)
    run(dataset, tmp_path, config)
    first = settings(tmp_path)
    memory_for(10**9)
    run(dataset, tmp_path, config.model_copy(update={"max_steps": 12}))
    assert settings(tmp_path) == first


@pytest.mark.few(1)
@pytest.mark.parametrize("normalization", ["layer", "batch"])
def test_the_search_leaves_no_trace(normalization: str, dataset: Path, tmp_path: Path, memory_for: Any) -> None:
    memory_for(3000)
    model = MODEL.model_copy(update={"normalization": normalization})
    run(dataset, tmp_path / "auto", training(batch_tokens="auto", max_steps=6), model=model)
    found = settings(tmp_path / "auto").batch_tokens
    run(dataset, tmp_path / "given", training(batch_tokens=found, max_steps=6), model=model)
    assert settings(tmp_path / "given").batch_tokens == found
    assert weights(tmp_path / "auto") == weights(tmp_path / "given")


@pytest.mark.parametrize("seed", [1, 18, 61])  # with some of which the first batch of an epoch is a small one
@pytest.mark.few(1)
def test_one_batch_of_all_is_enough(seed: int, dataset: Path, tmp_path: Path, memory_for: Any) -> None:
    asked = memory_for(10**9)
    run(dataset, tmp_path, training(batch_tokens="auto", max_steps=2), seed=seed)
    data = load_dataset(dataset)
    longest = int(max((data.train.source_lengths + 1).max(), (data.train.target_lengths + 1).max()))
    found = settings(tmp_path).batch_tokens
    assert len(data.train) * longest <= found < 2 * len(data.train) * longest
    assert len(asked) < 60


@pytest.mark.slow
def test_a_flat_layout_is_as_wide_as_what_was_found(dataset: Path, tmp_path: Path, memory_for: Any) -> None:
    memory_for(3000)
    run(dataset, tmp_path / "auto", training(batch_tokens="auto", max_steps=4, layout="flat"))
    found = settings(tmp_path / "auto").batch_tokens
    assert found > 300
    run(dataset, tmp_path / "given", training(batch_tokens=found, max_steps=4, layout="flat"))
    assert weights(tmp_path / "auto") == weights(tmp_path / "given")


def test_without_a_gpu_it_is_the_datasets(dataset: Path, tmp_path: Path) -> None:
    run(dataset, tmp_path / "auto", training(batch_tokens="auto", max_steps=4))
    run(dataset, tmp_path / "none", training(max_steps=4))
    assert settings(tmp_path / "auto") == settings(tmp_path / "none")
    assert weights(tmp_path / "auto") == weights(tmp_path / "none")


def test_another_error_is_not_taken_for_memory(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def loss(*_: Any) -> Any:
        raise RuntimeError("the sizes do not match")

    monkeypatch.setattr(batch_size_search, "SEARCHABLE_DEVICES", ("cpu",))
    monkeypatch.setattr(Translation, "loss", loss)
    with pytest.raises(RuntimeError, match="sizes"):
        run(dataset, tmp_path, training(batch_tokens="auto"))


@pytest.mark.parametrize("given", [15, 0, "most", 2.5])
def test_what_is_no_budget_is_refused(given: Any) -> None:
    with pytest.raises(ValidationError, match="batch_tokens"):
        training(batch_tokens=given)
