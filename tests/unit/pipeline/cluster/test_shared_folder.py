"""Nodes without the folder of the process that was started: named, with the folder and the remedy."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.pipeline.cluster.test_mailbox import Handle, ray  # noqa: F401  (a fixture)
from tfm.pipeline.cluster import encoding, processes, ranks, translation
from tfm.pipeline.cluster.mailbox import Mailbox
from tfm.pipeline.cluster.node_packages import installed_packages
from tfm.pipeline.errors import DataError

READERS: list[Callable[[str], Any]] = [
    lambda folder: encoding.encode_columns(folder, "f" * 64, (), None, []),
    lambda folder: translation.translate_chunk(
        (folder,), ("f" * 64,), "cpu", 1, (None, None), "{}", ["a"], None, None, None
    ),
    lambda folder: processes._run_job(Handle(Mailbox()), "run", folder, lambda reporter: None),
]


@pytest.mark.parametrize("read", READERS, ids=["tokenizer", "model", "run"])
def test_a_folder_that_a_node_lacks_is_named(read: Callable[[str], Any], tmp_path: Path, ray: object) -> None:  # noqa: F811
    with pytest.raises(DataError, match=r"is not there on node .*: all nodes need it under this path") as caught:
        read(str(tmp_path / "lost"))
    assert str(tmp_path / "lost") in str(caught.value)


def test_a_rank_without_the_folder_tells_so_and_is_not_started_again(
    tmp_path: Path,
    ray: object,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RANK", "1")
    mailbox, before = Mailbox(), os.getcwd()
    config: dict[str, Any] = {"mailbox": Handle(mailbox), "packages": installed_packages(), "work": SimpleNamespace}
    ranks._run_rank({**config, "folder": str(tmp_path / "lost")})
    ((sender, (name, (error,))),) = mailbox.take()
    assert (sender, name, os.getcwd()) == ("1", ranks.ERROR_EVENT, before)
    assert "is not there on node" in str(error)
