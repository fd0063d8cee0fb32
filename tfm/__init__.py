"""tfm: from raw text to a trained Transformer and a score one can trust.

In Python, what the commands do with trained models:

    tfm.load("runs/demo")         a model: translate, score, generate, classify, tag, fill, embed, encode, attend
    tfm.read_run("runs/demo")     what a training was and became: config, figures, curves as arrays
    tfm.attention(q, K, V)        attention on given numbers
    tfm.count_vectors(texts)      words by what stands beside them; tfm.concordance(texts, word)

Nothing heavy is imported before the first of these names is used. The packages stand at the top of the repository; the
links beside this file make them `tfm.model`, `tfm.data`, ...
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfm.pipeline.api.attention import Attention
    from tfm.pipeline.api.attention_function import AttentionOutput, attention
    from tfm.pipeline.api.loading import load
    from tfm.pipeline.api.model import Model
    from tfm.pipeline.api.run import Curve, Run, read_run
    from tfm.pipeline.api.text_scores import TextScores
    from tfm.pipeline.api.words import WordVectors, concordance, count_vectors
    from tfm.pipeline.errors import DataError, RecipeError, TfmError

    __version__: str

__all__ = [
    "Attention",
    "AttentionOutput",
    "Curve",
    "DataError",
    "Model",
    "RecipeError",
    "Run",
    "TextScores",
    "TfmError",
    "WordVectors",
    "attention",
    "concordance",
    "count_vectors",
    "load",
    "read_run",
]

if not TYPE_CHECKING:  # a type checker finds the names above, and says of another that it is none
    _PLACES = {
        "Model": "model",
        "load": "loading",
        **dict.fromkeys(("Curve", "Run", "read_run"), "run"),
        "Attention": "attention",
        **dict.fromkeys(("AttentionOutput", "attention"), "attention_function"),
        "TextScores": "text_scores",
        **dict.fromkeys(("WordVectors", "concordance", "count_vectors"), "words"),
    }

    def __getattr__(name):
        if name == "__version__":
            from tfm.pipeline.distribution import version

            return version() or "0+source"  # a number that no release has: nothing is installed
        if name not in __all__:
            raise AttributeError(f"module 'tfm' has no attribute {name!r}; it has {', '.join(__all__)}")
        place = f"tfm.pipeline.api.{_PLACES[name]}" if name in _PLACES else "tfm.pipeline.errors"
        found = globals()[name] = getattr(import_module(place), name)
        return found

    def __dir__():
        return sorted({*globals(), *__all__, "__version__"})
