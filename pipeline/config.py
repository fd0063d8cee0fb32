"""The [training], [decoding] and [evaluation] parts of a recipe."""

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tfm.pipeline.external_metric import ExternalMetric, check_names

Optimizer = Literal["adam", "adamw", "sgd", "adagrad"]
Schedule = Literal["constant", "noam", "inverse_sqrt", "cosine", "linear", "step", "warmup_stable_decay", "plateau"]
Metric = Literal["loss", "perplexity", "accuracy", "bleu"]
Precision = Literal["auto", "fp32", "bf16"]
DecodingPrecision = Literal["fp32", "bf16", "int8"]
Device = Literal["auto", "cpu", "cuda", "mps"]
LengthNorm = Literal["none", "average", "wu"]
Strategy = Literal["search", "sample"]
EvaluationMetric = Literal[
    "bleu", "chrf", "chrf++", "ter", "rouge1", "rouge2", "rougeL", "rougeLsum", "meteor", "cider_d", "exact_match",
    "accuracy", "macro_f1", "perplexity",
]  # fmt: skip
OTHER_FIGURES = ("loss", "token_accuracy", "word_perplexity", "bits_per_character")  # of test sets, without a key
Scored = Literal["tests", "valid"]  # what is translated and scored: all test sets, or the validation split
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
    weight_decay: float = Field(0.0, ge=0, description="adamw: decoupled weight decay; the others: L2, as in torch")

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
    decay_steps: int = Field(
        1000, ge=1, description="step: interval in steps; warmup_stable_decay: length of the decay"
    )
    factor: float = Field(0.5, gt=0, lt=1, description="step, plateau: factor of each reduction")
    patience: int = Field(2, ge=0, description="plateau: validations without improvement before a reduction")


class ValidationConfig(BaseModel):
    """When and how the model is validated during training."""

    model_config = STRICT

    every_steps: int | None = Field(None, ge=1)
    every_epochs: int | None = Field(None, ge=1, description="default if neither is given: 1")
    bleu: bool = Field(True, description="translate the validation source, as `tfm translate` does, and score it")
    beam: int = Field(1, ge=1, description="beam width of that translation")

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
    average: Literal["none", "last", "best"] = Field(
        "none", description="publish the mean of the last or best kept checkpoints"
    )


class LoraConfig(BaseModel):
    """Low-rank adapters: beside some products, which stay as they are, others of low rank are trained (Hu et al. 2022).

    The product becomes W x + alpha / rank * B A x.
    """

    model_config = STRICT

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

    @field_validator("products", mode="before")
    @classmethod
    def _names(cls, given: object) -> object:
        """A list of a recipe, which TrainingConfig's own validator has made Python's, as strict validation wants it."""
        return tuple(given) if isinstance(given, list) else given

    @property
    def scale(self) -> float:
        """alpha, or what stands for it."""
        return float(self.rank) if self.alpha is None else self.alpha


class TrainingConfig(BaseModel):
    """How the model is trained. Used by `tfm train`."""

    model_config = STRICT

    max_steps: int | None = Field(None, ge=1)
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
    label_smoothing: float = Field(0.1, ge=0, lt=1)
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
    precision: Precision = Field("auto", description="of matrix products; auto: the faster one on this machine")
    layout: Literal["padded", "flat"] = Field(
        "padded", description="flat: concatenated sentences with filler, one shape for all batches; for GPUs"
    )
    init_from: str | None = Field(None, description="a model/ to start from; if it has another task: its encoder")
    lora: LoraConfig | None = Field(None, description="train low-rank adapters alone; needs init_from")
    device: Device = Field("auto", description="auto: cuda if available, else cpu; mps only if given")
    threads: Annotated[int, Field(ge=1, le=1024)] | Literal["auto"] = Field(
        "auto", description="of each process; auto: OMP_NUM_THREADS, or the number of idle processors"
    )
    log_every: int = Field(50, ge=1, description="steps between lines of metrics.jsonl")
    save_every: int | None = Field(None, ge=1, description="steps between checkpoints; also at every validation")
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

    @model_validator(mode="after")
    def _adapters_have_a_model(self) -> "TrainingConfig":
        if self.lora is not None and self.init_from is None:
            raise ValueError("training.lora adapts a model that was trained: give training.init_from (--init-from)")
        return self

    def no_adaptive(self) -> str | None:
        """Why a model with an adaptive softmax cannot be trained so; None where it can."""
        if not self.label_smoothing:
            return None
        return (
            f"training.label_smoothing = {self.label_smoothing} needs the probability of every piece, which "
            "model.adaptive avoids computing: it must be 0"
        )

    def no_batch_norm(self, num_processes: int = 1) -> str | None:
        """Why a model with batch norm, whose statistics are of one batch, cannot be trained so; None where it can."""
        why = 'model.normalization = "batch" computes its statistics over all rows of an update'
        if self.accumulate > 1:
            return f"{why}, at once: training.accumulate must be 1, not {self.accumulate}"
        if num_processes > 1:
            return f"{why}: it needs one process, not {num_processes}"
        if self.layout == "flat":
            return f'{why} and no others: training.layout = "flat" adds filler rows'
        if self.bpe_dropout is not None or self.unigram_alpha is not None:
            return f"{why}, at once: with training.bpe_dropout or unigram_alpha a batch may be read in parts"
        return None


class DecodingConfig(BaseModel):
    """How hypotheses are found. Used by `tfm translate`, `tfm generate` and by validation."""

    model_config = STRICT

    strategy: Strategy = Field("search", description="search: for the most probable, with a beam; sample: at random")
    beam: int = Field(5, ge=1, description="search: beam width W; 1 is greedy search")
    temperature: float = Field(
        1.0, ge=0, description="sample: from p^(1 / temperature); 0: always the most probable piece"
    )
    top_k: int | None = Field(None, ge=1, description="sample: only from the k most probable pieces")
    top_p: float | None = Field(
        None, gt=0, le=1, description="sample: only from the fewest pieces whose probabilities sum to p"
    )
    seed: int = Field(
        1, ge=0, lt=2**32, description="sample: seed of every draw; the recipe's own seed has no effect on it"
    )
    length_norm: LengthNorm = Field("average", description="average: log p / T^alpha; wu: Wu et al. 2016, eq. 14")
    alpha: float = Field(1.0, ge=0, description="strength of the length normalisation")
    n_best: int = Field(1, ge=1, description="number of hypotheses of a sentence, of labels of a text, or of samples")
    min_length: int = Field(0, ge=0, description="minimum number of pieces before the end token")
    max_length: int | None = Field(
        None,
        ge=1,
        description="maximum number of pieces; none: max_ratio times the source + 20, and 256 for generated text",
    )
    max_ratio: float = Field(2.0, gt=0)
    no_repeat_ngram: int | None = Field(None, ge=1, description="n-gram blocking: no n pieces in a row occur twice")
    forbidden: tuple[str, ...] = Field((), description="words and phrases that must not occur")
    forced: tuple[str, ...] = Field((), description="words and phrases that must occur; needs a beam of 2 or more")
    batch_sentences: int = Field(64, ge=1, description="sentences decoded in parallel")
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
                raise ValueError(f'{name} ({value}) is for sampling: it needs strategy = "sample"')
        return self

    @model_validator(mode="after")
    def _words_fit(self) -> "DecodingConfig":
        if not all(phrase.strip() for phrase in (*self.forbidden, *self.forced)):
            raise ValueError("forbidden and forced are words or phrases; one of them is empty")
        if self.forced and (self.strategy != "search" or self.beam == 1):
            raise ValueError('forced words need beam search: strategy = "search" and beam > 1')
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
        "auto", description="auto: by the scripts of the references; also for the BLEU of validation"
    )
    rouge_tokenize: RougeTokenizer = Field(
        "unicode", description="unicode: words of any script; rouge-score: runs of a-z and 0-9, as in that package"
    )
    wordnet: str | None = Field(
        None, description="folder of WordNet's database files, for METEOR's synonyms; none: words and stems alone"
    )
    labels: Literal["auto", "line", "word"] = Field(
        "auto", description="accuracy, macro F1: a label is a line or a word of it; auto: a line for classification"
    )
    samples: int = Field(20, ge=0, description="worst and random samples shown in the report")
    stride: int | None = Field(
        None,
        ge=1,
        description="language models: how many tokens after the one before a window of a long text begins, the rest of "
        "it being context; none: windows side by side, without context",
    )
    tests: Literal["always", "final"] = Field(
        "always",
        description="final: a run scores its validation split, and only `tfm evaluate --final` scores the test sets",
    )
    external: tuple[ExternalMetric, ...] = Field((), description="further metrics, each computed by a command")

    @model_validator(mode="after")
    def _names_differ(self) -> "EvaluationConfig":
        check_names(self.external, (*get_args(EvaluationMetric), *OTHER_FIGURES))
        return self


def too_far_apart(stride: int | None, block: int | None, max_length: int) -> str | None:
    """Why a language model's windows cannot begin `stride` tokens apart; None where they can."""
    window, key = (max_length, "max_length") if block is None else (block, "block")
    if stride is None or stride <= window:
        return None
    return f"evaluation.stride ({stride}) exceeds the model's window (model.{key} = {window}): tokens would be left out"
