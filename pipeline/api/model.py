"""A trained model in Python: `tfm.load`, and its methods, each by the path of the command that does the same.

Legend: n texts or words · E width of an embedding.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from tfm.pipeline.api import arguments
from tfm.pipeline.api.arguments import Side
from tfm.pipeline.api.attention import Attention, record_attention
from tfm.pipeline.api.decoding import continue_prompts, decode_texts, make_text_generator
from tfm.pipeline.api.messages import name_parameters_in_errors
from tfm.pipeline.api.methods import check_has_method
from tfm.pipeline.api.model_cache import ModelKey, find_or_reload_model, register_model
from tfm.pipeline.api.settings import DecodingOptions, check_single_hypothesis, decoding_config
from tfm.pipeline.api.text_scores import TextScores, score_texts
from tfm.pipeline.attention_page.forward_passes import source_tokenizer_of
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import DataError
from tfm.pipeline.inference import hidden_states
from tfm.pipeline.inference.filling import FILL_UNITS, Candidate, FillUnit, fill_masks
from tfm.pipeline.inference.generation.generator import GeneratedText
from tfm.pipeline.inference.neighbours import Neighbour, WordVectors
from tfm.pipeline.inference.source_problems import warn_of_unknown_sources
from tfm.pipeline.inference.translation_records import Translation
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.forks import exclude_other_threads, prepare_for_forks
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.words.neighbour_probability import NeighbourProbability, neighbour_probability


class Model:
    """A trained model; its task decides its methods, and the others raise a DataError of one line.

    The model may be used from several threads, which wait for one another, and in other processes: a forked process has
    it too, and one that it is sent to reads it from its folder. Neither the number of torch's threads nor its random
    numbers change; a process forked from this one has one thread. On a CPU, 8 sentences or more for each thread are
    decoded in as many forked processes, as by `tfm translate`.
    """

    def __init__(self, loaded: LoadedModel, reporter: Reporter) -> None:
        prepare_for_forks()
        self._loaded, self._reporter, self._address = loaded, reporter, register_model(loaded)
        self._words = cache(partial(WordVectors.from_model, loaded))

    @property
    def folder(self) -> Path:
        """The folder of the model."""
        return self._loaded.folder

    @property
    def task(self) -> str:
        """The task that the model was trained for: translation, language_model, classification, ..."""
        return self._loaded.config.task

    @property
    def config(self) -> dict[str, Any]:
        """The [model] part of its recipe, with every default."""
        return self._loaded.config.model_dump(mode="json")

    @property
    def languages(self) -> list[str]:
        """The languages that a model of several translates into."""
        return list(self._loaded.source_tokenizer.languages)

    def __reduce__(self) -> tuple[Any, ...]:
        """Send the model to another process by its folder. Raises DataError for a model that is in no folder."""
        if self._address is None:
            raise DataError("a model that was not loaded from a folder cannot be sent to another process")
        return _unpickle_model, (self._address, self.folder, self._reporter)

    def __repr__(self) -> str:
        size = sum(each.numel() for each in self._loaded.model.parameters())
        return f"<tfm.Model {self.folder}: {self.task}, {self._loaded.config.architecture}, {size:,} parameters>"

    def translate(
        self,
        texts: str | Iterable[str],
        *,
        beam: int = 5,
        to: str | None = None,
        source_language: str | None = None,
        **decoding: Unpack[DecodingOptions],
    ) -> list[str]:
        """Translate each text as `tfm translate` does; a single text is a list of one.

        A model of images reads names of image files, and its translations are captions. An empty text has an empty
        translation; one longer than the model reads is cut, with a warning.

        Args:
            texts: the texts, or one.
            beam: hypotheses kept at each step.
            to: the language, of a model of several: the model's own code (deu_Latn), or that of ISO 639-3 (deu).
            source_language: the language of the texts, for a model that is told it; coded like `to`.
            **decoding: the other settings of `[decoding]`, by name.

        Returns:
            One translation for each text.

        Raises:
            RecipeError: settings do not fit.
        """
        check_single_hypothesis(decoding, "translations")
        translations = self.translations(texts, beam=beam, to=to, source_language=source_language, **decoding)
        return [each[0].text for each in translations]

    @name_parameters_in_errors
    def translations(
        self,
        texts: str | Iterable[str],
        *,
        beam: int = 5,
        to: str | None = None,
        source_language: str | None = None,
        prefixes: Sequence[str] | None = None,
        forced_in_each: Sequence[Sequence[str]] | None = None,
        **decoding: Unpack[DecodingOptions],
    ) -> list[list[Translation]]:
        """Translate each text, with scores and log-probabilities.

        Args:
            texts: the texts, or one.
            beam: hypotheses kept at each step.
            to: the language, of a model of several.
            source_language: the language of the texts, for a model that is told it.
            prefixes: for each text, the beginning of its translations.
            forced_in_each: for each text, words and phrases that its translations contain.
            **decoding: the other settings of `[decoding]`, by name.

        Returns:
            The `n_best` translations of each text, the best first.
        """
        check_has_method(self._loaded, "translate")
        config = decoding_config(beam, decoding)
        loaded = self._loaded.for_languages(*arguments.check_languages(to, source_language))
        return decode_texts(loaded, texts, config, self._reporter, prefixes=prefixes, forced_in_each=forced_in_each)

    @name_parameters_in_errors
    def classify(self, texts: str | Iterable[str]) -> list[str]:
        """The likeliest label of each text, or image file; "" for an empty text."""
        check_has_method(self._loaded, "classify")
        return [
            translations[0].text for translations in decode_texts(self._loaded, texts, DecodingConfig(), self._reporter)
        ]

    @name_parameters_in_errors
    def probabilities(self, texts: str | Iterable[str]) -> list[dict[str, float]]:
        """The probability of each label of a classifier, for each text or image file, the likeliest first; none for "".

        The remainder to 1 is the probability of control tokens, which are no labels.
        """
        check_has_method(self._loaded, "classify")
        config = DecodingConfig(n_best=self._loaded.target_tokenizer.vocab_size)
        labels_of_texts = decode_texts(self._loaded, texts, config, self._reporter)
        return [{each.text: math.exp(each.log_prob) for each in labels if each.text} for labels in labels_of_texts]

    @name_parameters_in_errors
    def tag(self, texts: str | Iterable[str]) -> list[list[str]]:
        """Find the likeliest tag of each word of each text; words are separated by spaces."""
        check_has_method(self._loaded, "tag")
        return [
            translations[0].text.split()
            for translations in decode_texts(self._loaded, texts, DecodingConfig(), self._reporter)
        ]

    @name_parameters_in_errors
    def fill(self, text: str, top: int = 5, *, unit: FillUnit = "piece") -> list[list[Candidate]]:
        """Find the likeliest texts in place of each `[MASK]` of a text, by a masked language model.

        Args:
            text: the text.
            top: the most candidates of each mask.
            unit: "piece": of each mask, while all are hidden; "word": masks with nothing between them are as many
                pieces of one word.

        Returns:
            The candidates of each mask, or word, with their probabilities, the likeliest first.

        Raises:
            DataError: the text has no mask, or is too long.
        """
        check_has_method(self._loaded, "fill")
        count, fill_unit = arguments.check_whole_number(top, "top", 1), arguments.check_choice(unit, FILL_UNITS, "unit")
        with exclude_other_threads():
            return fill_masks(self._loaded, arguments.check_single_text(text, "text"), count, fill_unit)  # type: ignore[arg-type]

    @overload
    def generate(  # type: ignore[overload-overlap]
        self,
        prompts: str = "",
        *,
        beam: int | None = None,
        through_ends: bool | None = None,
        **decoding: Unpack[DecodingOptions],
    ) -> str: ...

    @overload
    def generate(
        self,
        prompts: Iterable[str],
        *,
        beam: int | None = None,
        through_ends: bool | None = None,
        **decoding: Unpack[DecodingOptions],
    ) -> list[str]: ...

    @name_parameters_in_errors
    def generate(
        self,
        prompts: str | Iterable[str] = "",
        *,
        beam: int | None = None,
        through_ends: bool | None = None,
        **decoding: Unpack[DecodingOptions],
    ) -> str | list[str]:
        """Generate a text after each prompt with a language model, as `tfm generate` does.

        The text is drawn, by default with seed 1; with a beam the most probable text is searched for. The text
        after a prompt is the same whatever others are given with it; those of a list are drawn side by side.

        Args:
            prompts: the beginnings of the texts, or one.
            beam: hypotheses kept at each step of a search; None: the text is drawn.
            through_ends: whether to go on after the end of a line; None: as trained.
            **decoding: the other settings of `[decoding]`, by name: max_length, temperature, top_p, seed, ...

        Returns:
            The prompt and the text after it; a list where a list was given.

        Raises:
            DataError: the model cannot read a prompt.
            RecipeError: settings do not fit.
        """
        check_single_hypothesis(decoding, "generations")
        with exclude_other_threads():
            writer = make_text_generator(self._loaded, beam, through_ends, decoding, self._reporter)
            beginnings = arguments.to_text_list(prompts, "prompts")
            generations = continue_prompts(writer, beginnings)
            texts = [
                writer.decode_encoded_prompt(prompt) + n_best[0].text
                for prompt, n_best in zip(beginnings, generations, strict=True)
            ]
        return texts[0] if isinstance(prompts, str) else texts

    @overload
    def generations(  # type: ignore[overload-overlap]
        self,
        prompts: str = "",
        *,
        beam: int | None = None,
        through_ends: bool | None = None,
        **decoding: Unpack[DecodingOptions],
    ) -> list[GeneratedText]: ...

    @overload
    def generations(
        self,
        prompts: Iterable[str],
        *,
        beam: int | None = None,
        through_ends: bool | None = None,
        **decoding: Unpack[DecodingOptions],
    ) -> list[list[GeneratedText]]: ...

    @name_parameters_in_errors
    def generations(
        self,
        prompts: str | Iterable[str] = "",
        *,
        beam: int | None = None,
        through_ends: bool | None = None,
        **decoding: Unpack[DecodingOptions],
    ) -> list[GeneratedText] | list[list[GeneratedText]]:
        """Generate texts after each prompt with a language model, with scores and log-probabilities.

        Args:
            prompts: the beginnings of the texts, or one.
            beam: hypotheses kept at each step of a search; None: the texts are drawn.
            through_ends: whether to go on after the end of a line; None: as trained.
            **decoding: the other settings of `[decoding]`, by name.

        Returns:
            The `n_best` texts without the prompt, the best first; of each prompt where a list was given.
        """
        with exclude_other_threads():
            writer = make_text_generator(self._loaded, beam, through_ends, decoding, self._reporter)
            generations = continue_prompts(writer, arguments.to_text_list(prompts, "prompts"))
        return generations[0] if isinstance(prompts, str) else generations

    @name_parameters_in_errors
    def score(
        self,
        sources: str | Iterable[str],
        targets: str | Iterable[str] | None = None,
        *,
        to: str | None = None,
        source_language: str | None = None,
        stride: int | None = None,
    ) -> TextScores:
        """Compute the probability of each target after its source or, with a language model, of each source.

        A language model that has learned from running text reads the sources as the lines of one. No look at a test set
        is entered into a ledger: that is for `tfm evaluate`.

        Args:
            sources: the texts, or one.
            targets: their translations, as many; None for a language model.
            to: the language of the targets, of a model of several.
            source_language: the language of the sources, for a model that is told it.
            stride: tokens between the beginnings of the windows of such a text, or of a long one; None: side by side.

        Returns:
            The log-probability of each text, and the perplexity of all.

        Raises:
            DataError: the numbers of texts differ, or none has a probability.
            RecipeError: targets or a stride do not fit the model's task.
        """
        check_has_method(self._loaded, "score")
        return score_texts(self._loaded, sources, targets, self._reporter, to, source_language, stride)

    @name_parameters_in_errors
    def embed(self, words: str | Iterable[str], *, side: Side | None = None) -> NDArray[np.float32]:
        """The vectors (n, E) of words, from the model's embedding, as `tfm embed` writes them.

        side: of a model with two embeddings; None: the target's; for skip-gram and CBOW: "source", the vectors that
        predict, which are the default, or "target", those that are predicted. Raises RecipeError, with words like it,
        for a word that has no vector.
        """
        vectors = self._words(arguments.check_side(side))
        rows = [vectors[word] for word in arguments.to_text_list(words, "words")]
        return np.stack(rows) if rows else vectors.vectors[:0]

    @name_parameters_in_errors
    def encode(
        self, texts: str | Iterable[str], *, layer: int | None = None, unit: hidden_states.HiddenStateUnit = "piece"
    ) -> list[hidden_states.HiddenStates]:
        """Compute the hidden states of texts: of an encoder, or of the layers of a model without one.

        Args:
            texts: the texts, or one.
            layer: the number of the layer, 0 for the embedding with its positions; None: the last, after its norm.
            unit: "piece", "word" or "text": a word or text has the mean of the vectors of its pieces.

        Returns:
            The tokens and vectors of each text.

        Raises:
            DataError: a text has no pieces, or is too long.
            RecipeError: the model has no such layer, or no row for each piece.
        """
        check_has_method(self._loaded, "encode")
        number = None if layer is None else arguments.check_whole_number(layer, "layer", 0)
        arguments.check_choice(unit, hidden_states.HIDDEN_STATE_UNITS, "unit")
        with exclude_other_threads():
            lines = arguments.to_text_list(texts, "texts")
            states = hidden_states.encode_texts(self._loaded, lines, layer=number, unit=unit)
            warn_of_unknown_sources(source_tokenizer_of(self._loaded), lines, self._reporter)
            return states

    @name_parameters_in_errors
    def neighbours(self, word: str, count: int = 10, *, side: Side | None = None) -> list[Neighbour]:
        """Find the words nearest to a word, by the cosine between their vectors.

        Args:
            word: the word.
            count: the number of words to return.
            side: the embedding that is read, "source" or "target", as `embed` has it.

        Returns:
            The words, the nearest first.
        """
        vectors = self._words(arguments.check_side(side))
        count = arguments.check_whole_number(count, "count", 1)
        return vectors.nearest(vectors[arguments.check_single_text(word, "word")], count, exclude=(word,))

    @name_parameters_in_errors
    def neighbour_probability(self, center: str, outside: str) -> NeighbourProbability:
        """Return P(o | c), the probability of a word as a neighbor of another, by skip-gram or CBOW.

        Args:
            center: the word that predicts (c).
            outside: the word that is predicted (o).

        Raises:
            DataError: the model has one vector of each word.
            RecipeError: a word has no vector.
        """
        words = arguments.check_single_text(center, "center"), arguments.check_single_text(outside, "outside")
        with exclude_other_threads():
            return neighbour_probability(self._loaded, *words)

    @name_parameters_in_errors
    def attend(
        self,
        source: str,
        target: str | None = None,
        *,
        beam: int = 5,
        to: str | None = None,
        source_language: str | None = None,
    ) -> Attention:
        """Record the attention of every layer and head while the model reads a text, or the image in a file.

        Args:
            source: the text, or the name of the image file.
            target: the text that a model that translates is made to say; None: its own translation.
            beam: hypotheses kept at each step of its own translation.
            to: the language of the target, of a model of several.
            source_language: the language of the source, for a model that is told it.

        Returns:
            The weights and the tokens.
        """
        check_has_method(self._loaded, "attend")
        loaded = self._loaded.for_languages(*arguments.check_languages(to, source_language))
        return record_attention(loaded, source, target, decoding_config(beam, {}), self._reporter)


def _unpickle_model(model_key: ModelKey, folder: Path, reporter: Reporter) -> Model:
    return Model(find_or_reload_model(model_key, folder), reporter)
