"""`tfm generate`: text from a trained language model, and the probability of given texts."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfm.cli.options import (
    Device,
    DeviceName,
    ForbiddenTexts,
    NoRepeatNgramSize,
    RecipeOverrides,
    SamplingSeed,
    Temperature,
    TopK,
    TopP,
    config_section,
    reject_flags,
)
from tfm.cli.streams import STDIN_PROMPT, open_live_stdin, print_data, print_json, print_message
from tfm.pipeline.model_io.model_folder import resolve_model_folder

if TYPE_CHECKING:
    from tfm.pipeline.config import DecodingConfig
    from tfm.pipeline.inference.generation.generator import GeneratedText, TextGenerationModel, TextGenerator
    from tfm.pipeline.runtime.progress import Reporter

TEXT_SEPARATOR = "---"
MAX_PROMPTS_PER_CHUNK = 256
"""The most prompts whose texts are written before the first of them is printed."""


def generate(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A trained model: its model/, or the folder of its run.")
    ],
    prompt: Annotated[
        str | None,
        typer.Option("--prompt", metavar="TEXT", help="Text to continue; default: each line of stdin."),
    ] = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    beam: Annotated[
        int | None, typer.Option("--beam", metavar="W", help="Beam search for the most probable text; 1 is greedy.")
    ] = None,
    samples: Annotated[int | None, typer.Option("--samples", metavar="N", help="Texts for each prompt.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", metavar="N", help="Maximum number of pieces of a text (256).")
    ] = None,
    continue_past_line_end: Annotated[
        bool | None,
        typer.Option("--through-ends/--no-through-ends", help="Continue after the end of a line; default: as trained."),
    ] = None,
    no_repeat_ngram: NoRepeatNgramSize = None,
    forbidden: ForbiddenTexts = None,
    forced: Annotated[
        Path | None,
        typer.Option("--forced", metavar="FILE", help="Forced words: line n has those of prompt n, separated by tabs."),
    ] = None,
    choices: Annotated[
        Path | None,
        typer.Option("--choices", metavar="FILE", help="Print instead how probable each line is after the prompt."),
    ] = None,
    ensemble: Annotated[
        list[Path] | None,
        typer.Option("--ensemble", metavar="MODEL", help="Another model of an ensemble with the first; repeatable."),
    ] = None,
    seed: SamplingSeed = None,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print one JSON object per prompt, with scores.")] = False,
    device: Device = None,
    sets: RecipeOverrides = None,
) -> None:
    """Continue a text with a language model.

    Pieces are drawn or, with --beam, the most probable text is searched for.

    With --choices: print LOG P, LOG P A TOKEN, TEXT separated by tabs, the most probable first.
    """
    flags = {
        "decoding.temperature": temperature,
        "decoding.top_k": top_k,
        "decoding.top_p": top_p,
        "decoding.beam": beam,
        "decoding.n_best": samples,
        "decoding.max_length": max_tokens,
        "decoding.no_repeat_ngram": no_repeat_ngram,
        "decoding.forbidden": forbidden or None,
        "decoding.seed": seed,
    }
    folders = [resolve_model_folder(each) for each in (model, *(ensemble or ()))]
    if choices is not None:
        given_flags = {f"--{key.partition('.')[2].replace('_', '-')}": value for key, value in flags.items()}
        given_flags |= {
            "--samples": given_flags.pop("--n-best"),
            "--max-tokens": given_flags.pop("--max-length"),
            "--set": sets,
        }
        reject_flags({**given_flags, "--forced": forced}, "not allowed with --choices, which generates no text")
        _print_choice_scores(folders, _read_prompts(prompt), choices, continue_past_line_end, jsonl, device or "auto")
        return
    from tfm.cli.console import make_reporter
    from tfm.pipeline.config import DecodingConfig
    from tfm.pipeline.inference.generation.generator import TextGenerator

    set_keys = {each.partition("=")[0].strip() for each in sets or ()}
    default_strategy = [] if beam is not None or "decoding.beam" in set_keys else ["decoding.strategy=sample"]
    config = config_section(DecodingConfig, [*default_strategy, *(sets or ())], flags)
    reporter = make_reporter()
    first_chunk, later_chunks = _read_prompt_chunks(prompt, reporter)
    language_model = None
    if forced is None and len(folders) == 1 and device in (None, "auto", "cpu"):
        language_model = _load_numpy_language_model(folders[0], continue_past_line_end, config, len(first_chunk))
    if language_model is None:
        language_model = _load_torch_language_model(folders, continue_past_line_end, device or "auto", reporter)
    generator, chunks = TextGenerator(language_model, config, reporter), chain([first_chunk], later_chunks)
    if sys.stdout.isatty() and not (jsonl or generator.searches or forced) and config.n_best == 1:
        for number, text in enumerate(chain.from_iterable(chunks)):
            _stream_text(generator, text, with_separator=number > 0)
        return
    results = (
        _generate_chunks(generator, chunks, "stdin" if prompt is None else None)
        if forced is None
        else _generate_forced(generator, chain.from_iterable(chunks), forced)
    )
    if jsonl:
        for text, texts in results:
            print_json({"prompt": text, "texts": [asdict(each) for each in texts]})
            sys.stdout.flush()
    else:
        _print_texts(generator, results)


def _load_numpy_language_model(
    folder: Path, continue_past_line_end: bool | None, config: "DecodingConfig", num_prompts: int
) -> "TextGenerationModel | None":
    """The language model in numpy, which starts sooner than torch; None if that is needed, or many prompts wait."""
    from tfm.pipeline.inference.generation.numpy_prompt_encoder import (
        load_small_language_model,
        supports_numpy_generation,
    )

    if not supports_numpy_generation(config, num_prompts):
        return None
    return load_small_language_model(folder, continue_past_line_end)


def _load_torch_language_model(
    folders: list[Path], continue_past_line_end: bool | None, device: DeviceName, reporter: "Reporter"
) -> "TextGenerationModel":
    """The language model, or the ensemble, in torch."""
    from tfm.pipeline.inference.generation.prompt_encoder import PromptEncoder
    from tfm.pipeline.model_io.ensemble import load_ensemble

    loaded = load_ensemble(folders, device, reporter=reporter)
    return PromptEncoder(loaded, continue_past_line_end=continue_past_line_end)


def _stream_text(generator: "TextGenerator", prompt: str, *, with_separator: bool) -> None:
    """Print one text while it is generated."""
    if with_separator and generator.continue_past_line_end:
        _print_text(TEXT_SEPARATOR)
    for piece in generator.stream(prompt):
        _print_text(piece, end="")
    _print_text("")


def _generate_chunks(
    generator: "TextGenerator", chunks: Iterable[Sequence[str]], file: str | None
) -> "Iterator[tuple[str, list[GeneratedText]]]":
    """Yield each prompt with the texts after it; those after the prompts of a chunk are written together.

    file: of the prompts, one a line, for messages; None for a prompt of the command line.
    """
    from tfm.pipeline.errors import DataError
    from tfm.pipeline.inference.generation.generator import PromptError

    num_lines = 0
    for prompts in chunks:
        try:
            yield from zip(prompts, generator.generate_batch(prompts), strict=True)
        except PromptError as error:
            if file is None:
                raise
            raise DataError(str(error), file=file, line=num_lines + error.row + 1) from error
        num_lines += len(prompts)


def _generate_forced(
    generator: "TextGenerator", prompts: Iterable[str], forced: Path
) -> "Iterator[tuple[str, list[GeneratedText]]]":
    """Yield each prompt with the texts after it that have its forced words."""
    for prompt, words in _pair_with_forced_words(prompts, forced):
        yield prompt, generator.generate_texts(prompt, words)


def _print_texts(generator: "TextGenerator", results: "Iterable[tuple[str, list[GeneratedText]]]") -> None:
    """Print the texts after each prompt, with separators if texts may have several lines."""
    num_texts = 0
    for prompt, texts in results:
        for text in texts:
            if num_texts and generator.continue_past_line_end:
                _print_text(TEXT_SEPARATOR)
            _print_text(generator.decode_encoded_prompt(prompt) + text.text)
            num_texts += 1


def _print_choice_scores(
    models: list[Path],
    prompts: Iterable[str],
    choices_file: Path,
    continue_past_line_end: bool | None,
    jsonl: bool,
    device: DeviceName,
) -> None:
    """Print the log-probability of each line of a file after each prompt."""
    from tfm.cli.console import make_reporter
    from tfm.data.lines import open_lines
    from tfm.pipeline.inference.generation.continuations import score_continuations, unknown_choices_warning
    from tfm.pipeline.model_io.ensemble import load_ensemble
    from tfm.pipeline.scoring.alternative_scores import JOIN_ADVICE
    from tfm.pipeline.scoring.alternatives import find_joined_word
    from tfm.pipeline.text_files import check_text_file

    reporter = make_reporter()
    check_text_file(choices_file, reporter)
    choices = list(open_lines(choices_file))
    _check_choices(choices, choices_file)
    loaded = load_ensemble(models, device, reporter=reporter)
    if (warning := unknown_choices_warning(loaded, choices)) is not None:
        reporter.warn(f"{choices_file}: {warning}")
    has_warned = False
    for prompt in prompts:
        if not has_warned and (word := find_joined_word(prompt, choices)) is not None:
            reporter.warn(f'a prompt ends within a word that a choice goes on with ("{word}"): {JOIN_ADVICE}')
            has_warned = True
        continuations = score_continuations(loaded, prompt, choices, continue_past_line_end=continue_past_line_end)
        if jsonl:
            print_json({"prompt": prompt, "choices": [asdict(each) for each in continuations]})
            sys.stdout.flush()
        else:
            _print_text(
                "\n".join(f"{each.log_prob:.6f}\t{each.log_prob_per_token:.6f}\t{each.text}" for each in continuations)
            )


def _check_choices(choices: "Sequence[str]", file: Path) -> None:
    """Raise DataError for a file without choices, and for a blank line, which adds nothing to a prompt."""
    from tfm.pipeline.errors import DataError

    if not choices:
        raise DataError("is empty: give a choice a line", file=file)
    for number, choice in enumerate(choices, 1):
        if not choice.strip():
            raise DataError("is blank, and a choice adds text to the prompt: remove the line", file=file, line=number)


def _read_prompts(prompt: str | None) -> Iterable[str]:
    """The prompt that was given, else the lines of stdin."""
    if prompt is not None:
        return [prompt]
    from tfm.cli.console import make_reporter
    from tfm.data.lines import stream_lines
    from tfm.pipeline.text_files import watch_lines

    if sys.stdin.isatty():
        print_message(STDIN_PROMPT)
    return watch_lines(stream_lines(sys.stdin.buffer, "stdin"), "stdin", make_reporter())


def _read_prompt_chunks(prompt: str | None, reporter: "Reporter") -> tuple[list[str], Iterator[list[str]]]:
    """Return the prompts that wait to be read, and an iterator of lists of those after them.

    From a pipe or a terminal a list ends where the next line is not there yet: what has come is answered first.
    """
    if prompt is not None:
        return [prompt], iter(())
    from tfm.data.lines import chunk_rows, stream_lines
    from tfm.pipeline.text_files import watch_lines

    stream = open_live_stdin(reporter)
    ready = None if stream is None else stream.is_line_ready
    lines = watch_lines(stream_lines(stream or sys.stdin.buffer, "stdin"), "stdin", reporter)
    chunks = ([line for (line,) in rows] for rows in chunk_rows(zip(lines), MAX_PROMPTS_PER_CHUNK, ready))
    return (next(chunks, []) if ready is None or ready() else []), chunks


def _pair_with_forced_words(prompts: Iterable[str], file: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each prompt with the forced words and phrases of its continuation."""
    from tfm.data.lines import open_lines
    from tfm.pipeline.decoding.constraints.lines import split_phrases
    from tfm.pipeline.errors import DataError

    for prompt, line in zip_longest(prompts, open_lines(file)):
        if prompt is None or line is None:
            problem = f"has {'more' if prompt is None else 'fewer'} lines than there are prompts"
            raise DataError(f"{problem}: give one for each prompt, empty if it has no forced words", file=file)
        yield prompt, split_phrases(line)


def _print_text(text: str, end: str = "\n") -> None:
    """Print and flush: a program at the other end of a pipe may wait for the answer before it writes the next
    prompt."""
    print_data(text, end)
    sys.stdout.flush()
