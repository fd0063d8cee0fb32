"""Work for a cluster whose steps leave traces: `python -m tests.cluster_driver ADDRESS FOLDER CHUNKS SECONDS`.

Each chunk appends a line to a file of its own when it is computed, and takes a time that its number decides, so that
results come in another order than they were asked for. The results are written to FOLDER/results.
"""

import hashlib
import sys
import time
from pathlib import Path

from tfm.pipeline.artifacts.artifact import Plan
from tfm.pipeline.cluster.session import ComputeChunk, connect_to_cluster


def compute(number: int, folder: str, seconds: float) -> bytes:
    """The result of a chunk: the hash of its number."""
    time.sleep(seconds * (number * 7919 % 11) / 10)
    digest = hashlib.sha256(str(number).encode()).hexdigest()
    with open(Path(folder) / f"{number}.trace", "a", encoding="utf-8") as trace:
        trace.write("computed\n")
    return digest.encode()


def run(address: str, folder: Path, count: int, seconds: float) -> None:
    """Compute all chunks, in order."""
    traces = folder / "traces"
    traces.mkdir(exist_ok=True)
    plan = Plan("preprocess", folder / "artifact", {}, {}, seed=None)
    with connect_to_cluster(address, plan) as session:
        chunks = ((number, ComputeChunk(str(number), (number, str(traces), seconds))) for number in range(count))
        results = list(session.map_in_order(compute, chunks))
    (folder / "results").write_text("".join(f"{number} {result.decode()}\n" for number, result in results), "utf-8")


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
