"""What a manifest says of the machine."""

import subprocess
from pathlib import Path

import pytest
import torch

from tfm.pipeline.artifacts.provenance import describe_hardware, git_commit, nvidia_gpu_names, package_versions
from tfm.pipeline.runtime.cpu import RELEVANT_FLAGS, describe_cpuinfo, describe_processor, describe_sysctl

ROOT = Path(__file__).resolve().parents[4]


def test_gpus_are_named_as_the_driver_lists_them(tmp_path: Path) -> None:
    for number, name in enumerate(("NVIDIA H200", "Tesla T4")):
        (tmp_path / f"0000:0{number}:00.0").mkdir()
        (tmp_path / f"0000:0{number}:00.0" / "information").write_text(f"Model: \t\t {name}\nIRQ:   \t\t 5\n")
    assert nvidia_gpu_names(tmp_path) == ["NVIDIA H200", "Tesla T4"]
    assert nvidia_gpu_names(tmp_path / "nothing") == []


def test_versions_and_hardware_say_what_runs_here() -> None:
    assert set(package_versions()) == {"python", "tfm", "torch", "tokenizers"}
    assert package_versions()["torch"] is not None
    assert describe_hardware().keys() == {"cpus", "cpu", "instructions", "machine", "platform", "gpus"}


def test_the_commit_is_that_of_this_checkout() -> None:
    asked = ["git", "-C", str(ROOT), "rev-parse", "--show-toplevel", "HEAD"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no git checkout")
    top, commit = done.stdout.split("\n")[:2]
    assert git_commit() in ((commit, f"{commit}-dirty") if Path(top) == ROOT else (None,))


X86 = """processor	: 0
model name	: AMD EPYC 9654
flags		: fpu fma avx2 sse4_2 avx512f avx512_bf16

processor	: 1
model name	: another
flags		: amx_bf16
"""
ARM = """processor	: 0
BogoMIPS	: 243.75
Features	: fp asimd aes i8mm bf16
CPU implementer	: 0x41
CPU part	: 0xd40
"""


def test_a_processor_is_named_with_what_makes_it_fast() -> None:
    assert describe_cpuinfo(X86.splitlines()) == {
        "cpu": "AMD EPYC 9654",
        "instructions": "avx2 fma avx512f avx512_bf16",
    }
    assert describe_cpuinfo(ARM.splitlines()) == {"cpu": "0x41 0xd40", "instructions": "asimd bf16 i8mm"}
    assert describe_cpuinfo([]) == {"cpu": None, "instructions": None}
    apple = {"machdep.cpu.brand_string": "Apple M2", "hw.optional.AdvSIMD": "1", "hw.optional.arm.FEAT_BF16": "0"}
    assert describe_sysctl(apple) == {"cpu": "Apple M2", "instructions": "asimd"}


def test_what_it_says_of_this_machine_is_what_torch_says() -> None:
    has = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)()
    assert ("avx512_bf16" in (describe_processor()["instructions"] or "").split()) == has
    assert set((describe_processor()["instructions"] or "").split()) <= set(RELEVANT_FLAGS)
