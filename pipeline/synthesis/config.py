"""The [synthesis] part of a recipe: text that a model translates, to train others on. Used by `tfm synthesize`."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from tfm.data.corpus_config import CorpusConfig
from tfm.pipeline.config import STRICT_CONFIG, DecodingConfig, MbrUtility, as_tuple

DEFAULT_HIDDEN_WORD = "␢"
"""The word that stands for a hidden one, if a recipe does not say another: a sign for a blank, which no text has."""


class NoiseConfig(BaseModel):
    """Noise in the texts that a model writes (Edunov et al. 2018, section 3): words hidden, left out and moved."""

    model_config = STRICT_CONFIG

    delete: float = Field(0.1, ge=0, lt=1, description="probability that a word is left out")
    fill: float = Field(0.1, ge=0, lt=1, description="probability that a filler replaces a word")
    window: int = Field(3, ge=0, le=100, description="how many places a word may move; 0: none")
    filler: str = Field(DEFAULT_HIDDEN_WORD, description="the word in place of one that is hidden")
    seed: int = Field(1, ge=0, lt=2**32, description="seed of every draw")

    @model_validator(mode="after")
    def _check_values(self) -> "NoiseConfig":
        if len(self.filler.split()) != 1 or self.filler != self.filler.strip():
            raise ValueError(f"filler ({self.filler!r}) must be one word, without white space")
        if not self.fill and self.filler != DEFAULT_HIDDEN_WORD:
            raise ValueError("filler has no effect with fill = 0: remove it")
        if not (self.delete or self.fill or self.window):
            raise ValueError("noise that hides, leaves out and moves no word is none: remove it")
        return self


class SynthesisConfig(BaseModel):
    """Text made by a trained model, or by several as an ensemble: pairs with log-probabilities."""

    model_config = STRICT_CONFIG

    text: CorpusConfig = Field(
        description="the text that is translated: a corpus without a source, or pairs, whose targets are references"
    )
    models: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(
        (), description="folders of further models, which form an ensemble with the recipe's"
    )
    decoding: DecodingConfig = Field(
        DecodingConfig(), description="the search for translations; that of [decoding] has no part in it"
    )
    utility: MbrUtility = Field(
        "bleu", description="likeness to the reference, a segment score: of the n best translations the highest is kept"
    )
    noise: NoiseConfig | None = Field(None, description="noise in what the model writes")
    min_score: float | None = Field(
        None, le=0, description="drop pairs whose log-probability a token is below this, in nats"
    )
    percentile: float | None = Field(
        None, gt=0, lt=100, description="drop this share of the pairs, in percent, those with the worst scores"
    )
    tests: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] = Field(
        (), description="files whose lines are not translated, beside the test sets that the models know"
    )
    to: str | None = Field(None, description="target language (deu), for multilingual models")
    source_language: str | None = Field(None, description="language of the text (eng), for models that need it")

    @model_validator(mode="after")
    def _check_text(self) -> "SynthesisConfig":
        if self.text.has_images:
            raise ValueError('text: images are no text: set source = "none", and target to the file or column of texts')
        if self.text.weight != 1 or self.text.epochs is not None:
            raise ValueError("text: `weight` and `epochs` are for training corpora: remove them")
        if self.text.synthetic is not None:
            raise ValueError(
                'text: `synthetic` has two sides; name the one that is translated, by source = "none" and target = FILE'
            )
        return self

    @model_validator(mode="after")
    def _check_references(self) -> "SynthesisConfig":
        if self.text.has_source and self.decoding.n_best == 1:
            raise ValueError(
                "text: its source is translated and its target is the reference, by which decoding.n_best = 1 leaves "
                'nothing to choose: set n_best to 2 or more, or name the text alone, by source = "none" and target'
            )
        if not self.text.has_source and "utility" in self.model_fields_set:
            raise ValueError("utility has no effect on a text without references (text.source and text.target)")
        return self

    @model_validator(mode="after")
    def _check_settings(self) -> "SynthesisConfig":
        if self.min_score is not None and self.percentile is not None:
            raise ValueError("give either `min_score` or `percentile`")
        if "batch_sentences" in self.decoding.model_fields_set:
            raise ValueError("decoding.batch_sentences is fixed here, so that no text depends on it: remove it")
        if (reason := self.decoding.n_best_problem()) is not None:
            raise ValueError(reason)
        return self

    def as_json(self) -> dict[str, object]:
        """Return the settings as an artifact keeps them; what is known by its content is left out."""
        unused = set() if self.text.has_source else {"utility"}
        settings = self.model_dump(
            mode="json", exclude={"text", "models", "tests", "decoding"} | unused, exclude_none=True
        )
        decoding = {name: value for name, value in self.decoding.as_json().items() if name != "batch_sentences"}
        return {**settings, "decoding": decoding}
