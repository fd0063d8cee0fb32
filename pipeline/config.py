"""The [training], [decoding] and [evaluation] parts of a recipe."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Optimizer = Literal["adam", "adamw", "sgd", "adagrad"]
Schedule = Literal["constant", "noam", "inverse_sqrt", "cosine", "linear", "step", "warmup_stable_decay", "plateau"]
Metric = Literal["loss", "perplexity", "accuracy", "bleu"]
Precision = Literal["auto", "fp32", "bf16"]
DecodingPrecision = Literal["fp32", "bf16", "int8"]
Device = Literal["auto", "cpu", "cuda", "mps"]
LengthNorm = Literal["none", "average", "wu"]
Strategy = Literal["search", "sample"]
EvaluationMetric = Literal[
    "bleu", "chrf", "chrf++", "ter", "rouge1", "rouge2", "rougeL", "rougeLsum", "exact_match", "accuracy", "macro_f1",
    "perplexity",
]  # fmt: skip
BleuTokenizer = Literal["auto", "13a", "intl", "char", "zh", "ja-mecab", "ko-mecab", "flores200", "none"]
RougeTokenizer = Literal["unicode", "rouge-score"]
Beta = Annotated[float, Field(ge=0, lt=1)]
DEFAULT_EPOCHS = 10  # where a recipe says nothing of when to stop
STRICT = ConfigDict(frozen=True, extra="forbid")


class OptimizerConfig(BaseModel):
    """Which optimiser, and its constants."""

    model_config = STRICT

    name: Optimizer = "adam"
    betas: tuple[Beta, Beta] = (0.9, 0.98)
    eps: float = Field(1e-9, gt=0)
    momentum: float = Field(0.9, ge=0, lt=1, description="sgd only")
    weight_decay: float = Field(0.0, ge=0, description="adamw: decoupled; the others: L2 as torch has it")

    @field_validator("betas", mode="before")
    @classmethod
    def _pair(cls, given: object) -> object:
        """A list of a recipe, which TrainingConfig's own validator has made Python's, as strict validation wants it."""
        return tuple(given) if isinstance(given, list) else given


class ScheduleConfig(BaseModel):
    """Learning rate as a function of the step."""

    model_config = STRICT

    name: Schedule = "inverse_sqrt"
    peak: float = Field(5e-4, gt=0, description="largest learning rate (noam: the factor before the paper's formula)")
    warmup_steps: int = Field(4000, ge=0)
    final: float = Field(0.0, ge=0, description="learning rate at the end (cosine, linear, warmup_stable_decay)")
    decay_steps: int = Field(1000, ge=1, description="step: every so many; warmup_stable_decay: the last so many")
    factor: float = Field(0.5, gt=0, lt=1, description="step, plateau: multiply by this")
    patience: int = Field(2, ge=0, description="plateau: validations without a better one before a cut")


class ValidationConfig(BaseModel):
    """When and how the model is validated during training."""

    model_config = STRICT

    every_steps: int | None = Field(None, ge=1)
    every_epochs: int | None = Field(None, ge=1, description="default, where neither is given: 1")
    bleu: bool = Field(True, description="translate the validation source, as `tfm translate` does, and score it")
    beam: int = Field(1, ge=1, description="beam of that translation")

    @model_validator(mode="after")
    def _one_clock(self) -> "ValidationConfig":
        if self.every_steps is not None and self.every_epochs is not None:
            raise ValueError("give every_steps or every_epochs, not both")
        return self


class EarlyStoppingConfig(BaseModel):
    """Stop when `metric` has not become better for `patience` validations."""

    model_config = STRICT

    metric: Metric = "loss"
    patience: int | None = Field(None, ge=1, description="none: never stop early")


class KeepConfig(BaseModel):
    """Which checkpoints stay, and which of them become the model."""

    model_config = STRICT

    last: int = Field(1, ge=1)
    best: int = Field(1, ge=1, description="by early_stopping.metric")
    average: Literal["none", "last", "best"] = Field("none", description="publish the mean of the kept last or best")


class TrainingConfig(BaseModel):
    """How the model is trained. Used by `tfm train`."""

    model_config = STRICT

    max_steps: int | None = Field(None, ge=1)
    max_epochs: int | None = Field(
        None, ge=1, le=100_000, description="10 where neither is given; where both are, the first reached ends"
    )
    batch_tokens: Annotated[int, Field(ge=16, le=2**40)] | Literal["auto"] | None = Field(
        None, description="instead of the dataset's; auto: as many as a GPU's memory holds, found at the first start"
    )
    accumulate: int = Field(1, ge=1, description="batches an update")
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    optimizer: OptimizerConfig = OptimizerConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    clip_norm: float | None = Field(1.0, gt=0, description="largest gradient norm; none: no clipping")
    l1: float = Field(0.0, ge=0, description="adds l1 * sum |w| to the loss an update")
    l2: float = Field(0.0, ge=0, description="adds l2 / 2 * sum w^2 to the loss an update")
    ema: float | None = Field(None, gt=0, lt=1, description="decay of an exponential moving average of the weights")
    precision: Precision = Field("auto", description="of matrix products; auto: what this machine is faster at")
    layout: Literal["padded", "flat"] = Field(
        "padded", description="flat: sentences end to end and filler up to one shape of all batches; for GPUs"
    )
    init_from: str | None = Field(None, description="a model/ to start from; of another task: its encoder")
    device: Device = Field("auto", description="auto: cuda where there is one, else cpu; mps only when asked for")
    threads: Annotated[int, Field(ge=1, le=1024)] | Literal["auto"] = Field(
        "auto", description="of each process; auto: OMP_NUM_THREADS, or as many as processors that nobody else uses"
    )
    log_every: int = Field(50, ge=1, description="steps between lines of metrics.jsonl")
    save_every: int | None = Field(None, ge=1, description="steps between checkpoints; always also at a validation")
    validation: ValidationConfig = ValidationConfig()
    early_stopping: EarlyStoppingConfig = EarlyStoppingConfig()
    keep: KeepConfig = KeepConfig()
    tensorboard: bool = False

    @model_validator(mode="before")
    @classmethod
    def _ends(cls, given: object) -> object:
        if isinstance(given, dict) and given.get("max_steps") is None and given.get("max_epochs") is None:
            return {**given, "max_epochs": DEFAULT_EPOCHS}
        return given

    @model_validator(mode="after")
    def _metric_is_measured(self) -> "TrainingConfig":
        if self.early_stopping.metric == "bleu" and not self.validation.bleu:
            raise ValueError('early_stopping.metric = "bleu" needs validation.bleu = true')
        return self

    def no_adaptive(self) -> str | None:
        """Why a model with an adaptive softmax cannot be trained so; None where it can."""
        if not self.label_smoothing:
            return None
        return (
            f"training.label_smoothing = {self.label_smoothing} is about the probability of every piece, and "
            "model.adaptive saves computing them: it must be 0"
        )

    def no_batch_norm(self, num_processes: int = 1) -> str | None:
        """Why a model with batch norm, whose statistics are of one batch, cannot be trained so; None where it can."""
        why = 'model.normalization = "batch" takes its statistics from all rows of an update'
        if self.accumulate > 1:
            return f"{why}, at once: training.accumulate must be 1, not {self.accumulate}"
        if num_processes > 1:
            return f"{why}: it is trained by one process, not by {num_processes}"
        if self.layout == "flat":
            return f'{why} and no others: training.layout = "flat" adds filler to them'
        return None


class DecodingConfig(BaseModel):
    """How hypotheses are found. Used by `tfm translate`, `tfm generate` and by validation."""

    model_config = STRICT

    strategy: Strategy = Field("search", description="search: for the likeliest, by a beam; sample: drawn by chance")
    beam: int = Field(5, ge=1, description="search: beam width W; 1 is greedy search")
    temperature: float = Field(1.0, ge=0, description="sample: from p^(1 / temperature); 0: always the likeliest piece")
    top_k: int | None = Field(None, ge=1, description="sample: from the so many likeliest pieces alone")
    top_p: float | None = Field(
        None, gt=0, le=1, description="sample: from the fewest pieces alone that together are so probable"
    )
    seed: int = Field(1, ge=0, lt=2**32, description="sample: of every draw; the recipe's own seed has no part in it")
    length_norm: LengthNorm = Field("average", description="average: log p / T^alpha; wu: Wu et al. 2016, eq. 14")
    alpha: float = Field(1.0, ge=0, description="strength of the length normalisation")
    n_best: int = Field(1, ge=1, description="hypotheses a sentence, labels of a text; sample: so many are drawn")
    min_length: int = Field(0, ge=0, description="pieces before the end token may come")
    max_length: int | None = Field(
        None, ge=1, description="pieces at most; none: max_ratio times the source + 20, and 256 of generated text"
    )
    max_ratio: float = Field(2.0, gt=0)
    no_repeat_ngram: int | None = Field(None, ge=1, description="no so many pieces in a row come up twice")
    forbidden: tuple[str, ...] = Field((), description="words and phrases that may not come up")
    forced: tuple[str, ...] = Field((), description="words and phrases that must come up; needs a beam of 2 or more")
    batch_sentences: int = Field(64, ge=1, description="sentences that are searched for side by side")
    precision: DecodingPrecision = Field(
        "fp32", description="of matrix products; bf16 and int8 are faster where the CPU has instructions for them"
    )

    @model_validator(mode="after")
    def _limits_fit(self) -> "DecodingConfig":
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length ({self.min_length}) cannot exceed max_length ({self.max_length})")
        return self

    def no_n_best(self) -> str | None:
        """Why a search cannot give so many hypotheses; None where it can."""
        if self.strategy == "search" and self.n_best > self.beam:
            return f"decoding.n_best ({self.n_best}) cannot exceed beam ({self.beam})"
        return None

    @model_validator(mode="after")
    def _draws_fit(self) -> "DecodingConfig":
        for name in ("temperature", "top_k", "top_p"):
            value = getattr(self, name)
            if self.strategy != "sample" and value != type(self).model_fields[name].default:
                raise ValueError(f'{name} ({value}) is for drawing: it needs strategy = "sample"')
        return self

    @model_validator(mode="after")
    def _words_fit(self) -> "DecodingConfig":
        if not all(phrase.strip() for phrase in (*self.forbidden, *self.forced)):
            raise ValueError("forbidden and forced are words or phrases; one of them is empty")
        if self.forced and (self.strategy != "search" or self.beam == 1):
            raise ValueError('forced words are searched for by a beam: they need strategy = "search" and beam > 1')
        return self


class EvaluationConfig(BaseModel):
    """Which scores are computed. Used by `tfm evaluate`."""

    model_config = STRICT

    metrics: tuple[EvaluationMetric, ...] = (
        "bleu",
        "chrf",
        "chrf++",
        "ter",
        "rouge1",
        "rouge2",
        "rougeL",
        "rougeLsum",
        "exact_match",
        "perplexity",
    )
    lowercase: bool = Field(False, description="of BLEU, chrF and exact match; TER and ROUGE ignore case anyway")
    bleu_tokenize: BleuTokenizer = Field(
        "auto", description="auto: by the scripts of the references; also of the BLEU of validation"
    )
    rouge_tokenize: RougeTokenizer = Field(
        "unicode", description="unicode: words of any script; rouge-score: runs of a-z and 0-9, as that package has it"
    )
    labels: Literal["auto", "line", "word"] = Field(
        "auto", description="accuracy, macro F1: a label is a line or a word of it; auto: a line for classification"
    )
    samples: int = Field(20, ge=0, description="worst and random samples shown in the report")
