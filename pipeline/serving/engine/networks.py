"""Models in torch, and the work that each query is to them.

Which way a query takes depends on its model and on itself alone, never on how much else there is to do: so its answer
does not either. A sentence that a beam searches for joins the others, where their rows cannot touch each other's
(`model/fused/row_invariance.py`); everything else is done by itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from tfm.data.images.decoding import decode_image
from tfm.data.images.row_images import RowImages
from tfm.model.fused.decoder_step import FusedDecoderStep, fuse_if_supported
from tfm.model.fused.greedy_search import SourceEncoder, make_source_encoder
from tfm.model.fused.row_invariance import is_row_invariant
from tfm.pipeline.artifacts.manifest import Input
from tfm.pipeline.attention_page.attended import trace_as_json
from tfm.pipeline.attention_page.reading import trace_text
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.constraints.logits_processor import LogitsProcessor
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.decoding.search.fused_greedy import fused_greedy_search
from tfm.pipeline.decoding.search.hypothesis import Hypothesis
from tfm.pipeline.decoding.shortlist import Shortlist
from tfm.pipeline.decoding.shortlist_stepper import CandidateUnion
from tfm.pipeline.errors import DataError
from tfm.pipeline.inference.generation.prompt_encoder import PromptEncoder
from tfm.pipeline.inference.translation import translate_images, translate_lines
from tfm.pipeline.inference.translation_records import EMPTY_TRANSLATION, Translation, join_to_one_line
from tfm.pipeline.model_io.loaded_model import LoadedModel, load_model
from tfm.pipeline.model_io.shortlist_folder import read_shortlist
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.serving.dispatch.messages import ModelVersion, Query
from tfm.pipeline.serving.engine.completions import CompletionStreamer
from tfm.pipeline.serving.engine.work import BeamSearchJob, ScoredText, Work, as_scored_texts
from tfm.pipeline.serving.text.model_alignment import align_by_attention
from tfm.pipeline.tasks.abilities import TASK_SPECS
from tfm.tokenizer.special import EOS_ID

GREEDY_DECODING = DecodingConfig(beam=1, batch_sentences=1)


@dataclass
class TorchNetwork:
    """A version of a model in torch.

    Args:
        version: of the model.
        loaded: the model.
        stepper: the model's step over rows that do not touch each other's; None: each sentence is searched for by
            itself.
        read_source: reads a source for that, sooner than the model itself does; None: there is no other way.
        shortlist: of the pieces that translations are made of, but of those with forced words; None: all may come.
    """

    version: ModelVersion
    loaded: LoadedModel
    stepper: FusedDecoderStep | None
    read_source: SourceEncoder | None = None
    shortlist: Shortlist | None = None
    _completions: CompletionStreamer | None = field(default=None, repr=False)

    @classmethod
    def load(cls, version: ModelVersion) -> "TorchNetwork":
        """Load a version of a model. Raises DataError if the folder has another version by now, or none."""
        loaded = load_model(version.folder, "cpu")
        if loaded.artifact is None or loaded.artifact.fingerprint != version.fingerprint:
            raise DataError("was replaced by a new version while it was loaded", file=version.folder)
        loaded.model.eval()
        shortlist = None
        if (shortlist_version := version.shortlist) is not None:
            tokenizers = loaded.source_tokenizer, loaded.target_tokenizer
            shortlist = read_shortlist(
                shortlist_version.folder, *tokenizers, must_match=Input.from_value(shortlist_version.fingerprint)
            )
        with torch.inference_mode():  # compiled loops are used where nothing asks for gradients
            stepper, read = fuse_if_supported(loaded.model), make_source_encoder(loaded.model)
            joins = isinstance(stepper, FusedDecoderStep) and is_row_invariant(loaded.model)
        own_stepper, own_read = (stepper, read) if joins else (None, None)
        return cls(version, loaded, own_stepper, own_read, shortlist)

    def make_work(self, query: Query) -> Work:
        """Return the work that a query is. Raises TfmError for one that the model cannot do."""
        if query.kind == "generate":
            return self._stream_completion(query)
        if query.kind == "translate" and query.image is None:
            return self._translate(query)
        return lambda: self._compute_answer(query)

    def _stream_completion(self, query: Query) -> Iterator[Any]:
        self._completions = self._completions or CompletionStreamer(PromptEncoder(self.loaded))
        return self._completions.stream_completion(query)

    def _translate(self, query: Query) -> Work:
        loaded = self.loaded.for_languages(query.to, query.source_language)
        replaces = query.replace_unknown and loaded.target_tokenizer.is_word_level
        shortlist = None if query.forced else self.shortlist  # which may lack forced words
        if self.stepper is None or query.n_best > 1 or query.forced or replaces:
            return lambda: as_scored_texts(_search(loaded, query, shortlist))
        ids = loaded.source_tokenizer.encode_batch([query.text])[0]
        if not ids:
            return lambda: as_scored_texts([EMPTY_TRANSLATION])
        source = [*ids[: self.stepper.max_length - 1], EOS_ID]

        def to_scored_texts(hypothesis: Hypothesis) -> list[ScoredText]:
            text = join_to_one_line(loaded.target_tokenizer.decode_batch([list(hypothesis.ids)])[0])
            return [(text, hypothesis.score, hypothesis.log_prob, hypothesis.num_tokens)]

        if query.beam > 1:
            candidates = None if shortlist is None else CandidateUnion.from_source(shortlist, source)
            return BeamSearchJob(source, query.beam, to_scored_texts, candidates)
        return lambda: to_scored_texts(_search_greedily(loaded, source, shortlist))

    def _compute_answer(self, query: Query) -> Any:
        if query.image is not None:
            return as_scored_texts(_describe_image(self.loaded, query))
        if query.kind == "label":
            config = DecodingConfig(n_best=query.n_best)
            return as_scored_texts(
                next(iter(translate_lines(self.loaded, [query.text], config, reporter=NullReporter())))
            )
        loaded = self.loaded.for_languages(query.to, query.source_language)
        if query.kind == "align":
            return align_by_attention(loaded, query.text, query.target or "")
        config = DecodingConfig(beam=query.beam, batch_sentences=1)
        return trace_as_json(trace_text(loaded, query.text, query.target, config, self.shortlist))


@torch.inference_mode()
def _search_greedily(loaded: LoadedModel, source: list[int], shortlist: Shortlist | None) -> Hypothesis:
    """The likeliest hypothesis of a source, found by the compiled loop for one sentence if the model has one."""
    rules = LogitsProcessor.from_config([len(source)], GREEDY_DECODING, loaded.model.max_length)
    hypotheses = fused_greedy_search(loaded.model, [source], rules, lambda _: None, shortlist)
    return (hypotheses or decode(loaded.model, [source[:-1]], GREEDY_DECODING, shortlist=shortlist))[0][0]


def _search(loaded: LoadedModel, query: Query, shortlist: Shortlist | None) -> list[Translation]:
    """The translations of a sentence that is searched alone."""
    replaces = query.replace_unknown and loaded.target_tokenizer.is_word_level
    config = DecodingConfig(beam=query.beam, n_best=query.n_best, batch_sentences=1, replace_unknown=replaces)
    forced = ["\t".join(query.forced)] if query.forced else None
    options: dict[str, Any] = {"reporter": NullReporter(), "forced": forced, "shortlist": shortlist}
    return next(iter(translate_lines(loaded, [query.text], config, **options)))


def _describe_image(loaded: LoadedModel, query: Query) -> list[Translation]:
    """The captions or labels of an image. Raises DataError if it is none."""
    preparation, n_best = loaded.require_image_transform(), query.n_best
    pixels = np.stack([decode_image(query.image or b"", "the image", preparation.shape).pixels])
    labels = TASK_SPECS[loaded.config.task].labels is not None
    search = {} if labels else {"beam": query.beam, "batch_sentences": 1}
    config = DecodingConfig.model_validate({"n_best": n_best, **search})
    images = [RowImages.from_pixels(pixels, preparation)]
    return next(iter(translate_images(loaded, images, config, reporter=NullReporter())))
