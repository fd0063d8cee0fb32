"""Tokenizers of other programs, made to harm: refused in a line, soon, in little memory; nothing else is read."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.user import tfm
from tests.foreign_tokenizers import KINDS, document_of, write
from tests.hostile_tokenizers import ABOUT, FILES, MANY_WAYS, damaged
from tests.peak_memory import peak_of
from tfm.data.errors import DataError
from tfm.data.foreign_tokenizers.loading import load_foreign_tokenizer
from tfm.tokenizer.config import TokenizerConfig

pytestmark = pytest.mark.promise("hostile")
SECONDS = 20.0
MEMORY = 1536 * 2**20
Record = Callable[[str, object], None]


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("a b\nab\n")
    return tmp_path


def refused(place: str, *words: str) -> str:
    """What `tfm tokenize` says of a tokenizer that it refuses."""
    began = time.monotonic()
    result = tfm("tokenize", "--from", place, "text.txt", "--out", "out", *words)
    assert result.code == 65, result
    assert "theirs" in result.err, result
    assert "Traceback" not in result.err
    assert len(result.err) < 1500
    assert time.monotonic() - began < SECONDS
    assert not Path("out").exists()
    return result.err


@pytest.mark.parametrize("name", FILES)
def test_each_form_is_refused(name: str, base: Path, record_property: Record) -> None:
    words = ("--set", "tokenizer.pattern=gpt2") if name.endswith(".tiktoken") else ()
    for data in FILES[name].values():
        shutil.rmtree(base / "theirs", ignore_errors=True)
        (base / "theirs").mkdir()
        (base / "theirs" / name).write_bytes(data)
        refused(f"theirs/{name}", *words)
        record_property("files", 1)


@pytest.mark.parametrize("name", ABOUT)
def test_what_lies_beside_is_checked(name: str, base: Path, record_property: Record) -> None:
    write(base / "theirs", document_of(KINDS["words"]()))
    for data in ABOUT[name]:
        (base / "theirs" / name).write_bytes(data)
        refused("theirs")
        record_property("files", 1)


def test_only_files_of_the_folder_are_read_and_none_is_waited_for(base: Path, record_property: Record) -> None:
    secret = base / "secret.json"
    secret.write_text(json.dumps({"eos_token": "my secret"}))
    write(base / "theirs", document_of(KINDS["words"]()))
    (base / "theirs" / "tokenizer_config.json").symlink_to(secret)
    assert "my secret" not in refused("theirs")
    (base / "theirs" / "tokenizer_config.json").unlink()
    os.mkfifo(base / "theirs" / "tokenizer_config.json")
    assert "is not a regular file" in refused("theirs")
    shutil.rmtree(base / "theirs")
    (base / "theirs").mkdir()
    (base / "theirs" / "vocab.txt").symlink_to("/etc/passwd")
    assert "is a link out of its folder" in refused("theirs")
    os.mkfifo(base / "theirs" / "pipe")
    assert "is not a regular file" in refused("theirs/pipe")
    record_property("files", 4)


def test_damage_is_an_error_of_ours_or_a_tokenizer_that_works(tmp_path: Path, record_property: Record) -> None:
    began = time.monotonic()
    refusals: list[tuple[str, str]] = []
    for name, data in damaged(seed=7, count=1000):
        file = tmp_path / name
        file.write_bytes(data)
        pattern = "gpt2" if name.endswith(".tiktoken") and file.read_bytes()[4:6] == b"= " else None
        try:
            ours = load_foreign_tokenizer(TokenizerConfig(file=str(file), pattern=pattern)).tokenizer
            ids = ours.encode("the cat ab </s>")
            assert all(0 <= number < ours.vocab_size for number in ids)
            ours.decode(ids)
        except DataError as error:
            refusals.append((str(file), str(error)))
        record_property("files", 1)
    assert 300 < len(refusals) < 1500
    assert [said for file, said in refusals if file not in said or "\n" in said] == []
    assert time.monotonic() - began < SECONDS


@pytest.mark.slow
def test_memory_and_time_are_bounded(base: Path, record_property: Record) -> None:
    write(base / "good", document_of(KINDS["bert"]()))
    code, said, usual = peak_of(base, "tokenize", "--from", "good", "text.txt", "--out", "out")
    assert code == 0, said
    large = {
        "tokenizer.json": b'{"model":{"vocab":{' + b",".join(b'"%x":%d' % (n, n) for n in range(3_000_000)) + b"}}}",
        "vocab.json": b'{"model":{"vocab":{' + b",".join(b'"%x":%d' % (n, n) for n in range(1_000_000)) + b"}}}",
        "vocab.txt": b"[UNK]\n" + b"".join(b"%x\n" % n for n in range(7_000_000)),
        "words.txt": b"[UNK]\n" + b"".join(b"%x\n" % n for n in range(1_000_000)),
        "codes": b"a b\n" * 16_000_000,
        "x.tiktoken": b"YQ== 0\n" + b"YWI= 256\n" * 6_000_000,
        "ways.tiktoken": MANY_WAYS,
        "sparse": b"",
    }
    for name, data in large.items():
        (base / "theirs").mkdir(exist_ok=True)
        (base / "theirs" / name).write_bytes(data)
        if name == "sparse":
            os.truncate(base / "theirs" / name, 2**40)
        began = os.times().children_user
        words = ("--set", "tokenizer.pattern=gpt2") if name.endswith(".tiktoken") else ()
        code, said, peak = peak_of(base, "tokenize", "--from", f"theirs/{name}", "text.txt", "--out", "other", *words)
        assert code in (0, 65), (name, said)
        assert peak - usual < 2 * MEMORY, (name, peak - usual)
        assert os.times().children_user - began < 3 * SECONDS, name
        record_property("files", 1)
