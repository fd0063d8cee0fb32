"""The [decoding] and [evaluation] parts of a recipe, and the types that several parts share. [training]:
`training_config.py`.
"""

from typing import Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tfm.pipeline.external_metric import ExternalMetric, check_metric_names_unique

DecodingPrecision = Literal["fp32", "bf16", "int8"]
Device = Literal["auto", "cpu", "cuda", "mps"]
LengthNorm = Literal["none", "average", "wu"]
CandidateStrategy = Literal["search", "sample"]
Strategy = Literal["search", "sample", "mbr"]
MbrUtility = Literal["chrf", "bleu", "exact_match"]
NUM_INITIAL_REFERENCES = 8
"""The references that the first pruning of minimum Bayes risk looks at; each later one looks at twice as many."""
MBR_KEYS = ("mbr_candidates", "mbr_size", "mbr_utility", "mbr_pruning")
EvaluationMetric = Literal[
    "bleu", "bleu_paper", "chrf", "chrf++", "ter", "rouge1", "rouge2", "rougeL", "rougeLsum", "meteor", "cider_d",
    "exact_match", "wer", "cer", "per", "accuracy", "macro_f1", "entity_f1", "perplexity",
    "length", "compression", "novelty",
]  # fmt: skip
NON_EVALUATION_METRICS = (
    "loss",
    "objective",
    "token_accuracy",
    "word_perplexity",
    "bits_per_character",
)  # of test sets, without a key
EvalSplit = Literal["tests", "valid"]  # what is translated and scored: all test sets, or the validation split
BleuTokenizer = Literal["auto", "13a", "intl", "char", "zh", "ja-mecab", "ko-mecab", "flores200", "none"]
RougeTokenizer = Literal["unicode", "rouge-score"]
STRICT_CONFIG = ConfigDict(frozen=True, extra="forbid")
DEFAULT_SEED = 1
"""The seed of a run that names none."""


def as_tuple(value: object) -> object:
    """A list of a recipe as a tuple, which strict validation asks for; other values as they are."""
    return tuple(value) if isinstance(value, list) else value


class DecodingConfig(BaseModel):
    """The search for hypotheses. Used by `tfm translate`, `tfm generate` and by validation."""

    model_config = STRICT_CONFIG

    strategy: Strategy = Field(
        "search",
        description="search: for the most probable, with a beam; sample: at random; mbr: of several translations the "
        "one that is most like the others (minimum Bayes risk)",
    )
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
    mbr_candidates: CandidateStrategy = Field(
        "sample", description="mbr: samples of the model, or the best of its beam"
    )
    mbr_size: int = Field(32, ge=2, le=1024, description="mbr: number of translations of a sentence to choose from")
    mbr_utility: MbrUtility = Field("chrf", description="mbr: likeness of two translations, a segment score")
    mbr_pruning: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="mbr: leave translations out early that are the best with less than 1 - this confidence; none: "
        "compare all",
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
    max_ratio: float = Field(
        2.0, gt=0, description="pieces that a translation may have for each piece of its source, beside 20 more"
    )
    no_repeat_ngram: int | None = Field(None, ge=1, description="n-gram blocking: no n pieces in a row occur twice")
    forbidden: tuple[str, ...] = Field((), description="words and phrases that must not occur")
    forced: tuple[str, ...] = Field((), description="words and phrases that must occur; needs a beam of 2 or more")
    replace_unknown: bool = Field(
        False,
        description="an unknown word of a vocabulary of words is replaced by the word of the source that it is aligned "
        "to",
    )
    shortlist: str | None = Field(
        None,
        description="folder that `tfm shortlist` made: only pieces that it has for a source may come; none: all may",
    )
    batch_sentences: int = Field(64, ge=1, description="sentences decoded in parallel")
    precision: DecodingPrecision = Field(
        "fp32", description="of matrix products; bf16 and int8 are faster where the CPU has instructions for them"
    )

    @model_validator(mode="after")
    def _check_length_limits(self) -> "DecodingConfig":
        if self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"min_length ({self.min_length}) cannot exceed max_length ({self.max_length})")
        return self

    def n_best_problem(self) -> str | None:
        """Why a search cannot give so many hypotheses; None if it can."""
        if self.strategy == "mbr":
            return self._mbr_problem()
        if self.n_best > 1 and (setting := self._equal_samples_setting()) is not None:
            return f"decoding.n_best ({self.n_best}): with {setting} all samples are the same: it must be 1"
        if self.strategy == "search" and self.n_best > self.beam:
            return f"decoding.n_best ({self.n_best}) cannot exceed beam ({self.beam})"
        return None

    def _equal_samples_setting(self) -> str | None:
        """The setting by which each sample takes the most probable piece; None if samples differ."""
        if not self.has_samples:
            return None
        return "temperature 0" if self.temperature == 0 else "top_k 1" if self.top_k == 1 else None

    def _mbr_problem(self) -> str | None:
        if (setting := self._equal_samples_setting()) is not None:
            return f"decoding.mbr_size ({self.mbr_size}): with {setting} all samples are the same: there is no choice"
        if self.n_best > self.mbr_size:
            return f"decoding.n_best ({self.n_best}) cannot exceed mbr_size ({self.mbr_size})"
        if self.mbr_candidates == "search" and self.mbr_size > self.beam:
            return f"decoding.mbr_size ({self.mbr_size}) cannot exceed beam ({self.beam})"
        if self.mbr_pruning is not None and self.n_best > 1:
            return f"decoding.n_best ({self.n_best}): with mbr_pruning the best alone is known: it must be 1"
        return None

    def as_json(self) -> dict[str, Any]:
        """Return the settings as an artifact keeps them: those of minimum Bayes risk, the replacement of unknown words
        and the shortlist, where they have an effect.

        So translations that were made before there were such settings are up to date.
        """
        unused = set() if self.strategy == "mbr" else {*MBR_KEYS}
        unused |= {name for name in ("replace_unknown", "shortlist") if not getattr(self, name)}
        return self.model_dump(mode="json", exclude=unused)

    @property
    def has_samples(self) -> bool:
        """Whether hypotheses are drawn at random."""
        return self.strategy == "sample" or (self.strategy == "mbr" and self.mbr_candidates == "sample")

    @model_validator(mode="after")
    def _check_mbr(self) -> "DecodingConfig":
        for name in MBR_KEYS:
            value = getattr(self, name)
            if self.strategy != "mbr" and value != type(self).model_fields[name].default:
                raise ValueError(f'{name} ({value}) is for minimum Bayes risk: it needs strategy = "mbr"')
        return self

    @model_validator(mode="after")
    def _check_sampling(self) -> "DecodingConfig":
        for name in ("temperature", "top_k", "top_p"):
            value = getattr(self, name)
            if not self.has_samples and value != type(self).model_fields[name].default:
                raise ValueError(f'{name} ({value}) is for sampling: it needs strategy = "sample"')
        return self

    @model_validator(mode="after")
    def _check_phrases(self) -> "DecodingConfig":
        if not all(phrase.strip() for phrase in (*self.forbidden, *self.forced)):
            raise ValueError("forbidden and forced are words or phrases; one of them is empty")
        if self.forced and (self.strategy != "search" or self.beam == 1):
            raise ValueError('forced words need beam search: strategy = "search" and beam > 1')
        if self.forced and self.shortlist is not None:
            raise ValueError("shortlist may lack the pieces of forced words: remove one of the two")
        return self


class EvaluationConfig(BaseModel):
    """The scores to compute. Used by `tfm evaluate`."""

    model_config = STRICT_CONFIG

    metrics: tuple[EvaluationMetric, ...] = Field(
        (
            *("bleu", "chrf", "chrf++", "ter", "rouge1", "rouge2", "rougeL", "rougeLsum"),
            *("exact_match", "perplexity"),
        ),
        description="scores of a test set; those that do not apply to its texts are left out, with the reason",
    )
    lowercase: bool = Field(
        False, description="of BLEU, chrF, exact match and error rates; TER and ROUGE ignore case anyway, labels never"
    )
    bleu_tokenize: BleuTokenizer = Field(
        "auto", description="auto: by the scripts of the references; also for the BLEU of validation"
    )
    rouge_tokenize: RougeTokenizer = Field(
        "unicode", description="unicode: words of any script; rouge-score: runs of a-z and 0-9, as in that package"
    )
    rouge_stemmer: bool = Field(
        False, description="ROUGE compares stems of English words of four letters or more (Porter), as rouge-score can"
    )
    wordnet: str | None = Field(
        None, description="folder of WordNet's database files, for METEOR's synonyms; none: words and stems alone"
    )
    words: Literal["spaces", "line"] = Field(
        "spaces",
        description="WER: words are between spaces; line: a line is one word, spelled by what is between spaces",
    )
    labels: Literal["auto", "line", "word"] = Field(
        "auto", description="accuracy, macro F1: a label is a line or a word of it; auto: a line for classification"
    )
    entities: Literal["conlleval", "IOB2", "IOE2", "IOBES", "BILOU"] = Field(
        "conlleval", description="entity F1: how tags are read; a scheme: strictly by it, as seqeval's mode strict"
    )
    samples: int = Field(20, ge=0, description="worst and random samples shown in the report")
    stride: int | None = Field(
        None,
        ge=1,
        description="language models: distance in tokens between overlapping windows of a long text; none: no overlap",
    )
    tests: Literal["always", "final"] = Field(
        "always",
        description="final: a run scores its validation split, and only `tfm evaluate --final` scores the test sets",
    )
    external: tuple[ExternalMetric, ...] = Field((), description="further metrics, each computed by a command")

    @model_validator(mode="after")
    def _check_external_metric_names(self) -> "EvaluationConfig":
        check_metric_names_unique(self.external, (*get_args(EvaluationMetric), *NON_EVALUATION_METRICS))
        return self


class GuidedAlignmentConfig(BaseModel):
    """One head of cross-attention is trained to align, beside the translation (Garg et al. 2019)."""

    model_config = STRICT_CONFIG

    head: ClassVar[int] = 1
    """The head of the layer, from 1."""

    links: str = Field(
        min_length=1,
        description="file of links between words in Pharaoh's form, a line for each training pair of the dataset: "
        "`tfm align MODEL DATASET` writes one",
    )
    weight: float = Field(0.05, gt=0, allow_inf_nan=False, description="factor of the loss of the alignment")
    layer: int | None = Field(None, ge=1, description="layer of the decoder, from 1; none: the last but one")
    row: Literal["predicts", "reads"] = Field(
        "reads", description="which row of the decoder asks for a word: the one that predicts it, or that has read it"
    )

    @property
    def is_shifted(self) -> bool:
        """Whether the row that has read a piece asks for it."""
        return self.row == "reads"

    def choose_layer(self, num_layers: int) -> int:
        """Return the layer, from 1, of a decoder of this many."""
        return max(1, num_layers - 1) if self.layer is None else self.layer


def stride_problem(stride: int | None, block: int | None, max_length: int) -> str | None:
    """Return why a language model's windows cannot begin `stride` tokens apart; None if they can.

    Args:
        stride: distance of windows, in tokens; None for the default.
        block: model.block; None for a model of single lines.
        max_length: model.max_length.
    """
    window, key = (max_length, "max_length") if block is None else (block, "block")
    if stride is None or stride <= window:
        return None
    return f"evaluation.stride ({stride}) exceeds the model's window (model.{key} = {window}): tokens would be left out"
