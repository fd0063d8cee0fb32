"""The parts of [training] that say what an update is: the optimizer, its learning rate, how many batches it takes."""

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import BaseModel, Field, field_validator, model_validator

from tfm.pipeline.config import STRICT_CONFIG, as_tuple

Optimizer = Literal["adam", "adamw", "sgd", "adagrad", "muon"]
Schedule = Literal["constant", "noam", "inverse_sqrt", "cosine", "linear", "step", "warmup_stable_decay", "plateau"]
Beta = Annotated[float, Field(ge=0, lt=1)]


class OptimizerConfig(BaseModel):
    """The optimizer and its constants."""

    model_config = STRICT_CONFIG

    name: Optimizer = Field("adam", description="the rule by which gradients change weights")
    betas: tuple[Beta, Beta] = Field(
        (0.9, 0.98), description="adam, adamw, muon: decay of the means of gradients and of their squares"
    )
    eps: float = Field(
        1e-9, gt=0, description="adam, adamw, adagrad, muon: what is added to the root that divides a step"
    )
    momentum: float = Field(0.9, ge=0, lt=1, description="sgd, and muon's matrices")
    weight_decay: float = Field(0.0, ge=0, description="adamw, muon: decoupled; the others: L2, as in torch")

    _tuple = field_validator("betas", mode="before")(as_tuple)


class ScheduleConfig(BaseModel):
    """Learning rate as a function of the step."""

    model_config = STRICT_CONFIG

    name: Schedule = Field("inverse_sqrt", description="the formula of the learning rate")
    peak: float = Field(5e-4, gt=0, description="largest learning rate (noam: the factor before the paper's formula)")
    warmup_steps: int = Field(4000, ge=0, description="updates in which the learning rate rises")
    final: float = Field(0.0, ge=0, description="learning rate at the end (cosine, linear, warmup_stable_decay)")
    decay_steps: int = Field(
        1000, ge=1, description="step: interval in steps; warmup_stable_decay: length of the decay"
    )
    hold_steps: int = Field(
        0, ge=0, description="step: updates at the peak, after the warm-up, before decay_steps count"
    )
    factor: float = Field(0.5, gt=0, lt=1, description="step, plateau: factor of each reduction")
    patience: int = Field(2, ge=0, description="plateau: validations without improvement before a reduction")


class BatchGrowthConfig(BaseModel):
    """An update takes more batches as training goes on (Smith et al. 2018): `factor` times as many after each step."""

    model_config = STRICT_CONFIG

    factor: int = Field(2, ge=2, le=1000, description="how many times as many batches an update takes")
    steps: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        min_length=1, max_length=20, description="updates after which that happens, ascending"
    )

    _tuple = field_validator("steps", mode="before")(as_tuple)

    @model_validator(mode="after")
    def _check_steps_ascend(self) -> "BatchGrowthConfig":
        if any(this >= following for this, following in pairwise(self.steps)):
            raise ValueError(f"steps must ascend, not {', '.join(map(str, self.steps))}")
        return self
