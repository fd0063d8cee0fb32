"""The table of recipe keys that have no effect together with certain other values, each with the reason.

Keys that are not in the table are used by every architecture, task and choice, or rejected if they are read.
"""

from tfm.pipeline.recipes.unused_keys.corpora import IMAGE_RULES, TEXT_RULES
from tfm.pipeline.recipes.unused_keys.model import MODEL_RULES
from tfm.pipeline.recipes.unused_keys.outputs import DECODING_RULES, EVALUATION_RULES, SYNTHESIS_RULES
from tfm.pipeline.recipes.unused_keys.training import TRAINING_RULES

UNUSED_KEYS_RULES = (
    *IMAGE_RULES,
    *MODEL_RULES,
    *TRAINING_RULES,
    *DECODING_RULES,
    *EVALUATION_RULES,
    *SYNTHESIS_RULES,
    *TEXT_RULES,
)
