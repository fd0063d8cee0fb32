"""How many updates a training has is known before the first, and the last one has the schedule's last rate."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.dataset.curriculum import CorpusEpochs
from tfm.data.dataset.split import Split, TokenIdColumn
from tfm.model.config import WordVectorsConfig
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.tasks.criteria import CrossEntropy
from tfm.pipeline.tasks.language_model import RunningText
from tfm.pipeline.tasks.task import PairTask
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.tasks.word_vector_objectives import FullSoftmaxObjective
from tfm.pipeline.tasks.word_vectors import WordVectorTask
from tfm.pipeline.training.assembly.num_updates import last_step
from tfm.pipeline.training.checkpoints.train_state import ExecutionSettings, Progress
from tfm.pipeline.training.loop import Trainer
from tfm.pipeline.training.schedules import SCHEDULES, TOTAL_STEPS_SCHEDULES, ScheduleContext
from tfm.pipeline.training.update import UpdateSums
from tfm.pipeline.training_config import TrainingConfig
from tfm.pipeline.update_config import ScheduleConfig

SETTINGS = ExecutionSettings(device="cpu", precision="fp32", threads=1, world_size=1, batch_tokens=64)
schedules = st.builds(
    ScheduleConfig,
    name=st.sampled_from(sorted(SCHEDULES)),
    warmup_steps=st.integers(0, 3),
    decay_steps=st.integers(1, 5),
    final=st.sampled_from([0.0, 1e-5]),
)


@st.composite
def corpora(draw: Any) -> Split:
    """Pairs of any lengths, in up to three corpora with weights and turns."""
    lengths = draw(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=3, max_size=60))
    sides = (TokenIdColumn.from_lists([[9] * pair[side] for pair in lengths]) for side in (0, 1))
    cut = draw(st.integers(1, len(lengths) - 1))
    weights = draw(st.tuples(st.sampled_from([1.0, 2.75]), st.sampled_from([0.5, 1.0, 2.75])))
    turns = draw(st.sampled_from([(), (CorpusEpochs(cut), CorpusEpochs(len(lengths) - cut, (2, 2)))]))
    return Split(*sides, np.repeat(weights, (cut, len(lengths) - cut)), corpus_epochs=turns)


class Nothing:
    """Does whatever it is asked to, which is nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


class Instantly:
    """Gradients that take no time."""

    def start_gradient(self, group: Any, step: int, *, stop: bool) -> Any:
        assert len(group)
        return SimpleNamespace(
            wait_for_update_sums=lambda: UpdateSums(loss=1.0, nll=1.0, tokens=1, norm=1.0, stop=False)
        )


def trained(config: TrainingConfig, task: PairTask, split: Split, budget: int, size: int) -> tuple[int, list[float]]:
    """The number of updates that is announced, and the rates of those that the loop then does."""
    rates: list[float] = []
    optimizer = SimpleNamespace(param_groups=[{}])
    optimizer.step = lambda: rates.append(optimizer.param_groups[0]["lr"])
    state = SimpleNamespace(
        progress=Progress(plan={}, settings=SETTINGS.model_copy(update={"world_size": size})),
        optimizer=optimizer,
        ema=None,
        model=torch.nn.Identity(),
    )
    world, epochs = World(size=size), task.epochs(split, budget, 7)
    total = last_step(config, epochs.num_batches, size)
    quiet = config.model_copy(update={"log_every": 10**9})
    trainer = Trainer(
        config=quiet, state=state, gradients=Instantly(), batches=epochs, validator=Nothing(),  # type: ignore[arg-type]
        checkpoints=Nothing(), log=Nothing(), reporter=NullReporter(), total_steps=total, width=16, world=world,  # type: ignore[arg-type]
    )  # fmt: skip
    trainer.validate = lambda: None  # type: ignore[method-assign]
    trainer.save = lambda: None  # type: ignore[method-assign]
    trainer.run()
    return total, rates


@settings(max_examples=25, deadline=None)
@given(
    corpora(),
    st.integers(31, 120),
    st.integers(1, 5),
    st.sampled_from([1, 2, 3]),
    st.integers(1, 7),
    st.none() | st.integers(1, 30),
    schedules,
    st.none() | st.sets(st.integers(1, 12), min_size=1, max_size=3).map(lambda steps: {"steps": sorted(steps)}),
)
def test_what_is_announced_is_done_and_ends_at_the_schedules_last_rate(
    split: Split,
    budget: int,
    accumulate: int,
    size: int,
    max_epochs: int,
    max_steps: int | None,
    schedule: Any,
    growth: Any,
) -> None:
    ends = {"max_epochs": max_epochs, "max_steps": max_steps}
    config = TrainingConfig(accumulate=accumulate, **ends, schedule=schedule, batch_growth=growth)  # type: ignore[arg-type]
    announced, rates = trained(config, Translation(CrossEntropy(0.1)), split, budget, size)
    assert len(rates) == announced
    assert rates[-1] == SCHEDULES[schedule.name](len(rates), schedule, ScheduleContext(len(rates), 16, []))
    if schedule.name in TOTAL_STEPS_SCHEDULES and schedule.warmup_steps < len(rates):
        assert rates[-1] == pytest.approx(schedule.final, abs=1e-12)


@pytest.mark.parametrize("accumulate", [1, 4])
def test_so_do_tasks_whose_epochs_are_others(accumulate: int) -> None:
    texts = [[4] * (1 + row % 9) for row in range(80)]
    split = Split(TokenIdColumn.from_lists([[]] * 80), TokenIdColumn.from_lists(texts), np.ones(80))
    schedule = ScheduleConfig(name="linear", warmup_steps=2, final=0.0)
    config = TrainingConfig(accumulate=accumulate, max_epochs=9, schedule=schedule)
    for task in (RunningText(7, CrossEntropy(0.0)), WordVectorTask(WordVectorsConfig(), FullSoftmaxObjective(0.0))):
        announced, rates = trained(config, task, split, 40, 2)
        assert len(rates) == announced
        assert rates[-1] == 0.0


@given(st.integers(1, 400), st.integers(1, 30), st.integers(1, 60), st.integers(0, 5), st.integers(0, 5))
def test_windows_are_counted_without_cutting_them(tokens: int, block: int, budget: int, seed: int, epoch: int) -> None:
    text = Split(TokenIdColumn.from_lists([[]]), TokenIdColumn.from_lists([[9] * (tokens + block)]), np.ones(1))
    epochs = RunningText(block, CrossEntropy(0.0)).epochs(text, budget, seed)
    assert epochs.num_batches(epoch) == len(epochs(epoch))
