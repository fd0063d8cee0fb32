"""Checkpoints of which every process wrote a part, damaged or made to harm: refused in a line, and nothing runs."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor

from tests import hostile
from tests.cli.user import RECIPE, tfm, write_corpora
from tests.damage import DAMAGES, damaged, listing
from tests.quick import NUM_THIRDS, third, thirds
from tests.sharded_ranks import train_by_ranks
from tests.tiny_training import MODEL, training
from tfm.pipeline.runtime.fully_sharded import shard_of_rank
from tfm.pipeline.training.checkpoints.checkpoint import document_sha256, part_file_name
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints

pytestmark = pytest.mark.promise("hostile")
SIZE = 2
GROUPS = ("model", "optimizer")
Record = Callable[[str, object], None]
Parts = dict[str, dict[str, Tensor]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose model is not published yet, and whose checkpoint two processes might have written."""
    base = tmp_path_factory.mktemp("base")
    write_corpora(base)
    (base / "tiny.toml").write_text(RECIPE.format(folder=base).replace("max_steps = 10", "max_steps = 4"), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(base)
        done = tfm("run", "tiny.toml")
        assert done.code == 0, done.err
    (base / "runs" / "tiny" / "model").rename(base / "whole")
    checkpoints = Checkpoints(base / "runs" / "tiny" / "training" / "checkpoints")
    newest = checkpoints.steps()[-1]
    checkpoints.retain_only({newest})
    found = checkpoints.read(newest)
    parts: dict[str, bytes] = {}
    for group in GROUPS:
        tensors = found.tensors(group)
        (found.folder / f"{group}.safetensors").unlink()
        for rank in range(SIZE):
            some = {name: shard_of_rank(tensor, rank, SIZE).clone() for name, tensor in tensors.items()}
            parts[part_file_name(group, rank, SIZE)] = safetensors.torch.save(some)
    write(found.folder, parts)
    return base


@pytest.fixture
def base(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of all that, which is the working folder."""
    copy = shutil.copytree(made, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(copy)
    return copy


@pytest.fixture
def checkpoint(base: Path) -> Path:
    checkpoints = Checkpoints(base / "runs" / "tiny" / "training" / "checkpoints")
    return checkpoints.checkpoint_folder(checkpoints.steps()[-1])


def write(folder: Path, files: dict[str, bytes], changes: Mapping[str, Any] = {}) -> None:
    """Give a checkpoint these files, and the state.json it would have, had it been written so."""
    for file in folder.glob("*.safetensors"):
        file.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    document = json.loads((folder / "state.json").read_text("utf-8")) | dict(changes)
    document.pop("sha256")
    if "files" not in changes:
        document["files"] = {
            name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in files.items()
        }
    (folder / "state.json").write_text(json.dumps(document | {"sha256": document_sha256(document)}), "utf-8")


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.glob("*.safetensors"))}


def refused(base: Path, code: int = 65) -> str:
    """The message of a training that cannot go on: a line or a few, and nothing is written."""
    before = listing(base.parent, touched="manifest.json")
    result = tfm("train", "--recipe", "tiny.toml")
    assert result.code == code, result
    assert result.out == ""
    assert "training" in result.err
    assert len(result.err) < 4000
    assert listing(base.parent, touched="manifest.json") == before
    return " ".join(result.err.split())


def test_parts_that_are_whole_give_the_model_that_was_trained(base: Path) -> None:
    done = tfm("train", "--recipe", "tiny.toml")
    assert done.code == 0, done.err
    file = "model.safetensors"
    assert (base / "runs" / "tiny" / "model" / file).read_bytes() == (base / "whole" / file).read_bytes()


@pytest.mark.parametrize("name", [part_file_name(group, rank, SIZE) for group in GROUPS for rank in range(SIZE)])
def test_damage_of_a_part_is_told(base: Path, checkpoint: Path, name: str, record_property: Record) -> None:
    for kind, damage in DAMAGES.items():
        with damaged(checkpoint / name, damage):
            assert name in refused(base, 73 if kind == "a link" else 65)
    record_property("files", 1)
    record_property("damages", len(DAMAGES))


def changed(content: bytes, change: Callable[[Tensor], Tensor]) -> bytes:
    tensors = safetensors.torch.load(content)
    return safetensors.torch.save({name: change(tensor).contiguous() for name, tensor in tensors.items()})


CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "more rows": lambda tensor: torch.cat([tensor, tensor]) if tensor.ndim else tensor.expand(2),
    "fewer rows": lambda tensor: tensor[:0] if tensor.ndim else tensor.expand(0),
    "another width": lambda tensor: torch.zeros(*tensor.shape, 3),
    "numbers": lambda tensor: torch.zeros(()),
    "whole numbers": lambda tensor: tensor.long(),
    "half as exact": lambda tensor: tensor.half(),
    "complex": lambda tensor: tensor.to(torch.complex64),
}


@thirds
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("rank", range(SIZE))
def test_parts_made_to_harm(
    base: Path, checkpoint: Path, tmp_path: Path, group: str, rank: int, number: int, record_property: Record
) -> None:
    marker, whole, name = tmp_path / "it ran", contents(checkpoint), part_file_name(group, rank, SIZE)
    tensors = safetensors.torch.load(whole[name])
    files = {
        **hostile.WEIGHTS,
        **hostile.pickles(marker),
        "other names": safetensors.torch.save({"w": torch.zeros(3)}),
        "some missing": safetensors.torch.save(dict(list(tensors.items())[:-1])),
        "one more": safetensors.torch.save({**tensors, "more/of": torch.zeros(3)}),
        **{kind: changed(whole[name], change) for kind, change in CHANGES.items()},
    }
    if group == "optimizer":
        del files["nothing in it"], files["numbers"]  # that is what SGD leaves; steps are numbers
    for kind, content in third(files, number).items():
        write(checkpoint, {**whole, name: content})
        assert refused(base), kind
    assert not marker.exists()
    record_property("files", len(files) // NUM_THIRDS)


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.few(3)
def test_all_parts_of_another_type_or_shape(base: Path, checkpoint: Path, kind: str) -> None:
    whole = contents(checkpoint)
    for group in GROUPS:
        other = {name: changed(each, CHANGES[kind]) for name, each in whole.items() if name.startswith(group)}
        write(checkpoint, whole | other)
        refused(base)


def test_parts_of_other_names_or_numbers(base: Path, checkpoint: Path, record_property: Record) -> None:
    whole = contents(checkpoint)
    first, last = (part_file_name("model", rank, SIZE) for rank in range(SIZE))
    others = {name: content for name, content in whole.items() if not name.startswith("model")}
    cases: list[dict[str, bytes]] = [
        {},
        {first: whole[first]},
        {last: whole[last]},
        {part_file_name("model", 0, 3): whole[first], part_file_name("model", 1, 3): whole[last]},
        {part_file_name("model", 0, 2): whole[first], part_file_name("model", 2, 3): whole[last]},
        {"model-1-of-2.safetensors": whole[first], "model-2-of-2.safetensors": whole[last]},
        {"model-00000-of-00001.safetensors": whole[first]},
        {part_file_name("model", 0, 1): whole[first]},
        {first: whole[first], last: whole[last], part_file_name("model", 2, 3): whole[last]},
        {"model.safetensors": whole[first]},
    ]
    for case in cases:
        write(checkpoint, {**others, **case})
        refused(base)
    record_property("files", len(cases))


def test_parts_that_lead_elsewhere(base: Path, checkpoint: Path) -> None:
    whole, (first, last) = contents(checkpoint), (part_file_name("model", rank, SIZE) for rank in range(SIZE))
    outside = base / "outside.safetensors"
    outside.write_bytes(whole[first])
    entries = json.loads((checkpoint / "state.json").read_text("utf-8"))["files"]
    for name in ("../../../../../outside.safetensors", str(outside), f"../{checkpoint.name}/{first}", f"a/../{first}"):
        files = {key: each for key, each in entries.items() if key != first} | {name: entries[first]}
        write(checkpoint, {key: each for key, each in whole.items() if key != first}, {"files": files})
        refused(base)
    write(checkpoint, whole)
    (checkpoint / last).unlink()
    (checkpoint / last).symlink_to(outside)
    assert last in refused(base, 73)


SHARDED: dict[str, Any] = {
    "shard": "full",
    "ema": 0.9,
    "max_steps": 4,
    "save_every": 4,
    "validation": {"every_steps": 4, "bleu": False},
}


@pytest.fixture(scope="module")
def sharded(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training of two processes whose model is not published yet, and whose checkpoint each wrote a part of."""
    out = tmp_path_factory.mktemp("sharded") / "out"
    for code, text in train_by_ranks(dataset, out, training(**SHARDED), MODEL, SIZE, "float32"):
        assert code == 0, text
    shutil.rmtree(out / "model")
    return out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "rank", "kind"),
    [("model", 0, "fewer rows"), ("model", 1, "nothing"), ("optimizer", 0, "half as exact"), ("ema", 1, "numbers")],
)
def test_a_part_made_to_harm_ends_every_process_with_the_same_line(
    dataset: Path, sharded: Path, tmp_path: Path, group: str, rank: int, kind: str
) -> None:
    out = shutil.copytree(sharded, tmp_path / "out")
    checkpoints = Checkpoints(out / "training" / "checkpoints")
    folder = checkpoints.checkpoint_folder(checkpoints.steps()[-1])
    whole, name = contents(folder), part_file_name(group, rank, SIZE)
    write(folder, {**whole, name: b"" if kind == "nothing" else changed(whole[name], CHANGES[kind])})
    config = training(**{**SHARDED, "max_steps": 6})
    (code, said), other = train_by_ranks(dataset, out, config, MODEL, SIZE, "float32")
    assert (code, said) == other
    assert code == 65, said
    assert said.count("\n") == 1, said
    assert "checkpoints" in said
