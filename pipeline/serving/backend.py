"""The parts that the routes of a server share: its models, its queue, its limits, who may ask, and its log."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tfm.pipeline.errors import TfmError
from tfm.pipeline.serving.access import AccessControl
from tfm.pipeline.serving.catalog import ModelCatalog, ServedModel, has_new_version, read_served_model
from tfm.pipeline.serving.detection import Detector
from tfm.pipeline.serving.dispatch.answer_cache import AnswerCache
from tfm.pipeline.serving.dispatch.dispatcher import Dispatcher
from tfm.pipeline.serving.limits import Limits
from tfm.pipeline.serving.logs import Log
from tfm.pipeline.serving.metrics import Metrics
from tfm.pipeline.serving.problems import bad_request
from tfm.pipeline.serving.translation_service import TranslationService


@dataclass
class Backend:
    """The parts of a server.

    Args:
        catalog: the models, as they are published now.
        dispatcher: the queue and its processes.
        limits: of requests.
        access: who may ask.
        log: where requests are noted.
        detector: finds the language of a text, if one is installed.
        beam: the beam of a request that names none.
        replace_unknown: whether unknown words are replaced by words of the source, where a model writes words.
    """

    catalog: ModelCatalog
    dispatcher: Dispatcher
    limits: Limits
    access: AccessControl
    log: Log
    detector: Detector | None = None
    beam: int = 5
    replace_unknown: bool = False
    cache: AnswerCache = field(init=False)
    translation: TranslationService = field(init=False)
    metrics: Metrics = field(init=False)
    _reasons: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.cache = AnswerCache(self.limits.cached_answers, self.limits.cached_chars)
        self.translation = TranslationService(
            self.dispatcher, self.limits, self.cache, self.log.warn, replace_unknown=self.replace_unknown
        )
        self.metrics = Metrics(
            {
                "pending_sentences": ("Sentences that are waited for.", lambda: self.dispatcher.num_pending),
                "worker_restarts": ("Decoding processes that have died.", lambda: self.dispatcher.num_restarts),
                "workers": ("Decoding processes that run.", lambda: len(self.dispatcher.workers)),
                "cached_answers": ("Answers that are kept.", lambda: len(self.cache)),
                "cache_hits": ("Queries that were answered before.", lambda: self.cache.hits),
                "cache_misses": ("Queries that were not.", lambda: self.cache.misses),
            }
        )

    def open(self) -> None:
        """Start the processes, and load all models in each."""
        for model in self.catalog.models.values():
            self.dispatcher.load(model.version)
        self.dispatcher.open()

    def choose_model(self, name: str | None, ability: str, models: Sequence[ServedModel]) -> ServedModel:
        """The model that a request means.

        Args:
            name: that it gives; None: the only one that can.
            ability: what the model has to do, in words.
            models: those that can.

        Raises:
            Problem: there is none, or several and none is named.
        """
        names = [each.name for each in models]
        if name is None and len(models) == 1:
            return models[0]
        if name is None:
            choices = f"say which, model = {' or '.join(names)}" if names else "this server has none"
            raise bad_request(f"model: the route needs one that {ability}: {choices}")
        if name not in names:
            choices = ", ".join(names) or "none"
            raise bad_request(f"model: this server has no {name[:80]!r} that {ability}; it has {choices}")
        return models[names.index(name)]

    async def reload_republished_models(self) -> list[str]:
        """Load the new version of each model that, or whose shortlist, was published since it was read; return their
        names.

        The previous version answers requests until the new one is loaded; a version that cannot be loaded does
        not replace it.
        """
        reloaded_models = []
        for model in list(self.catalog.models.values()):
            if not await asyncio.to_thread(has_new_version, model):
                continue
            try:
                new_model = await asyncio.to_thread(_read_republished_model, model)
            except (TfmError, OSError) as error:
                self._warn_not_loaded(model, str(error))
                continue
            self.dispatcher.load(new_model.version)
            problem = await self.dispatcher.wait_until_loaded(new_model.version.key)
            if problem is not None:
                self.dispatcher.unload_when_unused(new_model.version.key)
                self._warn_not_loaded(model, problem)
                continue
            self.catalog = self.catalog.replace(new_model)
            self.dispatcher.unload_when_unused(model.version.key)
            reloaded_models.append(model.name)
            self._reasons.pop(model.name, None)
            self.log.info(f"{model.name}: new version loaded")
        return reloaded_models

    def _warn_not_loaded(self, model: ServedModel, reason: str) -> None:
        """Log once why a new version is not loaded, though loading is tried every few seconds."""
        if self._reasons.get(model.name) != reason:
            self._reasons[model.name] = reason
            self.log.warn(f"{model.name}: new version not loaded: {reason}")


def _read_republished_model(model: ServedModel) -> ServedModel:
    """The version of a model that is published now, under the name and languages that it has."""
    from dataclasses import replace

    shortlist = model.version.shortlist
    new_model = read_served_model(Path(model.version.folder), None if shortlist is None else shortlist.folder)
    keeps = model.are_pairs_given or not new_model.version.has_languages
    pairs, version = model.pairs if keeps else new_model.pairs, replace(new_model.version, name=model.name)
    return replace(new_model, version=version, pairs=pairs, are_pairs_given=model.are_pairs_given)
