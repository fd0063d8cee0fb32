"""A container without a builder of containers: the steps of a Containerfile in a plain Debian, by chroot.

It needs root, debootstrap, unshare and a mirror of Debian. Where pip or apt of this machine read files or packages of
its own, `CHROOT_BINDS` names them (`/etc/pip.conf:/opt/wheels`): they are at the same place while a step runs.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SUITES = {"debian:12-slim": "bookworm"}
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
NEEDED_PROGRAMS = ("debootstrap", "unshare", "nsenter", "chroot", "ip")


def chroot_problem() -> str | None:
    """Return why no container can be built here; None if one can."""
    for program in NEEDED_PROGRAMS:
        if shutil.which(program) is None:
            return f"no {program}"
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True).returncode:
        return "chroot and unshare need root"
    return None


def read_instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a Containerfile, in order: (FROM, debian:12-slim), (RUN, ...), ..."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [(name, value.strip()) for name, _, value in (line.partition(" ") for line in joined.splitlines())]


def copied_files(context: Path) -> list[str]:
    """The files of a context that `.dockerignore` lets in, of those that git knows."""
    names = [line[1:] for line in (context / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")]
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *names]
    found = subprocess.run(listed, cwd=context, check=True, capture_output=True, text=True).stdout
    return [name for name in found.split("\0") if name]


@dataclass
class Image:
    """A container image, as the steps of a Containerfile make it.

    Args:
        root: the folder that the container sees as /.
    """

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    user: str = "0"
    commands: dict[str, list[str]] = field(default_factory=dict)
    volumes: list[str] = field(default_factory=list)

    def build(self, file: Path, context: Path, arguments: Mapping[str, str] | None = None) -> None:
        """Do all steps of a Containerfile.

        Args:
            file: the Containerfile.
            context: the folder that it copies files of.
            arguments: values of its ARG, as `--build-arg` gives them.

        Raises:
            CalledProcessError: a step fails.
        """
        given = {name: value for name, value in os.environ.items() if name.startswith("PIP_")} | dict(arguments or {})
        for name, value in read_instructions(file.read_text("utf-8")):
            if name == "FROM":
                subprocess.run(["debootstrap", "--variant=minbase", SUITES[value], self.root], check=True)
            elif name == "ARG":
                key, _, usual = value.partition("=")
                given.setdefault(key, usual.strip('"'))
            elif name == "ENV":
                self.environment |= dict(pair.split("=", 1) for pair in shlex.split(value))
            elif name == "COPY":
                _, target = value.split()
                self._copy(context, target)
            elif name == "RUN":
                self._run(value, {**self.environment, **given})
            elif name == "VOLUME":
                self.volumes = value.split()
                for place in self.volumes:
                    (self.root / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
            elif name == "USER":
                self.user = value
            elif name in ("ENTRYPOINT", "CMD"):
                self.commands[name] = json.loads(value)
            elif name == "HEALTHCHECK":
                self.commands[name] = json.loads(value.partition(" CMD ")[2])

    def _copy(self, context: Path, target: str) -> None:
        place = self.root / target.lstrip("/")
        place.mkdir(parents=True)
        files = "\0".join(copied_files(context)).encode()
        pack = ["tar", "-c", "--null", "-T", "-"]
        packed = subprocess.run(pack, cwd=context, input=files, stdout=subprocess.PIPE, check=True)
        subprocess.run(["tar", "-x", "-C", place], input=packed.stdout, check=True)

    def _run(self, step: str, environment: Mapping[str, str]) -> None:
        mounts = [f"mount -t proc proc {self.root}/proc"]
        for name in filter(None, os.environ.get("CHROOT_BINDS", "").split(":")):
            own, place = Path(name), self.root / name.lstrip("/")
            (place if own.is_dir() else place.parent).mkdir(parents=True, exist_ok=True)
            if not own.is_dir():
                place.touch()
            mounts.append(f"mount --rbind {shlex.quote(name)} {shlex.quote(str(place))}")
        words = self._enter(["/bin/sh", "-c", step], environment)
        script = " && ".join([*mounts, "exec " + shlex.join(words)])
        subprocess.run(["unshare", "--mount", "sh", "-c", script], check=True)

    def run(self, words: Sequence[str], models: Path, *, writable: bool = False) -> subprocess.Popen[str]:
        """Start the container: a read-only root, an empty /tmp, a network of its own, the user that the file names.

        Args:
            words: the program and its arguments.
            models: the folder that is at /models; other volumes hold what the image has there.
            writable: whether the container may write into `models`.
        """
        root = shlex.quote(str(self.root))
        mounts = [f"mount --bind -o {'rw' if writable else 'ro'} {shlex.quote(str(models))} {root}/models"]
        for place in self.volumes:
            if place != "/models":
                shutil.rmtree(self.volume(place), ignore_errors=True)
                subprocess.run(["cp", "-a", self.root / place.lstrip("/"), self.volume(place)], check=True)
                mounts.append(f"mount --bind {shlex.quote(str(self.volume(place)))} {root}{place}")
        steps = (
            f"mount --bind {root} {root}",
            f"mount -o remount,bind,ro {root}",
            f"mount -t tmpfs tmpfs {root}/tmp",
            f"mount -t proc proc {root}/proc",
            *mounts,
            "ip link set lo up",
            f"exec {shlex.join(self._enter(words))}",
        )
        command = ["unshare", "--mount", "--net", "sh", "-c", " && ".join(steps)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def execute(self, process: "subprocess.Popen[str]", words: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        """Run a program beside one that runs in the container.

        Args:
            process: that `run` has started.
            words: the program and its arguments.
        """
        entered = ["nsenter", "--target", str(process.pid), "--mount", "--net", *self._enter(words)]
        return subprocess.run(entered, capture_output=True, text=True)

    def volume(self, place: str) -> Path:
        """The folder that the last container had at a place of its own."""
        return self.root.parent / f"volume-{place.strip('/')}"

    def _enter(self, words: Sequence[str], environment: Mapping[str, str] | None = None) -> list[str]:
        """The command that runs a program within the root, as the user."""
        environment = self.environment if environment is None else environment
        rights = []
        if self.user != "0":
            accounts = (line.split(":") for line in (self.root / "etc/passwd").read_text("utf-8").splitlines())
            group = next(fields[3] for fields in accounts if fields[2] == self.user)
            rights = [f"--userspec={self.user}:{group}"]
        variables = [f"{name}={value}" for name, value in environment.items()]
        return ["chroot", *rights, str(self.root), "/usr/bin/env", "-i", *variables, *words]
