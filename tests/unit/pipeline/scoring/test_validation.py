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
from tfm.pipeline.scoring.validation import DirectionsValidator, ValidationTranslator, Validator
from tfm.pipeline.stages import train
from tfm.pipeline.tasks.task import EvaluationSums
from tfm.pipeline.training.early_stopping import Validation, sort_best_first

CHINESE = " ".join("今天气很好我们去公园")


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("data")
    return {"Latin": write_dataset(folder / "latin"), "Han": write_dataset(folder / "han", words=CHINESE)}


def part(dataset: Path, config: Any = None, **evaluation: Any) -> object:
    """The plan's [evaluation]."""
    todo = train.plan_model(
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
    split: Any = SimpleNamespace(
        source=SimpleNamespace(to_lists=list), images=None, texts=lambda: ([], ["きょうは雪です"])
    )
    made: list[ValidationTranslator] = []
    for is_there, before in ((False, None), (True, "nrefs:1|case:mixed|eff:no|tok:char|smooth:exp|version:2.6.0")):
        monkeypatch.setattr(bleu_tokenizer, "is_installed", lambda tokenizer, there=is_there: there)
        made.append(
            ValidationTranslator(
                split, cast(Any, None), DecodingConfig(), EvaluationConfig(), previous_signature=before
            )
        )
    assert [each.evaluation.bleu_tokenize for each in made] == ["char", "char"]
    assert bleu_tokenizer.choose_tokenizer([["きょうは雪です"]]).name == "ja-mecab"


@pytest.mark.parametrize("name", ["13a", "intl", "char", "zh", "none"])
def test_a_signature_names_its_tokenizer(name: Any) -> None:
    config = EvaluationConfig(bleu_tokenize=name)
    assert bleu_tokenizer.tokenizer_of_signature(bleu(["a"], [["a"]], config).signature) == name
    assert bleu_tokenizer.tokenizer_of_signature("eff:no|tok:ja-mecab-0.996-IPA|smooth:exp") == "ja-mecab"
    assert bleu_tokenizer.tokenizer_of_signature("eff:no|tok:ko-mecab-0.996/ko-0.9.2-KO|smooth:exp") == "ko-mecab"


@pytest.mark.parametrize("loss", [0.5, 705.0, 720.0])
def test_perplexity_is_the_exponential_of_the_loss_as_far_as_a_float_goes(loss: float) -> None:
    found = EvaluationSums(torch.tensor(2 * loss, dtype=torch.float64), torch.tensor(1), 2)
    batch = SimpleNamespace(to=lambda device: None)
    task: Any = SimpleNamespace(has_perplexity=True, batch=lambda *_: batch, evaluate=lambda *_: found)
    figures = Validator(task, None, [np.arange(2)], None).compute_metrics(torch.nn.Linear(1, 1), World())
    assert (figures["loss"], figures["accuracy"]) == (loss, 0.5)
    assert figures["perplexity"] == exp_or_inf(loss) == (math.exp(loss) if loss < 709 else math.inf)


SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"


def figures_of(loss: float, bleu: float | None, signature: str = SIGNATURE) -> dict[str, Any]:
    about = {"loss": loss, "perplexity": exp_or_inf(loss), "accuracy": 1 - loss / 4}
    return {**about, "bleu": bleu, "bleu_signature": None if bleu is None else signature}


def of_directions(**each: dict[str, Any]) -> Validation:
    validators: Any = {
        name: SimpleNamespace(compute_metrics=lambda *_, found=found: found) for name, found in each.items()
    }
    found = DirectionsValidator(validators).compute_metrics(torch.nn.Linear(1, 1), World())
    return Validation(step=7, epoch=2, **found)


def test_of_several_directions_each_has_figures_and_the_mean_counts() -> None:
    first, second = figures_of(1.0, 30.0), figures_of(3.0, 20.0)
    found = of_directions(a=first, b=second)
    assert (found.loss, found.accuracy, found.bleu) == (2.0, 0.5, 25.0)
    assert found.perplexity == pytest.approx(math.sqrt(first["perplexity"] * second["perplexity"]))
    assert found.bleu_signature == f"mean-of:2-directions|{SIGNATURE}"
    line = found.as_log_entry()
    assert [line[key] for key in ("step", "epoch", "a/loss", "b/bleu", "loss")] == [7, 2, 1.0, 20.0, 2.0]
    assert Validation.model_validate_json(found.model_dump_json()) == found
    said = found.report_lines(is_best=True)
    assert "loss 2.0000" in said[0]
    assert "the mean of 2 directions (best so far)" in said[0]
    assert said[1:] == [f"  {name}: {found.directions[name].describe()}" for name in "ab"]


def test_the_mean_chooses_and_not_the_sum_of_all_tokens() -> None:
    """Worse in one direction by more than it is better in the other."""
    before = of_directions(a=figures_of(2.0, 10.0), b=figures_of(2.0, 10.0))
    after = of_directions(a=figures_of(1.5, 12.0), b=figures_of(2.6, 7.0)).model_copy(update={"step": 9})
    for metric in ("loss", "perplexity", "accuracy", "bleu"):
        assert sort_best_first([after, before], metric)[0] is before


def test_signatures_that_differ_are_all_in_that_of_the_mean() -> None:
    han = SIGNATURE.replace("13a", "zh")
    found = of_directions(a=figures_of(1.0, 30.0), b=figures_of(3.0, 20.0, han))
    assert found.bleu_signature == f"mean-of:2-directions|a({SIGNATURE})|b({han})"
    assert of_directions(a=figures_of(1.0, 30.0), b=figures_of(3.0, None)).bleu is None


def test_one_direction_is_written_down_as_it_was() -> None:
    line = Validation(step=3, epoch=1, **figures_of(1.0, 30.0)).as_log_entry()
    assert [*line] == ["step", "epoch", "loss", "perplexity", "accuracy", "bleu"]
