"""The translate stage: lines of text to translations by a trained model, streamed, in order."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice, tee
from pathlib import Path
from typing import TYPE_CHECKING

from tfm.data.errors import DataError
from tfm.data.lines import open_lines, portions
from tfm.data.store import load_dataset
from tfm.pipeline.agreement import check_tokenizer
from tfm.pipeline.artifact import JSON, Draft, Input, Plan, is_fresh, open_artifact, publish, read_artifact
from tfm.pipeline.config import DecodingConfig, Device
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.progress import Reporter

if TYPE_CHECKING:
    from tfm.pipeline.decoding.phrases import Phrases
    from tfm.pipeline.models import LoadedModel

# torch is imported where it is needed: a stage that is fresh says so without it

CHUNK_LINES = 8192


@dataclass(frozen=True)
class Translation:
    """One translation of a line, itself one line.

    `log_prob`: sum of the log-probabilities of its `num_tokens` tokens (end token included), in nats; `score`: that sum
    after length normalisation.
    """

    text: str
    score: float
    log_prob: float
    num_tokens: int


NOTHING = Translation("", 0.0, 0.0, 0)
"""What an empty line becomes."""


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
) -> Iterator[list[Translation]]:
    """The `config.n_best` translations of each line, best first; lines in order.

    Reads `chunk_lines` lines, fewer where they are very long, then gives their translations: 1 answers each line at
    once, more sort better by length. `ready` says whether the next line can be read without waiting for it: where it
    cannot, those that were read are answered.
    A line without pieces is translated by an empty line, not by the model. A source longer than the model reads is
    cut, which is reported at the end. `prefixes`: for each line, text that its translations begin with.
    `forced`: for each line, between tabs, words and phrases that must come up in them. `on_done` is told how many more
    lines are done. Raises DataError where there are fewer prefixes or forced words than lines.
    A model that labels is asked for labels instead: the likeliest ones of each line, or one of each of its words.
    """
    from tfm.pipeline.decoding.decode import decode, is_too_long
    from tfm.pipeline.decoding.phrases import FORCED_NEED_A_BEAM, Phrases
    from tfm.pipeline.label import Cuts, label, labels_instead

    chunks = portions(zip(lines), chunk_lines, ready)
    if labels_instead(loaded):
        if (reason := config.no_n_best(loaded.config.task)) is not None:
            raise RecipeError(reason)
        cuts = Cuts()
        for rows in chunks:
            for best in label(loaded, [line for (line,) in rows], cuts, on_done, n_best=config.n_best):
                yield [Translation(one_line(text), log_prob, log_prob, count) for text, log_prob, count in best]
        if (warning := cuts.warning(loaded.model.max_length - 1)) is not None:
            reporter.warn(warning)
        return
    model = loaded.model.eval()
    device = next(model.parameters()).device
    starts, words = (None if each is None else iter(each) for each in (prefixes, forced))
    if words is not None and (config.strategy != "search" or config.beam == 1):
        raise RecipeError(FORCED_NEED_A_BEAM)
    num_lines = num_cut = 0
    for rows in chunks:
        chunk = [line for (line,) in rows]
        sources = loaded.source_tokenizer.encode_batch(chunk)
        targets = None if starts is None else _encode_prefixes(loaded, list(islice(starts, len(chunk))), chunk)
        beside = None if words is None else _split_words(list(islice(words, len(chunk))), chunk)
        phrases = Phrases.of(loaded.target_tokenizer, config, len(chunk), forced=beside)
        _check_room(phrases, targets, model.max_length - 1)
        num_lines += len(chunk)
        num_cut += sum(is_too_long(source, model) for source in sources)
        found = decode(model, sources, config, device=device, prefixes=targets, phrases=phrases, on_done=on_done)
        texts = iter(loaded.target_tokenizer.decode_batch([list(each.ids) for n_best in found for each in n_best]))
        for source, n_best in zip(sources, found, strict=True):
            translations = [
                Translation(one_line(next(texts)), each.score, each.log_prob, each.num_tokens) for each in n_best
            ]
            yield translations if source else [NOTHING]
    if num_cut:
        were = "was" if num_cut == 1 else "were"
        reporter.warn(
            f"{num_cut} of {num_lines} sources {were} longer than the {model.max_length - 1} pieces that the model "
            f"reads, and {were} cut"
        )


def _encode_prefixes(loaded: "LoadedModel", prefixes: list[str], lines: list[str]) -> list[list[int]]:
    """Ids of the prefixes of these lines."""
    if len(prefixes) < len(lines):
        raise DataError("there are fewer prefixes than lines: give one for each line, empty where none is wanted")
    limit = loaded.model.max_length - 1
    encoded = loaded.target_tokenizer.encode_batch(prefixes)
    for prefix, ids in zip(prefixes, encoded, strict=True):
        if len(ids) > limit:
            raise DataError(f"a prefix has {len(ids)} pieces and the model reads at most {limit}: {prefix[:40]!r}...")
    return encoded


def _split_words(forced: list[str], lines: list[str]) -> list[list[str]]:
    """The words and phrases of these lines."""
    if len(forced) < len(lines):
        raise DataError("there are fewer lines of forced words than lines: give one each, empty where none is wanted")
    return [split_phrases(each) for each in forced]


def split_phrases(line: str) -> list[str]:
    """The words and phrases of a line of forced ones."""
    return [phrase for phrase in line.split("\t") if phrase.strip()]


def _check_room(phrases: "Phrases", prefixes: Sequence[Sequence[int]] | None, limit: int) -> None:
    """Raise DataError where a translation would be longer than the model reads by what must come up alone."""
    for row, each in enumerate(phrases.forced or ()):
        wanted = sum(map(len, set(each))) + (len(prefixes[row]) if prefixes is not None else 0)
        if wanted > limit:
            raise DataError(f"the forced words of a line have {wanted} pieces and the model reads at most {limit}")


def one_line(text: str) -> str:
    """The text with a blank for each line break in it: line n of a file of translations belongs to line n."""
    return text.replace("\r", " ").replace("\n", " ")


def as_json(source: str, translations: Sequence[Translation]) -> dict[str, JSON]:
    """One line of a .jsonl of translations: {"source", "translations": [{"text", "score", ...}, ...]}."""
    return {"source": source, "translations": [asdict(translation) for translation in translations]}


def plan_tests(model: Path, dataset: Path, config: DecodingConfig, out: Path, *, seed: int = 1) -> Plan:
    """What `translate_tests` will make, from what. Raises DataError where the model has another tokenizer."""
    network, data = open_artifact(model, "train"), open_artifact(dataset, "preprocess")
    check_tokenizer(network, data)
    return _plan({"model": network.as_input(), "dataset": data.as_input()}, config, out, seed)


def plan_file(
    model: Path,
    source: Path,
    config: DecodingConfig,
    out: Path,
    *,
    seed: int = 1,
    prefixes: Path | None = None,
    forced: Path | None = None,
    ensemble: Sequence[Path] = (),
) -> Plan:
    """What `translate_file` will make, from what."""
    inputs = {"model": Input.of_artifact(model, "train"), "source": Input.of_file(source)}
    inputs |= {f"model {number}": Input.of_artifact(other, "train") for number, other in enumerate(ensemble, 2)}
    for name, file in (("prefixes", prefixes), ("forced", forced)):
        if file is not None:
            inputs[name] = Input.of_file(file)
    return _plan(inputs, config, out, seed)


def _plan(inputs: dict[str, Input], config: DecodingConfig, out: Path, seed: int) -> Plan:
    decoding = config.model_dump(mode="json")
    return Plan(stage="translate", folder=out, config={"decoding": decoding}, inputs=inputs, seed=seed)


def translate_tests(
    model: Path,
    dataset: Path,
    config: DecodingConfig,
    out: Path,
    *,
    seed: int = 1,
    command: Sequence[str],
    reporter: Reporter,
    device: Device = "auto",
) -> None:
    """Translates the source of every test set of `dataset` into `out`.

    For each test set: NAME.txt, best translations one a line; NAME.jsonl, all `n_best` with scores; NAME.source.txt and
    NAME.reference.txt; further references in NAME.reference.2.txt, ..., an empty line where a segment has not so many.
    """
    todo = plan_tests(model, dataset, config, out, seed=seed)
    if is_fresh(todo, reporter):
        return
    from tfm.pipeline.models import load_model

    with publish(todo, command=command) as draft:
        loaded = load_model(model, device, known=todo.inputs["model"])
        data = read_artifact(dataset, lambda _: load_dataset(dataset), known=todo.inputs["dataset"])
        for name, split in data.tests.items():
            sources, references = split.texts()
            for number, column in enumerate((references, *split.further_references()), 1):
                with open(draft.folder / reference_file(name, number), "w", encoding="utf-8", newline="\n") as file:
                    file.writelines(one_line(reference) + "\n" for reference in column)
            with reporter.bar(f"translating {name}", len(sources), "sentences") as bar:
                found = partial(translate_lines, loaded, config=config, reporter=reporter, on_done=bar.advance)
                _write(draft, name, f"{name}.source", sources, found, reporter)


def reference_file(test: str, number: int) -> str:
    """The file of a test set's references; they are numbered from 1."""
    return f"{test}.reference.txt" if number == 1 else f"{test}.reference.{number}.txt"


def translate_file(
    model: Path,
    source: Path,
    config: DecodingConfig,
    out: Path,
    *,
    seed: int = 1,
    command: Sequence[str],
    reporter: Reporter,
    device: Device = "auto",
    prefixes: Path | None = None,
    forced: Path | None = None,
    ensemble: Sequence[Path] = (),
) -> None:
    """Translates a text file into `out`: hypotheses.txt, hypotheses.jsonl with scores, and source.txt.

    `prefixes`: a file that says, line by line, what each translation begins with. `forced`: one that says, between
    tabs, what must come up in it. `ensemble`: models that translate together with the first.
    """
    todo = plan_file(model, source, config, out, seed=seed, prefixes=prefixes, forced=forced, ensemble=ensemble)
    if is_fresh(todo, reporter):
        return
    from tfm.pipeline.decoding.ensemble import load_ensemble

    with publish(todo, command=command) as draft:
        loaded = load_ensemble([model, *ensemble], device)
        starts, words = (None if file is None else open_lines(file) for file in (prefixes, forced))
        with reporter.bar("translating", None, "sentences") as bar:
            found = partial(
                translate_lines,
                loaded,
                config=config,
                reporter=reporter,
                prefixes=starts,
                forced=words,
                on_done=bar.advance,
            )
            _write(draft, "hypotheses", "source", open_lines(source), found, reporter)


def _write(
    draft: Draft,
    name: str,
    source_name: str,
    sources: Iterable[str],
    translate: Callable[[Iterable[str]], Iterator[list[Translation]]],
    reporter: Reporter,
) -> None:
    """Write the translations of one text into a draft, and what they took into its figures."""
    began = time.monotonic()
    num_lines = num_tokens = 0
    sources, asked = tee(sources)
    with ExitStack() as stack:
        text, records, copy = (
            stack.enter_context(open(draft.folder / file, "w", encoding="utf-8", newline="\n"))
            for file in (f"{name}.txt", f"{name}.jsonl", f"{source_name}.txt")
        )
        for source, translations in zip(sources, translate(asked), strict=True):
            text.write(translations[0].text + "\n")
            records.write(json.dumps(as_json(source, translations), ensure_ascii=False) + "\n")
            copy.write(one_line(source) + "\n")
            num_lines, num_tokens = num_lines + 1, num_tokens + translations[0].num_tokens
    seconds = time.monotonic() - began
    rate = num_tokens / seconds
    draft.figures[name] = {"sentences": num_lines, "seconds": round(seconds, 3), "tokens_per_second": round(rate, 1)}
    reporter.line(f"{name}: {num_lines:,} sentences in {seconds:.1f} s, {rate:,.0f} tokens a second")
