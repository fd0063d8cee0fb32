"""The synthesize stage: a text and a trained model, or several, to pairs with log-probabilities."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tfm.data.corpora.preflight import check_and_count_rows
from tfm.data.corpora.sources import describe_corpus, read_rows
from tfm.data.corpus_config import CorpusConfig
from tfm.data.errors import DataError, missing_file_error
from tfm.pipeline.artifacts.artifact import Input, Plan, is_fresh, publish
from tfm.pipeline.artifacts.canonical_json import JSON
from tfm.pipeline.artifacts.corpus_inputs import SYNTHESIZE_STAGE, corpus_inputs, text_changing_settings
from tfm.pipeline.cluster.chunk_store import open_chunk_store
from tfm.pipeline.cluster.local_session import LocalSession
from tfm.pipeline.config import Device
from tfm.pipeline.inference.translation_records import Translation
from tfm.pipeline.model_io.model_folder import resolve_model_folder
from tfm.pipeline.model_io.shortlist_folder import STAGE as SHORTLIST_STAGE
from tfm.pipeline.model_io.shortlist_folder import shortlist_inputs
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.runtime.worker_process import can_fork
from tfm.pipeline.synthesis.config import SynthesisConfig
from tfm.pipeline.synthesis.held_out import HeldOutTexts, read_held_out_texts
from tfm.pipeline.synthesis.output import write_pairs
from tfm.pipeline.synthesis.pairs import (
    REMEDY_BY_REASON,
    SyntheticPair,
    drop_low_scores,
    min_kept_score,
    synthesize_pairs,
)
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.pipeline.text_files import show_remarks, warn_of_remarks

if TYPE_CHECKING:
    from tfm.pipeline.cluster.session import ClusterSession
    from tfm.pipeline.cluster.translation import ClusterTranslator
    from tfm.pipeline.model_io.loaded_model import LoadedModel

# one more whenever the same settings give other pairs: text of an earlier revision is no longer up to date
SYNTHESIS_REVISION = 4
# torch is imported where it is needed: a stage that is up to date reports so without it

SELECTION_KEYS = frozenset({"utility", "noise", "min_score", "percentile"})
"""Keys of [synthesis] that have an effect on what is made of translations, and none on these."""
CHUNK_LINES = 512
"""Lines of a unit of work, which one process translates with one thread: scores depend on it in their last digits."""


def plan_synthesis(config: SynthesisConfig, model: Path, out: Path) -> Plan:
    """Return the plan of `synthesize`.

    Args:
        config: the [synthesis] part of a recipe.
        model: the folder of the model.
        out: the folder of the artifact.

    Raises:
        DataError: a model or the text is not there.
    """
    inputs = {"model": Input.from_artifact(model, "train")}
    for number, folder in enumerate(config.models, 2):
        inputs[f"model {number}"] = Input.from_artifact(resolve_model_folder(Path(folder)), "train")
    inputs |= corpus_inputs({"text": [config.text]}, online=False)
    for file in config.tests:
        inputs[f"tests: {file}"] = _file_input(Path(file))
    inputs |= shortlist_inputs(config.decoding)
    settings: dict[str, JSON] = {
        "synthesis": config.as_json(),  # type: ignore[dict-item]
        "text": text_changing_settings(config.text),
        "revision": SYNTHESIS_REVISION,
    }
    return Plan(SYNTHESIZE_STAGE, out, settings, inputs, seed=None)


def synthesize(
    config: SynthesisConfig,
    model: Path,
    out: Path,
    *,
    command: Sequence[str],
    reporter: Reporter,
    device: Device = "auto",
    cluster: str | None = None,
    workers: int | None = None,
) -> None:
    """Translate a text and publish the pairs: input.txt is the text, output.txt what the model wrote.

    scores.parquet has the log-probability of each pair, and of each token of it; dropped.jsonl the lines and pairs
    that are left out, with the reason. Lines of test sets of the models are left out. Stopped at any moment, the same
    command goes on with what was translated. The bytes are the same whatever the number of processes and machines.

    Args:
        config: the [synthesis] part of a recipe.
        model: the folder of the model.
        out: the folder of the artifact.
        command: the command line, for the manifest.
        reporter: receives messages.
        device: name of the device.
        cluster: the address of a cluster that translates; None for this machine.
        workers: processes of this machine; None: one a thread of torch.

    Raises:
        DataError: the model does not translate text, the text is a test set, or no pair is left.
    """
    plan = plan_synthesis(config, model, out)
    if is_fresh(plan, reporter):
        return
    models = [each for name, each in plan.inputs.items() if name.split()[0] == "model"]
    held_out = read_held_out_texts(models, [Path(file) for file in config.tests], reporter)
    _check_text_not_held_out(config.text, plan, held_out)
    for folder in held_out.missing:
        reporter.warn(f"{folder}: is not there, so the lines of its test sets are not known: name them by --test")
    early_remarks = _check_text(config.text, reporter)
    with publish(plan, command=command) as draft, ExitStack() as stack, show_remarks(reporter.warn, early_remarks):
        synthesizer = _PairSynthesizer(config, held_out, plan, device, reporter)
        synthesizer.connect(cluster, workers, stack)
        limit = config.min_score
        if config.percentile is not None:
            scores = [pair.score for pair in synthesizer.iterate_pairs("translating") if pair.dropped is None]
            limit = draft.figures["limit"] = min_kept_score(np.array(scores), config.percentile)
        label = "translating" if config.percentile is None else "writing"
        text = write_pairs(drop_low_scores(synthesizer.iterate_pairs(label), limit), draft.folder)
        if not text.pairs:
            remedy = REMEDY_BY_REASON[max(text.dropped, key=lambda reason: text.dropped[reason])]
            problem = f"no pair is left; dropped: {text.describe_dropped()}" if text.lines else "has no lines"
            raise DataError(f"{problem}; {remedy}", file=describe_corpus(config.text))
        draft.figures.update(text.as_json())
    reporter.line(f"synthetic: {text}")
    reporter.line(f"synthetic: {out}")


class _PairSynthesizer:
    """The pairs of a text, read again each time that they are asked for: what was translated is kept.

    Args:
        config: the [synthesis] part of a recipe.
        held_out: texts that are not translated.
        plan: of the artifact, beside which translations are kept until it is published.
        device: name of the device.
        reporter: shows progress and warnings.
    """

    def __init__(
        self, config: SynthesisConfig, held_out: HeldOutTexts, plan: Plan, device: Device, reporter: Reporter
    ) -> None:
        self._config, self._held_out, self._plan = config, held_out, plan
        self._device, self._reporter = device, reporter
        self._translator: ClusterTranslator | None = None
        self._loaded: LoadedModel | None = None

    def connect(self, address: str | None, workers: int | None, stack: ExitStack) -> None:
        """Open the cluster, or the processes of this machine, that translate, until the stack is closed.

        Args:
            address: of the cluster; None for this machine.
            workers: processes of this machine; None: one a thread of torch.
            stack: closes what is opened.

        Raises:
            DataError: the models do not translate text.
        """
        from tfm.pipeline.cluster.session import connect_to_cluster
        from tfm.pipeline.cluster.translation import ClusterTranslator, load_models
        from tfm.pipeline.decoding.workers import keep_freed_memory
        from tfm.pipeline.model_io.ensemble import warn_of_repeated_members

        models = [each for name, each in self._plan.inputs.items() if name.split()[0] == "model"]
        folders = tuple(str(Path(each.path or "").absolute()) for each in models)
        fingerprints = tuple(each.fingerprint for each in models)
        warn_of_repeated_members([each.path or "" for each in models], fingerprints, self._reporter)
        loaded = load_models(folders, fingerprints, self._device)
        loaded.check_reads_text("give a model that translates")
        if not TASK_SPECS[loaded.config.task].translates:
            raise DataError(f"was trained for {loaded.config.task}: give a model that translates", file=loaded.folder)
        self._loaded = loaded.for_languages(self._config.to, self._config.source_language)
        session: ClusterSession | LocalSession
        if address is not None:
            session = stack.enter_context(connect_to_cluster(address, _translation_plan(self._plan)))
        else:
            store = stack.enter_context(open_chunk_store(_translation_plan(self._plan)))
            session = LocalSession(_num_workers(loaded, workers), store, keep_freed_memory)
        shortlist = self._plan.inputs.get(SHORTLIST_STAGE)
        self._translator = ClusterTranslator(
            session, models, self._config.decoding, self._device, 1, CHUNK_LINES, shortlist
        )

    def iterate_pairs(self, label: str) -> Iterator[SyntheticPair]:
        """Yield the pairs in the order of the lines, those that are dropped too. label: of the progress bar."""
        assert self._translator is not None  # after `connect`
        config, translator = self._config, self._translator
        with self._reporter.bar(label, None, "lines") as bar:

            def translate(texts: Iterable[str]) -> Iterator[Sequence[Translation]]:
                languages = config.to, config.source_language
                return translator.translate(texts, languages, reporter=self._reporter, on_done=bar.advance)

            rows = read_rows(config.text)
            if not config.text.has_source:
                rows = ((text,) for _, text in rows)
            yield from synthesize_pairs(
                rows, self._held_out, self._are_too_long, translate, config.utility, config.noise
            )

    def _are_too_long(self, texts: list[str]) -> list[bool]:
        """Whether each text is longer than the models read."""
        from tfm.pipeline.decoding.decode import is_source_truncated

        assert self._loaded is not None  # after `connect`
        model = self._loaded.model
        return [is_source_truncated(ids, model) for ids in self._loaded.source_tokenizer.encode_batch(texts)]


def _translation_plan(plan: Plan) -> Plan:
    """The plan with what determines translations alone: others of them may stay, and with other noise, as they are."""
    synthesis = plan.config["synthesis"]
    assert isinstance(synthesis, dict)
    settings = {name: value for name, value in synthesis.items() if name not in SELECTION_KEYS}
    inputs = {name: each for name, each in plan.inputs.items() if name.split()[0] == "model" or name == SHORTLIST_STAGE}
    return replace(plan, config={"synthesis": settings, "revision": SYNTHESIS_REVISION}, inputs=inputs)


def _num_workers(loaded: "LoadedModel", requested_workers: int | None) -> int:
    """The number of processes to fork; none on a GPU, and where none can be forked."""
    import torch

    if not can_fork() or next(loaded.model.parameters()).device.type != "cpu":
        return 0
    return torch.get_num_threads() if requested_workers is None else requested_workers


def _check_text_not_held_out(text: CorpusConfig, plan: Plan, held_out: HeldOutTexts) -> None:
    """Raise DataError if a file of the text is a validation or test set of the models."""
    for label, text_input in plan.inputs.items():
        if label.startswith("text: ") and (name := held_out.files.get(text_input.fingerprint)) is not None:
            problem = f"is held-out data of the model ({name}), which no training text is made of: give another text"
            raise DataError(problem, file=text_input.path or describe_corpus(text))


def _check_text(text: CorpusConfig, reporter: Reporter) -> frozenset[str]:
    """Find errors of a text before hours of translating, and show what its readers remark at its beginning.

    Raises:
        DataError: a file is not in order.
    """

    def open_rows() -> Iterable[object]:
        check_and_count_rows(text)
        return read_rows(text)

    return warn_of_remarks(open_rows, reporter)


def _file_input(file: Path) -> Input:
    try:
        return Input.from_file(file)
    except FileNotFoundError:
        raise missing_file_error(file) from None
