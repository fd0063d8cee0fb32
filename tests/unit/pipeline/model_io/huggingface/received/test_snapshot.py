"""Of a received folder only its own files are read, each of them is an input, and none is waited for."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.huggingface_models import KINDS, published
from tfm.data.errors import DataError
from tfm.pipeline.artifacts.manifest import open_artifact
from tfm.pipeline.model_io.huggingface.card import ModelCard
from tfm.pipeline.model_io.huggingface.export import to_huggingface
from tfm.pipeline.model_io.huggingface.importing import import_model
from tfm.pipeline.model_io.huggingface.received.snapshot import CONFIG_FILE, WEIGHTS_FILE, WEIGHTS_INDEX_FILE, Snapshot
from tfm.pipeline.runtime.progress import NullReporter
from tfm.tokenizer.tokenizer import MAX_TOKENIZER_FILE_BYTES


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of transformers."""
    base = tmp_path_factory.mktemp("made")
    ours = published(base / "model", **KINDS["GPT-2"][1])
    (base / "theirs").mkdir()
    to_huggingface(ours, base / "theirs", ModelCard())
    return base / "theirs"


def imported(folder: Path, out: Path) -> set[str]:
    """The inputs of an import."""
    import_model(folder, out, command=["tfm", "import"], reporter=NullReporter())
    return {*open_artifact(out, "train").inputs}


def cached(made: Path, base: Path) -> Path:
    """The same folder as the cache of the Hub keeps it."""
    repository = base / "hub" / "models--org--name"
    snapshot = repository / "snapshots" / "0f1e2d"
    (repository / "blobs").mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for number, file in enumerate(sorted(made.iterdir())):
        shutil.copyfile(file, repository / "blobs" / f"{number:040x}")
        (snapshot / file.name).symlink_to(f"../../blobs/{number:040x}")
    return snapshot


INPUTS = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


def test_links_within_a_folder_and_those_of_the_hub_s_cache_are_followed(made: Path, tmp_path: Path) -> None:
    assert imported(made, tmp_path / "plain") == INPUTS
    assert imported(cached(made, tmp_path), tmp_path / "cached") == INPUTS
    linked = shutil.copytree(made, tmp_path / "linked")
    (linked / "files").mkdir()
    for name in ("tokenizer.json", WEIGHTS_FILE):
        (linked / name).rename(linked / "files" / name)
        (linked / name).symlink_to(f"files/{name}")
    assert imported(linked, tmp_path / "of links") == INPUTS
    prints = [open_artifact(tmp_path / name, "train").fingerprint for name in ("plain", "cached", "of links")]
    assert len({*prints}) == 1


def test_a_cache_whose_links_lead_elsewhere_is_refused(made: Path, tmp_path: Path) -> None:
    snapshot = cached(made, tmp_path)
    repository = snapshot.parents[1]
    shutil.move(repository / "blobs", tmp_path / "elsewhere")
    for target in ("../../../../elsewhere", "../other"):
        (repository / "blobs").unlink(missing_ok=True)
        (repository / "blobs").symlink_to(tmp_path / "elsewhere" if target.endswith("elsewhere") else target)
        with pytest.raises(DataError, match=r"config\.json: is a link out of its folder"):
            imported(snapshot, tmp_path / "out")
    plain = shutil.copytree(repository, tmp_path / "plain", symlinks=True) / "snapshots" / "0f1e2d"
    with pytest.raises(DataError, match="is a link out of its folder"):
        Snapshot(plain).locate_file("config.json")


@pytest.mark.parametrize("depth", [1, 2])
def test_weights_in_parts_are_inputs_wherever_they_lie(made: Path, tmp_path: Path, depth: int) -> None:
    folder = shutil.copytree(made, tmp_path / "theirs")
    name = "/".join([*["parts"] * (depth - 1), "model-00001-of-00001.safetensors"])
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / WEIGHTS_FILE).rename(folder / name)
    (folder / WEIGHTS_INDEX_FILE).write_text(json.dumps({"weight_map": {"any": name}}), "utf-8")
    assert imported(folder, tmp_path / "out") == INPUTS - {WEIGHTS_FILE} | {name, WEIGHTS_INDEX_FILE}


OUTSIDE = ["/etc/passwd", "../secret.safetensors", "a/../../secret.safetensors", ".", "..", "", "a\0b", "\ud800", 5,
           None, [], {}, True, "https://x/y", "link", "x" * 5000]  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE, ids=lambda name: repr(name)[:20])
def test_an_index_names_no_file_elsewhere(made: Path, tmp_path: Path, name: object) -> None:
    folder = shutil.copytree(made, tmp_path / "theirs")
    (folder / WEIGHTS_FILE).rename(tmp_path / "secret.safetensors")
    (folder / "link").symlink_to("../secret.safetensors")
    (folder / WEIGHTS_INDEX_FILE).write_text(json.dumps({"weight_map": {"any": name}}), "utf-8")
    with pytest.raises(DataError) as raised:
        imported(folder, tmp_path / "out")
    assert "theirs" in str(raised.value)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("weight_map", [None, [], {}, 3, "model.safetensors", [["model.safetensors"]]])
def test_an_index_that_is_none_is_refused(made: Path, tmp_path: Path, weight_map: object) -> None:
    folder = shutil.copytree(made, tmp_path / "theirs")
    (folder / WEIGHTS_FILE).unlink()
    (folder / WEIGHTS_INDEX_FILE).write_text(json.dumps({"weight_map": weight_map}), "utf-8")
    with pytest.raises(DataError, match="has no weight_map"):
        imported(folder, tmp_path / "out")


def link_to(target: str) -> Callable[[Path], None]:
    return lambda place: place.symlink_to(target)


def sparse(place: Path) -> None:
    with open(place, "wb") as stream:
        stream.truncate(2**40)


SPECIAL: dict[str, Callable[[Path], None]] = {
    "fifo": os.mkfifo, "folder": os.mkdir, "terabyte": sparse, "loop": lambda place: place.symlink_to(place.name),
    **{target: link_to(target) for target in ("/dev/zero", "/etc/passwd", "../secret", "nowhere")},
}  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.parametrize("special", SPECIAL)
def test_what_is_no_file_of_the_folder_is_refused_at_once(made: Path, tmp_path: Path, special: str) -> None:
    (tmp_path / "secret").write_text("{}", "utf-8")
    for name in (
        CONFIG_FILE,
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
        "source.spm",
        WEIGHTS_FILE,
        WEIGHTS_INDEX_FILE,
    ):
        folder = shutil.copytree(made, tmp_path / name / "theirs")
        shutil.copyfile(tmp_path / "secret", tmp_path / name / "secret")
        (folder / name).unlink(missing_ok=True)
        SPECIAL[special](folder / name)
        with pytest.raises(DataError) as raised:
            imported(folder, tmp_path / "out")
        assert str(folder) in str(raised.value)


def test_a_small_file_is_read_up_to_a_bound_that_the_message_has(made: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(made, tmp_path / "theirs")
    with open(folder / "tokenizer_config.json", "wb") as stream:
        stream.truncate(MAX_TOKENIZER_FILE_BYTES + 1)
    with pytest.raises(
        DataError, match=rf"tokenizer_config\.json: is larger than .*{MAX_TOKENIZER_FILE_BYTES:,} at most"
    ):
        imported(folder, tmp_path / "out")


def test_whole_weights_count_before_an_index_of_parts_beside_them(made: Path, tmp_path: Path) -> None:
    """As in transformers, which leaves the index of a model saved in parts where it saves the model anew."""
    folder = shutil.copytree(made, tmp_path / "again")
    (folder / WEIGHTS_INDEX_FILE).write_text('{"weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors"}}')
    assert imported(folder, tmp_path / "ours") == {*INPUTS, WEIGHTS_INDEX_FILE}
