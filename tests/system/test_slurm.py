"""The batch scripts for SLURM: checked by shellcheck, and run by stand-ins on two hosts made of network namespaces."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.user import RECIPE, ROOT, start, write_corpora

SCRIPTS = sorted((ROOT / "docs" / "deploy").glob("*.sh"))
HOSTS = {f"tfm{os.getpid() % 10_000}a": "10.77.3.1", f"tfm{os.getpid() % 10_000}b": "10.77.3.2"}
FIRST, SECOND = HOSTS
SRUN = """#!/bin/bash
# A stand-in for srun: runs a command in one namespace or in all, each of which is a node, and hands it SIGTERM.
nodes=({hosts})
while [[ $1 == --* ]]; do
    [[ $1 == --nodelist=* ]] && only=${{1#--nodelist=}}
    shift
done
pids=()
trap 'kill "${{pids[@]}}"' TERM
for number in "${{!nodes[@]}}"; do
    [[ -n ${{only:-}} && ${{nodes[number]}} != "$only" ]] && continue
    if [[ $1 == hostname ]]; then ip netns exec "${{nodes[number]}}" ip -4 -o addr show dev eth0 \\
        | sed -E 's/.*inet ([0-9.]+).*/\\1/'; continue; fi
    SLURM_NODEID=$number GLOO_SOCKET_IFNAME=eth0 ip netns exec "${{nodes[number]}}" "$@" &
    pids+=($!)
done
status=0
for pid in "${{pids[@]}}"; do wait "$pid" || status=$?; done
exit $status
"""
SCONTROL = """#!/bin/bash
[[ $1 == show ]] && printf '%s\\n' {hosts}
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def hosts() -> Iterator[None]:
    """Two namespaces with addresses of their own, joined by a cable."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces need ip, and root")
    try:
        ip("netns", "add", FIRST)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"there are no network namespaces here: {error.stderr.decode().strip()}")
    try:
        ip("netns", "add", SECOND)
        ip("link", "add", "eth0", "netns", FIRST, "type", "veth", "peer", "name", "eth0", "netns", SECOND)
        for host, address in HOSTS.items():
            ip("-n", host, "addr", "add", f"{address}/24", "dev", "eth0")
            ip("-n", host, "link", "set", "eth0", "up")
            ip("-n", host, "link", "set", "lo", "up")
        yield
    finally:
        for host in HOSTS:
            subprocess.run(["ip", "netns", "del", host], capture_output=True, check=False)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a job of SLURM, with stand-ins for its commands."""
    folder = tmp_path / "bin"
    folder.mkdir()
    torchrun = f'#!/bin/bash\nexec {sys.executable} -m torch.distributed.run "$@"\n'
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        (folder / name).write_text(text.format(hosts=" ".join(HOSTS)), "utf-8")
    (folder / "torchrun").write_text(torchrun, "utf-8")
    for file in folder.iterdir():
        file.chmod(0o755)
    path = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    job = {"SLURM_JOB_NODELIST": ",".join(HOSTS), "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_ID": "1"}
    return os.environ | job | {"PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_shellcheck_finds_nothing(script: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("needs shellcheck")
    done = subprocess.run(["shellcheck", str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_each_step_has_the_processors_of_the_job(script: Path, tmp_path: Path) -> None:
    """Without SRUN_CPUS_PER_TASK a step has one processor, whatever --cpus-per-task is (SLURM 22.05)."""
    srun = f'#!/bin/bash\necho "$SRUN_CPUS_PER_TASK" >> {tmp_path}/steps\necho 10.0.0.1\n'
    for name, text in (("srun", srun), ("scontrol", "#!/bin/bash\n[[ $1 == show ]] && echo one\n")):
        (tmp_path / name).write_text(text, "utf-8")
        (tmp_path / name).chmod(0o755)
    job = {"SLURM_JOB_NODELIST": "one", "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_ID": "1", "SLURM_CPUS_PER_TASK": "7"}
    path = f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | job | {"PATH": path}
    subprocess.run(["bash", str(script), "recipe"], env=environment, capture_output=True, check=False, timeout=60)
    assert set((tmp_path / "steps").read_text("utf-8").split()) == {"7"}


def make_run(folder: Path) -> None:
    """Make corpora, a recipe, and what comes before training."""
    write_corpora(folder)
    (folder / "tiny.toml").write_text(RECIPE.format(folder="."), "utf-8")
    for stage in ("tokenize", "preprocess"):
        process = start(stage, "--recipe", "tiny.toml", folder=folder)
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err


@pytest.mark.slow
@pytest.mark.usefixtures("hosts")
def test_torchrun_trains_on_two_hosts(environment: dict[str, str], tmp_path: Path) -> None:
    make_run(tmp_path)
    command = ["bash", str(ROOT / "docs" / "deploy" / "slurm-torchrun.sh"), "tiny.toml", "--device", "cpu"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    figures = json.loads((tmp_path / "runs/tiny/model/manifest.json").read_bytes())["figures"]
    assert figures["settings"]["world_size"] == 2
    assert figures["updates"] == 10


@pytest.mark.slow
@pytest.mark.usefixtures("hosts")
def test_ray_preprocesses_on_two_hosts(environment: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs the extra cluster")
    make_run(tmp_path)
    alone = (tmp_path / "runs/tiny/dataset/manifest.json").read_bytes()
    script = str(ROOT / "docs" / "deploy" / "slurm-ray.sh")
    command = ["bash", script, "preprocess", "--recipe", "tiny.toml", "--out", "dataset"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    both = [json.loads(each) for each in (alone, (tmp_path / "dataset/manifest.json").read_bytes())]
    assert both[0]["fingerprint"] == both[1]["fingerprint"]
