from typing import Any

import pytest
from pydantic import ValidationError

from tfm.model.build import build
from tfm.model.config import SUPPORTED_TASKS, DropoutConfig, ModelConfig
from tfm.model.config_tables import AdaptiveConfig
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.sharded_training import muon_problem, recompute_problem, sharding_problem
from tfm.pipeline.training.optimizers import make_optimizer
from tfm.pipeline.training_config import TrainingConfig


@pytest.mark.parametrize(
    ("training", "model", "words"),
    [
        ({"optimizer": {"name": "muon"}}, {}, "muon needs whole matrices"),
        ({"r_drop": 1.0}, {}, "training.r_drop does not go with it"),
        ({"bpe_dropout": 0.1}, {}, "training.bpe_dropout does not go with it"),
        ({"unigram_alpha": 0.1}, {}, "training.unigram_alpha does not go with it"),
        ({"batch_tokens": "auto"}, {}, "the search tries the whole model"),
        ({}, {"dropout": DropoutConfig(depth=0.1)}, "different layers"),
        ({}, {"architecture": "recurrent"}, 'not for architecture = "recurrent"'),
    ],
)
def test_what_does_not_go_with_shards_is_refused_with_the_reason(training, model, words):
    config = ModelConfig().model_copy(update=model)
    for shard in ("optimizer", "full"):
        problem = sharding_problem(TrainingConfig.model_validate({**training, "shard": shard}), config)
        assert problem is not None
        assert problem.startswith(f'training.shard = "{shard}"')
        assert words in problem
    assert sharding_problem(TrainingConfig.model_validate(training), config) is None


def test_an_adaptive_softmax_is_refused_with_shards():
    config = ModelConfig(adaptive=AdaptiveConfig(cutoffs=(20, 40)), tie="none")
    problem = sharding_problem(TrainingConfig(shard="full"), config)
    assert problem is not None
    assert "model.adaptive does not go with it" in problem


def test_layers_of_transformers_alone_are_computed_again():
    recurrent = ModelConfig().model_copy(update={"architecture": "recurrent"})
    assert recompute_problem(TrainingConfig(recompute=True), ModelConfig()) is None
    assert recompute_problem(TrainingConfig(), recurrent) is None
    assert "for layers of the Transformer" in str(recompute_problem(TrainingConfig(recompute=True), recurrent))


BARE = {"attention_projections": False, "output_projection": False, "feed_forward": "none", "tie": "none"}
"""Layers of attention alone, without a matrix."""


@pytest.mark.parametrize(
    "parts",
    [
        {},
        BARE,
        {**BARE, "positions": "transformer_xl"},
        {**BARE, "score": "general"},
        {**BARE, "mixing": "convolution"},
        {**BARE, "decoder": {"layers": 1, "dim": 8, "heads": 2, "mixing": "recurrent"}},
        {**BARE, "feed_forward": "position_wise"},
        {**BARE, "output_projection": True},
    ],
)
def test_muon_is_refused_as_the_optimizer_itself_refuses(parts: dict[str, Any]) -> None:
    """Before any work, of every network without a matrix between hidden features."""
    training, small = (
        TrainingConfig.model_validate({"optimizer": {"name": "muon"}}),
        {"layers": 1, "dim": 8, "heads": 2},
    )
    for architecture, tasks in SUPPORTED_TASKS.items():
        for task in tasks:
            given = {"architecture": architecture, "task": task, "encoder": small, "decoder": small, **parts}
            try:
                config = ModelConfig.model_validate(given)
            except ValidationError:
                continue
            network = build(config, source_vocab=9, target_vocab=9, seed=1)
            try:
                make_optimizer(network, training.optimizer)
            except RecipeError:
                assert 'take "adam"' in str(muon_problem(training, config)), given
            else:
                assert muon_problem(training, config) is None, given
    assert muon_problem(TrainingConfig(), config) is None
