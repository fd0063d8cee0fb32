"""Keys of [model] that have no effect."""

from tfm.model.config_fields import SINGLE_STACKS
from tfm.pipeline.recipes.unused_keys.rule import (
    IS_LABEL_TASK,
    WORD_VECTORS_CONDITION,
    UnusedKeysRule,
    is_none_of,
    is_one_of,
)
from tfm.pipeline.tasks.abilities import select_tasks

PROJECTION_KEYS = ("model.attention_projections", "model.values", "model.output_projection")
ATTENTION_KEYS = ("model.score", "model.lookup", "model.qk_norm", "model.dropout.attention", *PROJECTION_KEYS)
HEAD_KEYS = ("heads", "key_value_heads", "key_dim", "value_dim")
EMBEDDING_KEYS = ("embedding_dim", "scale_embedding", "embedding_norm")
SEQUENCE_KEYS = ("mixing", "window", "convolution", "positions", "positions_join")
LAYER_KEYS = ("activation", "residual", "feed_forward", "dropout.residual", "dropout.feed_forward", "dropout.depth")
RECURRENT_CONDITION = {"model.architecture": is_one_of("recurrent")}
NO_CANINE_CONDITION = {"model.canine": is_one_of(None)}
TEXT_CONDITION = {"model.vision": is_one_of(None), **NO_CANINE_CONDITION}
TRANSLATION_CONDITION = {**TEXT_CONDITION, "model.architecture": is_one_of("transformer")}
NO_ENCODER_ATTENTION_REASON = "no layer of the encoder has attention; those of the decoder still attend to the source"
IMAGES_CONDITION = {"model.vision.encoder": is_one_of("patches", "convolution")}

RECURRENT_STACK_KEYS = ("normalization", "bidirectional", "reverse_source", "attention")
SINGLE_STACK_CONDITION = {
    **RECURRENT_CONDITION,
    "model.task": is_one_of(*SINGLE_STACKS["recurrent"]),
}

MODEL_RULES = (
    UnusedKeysRule(
        {"model.architecture": is_none_of("recurrent")},
        tuple(f"model.recurrent.{name}" for name in RECURRENT_STACK_KEYS),
        'they are for architecture = "recurrent"; mixing = "recurrent" only uses its cell',
    ),
    UnusedKeysRule(
        {
            "model.architecture": is_none_of("recurrent"),
            "model.mixing": is_none_of("recurrent"),
            "model.encoder.mixing": is_none_of("recurrent"),
            "model.decoder.mixing": is_none_of("recurrent"),
        },
        ("model.recurrent.cell",),
        'it is for architecture = "recurrent" and mixing = "recurrent"',
    ),
    UnusedKeysRule(
        {
            "model.architecture": is_one_of("transformer"),
            "model.encoder.mixing": is_one_of("attention", "convolution"),
            "model.decoder.mixing": is_one_of("attention", "convolution"),
        },
        ("model.recurrent.cell",),
        'it is for architecture = "recurrent" and mixing = "recurrent"',
    ),
    UnusedKeysRule(
        SINGLE_STACK_CONDITION,
        ("model.recurrent.attention",),
        "it is of a decoder that attends to an encoder, and this task has one stack",
    ),
    UnusedKeysRule(
        SINGLE_STACK_CONDITION,
        ("model.recurrent.reverse_source",),
        "it is of an encoder whose last state a decoder reads, and this task has one stack",
    ),
    UnusedKeysRule(
        {**RECURRENT_CONDITION, "model.task": is_one_of(*select_tasks(lambda task: task.continues_text))},
        ("model.recurrent.bidirectional",),
        "it would read what is to be predicted: a language model reads in one direction",
    ),
    UnusedKeysRule(
        {"model.architecture": is_none_of("skip_gram", "cbow")},
        ("model.word_vectors",),
        'it is for architecture = "skip_gram" and "cbow"',
    ),
    UnusedKeysRule(
        {"model.task": is_none_of(*select_tasks(lambda task: task.hides_spans))},
        ("model.span_corruption",),
        'it is for task = "span_corruption"',
    ),
    UnusedKeysRule(
        {"model.architecture": is_one_of("decoder_only")},
        ("model.encoder",),
        "its one stack is [model.decoder]",
    ),
    UnusedKeysRule(
        {"model.architecture": is_one_of("encoder_only")},
        ("model.decoder",),
        "its one stack is [model.encoder]",
    ),
    UnusedKeysRule(
        {**RECURRENT_CONDITION, "model.task": is_one_of(*select_tasks(lambda task: task.continues_text))},
        ("model.encoder",),
        "its one stack is [model.decoder]",
    ),
    UnusedKeysRule(
        {**RECURRENT_CONDITION, "model.task": IS_LABEL_TASK}, ("model.decoder",), "its one stack is [model.encoder]"
    ),
    UnusedKeysRule(
        {"model.architecture": is_none_of("transformer", "decoder_only")},
        ("model.mask",),
        "it has no self-attention over the text that it writes",
    ),
    UnusedKeysRule(
        {**RECURRENT_CONDITION, **TEXT_CONDITION},
        (
            *("model.norm", "model.residual", "model.activation", "model.encoder.feed_forward_dim"),
            "model.feed_forward",
            *("model.dropout.feed_forward", "model.dropout.depth"),
        ),
        "it has no norms or feed-forward layers, as the other architectures have",
    ),
    UnusedKeysRule(
        {**RECURRENT_CONDITION, **TEXT_CONDITION, "model.embedding_norm": is_one_of(False)},
        ("model.normalization",),
        "it has no norms, but with model.embedding_norm = true",
    ),
    UnusedKeysRule(
        {
            **RECURRENT_CONDITION,
            **TEXT_CONDITION,
            "model.embedding_norm": is_one_of(False),
            "model.recurrent.normalization": is_one_of("none"),
        },
        ("model.norm_eps",),
        "it has no norms, but with model.embedding_norm = true or model.recurrent.normalization",
    ),
    UnusedKeysRule(
        {**RECURRENT_CONDITION, **NO_CANINE_CONDITION},
        ("model.positions", "model.positions_join", "model.rotary"),
        "its decoder has no positions, as the other architectures have",
    ),
    UnusedKeysRule(
        RECURRENT_CONDITION,
        ("model.decoder.feed_forward_dim",),
        "its decoder has no feed-forward layers, as the other architectures have",
    ),
    UnusedKeysRule(
        {**RECURRENT_CONDITION, **TEXT_CONDITION},
        tuple(f"model.encoder.{name}" for name in HEAD_KEYS),
        "its encoder has no attention; the heads of its decoder's attention are decoder.heads",
    ),
    UnusedKeysRule(
        {**RECURRENT_CONDITION, **NO_CANINE_CONDITION},
        ("model.mixing", "model.window", "model.convolution"),
        "it has no self-attention over texts, as the other architectures have",
    ),
    UnusedKeysRule(
        {**RECURRENT_CONDITION, **TEXT_CONDITION},
        ("model.qk_norm", *PROJECTION_KEYS),
        "it has no self-attention, as the other architectures have",
    ),
    UnusedKeysRule(
        RECURRENT_CONDITION,
        tuple(f"model.decoder.{name}" for name in HEAD_KEYS[1:]),
        "its attention compares states without projections, in heads of width decoder.dim / decoder.heads",
    ),
    UnusedKeysRule(
        {**RECURRENT_CONDITION, "model.recurrent.attention": is_one_of("none")},
        ("model.decoder.heads",),
        'there is no attention; choose model.recurrent.attention = "luong" or "bahdanau" for it',
    ),
    UnusedKeysRule(
        {**RECURRENT_CONDITION, **TEXT_CONDITION, "model.recurrent.attention": is_one_of("none")},
        ("model.score", "model.lookup", "model.dropout.attention"),
        'there is no attention; choose model.recurrent.attention = "luong" or "bahdanau" for it',
    ),
    UnusedKeysRule(
        {**IMAGES_CONDITION, "model.architecture": is_one_of("encoder_only")},
        tuple(f"model.{name}" for name in (*SEQUENCE_KEYS, *EMBEDDING_KEYS, "max_length")),
        "an image's tokens all attend to one another, and where they are is said by vision.positions",
    ),
    UnusedKeysRule(
        {**IMAGES_CONDITION, "model.encoder.layers": is_one_of(0)},
        tuple(f"model.encoder.{name}" for name in ("feed_forward_dim", *HEAD_KEYS)),
        "the encoder has no layers after its convolution",
    ),
    UnusedKeysRule(
        {**IMAGES_CONDITION, "model.encoder.layers": is_one_of(0), "model.architecture": is_one_of("encoder_only")},
        (*(f"model.{name}" for name in LAYER_KEYS), *ATTENTION_KEYS),
        "the encoder has no layers after its convolution",
    ),
    UnusedKeysRule(
        {**IMAGES_CONDITION, "model.encoder.layers": is_one_of(0), "model.architecture": is_one_of("recurrent")},
        (
            *("model.activation", "model.residual", "model.feed_forward", "model.dropout.feed_forward"),
            *("model.dropout.depth", "model.qk_norm", *PROJECTION_KEYS),
        ),
        "the encoder has no layers after its convolution",
    ),
    UnusedKeysRule(
        {
            **IMAGES_CONDITION,
            **RECURRENT_CONDITION,
            "model.encoder.layers": is_one_of(0),
            "model.recurrent.attention": is_one_of("none"),
        },
        ("model.score", "model.lookup", "model.dropout.attention"),
        "there is no attention: the encoder has no layers after its convolution, and the decoder sees its mean alone",
    ),
    UnusedKeysRule(
        {"model.vision.encoder": is_one_of("patches")},
        ("model.vision.channels", "model.vision.blocks", "model.vision.stride"),
        'they are for vision.encoder = "convolution"',
    ),
    UnusedKeysRule(
        {"model.vision.encoder": is_one_of("convolution")},
        ("model.vision.patch",),
        'it is for vision.encoder = "patches"',
    ),
    UnusedKeysRule(
        {"model.task": is_none_of(*select_tasks(lambda task: task.labels == "tags"))},
        ("model.canine.upsampling",),
        'it is for task = "tagging": elsewhere the shorter sequence is enough',
    ),
    UnusedKeysRule(
        WORD_VECTORS_CONDITION,
        (
            *(f"model.{name}" for name in ("norm", "normalization", *SEQUENCE_KEYS)),
            *(
                f"model.{name}"
                for name in ("activation", "residual", "score", "qk_norm", "tie", "scale_embedding", "dropout")
            ),
            *("model.feed_forward", "model.lookup", *PROJECTION_KEYS),
            *("model.norm_eps", "model.output_bias", "model.embedding_norm"),
            *(f"model.encoder.{name}" for name in ("layers", "feed_forward_dim", *HEAD_KEYS)),
            "model.decoder",
        ),
        "word vectors are two tables with no layer between them; they have embedding_dim and [model.word_vectors]",
    ),
    UnusedKeysRule(
        {**WORD_VECTORS_CONDITION, "model.embedding_dim": is_none_of(None)},
        ("model.encoder.dim",),
        "the width of word vectors is embedding_dim, if it is given",
    ),
    UnusedKeysRule(
        {
            **TRANSLATION_CONDITION,
            "model.mixing": is_none_of("attention"),
            "model.encoder.mixing": is_one_of(None),
        },
        tuple(f"model.encoder.{name}" for name in HEAD_KEYS),
        NO_ENCODER_ATTENTION_REASON,
    ),
    UnusedKeysRule(
        {**TRANSLATION_CONDITION, "model.encoder.mixing": is_none_of(None, "attention")},
        tuple(f"model.encoder.{name}" for name in HEAD_KEYS),
        NO_ENCODER_ATTENTION_REASON,
    ),
    UnusedKeysRule(
        {**TRANSLATION_CONDITION, "model.encoder.mixing": is_none_of(None), "model.decoder.mixing": is_none_of(None)},
        ("model.mixing",),
        "both stacks have a mixing of their own",
    ),
    UnusedKeysRule(
        {"model.mixing": is_none_of("attention"), "model.architecture": is_one_of("encoder_only")},
        (*(f"model.encoder.{name}" for name in HEAD_KEYS), *ATTENTION_KEYS),
        'there is no attention without mixing = "attention"',
    ),
    UnusedKeysRule(
        {"model.mixing": is_none_of("attention"), "model.architecture": is_one_of("decoder_only")},
        (*(f"model.decoder.{name}" for name in HEAD_KEYS), *ATTENTION_KEYS),
        'there is no attention without mixing = "attention"',
    ),
    UnusedKeysRule(
        {"model.feed_forward": is_one_of("none")},
        ("model.encoder.feed_forward_dim", "model.decoder.feed_forward_dim", "model.dropout.feed_forward"),
        "there is no feed-forward layer",
    ),
    UnusedKeysRule(
        {"model.feed_forward": is_one_of("none"), "model.head_transform": is_one_of(False)},
        ("model.activation",),
        "there is no feed-forward layer",
    ),
    UnusedKeysRule(
        {"model.normalization": is_one_of("none")},
        ("model.norm", "model.embedding_norm"),
        "there is no norm that could stand here or there",
    ),
    UnusedKeysRule(
        {"model.normalization": is_one_of("none"), "model.qk_norm": is_one_of(False)},
        ("model.norm_eps",),
        "there is no norm",
    ),
    UnusedKeysRule(
        {"model.task": IS_LABEL_TASK},
        ("model.tie",),
        "labels are not pieces of the text, so there is no table to share",
    ),
    UnusedKeysRule(
        {"model.task": is_none_of(*select_tasks(lambda task: task.labels == "label"))},
        ("model.pooling",),
        'it is for task = "classification"',
    ),
    UnusedKeysRule(
        {"model.adaptive.cutoffs": is_one_of(())}, ("model.adaptive.factor",), "one cluster has one width; give cutoffs"
    ),
)
