"""Lines of text to translations by a trained model, streamed, in order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from tfm.data.lines import chunk_rows
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.constraints.lines import (
    check_no_unused_lines,
    check_phrases_fit,
    encode_prefixes,
    split_forced_lines,
)
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.inference.distinct_texts import find_distinct_texts, requires_distinct_texts
from tfm.pipeline.inference.source_problems import SourceProblems
from tfm.pipeline.inference.translation_records import EMPTY_TRANSLATION, Translation, join_to_one_line
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.tasks.abilities import TASK_SPECS

if TYPE_CHECKING:
    from tfm.data.images.row_images import RowImages
    from tfm.pipeline.decoding.shortlist import Shortlist
    from tfm.pipeline.inference.unknown_words import UnknownWordReplacer
    from tfm.pipeline.model_io.loaded_model import LoadedModel

# torch is imported only if needed: an up-to-date stage does not need it

CHUNK_LINES = 8192


def translate_lines(
    loaded: "LoadedModel",
    lines: Iterable[str],
    config: DecodingConfig,
    *,
    reporter: Reporter,
    prefixes: Iterable[str] | None = None,
    forced: Iterable[str] | None = None,
    chunk_lines: int = CHUNK_LINES,
    ready: Callable[[], bool] | None = None,
    on_done: Callable[[int], None] | None = None,
    earlier_problems: SourceProblems | None = None,
    shortlist: "Shortlist | None" = None,
) -> Iterator[list[Translation]]:
    """Translate lines, in their order, or label them with a model that labels.

    Reads `chunk_lines` lines, fewer if they are very long, then gives their translations. A line without pieces is
    translated by an empty line, not by the model. A source longer than the model reads is cut, which is reported at the
    end, together with those of `earlier_problems`; sources of unknown pieces are reported too. A model that labels
    gives the likeliest labels of each line, or one of each of its words.

    Args:
        loaded: the model.
        lines: the texts.
        config: settings of decoding.
        reporter: shows warnings.
        prefixes: for each line, text that its translations begin with; `itertools.repeat` gives one to all.
        forced: for each line, between tabs, words and phrases that its translations must contain.
        chunk_lines: 1 answers each line at once, more sort better by length.
        ready: whether the next line can be read without waiting for it; if not, those that were read are answered.
        on_done: called with the number of further lines that are done.
        earlier_problems: counts of earlier sources that were cut.
        shortlist: of the pieces that may come, if it was read before; None: the one that the settings name is read.

    Yields:
        The `config.n_best` translations of each line, the best first.

    Raises:
        DataError: there are fewer or more prefixes or forced words than lines.
        RecipeError: a model that labels is given prefixes or forced words.
    """
    from tfm.pipeline.decoding.decode import is_source_truncated
    from tfm.pipeline.inference.labelling import label_texts, predicts_labels

    loaded.check_reads_text("give image files, or folders of them")
    chunks, problems = chunk_rows(zip(lines), chunk_lines, ready), earlier_problems or SourceProblems()
    if predicts_labels(loaded):
        _check_label_options(loaded, config, prefixes, forced)
        for rows in chunks:
            for best in label_texts(loaded, [line for (line,) in rows], problems, on_done, n_best=config.n_best):
                yield labels_to_translations(best)
        problems.warn(reporter, loaded.model.max_length - 1)
        return
    search = _TranslationSearch.from_config(loaded, config, reporter, prefixes, forced, on_done, shortlist)
    for rows in chunks:
        texts = [line for (line,) in rows]
        sources = loaded.source_tokenizer.encode_batch(texts)
        problems.count_unknown_pieces(loaded.source_tokenizer, texts, sources)
        problems.count_unlinked_pieces(loaded.source_tokenizer, sources, search.shortlist)
        problems.count_too_long(is_source_truncated(source, loaded.model) for source in sources)
        for source, translations in zip(sources, search(sources, texts), strict=True):
            yield translations if source else [EMPTY_TRANSLATION]
    search.check_no_unused_constraints()
    problems.warn(reporter, loaded.model.max_length - 1)


def translate_images(
    loaded: "LoadedModel",
    images: Iterable["RowImages"],
    config: DecodingConfig,
    *,
    reporter: Reporter,
    prefixes: Iterable[str] | None = None,
    forced: Iterable[str] | None = None,
    on_done: Callable[[int], None] | None = None,
) -> Iterator[list[Translation]]:
    """Caption, or label, images, which come in portions and stay in order; the rest as in `translate_lines`.

    Args:
        loaded: the model.
        images: portions of images.
        config: settings of decoding.
        reporter: receives messages.
        prefixes: for each image, text that its captions begin with.
        forced: for each image, between tabs, words and phrases that its captions must contain.
        on_done: called with the number of further images that are done.

    Yields:
        The `config.n_best` captions, or labels, of each image, the best first.

    Raises:
        DataError: the model reads text.
    """
    from tfm.pipeline.inference.labelling import label_images, predicts_labels

    loaded.require_image_transform()  # raises for a model of texts
    if predicts_labels(loaded):
        _check_label_options(loaded, config, prefixes, forced)
        for batch in images:
            yield from map(labels_to_translations, label_images(loaded, batch, on_done, n_best=config.n_best))
        return
    search = _TranslationSearch.from_config(loaded, config, reporter, prefixes, forced, on_done)
    for batch in images:
        yield from search(batch)
    search.check_no_unused_constraints()


def _check_label_options(
    loaded: "LoadedModel", config: DecodingConfig, prefixes: Iterable[str] | None, forced: Iterable[str] | None
) -> None:
    """Raise RecipeError for settings that a model that labels cannot follow, such as those of a search."""
    if (reason := TASK_SPECS[loaded.config.task].n_best_problem(config)) is not None:
        raise RecipeError(reason)
    if prefixes is not None or forced is not None:
        option = "prefixes" if prefixes is not None else "forced words"
        raise RecipeError(f"{loaded.folder}: the model gives labels, which take no {option}")
    if search_keys := sorted(config.model_fields_set - {"n_best"}):
        problem = f"decoding.{search_keys[0]} has no effect: this model predicts labels, without a search. Remove it"
        raise RecipeError(f"{loaded.folder}: {problem}")


def labels_to_translations(scored_labels: Sequence[tuple[str, float, int]]) -> list[Translation]:
    """The labels of a line with their log-probability and number, as translations of it."""
    return [Translation(join_to_one_line(text), log_prob, log_prob, count) for text, log_prob, count in scored_labels]


@dataclass(frozen=True)
class _TranslationSearch:
    """Finds hypotheses of some sources at a time.

    starts, words: the beginnings of the hypotheses, and the words that they must contain. replacer: writes hypotheses
    with unknown words. shortlist: of the pieces that may come.
    """

    loaded: "LoadedModel"
    config: DecodingConfig
    starts: Iterator[str] | None
    words: Iterator[str] | None
    on_done: Callable[[int], None] | None
    replacer: "UnknownWordReplacer | None" = None
    shortlist: "Shortlist | None" = None

    @classmethod
    def from_config(
        cls,
        loaded: "LoadedModel",
        config: DecodingConfig,
        reporter: Reporter,
        prefixes: Iterable[str] | None,
        forced: Iterable[str] | None,
        on_done: Callable[[int], None] | None,
        shortlist: "Shortlist | None" = None,
    ) -> "_TranslationSearch":
        """Return a search with prefixes and forced words, one for each source, and say what choosing by utility costs.

        Raises RecipeError if words are forced and there is no beam, or unknown words cannot be replaced.
        """
        from tfm.pipeline.decoding.limits import FORCED_WORDS_NEED_BEAM_MESSAGE
        from tfm.pipeline.inference.minimum_bayes_risk.selection import cost_message
        from tfm.pipeline.inference.unknown_words import UnknownWordReplacer
        from tfm.pipeline.model_io.shortlist_folder import load_shortlist

        if forced is not None and (config.strategy != "search" or config.beam == 1):
            raise RecipeError(FORCED_WORDS_NEED_BEAM_MESSAGE)
        if (reason := config.n_best_problem()) is not None:
            raise RecipeError(reason)
        if config.strategy == "mbr":
            reporter.line(cost_message(config))
        loaded.model.eval()
        starts, words = (None if each is None else iter(each) for each in (prefixes, forced))
        replacer = UnknownWordReplacer(loaded) if config.replace_unknown else None
        return cls(loaded, config, starts, words, on_done, replacer, shortlist or load_shortlist(loaded, config))

    def __call__(
        self, sources: "Sequence[Sequence[int]] | RowImages", source_lines: Sequence[str] = ()
    ) -> Iterator[list[Translation]]:
        """The best hypotheses of each source, which is ids or an image.

        Args:
            sources: ids, or images.
            source_lines: the texts of the sources.
        """
        from tfm.pipeline.decoding.constraints.phrases import PhraseConstraints
        from tfm.pipeline.decoding.decode import decode
        from tfm.pipeline.inference.minimum_bayes_risk.selection import candidate_config, choose_by_utility

        loaded, model, count = self.loaded, self.loaded.model, len(sources)
        tokenizer, limit = loaded.target_tokenizer, model.max_length - 1
        targets = None
        if self.starts is not None:
            targets = encode_prefixes(tokenizer, list(islice(self.starts, count)), sources, limit)
        forced_phrases = None if self.words is None else split_forced_lines(list(islice(self.words, count)), count)
        phrases = PhraseConstraints.from_config(tokenizer, self.config, count, forced=forced_phrases)
        check_phrases_fit(phrases, targets, limit)
        device = next(model.parameters()).device
        candidate_settings = candidate_config(self.config) if self.config.strategy == "mbr" else self.config

        def search(rows: list[int], config: DecodingConfig) -> list[list[Translation]]:
            """The hypotheses of some of the sources; of images, of all."""
            chosen_sources = [sources[row] for row in rows] if isinstance(sources, Sequence) else sources
            starts = None if targets is None else [targets[row] for row in rows]
            chosen_phrases = (
                phrases if phrases.forced is None else replace(phrases, forced=[phrases.forced[n] for n in rows])
            )
            report_done = self.on_done if config is candidate_settings else None
            hypotheses = decode(
                model,
                chosen_sources,
                config,
                device=device,
                prefixes=starts,
                phrases=chosen_phrases,
                shortlist=self.shortlist,
                on_done=report_done,
            )
            ids = [list(hypothesis.ids) for n_best in hypotheses for hypothesis in n_best]
            decoded_texts = tokenizer.decode_batch(ids)
            if self.replacer is not None:
                source_texts = [source_lines[row] for row, n_best in zip(rows, hypotheses, strict=True) for _ in n_best]
                for index, text in self.replacer.replace_unknown(source_texts, ids).items():
                    decoded_texts[index] = text
            texts = map(join_to_one_line, decoded_texts)
            return [
                [Translation(next(texts), x.score, x.log_prob, x.num_tokens) for x in n_best] for n_best in hypotheses
            ]

        translations = search(list(range(count)), candidate_settings)
        if requires_distinct_texts(candidate_settings):
            search_again = search if isinstance(sources, Sequence) else lambda rows, _: [[] for _ in rows]
            translations = find_distinct_texts(translations, candidate_settings, search_again)
        if self.config.strategy == "mbr":
            yield from (choose_by_utility(each, self.config) for each in translations)
            return
        yield from translations

    def check_no_unused_constraints(self) -> None:
        """Raise DataError if there are prefixes or forced words of more sources than there were."""
        check_no_unused_lines(self.starts, self.words)


def translate_texts(
    loaded: "LoadedModel",
    sources: Sequence[str],
    config: DecodingConfig,
    reporter: Reporter,
    *,
    prefixes: Sequence[str] | None = None,
    forced: Sequence[str] | None = None,
    shortlist: "Shortlist | None" = None,
) -> list[str]:
    """Find the best hypothesis of each source, as `translate_lines` does, with a bar.

    Args:
        loaded: the model.
        sources: the texts.
        config: settings of decoding.
        reporter: shows progress, and warnings.
        prefixes: for each source, text that its translation begins with.
        forced: for each source, between tabs, words and phrases that its translation must contain.
        shortlist: as `translate_lines` has it.
    """
    options: dict[str, Any] = {"prefixes": prefixes, "forced": forced, "shortlist": shortlist}
    with reporter.bar("translating", len(sources), "sentences") as bar:
        results = translate_lines(loaded, sources, config, reporter=reporter, on_done=bar.advance, **options)
        return [translations[0].text for translations in results]
