"""The label.py of an ONNX export, by onnxruntime: `python labels_onnxruntime.py < JSON`. Prints labels and seconds."""

import json
import runpy
import sys
import time
from pathlib import Path
from typing import Any

WARM_UP = 256


def main(request: dict[str, Any]) -> None:
    label = runpy.run_path(str(Path(request["model"]) / "label.py"))["tag" if request["is_tagger"] else "label"]
    label(request["lines"][:WARM_UP])
    start = time.perf_counter()
    labels = label(request["lines"])
    print(json.dumps({"seconds": time.perf_counter() - start, "labels": labels}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
