"""Our own labels, in a separate process: `python -m bench.decoding.labels_tfm < JSON`. Prints labels and seconds."""

import json
import sys
import time
from typing import Any

import tfm

WARM_UP = 256


def main(request: dict[str, Any]) -> None:
    model = tfm.load(request["model"])
    label = model.tag if request["is_tagger"] else model.classify
    label(request["lines"][:WARM_UP])
    start = time.perf_counter()
    labels = label(request["lines"])
    seconds = time.perf_counter() - start
    if request["is_tagger"]:
        labels = [" ".join(tags) for tags in labels]
    print(json.dumps({"seconds": seconds, "labels": labels}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
