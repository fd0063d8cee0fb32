"""COMET (Rei et al. 2020) for [[evaluation.external]]: reads segments as JSON lines, prints a score for each.

Needs an environment of its own with unbabel-comet 2: see docs/scores/external.md.
"""

import argparse
import json
import os
import sys
from itertools import groupby


def main() -> None:
    """Of a segment with several references the highest score is printed."""
    arguments = argparse.ArgumentParser(description="COMET of the segments on stdin, one number a line.")
    arguments.add_argument(
        "--model", default="Unbabel/wmt22-comet-da", help="a name on the Hugging Face hub, or a file"
    )
    arguments.add_argument("--batch-size", type=int, default=16)
    given = arguments.parse_args()

    numbers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print on stdout is no number

    from comet import download_model, load_from_checkpoint  # after that, as it prints
    from torch.cuda import is_available

    segments = [json.loads(line) for line in sys.stdin]
    if any(segment["source"] is None for segment in segments):
        raise SystemExit("COMET needs sources: give --source FILE")
    rows = [
        (number, {"src": segment["source"], "mt": segment["hypothesis"], "ref": reference})
        for number, segment in enumerate(segments)
        for reference in segment["references"]
    ]
    model = load_from_checkpoint(given.model if os.path.isfile(given.model) else download_model(given.model))
    found = model.predict([data for _, data in rows], batch_size=given.batch_size, gpus=int(is_available()))
    scored = zip((number for number, _ in rows), found.scores, strict=True)
    with numbers:
        for _, scores in groupby(scored, key=lambda each: each[0]):
            print(max(score for _, score in scores), file=numbers)


if __name__ == "__main__":
    main()
