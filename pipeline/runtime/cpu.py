"""The processors: name, number, and which instructions for fast products they have. Imports nothing heavy."""

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
RELEVANT_FLAGS = (
    "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_bf16", "amx_int8",
    "asimd", "asimddp", "bf16", "i8mm", "sve", "sve2",
)  # fmt: skip
"""Instruction sets by their names in Linux; those from asimd on are ARM's."""
MACOS_FEATURES = {
    "hw.optional.avx2_0": "avx2",
    "hw.optional.fma": "fma",
    "hw.optional.avx512f": "avx512f",
    "hw.optional.AdvSIMD": "asimd",
    "hw.optional.arm.FEAT_DotProd": "asimddp",
    "hw.optional.arm.FEAT_BF16": "bf16",
    "hw.optional.arm.FEAT_I8MM": "i8mm",
}


def num_processors() -> int:
    """The number of processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe_processor() -> dict[str, str | None]:
    """The name of the CPU (cpu), and those of `RELEVANT_FLAGS` that it has (instructions); None if unknown."""
    try:
        if platform.system() == "Darwin":
            return describe_sysctl(_read_sysctl("machdep.cpu.brand_string", "hw.optional"))
        with CPUINFO.open(encoding="utf-8", errors="replace") as lines:
            return describe_cpuinfo(lines)
    except (OSError, subprocess.SubprocessError):
        return {"cpu": None, "instructions": None}


def describe_cpuinfo(lines: Iterable[str]) -> dict[str, str | None]:
    """Description of the first processor by Linux; ARM's have numbers instead of a name."""
    values: dict[str, str] = {}
    for line in lines:
        if not line.strip():
            break
        name, _, value = line.partition(":")
        values[name.strip()] = value.strip()
    numbers = [values[name] for name in ("CPU implementer", "CPU part") if name in values]
    flags = (values.get("flags") or values.get("Features") or "").split()
    return _run_lscpu(values.get("model name") or " ".join(numbers), flags)


def describe_sysctl(values: Mapping[str, str]) -> dict[str, str | None]:
    """Description of the processor by macOS."""
    flags = [MACOS_FEATURES[name] for name, value in values.items() if value == "1" and name in MACOS_FEATURES]
    return _run_lscpu(values.get("machdep.cpu.brand_string", ""), flags)


def _run_lscpu(name: str, flags: Iterable[str]) -> dict[str, str | None]:
    available_flags = set(flags)
    return {
        "cpu": name or None,
        "instructions": " ".join(each for each in RELEVANT_FLAGS if each in available_flags) or None,
    }


def _read_sysctl(*names: str) -> dict[str, str]:
    result = subprocess.run(["sysctl", *names], capture_output=True, text=True, timeout=10, check=False)
    parts = (line.partition(":") for line in result.stdout.splitlines())
    return {name.strip(): value.strip() for name, _, value in parts}
