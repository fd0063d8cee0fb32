"""Share of the right script: letters of the script (Unicode's property Script) over letters.

OpusFilter's CharacterScoreFilter is the same. A side without letters has the share 1.
"""

import numpy as np

from tfm.pipeline.cleaning.rules.character_sets import letters, letters_of_script
from tfm.pipeline.cleaning.rules.texts.config import ScriptConfig
from tfm.pipeline.cleaning.text_batch import Floats, TextPairBatch, as_column


def measure_script_share(pairs: TextPairBatch, config: ScriptConfig) -> Floats:
    """(n, 1) the share of the right script, of the side that has less."""
    shares = np.ones(len(pairs))
    for side, script in ((pairs.source, config.source), (pairs.target, config.target)):
        if script is None or not (side is pairs.target or pairs.has_source):
            continue
        num_letters, num_of_script = (
            side.count_flagged(table[side.characters]) for table in (letters(), letters_of_script(script))
        )
        shares = np.minimum(shares, np.where(num_letters > 0, num_of_script / np.maximum(num_letters, 1), 1.0))
    return as_column(shares)
