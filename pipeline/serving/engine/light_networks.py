"""Small models in numpy, which a process has loaded before it would have loaded torch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.inference.generation.numpy_prompt_encoder import NumpyPromptEncoder, load_small_language_model
from tfm.pipeline.inference.numpy_labels import NumpyLabeller
from tfm.pipeline.inference.numpy_translation import NumpyModel
from tfm.pipeline.inference.source_problems import SourceProblems
from tfm.pipeline.serving.dispatch.messages import ModelVersion, Query
from tfm.pipeline.serving.engine.compiled_network import CompiledNetwork, load_compiled_network
from tfm.pipeline.serving.engine.completions import CompletionStreamer
from tfm.pipeline.serving.engine.small_versions import load_small_version
from tfm.pipeline.serving.engine.torch_fallback import TorchFallback, refuse_without_torch
from tfm.pipeline.serving.engine.work import Network, Work, as_scored_texts
from tfm.pipeline.serving.text.numpy_alignment import align_by_numpy
from tfm.pipeline.tasks.abilities import TASK_SPECS


@dataclass
class NumpyNetwork:
    """A version of a small model in numpy: a text at a time.

    Args:
        version: of the model.
        model: the model.
        fallback: computes queries that numpy cannot, or refuses them.
    """

    version: ModelVersion
    model: NumpyModel | NumpyLabeller
    fallback: Callable[[Query], Work]
    stepper: None = None
    read_source: None = None

    def make_work(self, query: Query) -> Work:
        """Return the work that a query is. Raises DataError for one that needs torch where that is excluded."""
        model = self.model
        if query.kind == "align" and isinstance(model, NumpyModel):
            return lambda: align_by_numpy(model, query.text, query.target or "")
        if query.kind not in ("translate", "label") or query.forced:
            return self.fallback(query)
        labels = isinstance(model, NumpyLabeller)
        search: dict[str, Any] = {} if labels else {"beam": query.beam}
        config = DecodingConfig.model_validate({"n_best": query.n_best, **search})
        return lambda: as_scored_texts(next(iter(model.translate([query.text], config, SourceProblems()))))


@dataclass
class NumpyLanguageModel:
    """A version of a small language model in numpy."""

    version: ModelVersion
    reader: NumpyPromptEncoder
    stepper: None = None
    read_source: None = None

    def make_work(self, query: Query) -> Iterator[Any]:
        """Return the parts of a completion. Raises DataError for a query that needs torch."""
        if query.kind != "generate":
            return refuse_without_torch(query)
        return CompletionStreamer(self.reader).stream_completion(query)


def load_light_network(
    version: ModelVersion, load_torch: Callable[[ModelVersion], Network] | None
) -> NumpyNetwork | NumpyLanguageModel | CompiledNetwork | None:
    """Load a model without torch: a labeller, a model with a compiled search, or any model if torch is excluded.

    Args:
        version: of the model.
        load_torch: loads a model in torch; None: small models are computed by numpy alone.

    Returns:
        The model; None if torch is needed for it.

    Raises:
        DataError: there is no such model.
    """
    abilities = TASK_SPECS[version.task]
    if version.reads_images or version.has_languages:
        return None
    if abilities.translates and load_torch is not None:
        return load_compiled_network(version, load_torch)
    if load_torch is not None and abilities.labels is None:
        return None
    if abilities.continues_text:
        reader = load_small_language_model(version.folder, None)
        return None if reader is None else NumpyLanguageModel(version, reader)
    config = DecodingConfig() if abilities.labels is not None else DecodingConfig(beam=5)
    network = load_small_version(version, config) if abilities.gives_hypotheses else None
    fallback = refuse_without_torch if load_torch is None else TorchFallback(version, load_torch)
    return None if network is None else NumpyNetwork(version, network, fallback)
