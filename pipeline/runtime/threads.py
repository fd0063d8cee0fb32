"""The number of threads of a training: as many as there are idle processors.

The threads of one product wait for the slowest of them, so that one thread too many halves the speed, or worse. The
load of processors is measured on Linux only.
"""

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from tfm.pipeline.runtime.cpu import num_processors
from tfm.pipeline.runtime.omp_wait_policy import PassiveWaiting

STAT_FILE = Path("/proc/stat")
CGROUP_FOLDER = Path("/sys/fs/cgroup")
START_SAMPLE_SECONDS = 0.3
LOAD_WATCH_SECONDS = 2.0
MIN_IDLE_SHARE = 0.25
"""Share of one processor: with more than that idle there is room."""
MAX_LOAD_OF_OTHERS = 0.45
"""Share of one processor: a program that would take all of it, and has to share it with a thread, gets half."""
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class CpuSample:
    """CPU times up to now.

    Args:
        clock: seconds on the clock.
        busy: seconds of work on the processors that this process may use.
        process: seconds of its own work, and of that of the processes it started and that have ended.
    """

    clock: float
    busy: float
    process: float


@dataclass(frozen=True)
class CpuLoad:
    """The number of processors that were busy over some time, and the number that other programs kept busy."""

    busy: float
    other_programs: float


def cpu_seconds() -> float:
    """CPU time so far, of this process and of those that it started and that have ended."""
    return sum(os.times()[:4])


def read_cpu_sample() -> CpuSample | None:
    """Read the clocks; None if the system does not tell."""
    try:
        lines = STAT_FILE.read_text("ascii").splitlines()
        allowed_cpus = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    except (OSError, ValueError, AttributeError):
        return None
    counts = [[int(each) for each in line.split()[1:9]] for line in lines if line.partition(" ")[0] in allowed_cpus]
    ticks = sum(sum(each) - each[3] - each[4] for each in counts)  # all but idle, and idle while a disk is waited for
    return CpuSample(time.monotonic(), ticks / TICKS_PER_SECOND, cpu_seconds())


def load_between(before: CpuSample, after: CpuSample) -> CpuLoad:
    """The mean load between two readings."""
    seconds = after.clock - before.clock
    busy, process_load = (after.busy - before.busy) / seconds, (after.process - before.process) / seconds
    return CpuLoad(busy, max(busy - process_load, 0.0))


def cpu_quota(folder: Path | None = None) -> float:
    """The number of processors' time that a container may take."""
    folder = folder or CGROUP_FOLDER
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            quota, period = " ".join((folder / file).read_text("ascii") for file in files).split()
            if quota not in ("max", "-1"):
                return int(quota) / int(period)
        except (OSError, ValueError, ZeroDivisionError):
            continue
    return math.inf


def available_threads(load_of_others: float, processors: int, cpu_quota: float) -> int:
    """The number of threads that have a processor of their own beside other programs.

    Args:
        load_of_others: processors that other programs keep busy.
        processors: that this process may run on.
        cpu_quota: processors' time that its container may take.
    """
    return max(1, int(min(cpu_quota, processors - load_of_others) + 0.5))


def choose_num_threads(device: torch.device) -> int:
    """Choose the number of threads to train with: `OMP_NUM_THREADS` if it is set, else measured, on the CPU."""
    num_threads = torch.get_num_threads()
    if "OMP_NUM_THREADS" in os.environ:
        return num_threads
    processors, quota = num_processors(), cpu_quota()
    limit = min(num_threads, available_threads(0.0, processors, quota))
    if device.type != "cpu" or limit == 1:
        return limit
    before = read_cpu_sample()
    time.sleep(START_SAMPLE_SECONDS)
    after = read_cpu_sample()
    if before is None or after is None:
        return limit
    return min(limit, available_threads(load_between(before, after).other_programs, processors, quota))


class CpuLoadWatch:
    """Lets the threads of a training sleep while they wait for each other, for as long as other programs take their
    processors.

    Threads that spin burn time as if they worked, so the work of other programs decides. The switch is reported once.

    Args:
        threads: the number of threads of the training.
        tell: shows a message.
        seconds: between two looks.
    """

    def __init__(self, threads: int, tell: Callable[[str], None], seconds: float = LOAD_WATCH_SECONDS) -> None:
        self.threads, self._warn, self._seconds = threads, tell, seconds
        self.waits = PassiveWaiting()
        self._has_warned = False
        self._last_sample = read_cpu_sample() if threads > 1 else None
        self._next = math.inf if self._last_sample is None else self._last_sample.clock + seconds

    def __call__(self) -> None:
        """Compare the load with that of the last look, if the time between two looks has passed."""
        if time.monotonic() < self._next:
            return
        previous, self._last_sample = self._last_sample, read_cpu_sample()
        if previous is None or self._last_sample is None:
            self._next = math.inf
            return
        self._next = self._last_sample.clock + self._seconds
        load, processors = load_between(previous, self._last_sample), num_processors()
        full = load.busy > processors - MIN_IDLE_SHARE or self.waits.is_on  # threads that sleep leave some of it idle
        room = max(1, int(min(cpu_quota(), processors - load.other_programs)))
        is_crowded = load.other_programs > MAX_LOAD_OF_OTHERS and full and room < self.threads
        if is_crowded and not self._has_warned:
            self._has_warned = True
            self._warn(
                f"other programs use {load.other_programs:.1f} of the {processors} processors: until they end, the "
                f"{self.threads} threads of this training sleep while they wait for each other"
            )
        self.waits.set_passive(is_passive=is_crowded)
