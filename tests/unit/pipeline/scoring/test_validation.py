"""What validation takes of [evaluation] is in the plan of a training, and nothing else of it; its figures.

Perplexity is the same function of the loss as in `tfm evaluate`.
"""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from tests.tiny_training import MODEL, training, write_dataset
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.scoring.metrics import bleu_tokenizer
from tfm.pipeline.scoring.metrics.registry import bleu
from tfm.pipeline.scoring.metrics.score import exp_or_inf
from tfm.pipeline.scoring.validation import Translator, Validator
from tfm.pipeline.stages import train
from tfm.pipeline.tasks.task import Counts

CHINESE = " ".join("今天气很好我们去公园")


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("data")
    return {"Latin": write_dataset(folder / "latin"), "Han": write_dataset(folder / "han", words=CHINESE)}


def part(dataset: Path, config: Any = None, **evaluation: Any) -> object:
    """The plan's [evaluation]."""
    todo = train.plan(
        config or training(), MODEL, DecodingConfig(), dataset, dataset.parent, seed=1,
        evaluation=EvaluationConfig(**evaluation),
    )  # fmt: skip
    return todo.config.get("evaluation")


def test_what_validation_was_before_it_had_a_config_is_not_in_the_plan(datasets: dict[str, Path]) -> None:
    """13a and cased: models made before stay fresh, where the tokenizer found for their text is that."""
    assert part(datasets["Latin"]) is None
    assert part(datasets["Latin"], bleu_tokenize="13a") is None
    assert part(datasets["Han"], bleu_tokenize="13a") is None
    assert part(datasets["Han"]) == {"bleu_tokenize": "auto"}
    assert part(datasets["Han"], bleu_tokenize="zh", lowercase=True) == {"bleu_tokenize": "zh", "lowercase": True}
    assert part(datasets["Latin"], lowercase=True) == {"lowercase": True}


def test_what_validation_does_not_use_is_not_in_the_plan(datasets: dict[str, Path]) -> None:
    others: Any = {"metrics": ("chrf",), "samples": 0, "rouge_tokenize": "rouge-score"}
    assert part(datasets["Latin"], **others) is None
    without = training(validation={"bleu": False})
    assert part(datasets["Han"], without, bleu_tokenize="zh", lowercase=True) is None


def test_a_training_that_goes_on_keeps_the_tokenizer_it_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package installed meanwhile would make other figures of the same hypotheses, and another model the best."""
    split: Any = SimpleNamespace(source=SimpleNamespace(lists=list), texts=lambda: ([], ["きょうは雪です"]))
    made: list[Translator] = []
    for is_there, before in ((False, None), (True, "nrefs:1|case:mixed|eff:no|tok:char|smooth:exp|version:2.6.0")):
        monkeypatch.setattr(bleu_tokenizer, "is_installed", lambda tokenizer, there=is_there: there)
        made.append(Translator(split, cast(Any, None), DecodingConfig(), EvaluationConfig(), before=before))
    assert [each.evaluation.bleu_tokenize for each in made] == ["char", "char"]
    assert bleu_tokenizer.choose_tokenizer([["きょうは雪です"]]).name == "ja-mecab"


@pytest.mark.parametrize("name", ["13a", "intl", "char", "zh", "none"])
def test_a_signature_names_its_tokenizer(name: Any) -> None:
    config = EvaluationConfig(bleu_tokenize=name)
    assert bleu_tokenizer.tokenizer_of(bleu(["a"], [["a"]], config).signature) == name
    assert bleu_tokenizer.tokenizer_of("eff:no|tok:ja-mecab-0.996-IPA|smooth:exp") == "ja-mecab"
    assert bleu_tokenizer.tokenizer_of("eff:no|tok:ko-mecab-0.996/ko-0.9.2-KO|smooth:exp") == "ko-mecab"


@pytest.mark.parametrize("loss", [0.5, 705.0, 720.0])
def test_perplexity_is_the_exponential_of_the_loss_as_far_as_a_float_goes(loss: float) -> None:
    found = Counts(torch.tensor(2 * loss, dtype=torch.float64), torch.tensor(1), 2)
    batch = SimpleNamespace(to=lambda device: None)
    task: Any = SimpleNamespace(has_perplexity=True, batch=lambda *_: batch, evaluate=lambda *_: found)
    figures = Validator(task, None, [np.arange(2)], None).figures(torch.nn.Linear(1, 1), World())
    assert (figures["loss"], figures["accuracy"]) == (loss, 0.5)
    assert figures["perplexity"] == exp_or_inf(loss) == (math.exp(loss) if loss < 709 else math.inf)
