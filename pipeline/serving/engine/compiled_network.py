"""Small models whose beam search is compiled: a sentence at a time, without torch until a query needs it.

A process has such a model ready long before it would have loaded torch, and holds a fraction of the memory. Which way a
query takes depends on its model and on itself alone: plain translations take the compiled search, always; attention and
glossaries take torch, which is loaded beside the others' answers when the first of them comes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tfm.model.fused.compiled_transformer import CompiledTransformer, compile_transformer
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.search.compiled_beam_search import search_in_steps, search_to_end
from tfm.pipeline.inference.numpy_translation import NumpyModel
from tfm.pipeline.inference.source_problems import SourceProblems
from tfm.pipeline.inference.translation_records import EMPTY_TRANSLATION, join_to_one_line
from tfm.pipeline.model_io.numpy_model import WEIGHTS_FILE
from tfm.pipeline.serving.dispatch.messages import ModelVersion, Query
from tfm.pipeline.serving.engine.small_versions import load_small_version
from tfm.pipeline.serving.engine.torch_fallback import TorchFallback
from tfm.pipeline.serving.engine.work import Network, Work, as_scored_texts
from tfm.pipeline.serving.text.numpy_alignment import align_by_numpy
from tfm.tokenizer.special import EOS_ID

MAX_COMPILED_BYTES = 1 << 24
"""The most bytes of weights: more leave a processor's cache from step to step, and torch reads them once for many
sentences.
"""


@dataclass
class CompiledNetwork:
    """A version of a small model.

    Args:
        version: of the model.
        model: the model in numpy.
        compiled: its compiled search.
        fallback: computes queries of other kinds.
    """

    version: ModelVersion
    model: NumpyModel
    compiled: CompiledTransformer
    fallback: Callable[[Query], Work]
    stepper: None = None
    read_source: None = None

    def make_work(self, query: Query) -> Work:
        """Return the work that a query is."""
        if query.kind == "align":
            return lambda: align_by_numpy(self.model, query.text, query.target or "")
        replaces = query.replace_unknown and self.model.target_tokenizer.is_word_level
        if query.kind != "translate" or query.forced or replaces:
            return self.fallback(query)
        if query.n_best > 1:
            config = DecodingConfig(beam=query.beam, n_best=query.n_best)
            return lambda: as_scored_texts(next(iter(self.model.translate([query.text], config, SourceProblems()))))
        return self._translate(query)

    def _translate(self, query: Query) -> Iterator[Any]:
        """The parts of a search; the last one is its record."""
        ids = self.model.source_tokenizer.encode_batch([query.text])[0]
        if not ids:
            yield as_scored_texts([EMPTY_TRANSLATION])
            return
        source = [*ids[: self.compiled.max_length - 1], EOS_ID]
        candidates = self.model.candidates(source)
        for hypotheses in search_in_steps(self.compiled, source, DecodingConfig(beam=query.beam), candidates):
            if hypotheses is None:
                yield None
            else:
                (best,) = hypotheses
                text = join_to_one_line(self.model.target_tokenizer.decode_batch([list(best.ids)])[0])
                yield [(text, best.score, best.log_prob, best.num_tokens)]


def load_compiled_network(
    version: ModelVersion, load_torch: Callable[[ModelVersion], Network]
) -> CompiledNetwork | None:
    """Load a model that translates texts, if its search is compiled.

    Args:
        version: of the model.
        load_torch: loads a version in torch.

    Returns:
        The model; None if torch is needed for its translations.

    Raises:
        DataError: there is no such model.
    """
    weights = version.folder / WEIGHTS_FILE
    if not weights.exists() or weights.stat().st_size > MAX_COMPILED_BYTES:
        return None
    model = load_small_version(version, DecodingConfig(beam=5))
    return make_compiled_network(version, model, load_torch) if isinstance(model, NumpyModel) else None


def make_compiled_network(
    version: ModelVersion, model: NumpyModel, load_torch: Callable[[ModelVersion], Network]
) -> CompiledNetwork | None:
    """Return a model in numpy with its compiled search; None if that lacks a part of it.

    Args:
        version: of the model.
        model: the model.
        load_torch: loads a version in torch.
    """
    compiled = compile_transformer(model.network)
    if compiled is None:
        return None
    searching = replace(
        model, search=lambda _, source, config, candidates: search_to_end(compiled, source, config, candidates)
    )
    return CompiledNetwork(version, searching, compiled, TorchFallback(version, load_torch))
