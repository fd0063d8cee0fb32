"""The most memory that a command takes, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.user import ROOT

PROGRAM = """
import resource, runpy, sys
from pathlib import Path
sys.argv = ["tfm", *sys.argv[1:]]
try:
    runpy.run_module("tfm.cli.app", run_name="__main__")
finally:
    if sys.platform == "darwin":
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    else:  # ru_maxrss begins with that of the process that started this one
        lines = Path("/proc/self/status").read_text().splitlines()
        peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
    print(f"peak {peak}", file=sys.stderr)
"""


def peak_of(base: Path, *words: str | Path) -> tuple[int, str, int]:
    """Exit code, what was said, and the most memory in bytes of a command that is a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, *(str(word) for word in words)]
    done = subprocess.run(command, cwd=base, env=environment, capture_output=True, text=True, timeout=120)
    said, _, peak = done.stderr.rpartition("peak ")
    return done.returncode, said, int(peak)
