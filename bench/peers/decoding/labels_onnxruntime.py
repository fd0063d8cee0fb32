"""The label.py of an ONNX export, by onnxruntime: `python labels_onnxruntime.py < JSON`. Prints labels and seconds."""

import json
import runpy
import sys
import time
from pathlib import Path
from typing import Any

WARM_UP = 256


def main(asked: dict[str, Any]) -> None:
    label = runpy.run_path(str(Path(asked["model"]) / "label.py"))["tag" if asked["is_tagger"] else "label"]
    label(asked["lines"][:WARM_UP])
    began = time.perf_counter()
    labels = label(asked["lines"])
    print(json.dumps({"seconds": time.perf_counter() - began, "labels": labels}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
