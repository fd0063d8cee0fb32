"""What runs on an NVIDIA GPU, run without one: no operation mixes devices, the results are those of a CPU, and an
update waits for the device nowhere but where this file says (see `tests/fake_cuda.py`)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.device_cases import (
    FLAT,
    MODELS,
    SEARCHES,
    TRANSLATES,
    UPDATES,
    configured,
    decisive,
    figures,
    network,
    searched,
    trained,
    weights,
)
from tests.fake_cuda import FakeCuda
from tfm.model.layers import dropout
from tfm.pipeline.model_io.ensemble import Ensemble
from tfm.pipeline.runtime.progress import Bar
from tfm.pipeline.training.loop import Trainer

READS_THE_LOSS = "event in update._async_copy_to_cpu.<locals>.read"
OF_THE_TAILS = {"bincount in losses._adaptive_loss", "tolist in losses._adaptive_loss"}
OF_WORD_VECTORS = {
    "boolean index in word_vectors.WordVectorTask._predictions",
    "boolean index in word_vectors.neighbour_pairs",
    "copy to the device in word_vectors._sentence_ids",
}
WAITS_BESIDES = {
    "adaptive softmax": OF_THE_TAILS,  # how many rows each tail has
    "adaptive language model": OF_THE_TAILS,
    "skip-gram": OF_WORD_VECTORS,  # which words are neighbours
    "CBOW with noise words": {
        *OF_WORD_VECTORS,
        "bincount in word_vectors.predict_centre",
        "nonzero in word_vectors.predict_centre",
        "boolean index in word_vectors.WordVectorTask._has_predictions",  # whether subsampling left two words of a text
        "item in word_vectors.WordVectorTask._has_predictions",
        "copy to the CPU in word_vectors.WordVectorTask.loss",  # words to leave out are drawn on the CPU
        "copy to the device in word_vectors.WordVectorTask.loss",
        "copy to the CPU in word_vectors.WordVectorTask._predictions.<locals>.keys_of_predictions",
        "copy to the CPU in word_vector_objectives.draw_noise_words",
        "copy to the CPU in word_vector_objectives.draw_noise_words.<locals>.<genexpr>",
        "copy to the device in word_vector_objectives.NegativeSamplingObjective._noise_scores",
    },
}
"""Where an update waits but for its loss: where the size of what is computed depends on values."""
OTHER_STATES = ("recurrent", "decoder only", "recurrent mixing")


@dataclass
class WatchedTrainer(Trainer):
    """Remembers what waited within its updates, and how many operations a GPU had to do for each."""

    fake: FakeCuda = field(default_factory=FakeCuda)

    def run(self) -> None:
        self.waits, self.num_operations = Counter[str](), list[int]()
        super().run()

    def update(self, bar: Bar) -> None:
        waits, num_operations = self.fake.waits.copy(), self.fake.num_operations
        super().update(bar)
        self.waits += self.fake.waits - waits
        self.num_operations.append(self.fake.num_operations - num_operations)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "layout"),
    [
        *((name, "padded") for name in MODELS),
        *(pytest.param(name, "flat", marks=pytest.mark.slow) for name in FLAT[1:]),
    ],
)
def test_updates_and_a_validation(name: str, layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dropout, "GPU_POOL_SIZE", dropout.POOL_SIZES["cpu"])  # so that both draw the same
    expected = trained(name, "cpu", tmp_path / "cpu", layout=layout)
    with FakeCuda() as fake:
        found = trained(name, "cuda", tmp_path / "cuda", layout=layout, make_trainer=partial(WatchedTrainer, fake=fake))
        after = weights(found)
    # Each update's loss is read when the GPU has nearly all of the next update to do; the last one's, for a checkpoint.
    assert found.waits.pop(READS_THE_LOSS) == UPDATES - 1
    assert all(2 * ahead > min(found.num_operations) for ahead in fake.ahead[:-1])
    assert len(fake.ahead) == UPDATES
    assert set(found.waits) == WAITS_BESIDES.get(name, set())
    assert len(found.log.lines) == UPDATES + 1
    for ours, theirs in zip(figures(found), figures(expected), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-9)
    for which, values in weights(expected).items():
        assert after[which] == pytest.approx(values, abs=1e-9), which


def assert_the_same(make: Any, searches: Sequence[str]) -> None:
    model = make("cpu")
    expected = {search: searched(model, search, "cpu") for search in searches}
    with FakeCuda():
        model = make("cuda")
        found = {search: searched(model, search, "cuda") for search in searches}
    for search in searches:
        for ours, theirs in zip(found[search], expected[search], strict=True):
            assert [ids for ids, _ in ours] == [ids for ids, _ in theirs], search
            assert [score for _, score in ours] == pytest.approx([score for _, score in theirs], abs=1e-9), search


@pytest.mark.few(1)
@pytest.mark.parametrize("name", TRANSLATES)
def test_searches(name: str) -> None:
    """All of them by one model; a few by the others, whose states differ."""
    searches = tuple(SEARCHES) if name == "transformer" else ("bans, beam", "greedy")[: 1 + (name in OTHER_STATES)]
    assert_the_same(lambda device: decisive(network(configured(name), device)), searches)


def test_an_ensemble_searches() -> None:
    def make(device: str) -> Ensemble:
        names = ("transformer", "recurrent", "adaptive softmax")
        return Ensemble([decisive(network(configured(name), device, seed)) for seed, name in enumerate(names)])

    assert_the_same(make, ("greedy", "bans, beam"))
