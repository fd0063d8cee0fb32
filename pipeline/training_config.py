"""The [training] part of a recipe."""

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, Field, field_validator, model_validator

from tfm.pipeline.config import STRICT_CONFIG, Device, GuidedAlignmentConfig, as_tuple
from tfm.pipeline.update_config import BatchGrowthConfig, OptimizerConfig, ScheduleConfig

ValidationScoreName = Literal[
    "bleu", "bleu_paper", "chrf", "chrf++", "ter", "rouge1", "rouge2", "rougeL", "rougeLsum", "meteor", "cider_d",
    "exact_match", "wer", "cer", "per", "macro_f1", "entity_f1",
]  # fmt: skip
"""Metrics of [evaluation] that validation can compute of the model's hypotheses."""
ValidationMetric = Literal[
    "loss", "perplexity", "accuracy",
    "bleu", "bleu_paper", "chrf", "chrf++", "ter", "rouge1", "rouge2", "rougeL", "rougeLsum", "meteor", "cider_d",
    "exact_match", "wer", "cer", "per", "macro_f1", "entity_f1",
]  # fmt: skip
ALWAYS_MEASURED_FIGURES = ("loss", "perplexity", "accuracy")
"""Metrics that need no hypotheses."""
Precision = Literal["auto", "fp32", "bf16"]
TrackerName = Literal["tensorboard", "mlflow", "wandb"]
NEWER_TRAINING_KEYS = ("guided_alignment",)
"""Keys of [training] that models of an earlier time lack, trained as by the defaults: manifests leave those out."""
DEFAULT_EPOCHS = 10  # where a recipe says nothing of when to stop


class ValidationConfig(BaseModel):
    """When and how the model is validated during training."""

    model_config = STRICT_CONFIG

    every_steps: int | None = Field(None, ge=1, description="updates between validations; instead of every_epochs")
    every_epochs: int | None = Field(None, ge=1, description="default if neither is given: 1")
    bleu: bool = Field(True, description="translate the validation source, as `tfm translate` does, and score it")
    metrics: tuple[ValidationScoreName, ...] | None = Field(
        None, description="further scores of the model's output; early_stopping.metric is computed without being named"
    )
    beam: int = Field(1, ge=1, description="beam width of that translation")

    _tuple = field_validator("metrics", mode="before")(as_tuple)

    @model_validator(mode="after")
    def _check_one_interval(self) -> "ValidationConfig":
        if self.every_steps is not None and self.every_epochs is not None:
            raise ValueError("give every_steps or every_epochs, not both")
        return self


class EarlyStoppingConfig(BaseModel):
    """Stop when `metric` has not become better for `patience` validations."""

    model_config = STRICT_CONFIG

    metric: ValidationMetric = Field("loss", description="the validation figure that decides which model is the best")
    patience: int | None = Field(None, ge=1, description="none: never stop early")


class KeepConfig(BaseModel):
    """The checkpoints that are kept, and those that become the model."""

    model_config = STRICT_CONFIG

    last: int = Field(1, ge=1, description="newest checkpoints")
    best: int = Field(1, ge=1, description="best checkpoints, by early_stopping.metric")
    average: Literal["none", "last", "best"] = Field(
        "none", description="publish the mean of the last or best kept checkpoints"
    )


class LoraConfig(BaseModel):
    """Low-rank adapters: beside some products, which stay as they are, others of low rank are trained (Hu et al. 2022).

    The product becomes W x + alpha / rank * B A x.
    """

    model_config = STRICT_CONFIG

    rank: int = Field(8, ge=1, description="of B A")
    alpha: float | None = Field(None, gt=0, allow_inf_nan=False, description="none: as rank, so that the factor is 1")
    products: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        description="which products, by the last part of their name: query_key_value, query, key_value, output, inner, "
        "outer; none: those into queries, keys and values",
    )
    publish: Literal["merged", "adapter"] = Field(
        "merged", description="merged: W + alpha / rank * B A as one matrix; adapter: beside the model that stayed"
    )

    _tuple = field_validator("products", mode="before")(as_tuple)

    @property
    def scale(self) -> float:
        """alpha, or the rank if it is not given."""
        return float(self.rank) if self.alpha is None else self.alpha


class TrainingConfig(BaseModel):
    """The training of the model. Used by `tfm train`."""

    model_config = STRICT_CONFIG

    max_steps: int | None = Field(None, ge=1, description="updates after which the training ends")
    max_epochs: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="10 if neither is given; if both are, the first one reached ends the training",
    )
    batch_tokens: Annotated[int, Field(ge=16, le=2**40)] | Literal["auto"] | None = Field(
        None, description="instead of the dataset's; auto: as many as fit in a GPU's memory, found at the first start"
    )
    accumulate: int = Field(1, ge=1, description="batches per update (gradient accumulation)")
    batch_growth: BatchGrowthConfig | None = Field(
        None, description="increase accumulate during training, instead of decaying the learning rate; none: constant"
    )
    label_smoothing: float = Field(
        0.1, ge=0, lt=1, description="share of the target's probability that is spread over all pieces"
    )
    r_drop: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="R-Drop weight: run each batch twice with different dropout, add this times their KL divergence",
    )
    guided_alignment: GuidedAlignmentConfig | None = None
    bpe_dropout: float | None = Field(
        None, gt=0, lt=1, description="kind bpe: other pieces at each update, by leaving out this share of merges"
    )
    unigram_alpha: float | None = Field(
        None, gt=0, description="kind unigram: other pieces at each update, drawn from P(pieces)^alpha"
    )
    optimizer: OptimizerConfig = OptimizerConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    clip_norm: float | None = Field(1.0, gt=0, description="maximum gradient norm; none: no clipping")
    l1: float = Field(0.0, ge=0, description="adds l1 * sum |w| to the loss of an update")
    l2: float = Field(0.0, ge=0, description="adds l2 / 2 * sum w^2 to the loss of an update")
    ema: float | None = Field(None, gt=0, lt=1, description="decay of an exponential moving average of the weights")
    precision: Precision = Field(
        "auto", description="of matrix products; auto: the faster one on this CPU, bf16 on GPUs that have it"
    )
    layout: Literal["padded", "flat"] = Field(
        "padded", description="flat: concatenated sentences with filler, one shape for all batches; for GPUs"
    )
    init_from: str | None = Field(None, description="a model/ to start from; if it has another task: its encoder")
    image_statistics: Literal["model", "dataset"] = Field(
        "model", description="a model of images to start from: whose means and deviations normalise images"
    )
    lora: LoraConfig | None = Field(None, description="train low-rank adapters alone; needs init_from")
    device: Device = Field("auto", description="auto: cuda if available, else cpu; mps only if given")
    threads: Annotated[int, Field(ge=1, le=1024)] | Literal["auto"] = Field(
        "auto", description="of each process; auto: OMP_NUM_THREADS, or the number of idle processors"
    )
    parallel: Literal["auto", "threads", "processes"] = Field(
        "auto", description="on a CPU, what computes an update: threads, or as many processes; auto: the faster"
    )
    shard: Literal["none", "optimizer", "full"] = Field(
        "none",
        description="of several processes, each keeps a part of the optimizer's state and of gradients (optimizer), "
        "and of the weights too, which a layer gathers for its passes (full)",
    )
    recompute: bool = Field(
        False, description="layers keep their input alone, and are computed again in the backward pass: less memory"
    )
    elastic: bool = Field(False, description="a training may go on with another number of processes")
    restarts: int = Field(
        3, ge=0, description="--cluster: how often a training goes on by itself that lost a process or a node"
    )
    log_every: int = Field(50, ge=1, description="steps between lines of metrics.jsonl")
    save_every: int | None = Field(None, ge=1, description="steps between checkpoints; also at every validation")
    validation: ValidationConfig = ValidationConfig()
    early_stopping: EarlyStoppingConfig = EarlyStoppingConfig()
    keep: KeepConfig = KeepConfig()
    trackers: tuple[TrackerName, ...] = Field(
        (), description="where else the figures go: tensorboard, mlflow, wandb, each an extra"
    )
    tensorboard: bool = Field(False, description='as trackers = ["tensorboard"]')

    _tuple = field_validator("trackers", mode="before")(as_tuple)

    @property
    def all_trackers(self) -> tuple[TrackerName, ...]:
        """The trackers by name, each once; `tensorboard` names one of them."""
        return tuple(dict.fromkeys((*(("tensorboard",) if self.tensorboard else ()), *self.trackers)))

    @model_validator(mode="before")
    @classmethod
    def _set_default_max_epochs(cls, raw: object) -> object:
        if isinstance(raw, dict) and raw.get("max_steps") is None and raw.get("max_epochs") is None:
            return {**raw, "max_epochs": DEFAULT_EPOCHS}
        return raw

    @model_validator(mode="after")
    def _check_metric_is_measured(self) -> "TrainingConfig":
        if self.early_stopping.metric == "bleu" and not self.validation.bleu:
            raise ValueError('early_stopping.metric = "bleu" needs validation.bleu = true')
        return self

    @model_validator(mode="after")
    def _check_adapters_have_model(self) -> "TrainingConfig":
        if self.lora is not None and self.init_from is None:
            raise ValueError("training.lora adapts a model that was trained: give training.init_from (--init-from)")
        if self.image_statistics != "model" and self.init_from is None:
            raise ValueError(
                'training.image_statistics = "dataset" replaces those of a model that training starts from: remove it, '
                "or give training.init_from (--init-from)"
            )
        return self

    def select_validation_scores(self, labels: bool) -> tuple[ValidationScoreName, ...]:
        """Return the scores of the model's hypotheses that validation computes, each once; labels: whether it says
        labels.
        """
        metric = self.early_stopping.metric
        names: list[ValidationScoreName] = ["bleu"] if self.validation.bleu and not labels else []
        names += self.validation.metrics or ()
        names += [each for each in get_args(ValidationScoreName) if each == metric]
        return tuple(dict.fromkeys(names))

    def accumulation_steps_at(self, step: int) -> int:
        """Return the number of batches of each process that update number `step` takes."""
        growth = self.batch_growth
        if growth is None:
            return self.accumulate
        times: int = growth.factor ** sum(step > each for each in growth.steps)
        return self.accumulate * times

    def adaptive_softmax_problem(self) -> str | None:
        """Why a model with an adaptive softmax cannot be trained so; None if it can."""
        if self.r_drop is not None:
            return (
                f"training.r_drop = {self.r_drop} compares the probabilities of every piece, which model.adaptive "
                "avoids computing: remove it"
            )
        if not self.label_smoothing:
            return None
        return (
            f"training.label_smoothing = {self.label_smoothing} needs the probability of every piece, which "
            "model.adaptive avoids computing: it must be 0"
        )

    def batch_norm_problem(self, key: str = "model.normalization", num_processes: int = 1) -> str | None:
        """Why a model with batch norm, whose statistics are of one batch, cannot be trained so; None if it can.

        Args:
            key: the key by which the model has it.
            num_processes: number of processes of the training.
        """
        problem = f'{key} = "batch" computes its statistics over all rows of an update'
        if self.accumulate > 1:
            return f"{problem}, at once: training.accumulate must be 1, not {self.accumulate}"
        if self.batch_growth is not None:
            return f"{problem}, at once: remove training.batch_growth, by which an update takes several batches"
        if num_processes > 1:
            return f"{problem}: it needs one process, not {num_processes}"
        if self.r_drop is not None:
            return f"{problem}, once: with training.r_drop a batch is read twice"
        if self.layout == "flat":
            return f'{problem} and no others: training.layout = "flat" adds filler rows'
        if self.bpe_dropout is not None or self.unigram_alpha is not None:
            return f"{problem}, at once: with training.bpe_dropout or unigram_alpha a batch may be read in parts"
        return None
