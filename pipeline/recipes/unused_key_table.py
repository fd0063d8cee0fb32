"""The table of recipe keys that have no effect together with certain other values, each with the reason.

Keys that are not in the table are used by every architecture, task and choice, or rejected where they are read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from tfm.pipeline.config import DecodingConfig, EvaluationConfig, EvaluationMetric
from tfm.pipeline.tasks.abilities import tasks_that
from tfm.tokenizer.config import LEARNED_BY

Test = Callable[[Any], bool]


@dataclass(frozen=True)
class Unused:
    """`keys` (a table's name includes all its keys) that have no effect if every key of `where` passes its test.

    why: the reason, and what would use them.
    """

    where: Mapping[str, Test]
    keys: tuple[str, ...]
    why: str


def one_of(*values: object) -> Test:
    """Whether a value is one of these."""
    return lambda value: value in values


def none_of(*values: object) -> Test:
    """Whether a value is none of these."""
    return lambda value: value not in values


def without(*names: str) -> Test:
    """Whether a list has none of these."""
    return lambda values: not set(values) & set(names)


def _of_files(corpus: Any) -> bool:
    return bool(corpus.format != "huggingface")


NO_ATTENTION = ("model.score", "model.qk_norm", "model.dropout.attention")
HEADS = ("heads", "key_value_heads", "key_dim", "value_dim")
OF_EMBEDDINGS = ("embedding_dim", "scale_embedding", "embedding_norm")
OF_SEQUENCES = ("mixing", "window", "positions", "positions_join")
OF_LAYERS = ("activation", "dropout.residual", "dropout.feed_forward", "dropout.depth")
WORD_VECTORS = {"model.architecture": one_of("skip_gram", "cbow")}
RECURRENT = {"model.architecture": one_of("recurrent")}
OF_PIECES = {"model.canine": one_of(None)}
OF_TEXT = {"model.vision": one_of(None), **OF_PIECES}
OF_IMAGES = {"model.vision.encoder": one_of("patches", "convolution")}
TRANSLATES = one_of(*tasks_that(lambda task: task.translates))
NO_TRANSLATION = {"model.task": none_of(*tasks_that(lambda task: task.translates))}
LABELS = one_of(*tasks_that(lambda task: task.labels))
OF_ALL_TEXTS = ("stride", "tests")
"""The keys of [evaluation] that are for models without hypotheses too."""
BY_PROBABILITY = {"model.task": none_of(*tasks_that(lambda task: task.gives_hypotheses))}

MODEL = (
    Unused(
        {"model.architecture": one_of("decoder_only")},
        ("model.encoder",),
        "its one stack is [model.decoder]",
    ),
    Unused(
        {"model.architecture": one_of("encoder_only")},
        ("model.decoder",),
        "its one stack is [model.encoder]",
    ),
    Unused(
        {**RECURRENT, **OF_TEXT},
        (
            *("model.norm", "model.activation", "model.encoder.feed_forward_dim"),
            *("model.dropout.feed_forward", "model.dropout.depth"),
        ),
        "it has no norms or feed-forward layers, as the other architectures have",
    ),
    Unused(
        {**RECURRENT, **OF_TEXT, "model.embedding_norm": one_of(False)},
        ("model.normalization", "model.norm_eps"),
        "it has no norms, but with model.embedding_norm = true",
    ),
    Unused(
        {**RECURRENT, **OF_PIECES},
        ("model.positions",),
        "its decoder has no positions, as the other architectures have",
    ),
    Unused(
        RECURRENT,
        ("model.decoder.feed_forward_dim",),
        "its decoder has no feed-forward layers, as the other architectures have",
    ),
    Unused(
        {**RECURRENT, **OF_TEXT},
        tuple(f"model.encoder.{name}" for name in HEADS),
        "its encoder has no attention; the heads of its decoder's attention are decoder.heads",
    ),
    Unused(
        {**RECURRENT, **OF_PIECES},
        ("model.mixing", "model.window"),
        "it has no self-attention over texts, as the other architectures have",
    ),
    Unused(
        {**RECURRENT, **OF_TEXT},
        ("model.qk_norm",),
        "it has no self-attention, as the other architectures have",
    ),
    Unused(
        RECURRENT,
        tuple(f"model.decoder.{name}" for name in HEADS[1:]),
        "its attention compares states without projections, in heads of width decoder.dim / decoder.heads",
    ),
    Unused(
        {**RECURRENT, "model.recurrent.attention": one_of("none")},
        ("model.decoder.heads",),
        'there is no attention; choose model.recurrent.attention = "luong" or "bahdanau" for it',
    ),
    Unused(
        {**RECURRENT, **OF_TEXT, "model.recurrent.attention": one_of("none")},
        ("model.score", "model.dropout.attention"),
        'there is no attention; choose model.recurrent.attention = "luong" or "bahdanau" for it',
    ),
    Unused(
        {**OF_IMAGES, "model.architecture": one_of("encoder_only")},
        tuple(f"model.{name}" for name in (*OF_SEQUENCES, *OF_EMBEDDINGS, "max_length")),
        "an image's tokens all attend to one another, and where they are is said by vision.positions",
    ),
    Unused(
        {**OF_IMAGES, "model.encoder.layers": one_of(0)},
        tuple(f"model.encoder.{name}" for name in ("feed_forward_dim", *HEADS)),
        "the encoder has no layers after its convolution",
    ),
    Unused(
        {**OF_IMAGES, "model.encoder.layers": one_of(0), "model.architecture": one_of("encoder_only")},
        (*(f"model.{name}" for name in OF_LAYERS), *NO_ATTENTION),
        "the encoder has no layers after its convolution",
    ),
    Unused(
        {**OF_IMAGES, "model.encoder.layers": one_of(0), "model.architecture": one_of("recurrent")},
        ("model.activation", "model.dropout.feed_forward", "model.dropout.depth", "model.qk_norm"),
        "the encoder has no layers after its convolution",
    ),
    Unused(
        {
            **OF_IMAGES,
            **RECURRENT,
            "model.encoder.layers": one_of(0),
            "model.recurrent.attention": one_of("none"),
        },
        ("model.score", "model.dropout.attention"),
        "there is no attention: the encoder has no layers after its convolution, and the decoder sees its mean alone",
    ),
    Unused(
        {"model.vision.encoder": one_of("patches")},
        ("model.vision.channels", "model.vision.blocks", "model.vision.stride"),
        'they are for vision.encoder = "convolution"',
    ),
    Unused(
        {"model.vision.encoder": one_of("convolution")},
        ("model.vision.patch",),
        'it is for vision.encoder = "patches"',
    ),
    Unused(
        {"model.task": none_of(*tasks_that(lambda task: task.labels == "tags"))},
        ("model.canine.upsampling",),
        'it is for task = "tagging": elsewhere the shorter sequence is enough',
    ),
    Unused(
        WORD_VECTORS,
        (
            *(f"model.{name}" for name in ("norm", "normalization", "mixing", "window", "positions", "positions_join")),
            *(f"model.{name}" for name in ("activation", "score", "qk_norm", "tie", "scale_embedding", "dropout")),
            *("model.norm_eps", "model.output_bias", "model.embedding_norm"),
            *(f"model.encoder.{name}" for name in ("layers", "feed_forward_dim", *HEADS)),
            "model.decoder",
        ),
        "word vectors are two tables with no layer between them; they have embedding_dim and [model.word_vectors]",
    ),
    Unused(
        {**WORD_VECTORS, "model.embedding_dim": none_of(None)},
        ("model.encoder.dim",),
        "the width of word vectors is embedding_dim, if it is given",
    ),
    Unused(
        {**OF_TEXT, "model.mixing": none_of("attention"), "model.architecture": one_of("transformer")},
        tuple(f"model.encoder.{name}" for name in HEADS),
        "no layer of the encoder has attention; those of the decoder still attend to the source",
    ),
    Unused(
        {"model.mixing": none_of("attention"), "model.architecture": one_of("encoder_only")},
        (*(f"model.encoder.{name}" for name in HEADS), *NO_ATTENTION),
        'there is no attention without mixing = "attention"',
    ),
    Unused(
        {"model.mixing": none_of("attention"), "model.architecture": one_of("decoder_only")},
        (*(f"model.decoder.{name}" for name in HEADS), *NO_ATTENTION),
        'there is no attention without mixing = "attention"',
    ),
    Unused(
        {"model.task": LABELS},
        ("model.tie",),
        "labels are not pieces of the text, so there is no table to share",
    ),
    Unused(
        {"model.task": none_of(*tasks_that(lambda task: task.labels == "label"))},
        ("model.pooling",),
        'it is for task = "classification"',
    ),
    Unused(
        {"model.adaptive.cutoffs": one_of(())}, ("model.adaptive.factor",), "one cluster has one width; give cutoffs"
    ),
)

RATES = ("residual", "embedding", "attention", "feed_forward", "depth")
RESEGMENTS = ("training.bpe_dropout", "training.unigram_alpha")

TRAINING = (
    Unused(WORD_VECTORS, ("training.r_drop",), "word vectors have no dropout, by which two passes would differ"),
    Unused(
        {f"model.dropout.{rate}": one_of(0) for rate in RATES},
        ("training.r_drop",),
        "without dropout both passes over a batch are the same",
    ),
    Unused(
        {"model.task": one_of(*tasks_that(lambda each: each.of_words))},
        RESEGMENTS,
        "tags and word vectors belong to words, whose pieces stay as they are",
    ),
    Unused(
        {"model.block": none_of(None)}, RESEGMENTS, "windows are of one running text, whose pieces stay as they are"
    ),
    Unused(
        {
            "tokenizer.kind": none_of("bpe"),
            "tokenizer.target_kind": none_of("bpe"),
            "tokenizer.file": one_of(None),
            "tokenizer.source_from": one_of(None),
        },
        ("training.bpe_dropout",),
        'it is for kind = "bpe"',
    ),
    Unused(
        {
            "tokenizer.kind": none_of("unigram"),
            "tokenizer.target_kind": none_of("unigram"),
            "tokenizer.file": one_of(None),
            "tokenizer.source_from": one_of(None),
        },
        ("training.unigram_alpha",),
        'it is for kind = "unigram"',
    ),
    Unused(
        NO_TRANSLATION,
        ("training.validation.bleu", "training.validation.beam"),
        'validation translates only with task = "translation"',
    ),
    Unused(
        {"training.validation.bleu": one_of(False)}, ("training.validation.beam",), "nothing is translated for BLEU"
    ),
    Unused(
        {"training.schedule.name": none_of("cosine", "linear", "warmup_stable_decay", "plateau")},
        ("training.schedule.final",),
        "only cosine, linear, warmup_stable_decay and plateau have a final rate",
    ),
    Unused(
        {"training.schedule.name": none_of("step", "warmup_stable_decay")},
        ("training.schedule.decay_steps",),
        "it is for step and warmup_stable_decay",
    ),
    Unused(
        {"training.schedule.name": none_of("step", "plateau")},
        ("training.schedule.factor",),
        "it is for step and plateau",
    ),
    Unused({"training.schedule.name": none_of("plateau")}, ("training.schedule.patience",), "it is for plateau"),
    Unused({"training.optimizer.name": none_of("sgd")}, ("training.optimizer.momentum",), "it is for sgd"),
    Unused(
        {"training.optimizer.name": none_of("adam", "adamw")},
        ("training.optimizer.betas",),
        "they are for adam and adamw",
    ),
    Unused(
        {"training.optimizer.name": one_of("sgd")}, ("training.optimizer.eps",), "it is for adam, adamw and adagrad"
    ),
)

DECODING = (
    Unused(
        {"model.task": LABELS},
        tuple(f"decoding.{name}" for name in DecodingConfig.model_fields if name != "n_best"),
        "labels need no search",
    ),
    Unused(
        BY_PROBABILITY,
        ("decoding",),
        "a run of this task decodes nothing; `tfm generate` takes --set decoding... itself",
    ),
    Unused({"decoding.strategy": one_of("search")}, ("decoding.seed",), 'it is for strategy = "sample"'),
    Unused({"decoding.strategy": one_of("sample")}, ("decoding.beam",), 'it is for strategy = "search"'),
    Unused(
        {"decoding.strategy": one_of("sample"), "decoding.temperature": one_of(0)},
        ("decoding.top_k", "decoding.top_p", "decoding.seed"),
        "temperature 0 always takes the most probable piece",
    ),
    Unused({"decoding.length_norm": one_of("none")}, ("decoding.alpha",), "scores are not normalised by length"),
    Unused({"decoding.max_length": none_of(None)}, ("decoding.max_ratio",), "max_length is the limit if it is given"),
)

EVALUATION = (
    Unused(
        BY_PROBABILITY,
        tuple(f"evaluation.{name}" for name in EvaluationConfig.model_fields if name not in OF_ALL_TEXTS),
        "such a model is scored by how probable it finds the test sets, and has no hypotheses",
    ),
    Unused(
        {"model.task": none_of(*tasks_that(lambda task: task.generates))},
        ("evaluation.stride",),
        "it is for language models, which read long texts in windows",
    ),
    Unused(
        {"model.task": LABELS, "evaluation.metrics": one_of(EvaluationConfig().metrics)},
        ("evaluation.bleu_tokenize", "evaluation.rouge_tokenize"),
        "labels are scored by accuracy, macro_f1 and exact_match",
    ),
    Unused(
        {"evaluation.metrics": without(*(name for name in get_args(EvaluationMetric) if name.startswith("rouge")))},
        ("evaluation.rouge_tokenize",),
        "no ROUGE is among them",
    ),
    Unused(
        {"evaluation.metrics": without("meteor")},
        ("evaluation.wordnet",),
        "no METEOR is among them",
    ),
    Unused(
        {"model.task": LABELS, "evaluation.metrics": without("bleu")},
        ("evaluation.bleu_tokenize",),
        "no BLEU is among them",
    ),
    Unused(
        {"model.task": TRANSLATES, "evaluation.metrics": without("accuracy", "macro_f1")},
        ("evaluation.labels",),
        "it is for accuracy and macro_f1",
    ),
)

TEXT = (
    Unused(
        {"tokenizer.kind": none_of("wordpiece"), "tokenizer.target_kind": none_of("wordpiece")},
        ("tokenizer.criterion", "tokenizer.min_score"),
        'they are for kind = "wordpiece"',
    ),
    Unused({"tokenizer.kind": none_of("unigram")}, ("tokenizer.clusters",), 'it is for kind = "unigram"'),
    Unused(
        {"tokenizer.kind": one_of("codepoint"), "tokenizer.target_kind": one_of("label", "tags")},
        ("tokenizer.vocab_size", "tokenizer.min_frequency"),
        "characters are numbered by Unicode, and all labels are known: nothing is learned",
    ),
    Unused(
        {"tokenizer.kind": one_of("codepoint"), "tokenizer.shared": one_of(True)},
        ("tokenizer.vocab_size", "tokenizer.min_frequency"),
        "characters are numbered by Unicode: nothing is learned",
    ),
    Unused(
        {"tokenizer.criterion": one_of("frequency")}, ("tokenizer.min_score",), 'it is for criterion = "likelihood"'
    ),
    Unused(
        {"tokenizer.source_from": none_of(None), "tokenizer.target_kind": one_of("label", "tags")},
        tuple(f"tokenizer.{name}" for name in LEARNED_BY),
        "the source's pieces are those of source_from, and labels are names",
    ),
    Unused(
        {"tokenizer.source_from": none_of(None), "tokenizer.target_kind": none_of(None)},
        ("tokenizer.kind",),
        "the source's pieces are those of source_from, the target's are of target_kind",
    ),
    Unused(
        {"model.task": one_of(*tasks_that(lambda task: task.labels == "tags"))},
        ("data.limits.cut_sources",),
        "each word of a sentence has its tag, so that none is cut",
    ),
    Unused(
        {"data.train": lambda corpora: len(corpora) < 2},
        ("data.temperature",),
        "there is one training corpus, which is seen as often whatever the temperature",
    ),
    Unused({"data.path": one_of(None)}, ("data.source", "data.target"), "they are for data.path; a corpus has its own"),
    Unused(
        {"data.path": one_of(None), "data.valid": none_of(()), "data.tests": none_of({})},
        ("data.ratios",),
        "validation and test sets are given, so nothing is split",
    ),
    Unused(
        {
            "data.path": one_of(None),
            "data.valid": none_of(()),
            "data.tests": none_of({}),
            "data.fold": one_of(None),
        },
        ("data.split_seed",),
        "validation and test sets are given, so nothing is split",
    ),
    Unused(
        {
            "data.path": one_of(None),
            "data.train": lambda corpora: all(map(_of_files, corpora)),
            "data.valid": lambda corpora: all(map(_of_files, corpora)),
            "data.tests": lambda corpora: all(map(_of_files, corpora.values())),
        },
        ("data.online",),
        'nothing could be downloaded: no corpus is of format = "huggingface"',
    ),
    Unused(
        {"data.path": one_of(None), "data.train": lambda corpora: all(not each.has_source for each in corpora)},
        ("data.limits.max_ratio", "data.limits.cut_sources"),
        "texts without a source have one side",
    ),
    Unused(
        {"data.path": none_of(None), "data.source": one_of(None)},
        ("data.limits.max_ratio", "data.limits.cut_sources"),
        "texts without a source have one side",
    ),
)

OF_PICTURES = {"data.images": none_of(None)}
"""What a corpus of images makes idle: it has no source text."""
IMAGES = (
    Unused(
        {**OF_PICTURES, "model.task": TRANSLATES},
        ("tokenizer.shared", "tokenizer.source_from"),
        "an image has no pieces: the one vocabulary is that of the captions",
    ),
    Unused(
        {**OF_PICTURES, "model.task": LABELS},
        (*(f"tokenizer.{name}" for name in LEARNED_BY), "tokenizer.source_from", "tokenizer.file", "tokenizer.grow"),
        "an image has no pieces, and labels are names",
    ),
    Unused(
        {**OF_PICTURES, "model.task": LABELS},
        ("data.limits.max_length",),
        "an image has no pieces, and a label is one",
    ),
    Unused(
        OF_PICTURES,
        ("data.limits.max_ratio", "data.limits.cut_sources", "decoding.max_ratio"),
        "an image has no pieces; decoding.max_length limits captions",
    ),
)

IDLE = (*IMAGES, *MODEL, *TRAINING, *DECODING, *EVALUATION, *TEXT)
