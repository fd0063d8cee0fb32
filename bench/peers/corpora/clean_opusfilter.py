"""OpusFilter on two text files: `python clean_opusfilter.py < JSON` (needs: opusfilter). Prints JSON.

What is asked for is either `out`, a folder for the pairs that pass all filters, or the scores of each filter.
"""

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any


def main(request: dict[str, Any]) -> None:
    import opusfilter.filters
    import opusfilter.lid
    from opusfilter.opusfilter import OpusFilter
    from py3langid.langid import LanguageIdentifier

    if not hasattr(LanguageIdentifier, "from_pickled_model"):  # its name before version 0.4
        LanguageIdentifier.from_pickled_model = LanguageIdentifier.from_model_file
    logging.disable(logging.INFO)
    files = [request["source"], request["target"]]
    if "out" not in request:
        sides = [Path(file).read_text(encoding="utf-8").split("\n")[:-1] for file in files]
        results = {}
        for name, parameters in request["filters"].items():
            module = opusfilter.lid if name == "LangidFilter" else opusfilter.filters
            scorer = getattr(module, name)(**parameters)
            scores = list(scorer.score(list(zip(*sides, strict=True))))
            results[name] = {"scores": scores, "kept": [bool(scorer.accept(each)) for each in scores]}
        print(json.dumps(results))
        return
    out = Path(request["out"])
    filtered, unique = ([str(out / f"{name}.{side}") for side in ("source", "target")] for name in ("some", "all"))
    filters = [{name: parameters} for name, parameters in request["filters"].items()]
    steps = [{"type": "filter", "parameters": {"inputs": files, "outputs": filtered, "filters": filters}}]
    if request["duplicates"]:
        parameters = {"inputs": filtered, "outputs": unique, "hash": "xxh64"}
        steps.append({"type": "remove_duplicates", "parameters": parameters})
    start = time.perf_counter()
    common = {"output_directory": str(out), "default_n_jobs": request["workers"]}
    OpusFilter({"common": common, "steps": steps}).execute_steps()
    seconds = time.perf_counter() - start
    num_kept = Path(unique[0] if request["duplicates"] else filtered[0]).read_text(encoding="utf-8").count("\n")
    print(json.dumps({"seconds": seconds, "kept": num_kept}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
