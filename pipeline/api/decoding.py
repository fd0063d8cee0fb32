"""Texts and images decoded by a loaded model, as the methods of `Model` need it."""

from collections.abc import Iterable, Sequence

from tfm.pipeline.api import arguments
from tfm.pipeline.api.methods import check_has_method
from tfm.pipeline.api.settings import DecodingOptions, decoding_config
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import DataError
from tfm.pipeline.inference.generation.generator import GeneratedText, PromptError, TextGenerator
from tfm.pipeline.inference.generation.prompt_encoder import PromptEncoder
from tfm.pipeline.inference.image_files import check_image_file, decode_images
from tfm.pipeline.inference.translation import translate_images, translate_lines
from tfm.pipeline.inference.translation_records import Translation
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.forks import exclude_other_threads
from tfm.pipeline.runtime.progress import Reporter


def decode_texts(
    loaded: LoadedModel,
    texts: str | Iterable[str],
    config: DecodingConfig,
    reporter: Reporter,
    *,
    prefixes: Sequence[str] | None = None,
    forced_in_each: Sequence[Sequence[str]] | None = None,
) -> list[list[Translation]]:
    """Decode each text or, with a model that reads images, the image in each file.

    Args:
        loaded: the model.
        texts: the texts or the names of the files, or one.
        config: the settings.
        reporter: receives progress and warnings.
        prefixes: for each text, the beginning of its hypotheses; None for none.
        forced_in_each: for each text, words and phrases that its hypotheses contain; None for none.

    Returns:
        The `n_best` hypotheses of each text, the best first.
    """
    forced = None if forced_in_each is None else arguments.flatten_phrases(forced_in_each)
    if prefixes is not None:
        prefixes = arguments.require_texts(prefixes, "prefixes", "one for each text")
    lines, images = arguments.to_text_list(texts, "texts"), loaded.images
    with exclude_other_threads(), reporter.bar("reading", len(lines), "texts" if images is None else "images") as bar:
        if images is None:
            translations = translate_lines(
                loaded, lines, config, reporter=reporter, prefixes=prefixes, forced=forced, on_done=bar.advance
            )
        else:
            image_files = decode_images([check_image_file(line) for line in lines], images)
            translations = translate_images(
                loaded, image_files, config, reporter=reporter, prefixes=prefixes, forced=forced, on_done=bar.advance
            )
        return list(translations)


def continue_prompts(generator: TextGenerator, prompts: Sequence[str]) -> list[list[GeneratedText]]:
    """Write the texts after each prompt.

    Raises DataError for a prompt that the model cannot read, named by its number if there are several.
    """
    try:
        return list(generator.generate_batch(prompts))
    except PromptError as error:
        location = f"prompts[{error.row}]: " if len(prompts) > 1 else ""
        raise DataError(f"{location}{error}") from error


def make_text_generator(
    loaded: LoadedModel, beam: int | None, through_ends: bool | None, decoding: DecodingOptions, reporter: Reporter
) -> TextGenerator:
    """Return the generator of a language model's texts.

    Args:
        loaded: the model.
        beam: hypotheses kept at each step of a search; None: the texts are drawn.
        through_ends: whether to go on after the end of a line; None: as trained.
        decoding: the other settings, by name.
        reporter: receives progress and warnings.

    Raises:
        DataError: the model is no language model.
        RecipeError: settings do not fit.
    """
    check_has_method(loaded, "generate")
    default_options: DecodingOptions = {"strategy": "search" if beam is not None else "sample"}
    config = decoding_config(beam, {**default_options, **decoding})
    switch = arguments.check_optional_bool(through_ends, "through_ends")
    return TextGenerator(PromptEncoder(loaded, continue_past_line_end=switch), config, reporter)
