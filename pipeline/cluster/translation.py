"""Lines translated on a cluster: what `inference.translation.translate_lines` gives, to the last digit.

A unit of work is the CHUNK_LINES lines that one process translates at a time. A node shares them out as the process
would that asks for them, as the shapes of products decide the last digits of scores.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tfm.data.dataset.directions import Direction
from tfm.data.lines import chunk_rows
from tfm.pipeline.artifacts.artifact import Input, Plan
from tfm.pipeline.cluster.chunk_store import damaged_chunk_error, hash_text_columns
from tfm.pipeline.cluster.local_session import LocalSession
from tfm.pipeline.cluster.session import ClusterSession, ComputeChunk, connect_to_cluster
from tfm.pipeline.cluster.shared_folder import check_folder_is_shared
from tfm.pipeline.config import DecodingConfig, Device
from tfm.pipeline.decoding.constraints.lines import check_no_unused_lines
from tfm.pipeline.errors import DataError
from tfm.pipeline.inference.minimum_bayes_risk.selection import cost_message
from tfm.pipeline.inference.source_problems import SourceProblems
from tfm.pipeline.inference.translation import CHUNK_LINES, translate_lines
from tfm.pipeline.inference.translation_records import Translation, join_to_one_line
from tfm.pipeline.model_io.shortlist_folder import STAGE as SHORTLIST_STAGE
from tfm.pipeline.model_io.shortlist_folder import load_shortlist, shortlist_inputs
from tfm.pipeline.runtime.progress import NullReporter, Reporter

if TYPE_CHECKING:
    from tfm.pipeline.model_io.loaded_model import LoadedModel

Languages: TypeAlias = Direction | tuple[str | None, str | None]
"""The direction of all lines; or the target's and the source's language, if they are given."""
Lines = list[str]


@dataclass(frozen=True)
class ClusterTranslator:
    """Translates lines on a cluster, or by processes of this machine that work as one.

    Args:
        cluster: the cluster, or this machine.
        models: the artifacts of the model, or of the members of an ensemble, in folders that every node has.
        config: settings of decoding.
        device: name of the device of a node; cuda: a GPU for each chunk.
        threads: of a single process whose translations these are.
        chunk_lines: lines of a unit of work.
        shortlist: the artifact that the settings name; None: none.
    """

    cluster: ClusterSession | LocalSession
    models: Sequence[Input]
    config: DecodingConfig
    device: Device
    threads: int
    chunk_lines: int = CHUNK_LINES
    shortlist: Input | None = None

    def translate(
        self,
        lines: Iterable[str],
        languages: Languages,
        *,
        reporter: Reporter,
        prefixes: Iterable[str] | None = None,
        forced: Iterable[str] | None = None,
        on_done: Callable[[int], None] = lambda _: None,
    ) -> Iterator[list[Translation]]:
        """Translate lines, in their order, as `translate_lines` does.

        Args:
            lines: the texts.
            languages: of the lines.
            reporter: shows warnings.
            prefixes: for each line, text that its translations begin with.
            forced: for each line, between tabs, words and phrases that its translations must contain.
            on_done: called with the number of further lines that are done.

        Yields:
            The `n_best` translations of each line, the best first.

        Raises:
            DataError: there are fewer or more prefixes or forced words than lines.
        """
        if self.config.strategy == "mbr":
            reporter.line(cost_message(self.config))
        cuts, limit = SourceProblems(), 0
        constraint_lines = [None if each is None else iter(each) for each in (prefixes, forced)]
        for count, result in self.cluster.map_in_order(
            translate_chunk,
            self._make_chunks(lines, languages, constraint_lines),
            num_gpus=float(self.device == "cuda"),
        ):
            try:
                translations, problems, limit = parse_chunk_result(result, count)
            except ValueError as error:
                raise damaged_chunk_error(error, self.cluster.store) from error
            cuts = SourceProblems(**{name: number + problems[name] for name, number in asdict(cuts).items()})
            on_done(count)
            yield from translations
        check_no_unused_lines(*constraint_lines)
        cuts.warn(reporter, limit)

    def _make_chunks(
        self, lines: Iterable[str], languages: Languages, constraint_lines: Sequence[Iterator[str] | None]
    ) -> Iterator[tuple[int, ComputeChunk]]:
        folders = tuple(str(Path(each.path or "").absolute()) for each in self.models)
        fingerprints = tuple(each.fingerprint for each in self.models)
        shortlist_fingerprint = None if self.shortlist is None else self.shortlist.fingerprint
        shortlist = self.config.shortlist  # a node has another working folder
        shortlist_update = {} if shortlist is None else {"shortlist": str(Path(shortlist).absolute())}
        config = self.config.model_copy(update=shortlist_update).model_dump_json(exclude_unset=True)
        for rows in chunk_rows(zip(lines), self.chunk_lines):
            texts = [line for (line,) in rows]
            starts, words = (None if each is None else list(islice(each, len(texts))) for each in constraint_lines)
            settings = [
                self.device,
                repr(languages),
                config,
                str(self.threads),
                str(starts is None),
                str(words is None),
            ]
            key = hash_text_columns(texts, starts or [], words or [], settings)
            arguments = (
                folders,
                fingerprints,
                self.device,
                self.threads,
                languages,
                config,
                texts,
                starts,
                words,
                shortlist_fingerprint,
            )
            yield len(texts), ComputeChunk(key, arguments)


@contextmanager
def open_cluster_translator(
    address: str, plan: Plan | None, models: Sequence[Input], config: DecodingConfig, device: Device
) -> Iterator[ClusterTranslator]:
    """Connect to a cluster that translates for the time of the block.

    Args:
        address: as `session.connect_to_cluster` has it.
        plan: of the artifact, as `session.connect_to_cluster` has it.
        models: the artifacts of the model, or of the members of an ensemble.
        config: settings of decoding.
        device: name of the device of a node.
    """
    import torch  # here, as in all stages

    with connect_to_cluster(address, plan) as session:
        shortlist = (plan.inputs if plan is not None else shortlist_inputs(config)).get(SHORTLIST_STAGE)
        yield ClusterTranslator(session, models, config, device, torch.get_num_threads(), shortlist=shortlist)


def select_languages(loaded: "LoadedModel", languages: Languages) -> "LoadedModel":
    """Return the model for some languages. Raises DataError as `LoadedModel.for_languages`."""
    if isinstance(languages, Direction):
        return loaded.for_direction(languages)
    return loaded.for_languages(*languages)


def translate_chunk(
    folders: tuple[str, ...],
    fingerprints: tuple[str, ...],
    device: Device,
    threads: int,
    languages: Languages,
    config: str,
    lines: Lines,
    prefixes: Lines | None,
    forced: Lines | None,
    shortlist_fingerprint: str | None,
) -> bytes:
    """Translate some lines, on a node.

    Args:
        folders: of the models.
        fingerprints: of the models.
        device: name of the device.
        threads: of the process to imitate.
        languages: as `ClusterTranslator.translate` has them.
        config: the settings of decoding that were given, as JSON.
        lines: the texts.
        prefixes: for each line, text that its translations begin with.
        forced: for each line, words and phrases that its translations must contain.
        shortlist_fingerprint: the fingerprint of the shortlist that the settings name; None: none.

    Returns:
        JSON: the translations of each line, the counts of `SourceProblems`, and the most pieces that the model reads.
    """
    from tfm.pipeline.decoding.workers import imitate_num_threads

    loaded, cuts = load_models(folders, fingerprints, device), SourceProblems()
    settings = DecodingConfig.model_validate_json(config)
    shortlist_input = None if shortlist_fingerprint is None else Input.from_value(shortlist_fingerprint)
    with imitate_num_threads(threads):
        results = translate_lines(
            select_languages(loaded, languages),
            lines,
            settings,
            reporter=NullReporter(),
            prefixes=prefixes,
            forced=forced,
            earlier_problems=cuts,
            shortlist=load_shortlist(loaded, settings, shortlist_input),
        )
        translations = [[asdict(each) for each in n_best] for n_best in results]
    limit = loaded.model.max_length - 1
    return json.dumps({"translations": translations, "problems": asdict(cuts), "limit": limit}).encode()


def parse_chunk_result(content: bytes, count: int) -> tuple[list[list[Translation]], dict[str, int], int]:
    """Read the result of `translate_chunk`. Raises ValueError if it does not have the expected number of lines."""
    try:
        document: Any = json.loads(content)
        translations = [[_parse_translation(each) for each in n_best] for n_best in document["translations"]]
        problems = {name: int(document["problems"][name]) for name in asdict(SourceProblems())}
        if len(translations) != count or not all(translations):
            raise ValueError("it has another number of lines")
        return translations, problems, int(document["limit"])
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _parse_translation(record: Any) -> Translation:
    """Return a translation that was kept. Raises ValueError or TypeError where the record is none."""
    translation = Translation(**record)
    kinds: dict[str, tuple[type, ...]] = {"score": (float, int), "log_prob": (float, int), "num_tokens": (int,)}
    for name, kind in {"text": (str,), **kinds}.items():
        if type(getattr(translation, name)) not in kind:
            raise TypeError(f"{name} is a {type(getattr(translation, name)).__name__}")
    if translation.text != join_to_one_line(translation.text):
        raise ValueError("a translation has more than one line")
    translation.text.encode()  # no half of a surrogate pair
    return translation


@lru_cache(maxsize=1)
def load_models(folders: tuple[str, ...], fingerprints: tuple[str, ...], device: Device) -> "LoadedModel":
    """Load the models. Raises DataError if a folder has another model than requested."""
    from tfm.pipeline.decoding.workers import keep_freed_memory
    from tfm.pipeline.model_io.ensemble import load_ensemble

    for folder in folders:
        check_folder_is_shared(Path(folder))
    keep_freed_memory()
    loaded = load_ensemble([Path(folder) for folder in folders], device)
    for folder, fingerprint in zip(folders, fingerprints, strict=True):
        if Input.from_artifact(Path(folder), "train").fingerprint != fingerprint:
            raise DataError("was replaced while this command began to read it; run the command again", file=folder)
    return loaded
