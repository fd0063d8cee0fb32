"""The tokenize stage: raw text to a recipe's tokenizer, shared or one for each side, measured on held-out text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.config import DataConfig
from tfm.data.corpora.portions import Corpus, flatten_portions
from tfm.data.corpora.preflight import check_and_count_splits
from tfm.data.corpora.sources import describe_corpus, open_lines, read_pairs, resolve_splits, with_lists_of
from tfm.data.errors import DataError, missing_file_error
from tfm.data.foreign_tokenizers.loading import load_foreign_tokenizer, tokenizer_files
from tfm.pipeline.artifacts.artifact import Draft, Input, Plan, is_fresh, publish
from tfm.pipeline.artifacts.canonical_json import JSON
from tfm.pipeline.artifacts.corpus_inputs import download_corpora, text_changing_settings
from tfm.pipeline.cleaning.corpora import check_clean_unchanged, cleaned_inputs, cleaned_splits
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.reports.tokenizer_report import (
    AnyTokenizerTrainer,
    CorpusTexts,
    SideStatistics,
    measure_tokenizers,
    show_statistics,
    show_trainer_figures,
    tokenizer_statistics,
)
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.text_files import check_text_file, show_remarks
from tfm.pipeline.tokenizer_training import make_trainers, reserve_control_tokens, train_tokenizers, trained_sides
from tfm.tokenizer.code_points import save_pair
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.tokenizer import Tokenizer

# Of text files, one line in so many is not trained on, so that the unknown rate means something.
HELD_OUT_INTERVAL = 100
TOKENIZER_STAGES = ("tokenize", "train")


def plan_tokenizer(config: TokenizerConfig, data: DataConfig, out: Path, clean: Path | None = None) -> Plan:
    """Return the plan of `tokenize`.

    Args:
        config: the [tokenizer] part of a recipe.
        data: the [data] part of a recipe.
        out: the folder of the tokenizer.
        clean: the folder of the training data that `tfm clean` has left, in place of the corpora's.

    Raises:
        DataError: a corpus is not there.
    """
    splits = resolve_splits(data)
    corpora_by_split: dict[str, Sequence[Corpus]] = {"valid": splits.valid}
    if not config.is_file_used_unchanged:
        corpora_by_split = {"train": splits.train, **corpora_by_split}
    inputs = cleaned_inputs(corpora_by_split, clean, online=data.online)
    if config.source_from is not None:
        inputs["source_from"] = Input.from_artifact(Path(config.source_from), TOKENIZER_STAGES)
    if config.file is not None:
        inputs |= {name: _file_input(file) for name, file in tokenizer_files(config).items()}
    settings: dict[str, JSON] = {
        name: [text_changing_settings(corpus) for corpus in corpora] for name, corpora in corpora_by_split.items()
    }
    if (
        config.is_file_used_unchanged and data.target_languages
    ):  # of a corpus that is not read, its languages get tokens
        settings["languages"] = list(data.target_languages)
    if config.is_file_used_unchanged and data.tags:
        settings["tags"] = list(data.tags)
    tokenizer_settings = config.model_dump(mode="json", exclude=config.keys_without_effect)
    return Plan("tokenize", out, {"tokenizer": tokenizer_settings, "data": settings}, inputs, seed=None)


def tokenize(
    config: TokenizerConfig,
    data: DataConfig,
    out: Path,
    *,
    clean: Path | None = None,
    command: Sequence[str],
    reporter: Reporter,
) -> None:
    """Learn a tokenizer from a recipe's training corpora, as they stream by, and publish it.

    Vocabulary size, the 20 longest pieces, and on the validation corpus tokens a word and the share of unknown tokens
    are printed, and kept as figures.

    Args:
        config: the [tokenizer] part of a recipe.
        data: the [data] part.
        out: the folder of the tokenizer.
        clean: the folder of the training data that `tfm clean` has left, in place of the corpora's.
        command: the command line, for the manifest.
        reporter: receives messages.

    Raises:
        DataError: nothing can be learned.
    """
    download_corpora(data, reporter)
    stage_plan = plan_tokenizer(config, data, out, clean)
    if is_fresh(stage_plan, reporter):
        return
    splits = cleaned_splits(resolve_splits(data), clean)
    splits = replace(
        splits,
        train=tuple(with_lists_of(each, config.label_kind) for each in splits.train),
        valid=tuple(with_lists_of(each, config.label_kind) for each in splits.valid),
    )
    with publish(stage_plan, command=command) as draft, show_remarks(reporter.line):
        check_and_count_splits(splits, online=data.online)
        tokenizers = _read_tokenizers(config, reporter)
        trainers: dict[str, AnyTokenizerTrainer] = {}
        if "shared" not in tokenizers:
            trainers = make_trainers(
                reserve_control_tokens(config, len(data.target_languages) + len(data.tags)),
                trained_sides(config, data),
                data.languages,
            )
            tokenizers = train_tokenizers(
                trainers, tokenizers, _corpus_texts(splits.train, data, config.shared), config.min_frequency, reporter
            )
        side = next(iter(tokenizers))
        if data.target_languages and not tokenizers[side].has_source_language:
            # a source says which of them it is to be translated into
            tokenizers[side] = tokenizers[side].with_languages(*data.target_languages)
        tokenizers[side] = _add_tags(tokenizers[side], data.tags)
        draft.figures.update(show_trainer_figures(trainers, reporter))
        measures = measure_tokenizers(tokenizers, _corpus_texts(splits.valid, data, config.shared), reporter)
        check_clean_unchanged(clean, stage_plan.inputs)
        _write_tokenizers(draft, tokenizers, measures, ", ".join(map(describe_corpus, splits.valid)), reporter)
    reporter.line(f"tokenizer: {out}")


def tokenize_files(
    config: TokenizerConfig, files: Sequence[Path], out: Path, *, command: Sequence[str], reporter: Reporter
) -> None:
    """Learn a tokenizer from text files, one text a line, and publish it; prints the same as `tokenize`.

    Every 100th line is held out to measure on. All lines are measured on if there are less than 100, or if
    `config.file` is taken and nothing learned.

    Args:
        config: the [tokenizer] part of a recipe.
        files: the text files.
        out: the folder of the tokenizer.
        command: the command line, for the manifest.
        reporter: receives messages.
    """
    if not config.shared:
        raise RecipeError(
            "tokenizer.shared = false: one vocabulary for each side needs pairs of texts; name them in a recipe"
        )
    inputs = {str(file): _file_input(file) for file in files}
    for file in files:
        check_text_file(file, reporter)
    if config.file is not None:
        inputs |= {name: _file_input(file) for name, file in tokenizer_files(config).items()}
    settings = config.model_dump(mode="json", exclude=config.keys_without_effect)
    stage_plan = Plan("tokenize", out, {"tokenizer": settings}, inputs, seed=None)
    if is_fresh(stage_plan, reporter):
        return
    with publish(stage_plan, command=command) as draft:
        ready_tokenizers = _read_tokenizers(config, reporter)
        texts, trainers = (
            _texts_of_files(files, held_out=False),
            {} if ready_tokenizers else make_trainers(config, trained_sides(config)),
        )
        tokenizers = ready_tokenizers or train_tokenizers(trainers, {}, texts, config.min_frequency, reporter)
        draft.figures.update(show_trainer_figures(trainers, reporter))
        measured_lines = f"every {HELD_OUT_INTERVAL}th line"
        measures = measure_tokenizers(
            tokenizers, _texts_of_files(files, held_out=None if ready_tokenizers else True), reporter
        )
        if ready_tokenizers:
            measured_lines = "all lines"
        elif not measures["shared"].all.num_words:
            measured_lines = f"the training text, as less than {HELD_OUT_INTERVAL} lines leave none to hold out"
            measures = measure_tokenizers(tokenizers, _texts_of_files(files, held_out=False), reporter)
        _write_tokenizers(draft, tokenizers, measures, measured_lines, reporter)
    reporter.line(f"tokenizer: {out}")


def _add_tags(tokenizer: Tokenizer, tags: Sequence[str]) -> Tokenizer:
    """The tokenizer with tags of training text. Raises DataError if it cannot have any."""
    try:
        return tokenizer.with_tags(*tags) if tags else tokenizer
    except ValueError as error:
        raise DataError(f"this tokenizer {error}: remove `tag` from data.train") from error


def _corpus_texts(corpora: Iterable[Corpus], data: DataConfig, shared: bool) -> Iterator[CorpusTexts]:
    """The texts of each corpus, row by row: source and target; of images a caption or label alone; one of the two where
    they are the same text and learned from together.
    """
    for corpus in flatten_portions(corpora) if data.target_languages else corpora:
        pairs = read_pairs(corpus, online=data.online)
        is_alone = data.images is not None or (shared and corpus.is_one_text)
        yield (((text,) for _, text in pairs) if is_alone else pairs), corpus.languages or (None, None)


def _read_tokenizers(config: TokenizerConfig, reporter: Reporter) -> dict[str, Tokenizer]:
    """Read the existing tokenizers by side, and report what they are."""
    if config.grow is not None:
        return {}
    if config.file is not None:
        foreign_tokenizer = load_foreign_tokenizer(config)
        roles = "".join(f"; {role} is {token}" for role, token in foreign_tokenizer.control_tokens.items())
        reporter.line(f"tokenizer: {config.file} is {foreign_tokenizer.form}{roles}")
        return {"shared" if config.shared else "source": foreign_tokenizer.tokenizer}
    return {} if config.source_from is None else {"source": load_tokenizer_pair(Path(config.source_from))[0]}


def _write_tokenizers(
    draft: Draft,
    tokenizers: Mapping[str, Tokenizer],
    measures: Mapping[str, SideStatistics],
    held_out_description: str,
    reporter: Reporter,
) -> None:
    """Write the files, keep the figures, print the tables."""
    tokenizer_list = list(tokenizers.values())
    save_pair(tokenizer_list[0], tokenizer_list[-1], draft.folder)
    draft.figures["held_out"] = held_out_description
    for side, tokenizer in tokenizers.items():
        draft.figures[side] = tokenizer_statistics(tokenizer, measures[side])
    show_statistics(tokenizers, measures, held_out_description, reporter)


def _texts_of_files(files: Sequence[Path], *, held_out: bool | None) -> list[CorpusTexts]:
    """The lines of all files that are held out, or those that are not; None: all."""
    lines = (line for file in files for line in open_lines(file))
    numbered_lines = enumerate(lines, 1)
    return [
        (((line,) for number, line in numbered_lines if held_out in (None, number % HELD_OUT_INTERVAL == 0)), (None,))
    ]


def _file_input(file: Path) -> Input:
    try:
        return Input.from_file(file)
    except FileNotFoundError:
        raise missing_file_error(file) from None
