"""The tokenize stage: raw text to a recipe's tokenizer, shared or one for each side, measured on held-out text."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TypeAlias, TypeVar

from tfm.data.artifact_tokenizers import load_file, load_pair
from tfm.data.config import DataConfig
from tfm.data.corpora.portions import Corpus, Portion
from tfm.data.corpora.preflight import preflight
from tfm.data.corpora.sources import describe, identity, open_lines, pairs, resolve
from tfm.data.errors import DataError
from tfm.data.lines import evened, portions
from tfm.pipeline.artifacts.artifact import Draft, Input, Plan, is_fresh, publish
from tfm.pipeline.artifacts.canonical_json import JSON
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.runtime.progress import Bar, Reporter
from tfm.tokenizer.config import LEARNED_BY, TokenizerConfig
from tfm.tokenizer.special import SPECIALS, UNK_ID
from tfm.tokenizer.tokenizer import Tokenizer, save_pair
from tfm.tokenizer.train import NamesTrainer, TokenizerTrainer

# Of text files, one line in so many is not trained on, so that the unknown rate means something.
HELD_OUT_EVERY = 100
AT_ONCE = 1000
NUM_LONGEST = 20
TOKENIZER_MAKERS = ("tokenize", "train")

Row: TypeAlias = tuple[str, ...]  # the texts of a line: its source and target, or itself alone
Result = TypeVar("Result")


def plan(config: TokenizerConfig, data: DataConfig, out: Path) -> Plan:
    """What `tokenize` will make, from what. Raises DataError where a corpus is not there."""
    splits = resolve(data)
    used: dict[str, Sequence[Corpus]] = {"valid": splits.valid}
    if not _is_taken(config):
        used = {"train": splits.train, **used}
    inputs = {
        f"{name}: {label}": Input.of_value(fingerprint, None if path is None else str(path))
        for name, corpora in used.items()
        for corpus in corpora
        for label, path, fingerprint in identity(corpus, online=data.online)
    }
    if config.source_from is not None:
        inputs["source_from"] = Input.of_artifact(Path(config.source_from), TOKENIZER_MAKERS)
    if config.file is not None:
        inputs["file"] = _file(Path(config.file))
    settings: dict[str, JSON] = {name: [_settings(corpus) for corpus in corpora] for name, corpora in used.items()}
    described = config.model_dump(mode="json", exclude=_described_without(config))
    return Plan("tokenize", out, {"tokenizer": described, "data": settings}, inputs, seed=None)


def tokenize(
    config: TokenizerConfig, data: DataConfig, out: Path, *, command: Sequence[str], reporter: Reporter
) -> None:
    """Learn a tokenizer from a recipe's training corpora, as they stream by, and publish it at `out`.

    Prints, and keeps as figures, vocabulary size, the 20 longest pieces, and on the validation corpus tokens a
    word and the share of unknown tokens. Raises DataError where nothing can be learned.
    """
    todo = plan(config, data, out)
    if is_fresh(todo, reporter):
        return
    splits = resolve(data)
    with publish(todo, command=command) as draft:
        preflight(splits, online=data.online)
        tokenizers = _take(config)
        if "shared" not in tokenizers:
            rows = (row for corpus in splits.train for row in _texts(corpus, data))
            learned = _with_room(config, len(data.target_languages))
            tokenizers = _learn(learned, tokenizers, rows, reporter, sides=_sides(config, data))
        if data.target_languages:  # a source says which of them it is to be translated into
            side = next(iter(tokenizers))
            tokenizers[side] = tokenizers[side].with_languages(*data.target_languages)
        held_out = (row for corpus in splits.valid for row in _texts(corpus, data))
        measures = _measure(tokenizers, held_out, reporter)
        _finish(draft, tokenizers, measures, ", ".join(map(describe, splits.valid)), reporter)
    reporter.line(f"tokenizer: {out}")


def tokenize_files(
    config: TokenizerConfig, files: Sequence[Path], out: Path, *, command: Sequence[str], reporter: Reporter
) -> None:
    """Learn a tokenizer from text files, one text a line, and publish it at `out`; prints what `tokenize` does.

    Every 100th line is held out to measure on; of less than 100 lines none is, and all are measured on. So they are
    where `config.file` is taken and nothing learned.
    """
    if not config.shared:
        raise RecipeError(
            "tokenizer.shared = false: one vocabulary for each side needs pairs of texts; name them in a recipe"
        )
    inputs = {str(file): _file(file) for file in files}
    if config.file is not None:
        inputs["file"] = _file(Path(config.file))
    described = config.model_dump(mode="json", exclude=_described_without(config))
    todo = Plan("tokenize", out, {"tokenizer": described}, inputs, seed=None)
    if is_fresh(todo, reporter):
        return
    with publish(todo, command=command) as draft:
        taken = _take(config)
        tokenizers = taken or _learn(config, {}, _lines(files, held_out=False), reporter, sides=_sides(config))
        where = f"every {HELD_OUT_EVERY}th line"
        measures = _measure(tokenizers, _lines(files, held_out=None if taken else True), reporter)
        if taken:
            where = "all lines"
        elif not measures["shared"].num_words:
            where = f"the training text, as less than {HELD_OUT_EVERY} lines leave none to hold out"
            measures = _measure(tokenizers, _lines(files, held_out=False), reporter)
        _finish(draft, tokenizers, measures, where, reporter)
    reporter.line(f"tokenizer: {out}")


@dataclass
class Measure:
    """How a tokenizer fares on text: its words (runs between spaces), tokens, and unknown tokens."""

    num_words: int = 0
    num_tokens: int = 0
    num_unknown: int = 0
    num_texts: int = 0
    num_changed: int = 0

    def add(self, texts: Sequence[str], tokenizer: Tokenizer) -> None:
        """Count some more texts."""
        self.num_words += sum(len(text.split()) for text in texts)
        encoded = tokenizer.encode_batch(texts)
        for ids in encoded:
            self.num_tokens += len(ids)
            self.num_unknown += ids.count(UNK_ID)
        self.num_texts += len(texts)
        decoded = tokenizer.decode_batch(encoded)
        self.num_changed += sum(evened(a) != evened(b) for a, b in zip(texts, decoded, strict=True))

    @property
    def tokens_a_word(self) -> float:
        return self.num_tokens / max(self.num_words, 1)

    @property
    def unknown_rate(self) -> float:
        return self.num_unknown / max(self.num_tokens, 1)

    @property
    def changed_rate(self) -> float:
        """Share of texts that decoding does not give back, but for white space."""
        return self.num_changed / max(self.num_texts, 1)


def _sides(config: TokenizerConfig, data: DataConfig | None = None) -> tuple[str, ...]:
    """The sides that have a vocabulary of their own: an image has none."""
    if data is not None and data.images is not None:
        return ("target",)
    return ("shared",) if config.shared else ("source", "target")


def _texts(corpus: Corpus, data: DataConfig) -> Iterator[Row]:
    """The texts of a corpus, row by row: source and target, or, of images, a caption or label alone."""
    found = pairs(corpus, online=data.online)
    return found if data.images is None else ((caption,) for _, caption in found)


def _learn(
    config: TokenizerConfig,
    taken: Mapping[str, Tokenizer],
    rows: Iterable[Row],
    reporter: Reporter,
    *,
    sides: Sequence[str],
) -> dict[str, Tokenizer]:
    """One tokenizer a side; the only one learns from every text of a row. One that is taken learns nothing."""
    trainers = [_trainer(config, side) for side in sides]
    with reporter.bar("reading text", None, "lines") as bar:
        for batch in portions(rows, AT_ONCE):
            for row in batch:
                for number, text in enumerate(row):
                    trainers[number % len(trainers)].add(text)
            bar.advance(len(batch))
    tokenizers = {}
    for side, trainer in zip(sides, trainers, strict=True):
        if side in taken:
            tokenizers[side] = taken[side]
            continue
        with reporter.bar("learning pieces", None, "different words", done=trainer.num_words) as bar:
            tokenizers[side] = _showing_time(trainer.learn, bar)
        if tokenizers[side].vocab_size == len(SPECIALS):
            raise DataError(
                f"there is nothing to learn a tokenizer from: no text, or no piece of it occurs "
                f"tokenizer.min_frequency = {config.min_frequency} times ({side} side)"
            )
    return tokenizers


def _with_room(config: TokenizerConfig, num_languages: int) -> TokenizerConfig:
    """The config for the pieces alone, where the tokens of languages count among them."""
    least = len(SPECIALS) + 4 + config.sentinels
    return config.model_copy(update={"vocab_size": max(config.vocab_size - num_languages, least)})


def _is_taken(config: TokenizerConfig) -> bool:
    """Whether nothing is learned."""
    return config.file is not None and config.shared


def _described_without(config: TokenizerConfig) -> set[str]:
    """What of the config says where something lies, how to learn what is taken, or, by default, nothing."""
    without = {"source_from", "file", *(LEARNED_BY if _is_taken(config) else ())}
    without |= {"criterion", "min_score"} if config.criterion == "frequency" else set()
    return without if config.sentinels else without | {"sentinels"}


def _take(config: TokenizerConfig) -> dict[str, Tokenizer]:
    """The tokenizers that are there already, by side."""
    if config.file is not None:
        return {"shared" if config.shared else "source": load_file(Path(config.file))}
    return {} if config.source_from is None else {"source": load_pair(Path(config.source_from))[0]}


def _trainer(config: TokenizerConfig, side: str) -> TokenizerTrainer | NamesTrainer:
    if side == "target" and config.names is not None:
        return NamesTrainer(config.names)
    return TokenizerTrainer(config.of_target if side == "target" else config)


def _showing_time(work: Callable[[], Result], bar: Bar) -> Result:
    """The result of work without progress reports: the bar shows the elapsed time."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    started = time.monotonic()
    # A daemon, because Hugging Face's trainers cannot be interrupted and Ctrl-C shall end the process.
    threading.Thread(target=run, daemon=True).start()
    while not wait([future], timeout=1).done:
        bar.advance(0, f"{time.monotonic() - started:.0f} s")
    return future.result()


def _measure(tokenizers: Mapping[str, Tokenizer], rows: Iterable[Row], reporter: Reporter) -> dict[str, Measure]:
    """How each side's tokenizer fares on its texts."""
    measures = {side: Measure() for side in tokenizers}
    with reporter.bar("measuring on held-out text", None, "lines") as bar:
        for batch in portions(rows, AT_ONCE):
            for column, texts in enumerate(zip(*batch, strict=True)):
                side = list(tokenizers)[column % len(tokenizers)]
                measures[side].add(texts, tokenizers[side])
            bar.advance(len(batch))
    return measures


def _finish(
    draft: Draft, tokenizers: Mapping[str, Tokenizer], measures: Mapping[str, Measure], where: str, reporter: Reporter
) -> None:
    """Write the files, keep the figures, print the tables."""
    every = list(tokenizers.values())
    save_pair(every[0], every[-1], draft.folder)
    longest = {side: tokenizer.longest_pieces(NUM_LONGEST) for side, tokenizer in tokenizers.items()}
    draft.figures["held_out"] = where
    for side, tokenizer in tokenizers.items():
        draft.figures[side] = {
            "vocabulary_size": tokenizer.vocab_size,
            "tokens_a_word": measures[side].tokens_a_word,
            "unknown_rate": measures[side].unknown_rate,
            "changed_rate": measures[side].changed_rate,
            "longest_pieces": longest[side],
        }
    rows = (
        ("vocabulary size", *(f"{each.vocab_size:,}" for each in every)),
        ("tokens a word", *(f"{measures[side].tokens_a_word:.3f}" for side in tokenizers)),
        ("unknown tokens", *(f"{measures[side].unknown_rate:.3%}" for side in tokenizers)),
        ("texts changed by encoding and decoding", *(f"{measures[side].changed_rate:.3%}" for side in tokenizers)),
    )
    reporter.table(f"tokenizer, measured on {where}", ["", *tokenizers], rows)
    reporter.table(
        f"the {NUM_LONGEST} longest pieces, ␣ for a space",
        [*tokenizers],
        list(zip_longest(*([piece.replace(" ", "␣") for piece in longest[side]] for side in tokenizers), fillvalue="")),
    )


def _lines(files: Sequence[Path], *, held_out: bool | None) -> Iterator[Row]:
    """The lines of all files that are held out, or those that are not; None: all."""
    lines = (line for file in files for line in open_lines(file))
    numbered = enumerate(lines, 1)
    return ((line,) for number, line in numbered if held_out in (None, number % HELD_OUT_EVERY == 0))


def _file(file: Path) -> Input:
    try:
        return Input.of_file(file)
    except FileNotFoundError:
        raise DataError("no such file", file=file) from None


def _settings(corpus: Corpus) -> JSON:
    """What of a corpus changes the texts it gives."""
    if isinstance(corpus, Portion):
        return {**asdict(corpus.part), "corpora": [_settings(each) for each in corpus.corpora]}
    settings: dict[str, JSON] = corpus.model_dump(mode="json", exclude={"weight", "epochs"})
    return settings
