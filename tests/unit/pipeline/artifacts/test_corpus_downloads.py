"""Downloads of corpora before a stage: a bar for what is downloaded, and none for what is up to date."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fsspec
import pytest

from tfm.data.config import DataConfig
from tfm.data.corpora.paths import remote_files
from tfm.pipeline.artifacts.corpus_inputs import download_corpora
from tfm.pipeline.runtime.progress import Bar, NullReporter

TEXT = b"eins\tone\n"


class BarReporter(NullReporter):
    """A reporter that keeps label and total of its bars."""

    def __init__(self) -> None:
        self.bars: list[tuple[str, int | None]] = []

    @contextmanager
    def bar(self, label: str, total: int | None, unit: str, done: int = 0) -> Iterator[Bar]:
        self.bars.append((label, total))
        with super().bar(label, total, unit, done) as bar:
            yield bar


def test_a_file_that_is_up_to_date_has_no_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    system = fsspec.filesystem("memory")
    system.pipe("/bars/train.tsv", TEXT)
    corpus = {"path": "memory://bars/train.tsv", "format": "tsv", "source": "0", "target": "1"}
    data = DataConfig.model_validate({"online": True, "train": [corpus], "valid": [corpus]})
    shown = []
    for _ in range(2):
        monkeypatch.setattr(remote_files, "_refreshed_copies_by_url", {})
        reporter = BarReporter()
        download_corpora(data, reporter)
        shown.append(reporter.bars)
    assert shown == [[("downloading memory://bars/train.tsv", len(TEXT))], []]
    system.store.clear()
