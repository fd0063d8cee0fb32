"""The recipe of each task that `python -m bench memory` measures: a small network, few updates, its own tokenizer."""

from dataclasses import dataclass

MAX_LENGTH = 128
STACK = "{ layers = 1, dim = 32, heads = 2, feed_forward_dim = 64 }"
PAIRS = '{{ source = "{split}.source", target = "{split}.target" }}'
TEXT = '{{ source = "none", target = "{split}.target" }}'
LABELLED = '{{ format = "labelled", path = "{split}.labelled" }}'
TAGGED = '{{ source = "{split}.source", target = "{split}.tags" }}'
RECIPE = """\
name = "{task}"
[tokenizer]
vocab_size = 8000
{tokenizer}
[data]
batch_tokens = 2048
limits.max_length = {longest}
train = {train}
valid = {valid}
[model]
task = "{task}"
{model}
[training]
max_steps = {updates}
threads = 1
precision = "fp32"
validation.every_steps = {updates}
{training}
"""


@dataclass(frozen=True)
class TaskRecipe:
    """The parts of a recipe that are a task's own.

    Args:
        corpus: a corpus, by its split.
        tokenizer: of [tokenizer].
        model: of [model].
        training: of [training].
    """

    corpus: str
    tokenizer: str
    model: str
    training: str = ""

    def render(self, task: str, updates: int) -> str:
        """The recipe as TOML."""
        corpora = {split: self.corpus.format(split=split) for split in ("train", "valid")}
        rest = {"tokenizer": self.tokenizer, "model": self.model, "training": self.training}
        return RECIPE.format(task=task, updates=updates, longest=MAX_LENGTH - 1, **corpora, **rest)


ENCODER = f'architecture = "encoder_only"\nmax_length = {MAX_LENGTH}\nencoder = {STACK}'
DECODER = f'architecture = "decoder_only"\nmax_length = {MAX_LENGTH}\nblock = {MAX_LENGTH}\ndecoder = {STACK}'
BOTH = f"max_length = {MAX_LENGTH}\nencoder = {STACK}\ndecoder = {STACK}"
VECTORS = 'architecture = "skip_gram"\nembedding_dim = 32\nword_vectors = { window = 2, negatives = 5 }'
WORD2VEC = 'optimizer = { name = "sgd", momentum = 0.0 }\nclip_norm = "none"\nlabel_smoothing = 0.0'
RECIPES = {
    "translation": TaskRecipe(PAIRS, 'kind = "bpe"', BOTH),
    "language_model": TaskRecipe(TEXT, 'kind = "unigram"', DECODER),
    "masked_language_model": TaskRecipe(LABELLED, 'kind = "wordpiece"\nshared = false', ENCODER),
    "classification": TaskRecipe(LABELLED, 'kind = "word"\nshared = false', ENCODER),
    "tagging": TaskRecipe(TAGGED, 'kind = "char"\nshared = false', ENCODER),
    "word_vectors": TaskRecipe(TEXT, 'kind = "word"\nmin_frequency = 5', VECTORS, WORD2VEC),
}
"""By task."""
