"""A cluster of Ray on this machine, of nodes with one processor each: `python -m bench.ray_nodes N`.

It prints the cluster's address, and ends with its standard input. Imported, it has the block for which a cluster runs,
and the memory of the processes that compute on its nodes.
"""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.processes import ROOT, ProcessError

SECONDS_BETWEEN_LOOKS = 0.2
WORKER_TITLES = (b"ray::encode_columns", b"ray::translate_chunk")
"""How the title of a process begins while it computes a chunk."""


@contextmanager
def start_nodes(number: int) -> Iterator[str]:
    """Start a cluster of so many nodes for the time of the block, and yield its address."""
    command = [sys.executable, "-m", "bench.ray_nodes", str(number)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            address = process.stdout.readline().strip()
            if not address:
                raise ProcessError("Ray does not start: it is part of the extra cluster")
            yield address
        finally:
            process.stdin.close()
            process.wait(60)


class WorkerMemory(threading.Thread):
    """The largest anonymous resident memory of a process that computes chunks, looked at until it is stopped.

    It is 0 if there is no /proc.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak, self._stopped = 0, threading.Event()

    def __enter__(self) -> "WorkerMemory":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self.join()

    def run(self) -> None:
        workers = set[Path]()  # also while they wait for a chunk, when their title is another
        while not self._stopped.wait(SECONDS_BETWEEN_LOOKS):
            workers |= {each for each in Path("/proc").glob("[0-9]*") if _title(each).startswith(WORKER_TITLES)}
            self.peak = max([self.peak, *map(_anonymous_bytes, workers)])


def _title(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def _anonymous_bytes(process: Path) -> int:
    try:
        _, _, value = (process / "status").read_text(encoding="ascii").partition("RssAnon:")
    except OSError:
        return 0
    return int(value.split()[0]) * 1024 if value else 0


def _serve(number: int) -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(number - 1):
        cluster.add_node(num_cpus=1)
    print(cluster.address, flush=True)
    sys.stdin.read()
    cluster.shutdown()


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
