"""BERTScore (Zhang et al. 2020) for [[evaluation.external]]: reads segments as JSON lines, prints an F1 for each.

Needs an environment of its own with bert-score: see docs/scores/external.md.
"""

import argparse
import json
import os
import sys


def main() -> None:
    """Of a segment with several references the highest F1 is printed, in 0..100."""
    arguments = argparse.ArgumentParser(description="BERTScore of the segments on stdin, one number a line.")
    arguments.add_argument("--lang", required=True, help="language of the texts, which chooses the model: en, de, ...")
    arguments.add_argument("--batch-size", type=int, default=32)
    arguments.add_argument("--rescale", action="store_true", help="rescale with bert-score's baseline")
    given = arguments.parse_args()

    numbers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print on stdout is no number

    from bert_score import score  # after that, as it prints

    segments = [json.loads(line) for line in sys.stdin]
    hypotheses, references = ([segment[key] for segment in segments] for key in ("hypothesis", "references"))
    about = {"lang": given.lang, "batch_size": given.batch_size, "rescale_with_baseline": given.rescale}
    _, _, f1 = score(hypotheses, references, **about)
    with numbers:
        for each in f1.tolist():
            print(100 * each, file=numbers)


if __name__ == "__main__":
    main()
