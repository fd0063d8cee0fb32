"""Artifacts made to harm, every checksum in order: refused in a line; nothing runs, nothing is written elsewhere."""

import gzip
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import safetensors.torch
import torch

from tests import hostile
from tests.cli.user import RECIPE, tfm, write_corpora
from tests.damage import listing
from tests.peak_memory import peak_of
from tests.quick import NUM_THIRDS, third, thirds
from tests.tiny_artifact import rewritten, signed
from tfm.data.safe_files import MAX_FILE_BYTES
from tfm.pipeline.training.checkpoints.checkpoint import document_sha256
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints

pytestmark = pytest.mark.promise("hostile")
SECONDS = 20.0
Changes = Mapping[str, bytes | hostile.Change]
Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with corpora, a recipe and all that it gives."""
    base = tmp_path_factory.mktemp("base")
    write_corpora(base)
    (base / "tiny.toml").write_text(RECIPE.format(folder=base).replace("max_steps = 10", "max_steps = 4"), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(base)
        done = tfm("run", "tiny.toml")
    assert done.code == 0, done.err
    return base


@pytest.fixture
def base(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of all that, which is the working folder."""
    copy = shutil.copytree(made, tmp_path / "copy", symlinks=True)
    monkeypatch.chdir(copy)
    return copy


@pytest.fixture
def run(base: Path) -> Path:
    return base / "runs" / "tiny"


def refused(base: Path, *words: str | Path, names: str) -> str:
    """What a command says that is refused: one or two lines that name the place; nothing is written, and not slowly."""
    before, began = listing(base.parent, touched="manifest.json"), time.monotonic()
    result = tfm(*words)
    said = "\n".join(line for line in result.err.splitlines() if "the model anew" not in line)
    assert result.code == 65, result
    assert result.out == ""
    assert names in said, result
    assert len(said) < 4000
    assert listing(base.parent, touched="manifest.json") == before
    assert time.monotonic() - began < SECONDS
    return said


def put(file: Path, original: bytes, change: bytes | hostile.Change) -> None:
    """Write a change of a file's content."""
    file.write_bytes(change if isinstance(change, bytes) else json.dumps(change(json.loads(original))).encode())


def all_refused(
    base: Path, artifact: str, name: str, changes: Changes, *commands: tuple[str | Path, ...], record: Record
) -> None:
    """Every change of a file is refused by every command, though the manifest vouches for it."""
    folder = (base / "runs" / "tiny" / artifact).resolve()
    original = (folder / name).read_bytes()
    for kind, change in changes.items():
        put(folder / name, original, change)
        signed(folder)
        for words in commands:
            said = refused(base, *words, names=artifact)
            assert "Traceback" not in said, kind
    record("files", len(changes))


TRANSLATE = ("translate", Path("runs/tiny"), Path("test.de"))
EVALUATE = ("evaluate", "--model", Path("runs/tiny"), "--source", Path("test.de"), "--reference", Path("test.en"))


@thirds
def test_weights(base: Path, number: int, record_property: Record) -> None:
    commands = (TRANSLATE, EVALUATE, ("translate", "--recipe", "tiny.toml"))
    weights = third(hostile.WEIGHTS, number)
    all_refused(base, "model", "model.safetensors", weights, *commands, record=record_property)


@thirds
def test_configurations(base: Path, number: int, record_property: Record) -> None:
    all_refused(base, "model", "config.json", third(hostile.CONFIGS, number), TRANSLATE, record=record_property)


@pytest.mark.parametrize(
    ("artifact", "name", "words"),
    [
        ("tokenizer", "tokenizer.json", ("preprocess", "--recipe", "tiny.toml")),
        ("dataset", "tokenizer/tokenizer.json", ("train", "--recipe", "tiny.toml")),
        ("model", "tokenizer.json", TRANSLATE),
    ],
)
def test_tokenizers(
    base: Path, artifact: str, name: str, words: tuple[str | Path, ...], record_property: Record
) -> None:
    all_refused(base, artifact, name, hostile.TOKENIZERS, words, record=record_property)


def test_a_tokenizer_that_pads_or_cuts_does_neither(base: Path, run: Path) -> None:
    plain = tfm(*TRANSLATE)
    file = (run / "model").resolve() / "tokenizer.json"
    pad = {"strategy": {"Fixed": 10**12}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
           "pad_type_id": 0, "pad_token": "<pad>"}  # fmt: skip
    cut = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
    put(file, file.read_bytes(), hostile.changed(padding=pad, truncation=cut))
    signed((run / "model").resolve())
    assert tfm(*TRANSLATE) == plain


def test_datasets(base: Path, record_property: Record) -> None:
    train = ("train", "--recipe", "tiny.toml")
    all_refused(base, "dataset", "dataset.json", hostile.ABOUT, train, record=record_property)


@pytest.mark.parametrize("split", ["train", "valid"])
def test_splits(base: Path, split: str, record_property: Record) -> None:
    changes = hostile.train_splits() if split == "train" else hostile.valid_splits()
    name = f"{split}/data-00000-of-00001.arrow"
    all_refused(base, "dataset", name, changes, ("train", "--recipe", "tiny.toml"), record=record_property)


@pytest.fixture
def clean(base: Path, run: Path) -> Path:
    """Texts that `tfm clean` left, of a recipe whose tokenizer is not made of them yet."""
    with open(base / "tiny.toml", "a", encoding="utf-8") as recipe:
        recipe.write("\n[clean]\nlength = { max = 5 }\n")
    assert tfm("clean", "--recipe", "tiny.toml").code == 0
    return run / "clean"


def test_texts_that_a_cleaning_left(base: Path, clean: Path, tmp_path: Path, record_property: Record) -> None:
    marker, whole = tmp_path / "it ran", (clean / "train.0.target.txt").read_bytes()
    changes = {
        **hostile.pickles(marker), "nothing": b"", "not UTF-8": whole + b"\xff\n", "fewer lines": whole[:100],
        "more lines": whole + b"more\n" * 1000, "cut gzip": gzip.compress(whole)[:-20],
    }  # fmt: skip
    for side in ("source", "target"):
        name = f"train.0.{side}.txt"
        all_refused(base, "clean", name, changes, ("preprocess", "--recipe", "tiny.toml"), record=record_property)
        (clean / name).write_bytes(whole)
        signed(clean)
    assert not marker.exists()


def test_figures_of_a_cleaning(base: Path, clean: Path, record_property: Record) -> None:
    kept: list[object] = [None, 3, "x", {}, [], ["x"], [None], [-1], [1.5], [True], [[]], [3, 3], {"0": 3}]
    cases = [{"figures": {"kept": each}} for each in kept] + [{"figures": each} for each in ({}, {"read": [3]})]
    for case in cases:
        rewritten(clean, **case)
        for stage in ("tokenize", "preprocess"):
            refused(base, stage, "--recipe", "tiny.toml", names="clean")
    record_property("files", len(cases))


def test_what_would_run_if_it_were_unpickled_does_not(
    base: Path, run: Path, tmp_path: Path, record_property: Record
) -> None:
    marker = tmp_path / "it ran"
    pickles = hostile.pickles(marker)
    arrow = "train/data-00000-of-00001.arrow"
    all_refused(base, "dataset", arrow, pickles, ("train", "--recipe", "tiny.toml"), record=record_property)
    all_refused(base, "model", "model.safetensors", pickles, TRANSLATE, EVALUATE, record=record_property)
    for name in ("config.json", "tokenizer.json"):
        all_refused(base, "model", name, pickles, TRANSLATE, record=record_property)
    assert not marker.exists()


def resealed(folder: Path, **changes: object) -> None:
    """Give a checkpoint whose files were changed the state.json it would have, had it been written so."""
    document = json.loads((folder / "state.json").read_text("utf-8")) | changes
    document.pop("sha256")
    if "files" not in changes:
        contents = {file.name: file.read_bytes() for file in folder.glob("*.safetensors")}
        document["files"] = {
            name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in contents.items()
        }
    (folder / "state.json").write_text(json.dumps(document | {"sha256": document_sha256(document)}), "utf-8")


@pytest.fixture
def checkpoint(run: Path) -> Path:
    """The only checkpoint of a training whose model is not published yet."""
    checkpoints = Checkpoints(run / "training" / "checkpoints")
    newest = checkpoints.steps()[-1]
    checkpoints.retain_only({newest})
    shutil.rmtree(run / "model")
    return checkpoints.checkpoint_folder(newest)


ENTRY = {"size": 0, "sha256": hashlib.sha256(b"").hexdigest()}


@thirds
@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors"])
def test_tensors_of_checkpoints(
    base: Path, checkpoint: Path, tmp_path: Path, name: str, number: int, record_property: Record
) -> None:
    marker, original = tmp_path / "it ran", (checkpoint / name).read_bytes()
    tensors = safetensors.torch.load(original)
    files = {
        **hostile.WEIGHTS,
        **hostile.pickles(marker),
        "other names": safetensors.torch.save({"w": torch.zeros(3)}),
        "other shapes": safetensors.torch.save({key: torch.zeros(3, 5) for key in tensors}),
        "some missing": safetensors.torch.save(dict(list(tensors.items())[:-1])),
        "one more": safetensors.torch.save({**tensors, "more/of": torch.zeros(3)}),
    }
    if name.startswith("optimizer"):
        del files["nothing in it"]  # that is what SGD leaves
    for data in third(files, number).values():
        (checkpoint / name).write_bytes(data)
        resealed(checkpoint)
        refused(base, "train", "--recipe", "tiny.toml", names="training")
    assert not marker.exists()
    record_property("files", len(files) // NUM_THIRDS)


@thirds
def test_states_of_checkpoints(base: Path, checkpoint: Path, number: int, record_property: Record) -> None:
    original = (checkpoint / "state.json").read_bytes()
    state = json.loads(original)["state"]
    files: list[bytes] = [b"", b"3", b"[]", hostile.DEEP, hostile.DEEP_OBJECT, b"\xff", b" " * (MAX_FILE_BYTES + 1)]
    changes: list[dict[str, object]] = [
        *({"files": names} for names in ({"../x": ENTRY}, {"/etc/passwd": ENTRY}, {"a\0": ENTRY}, {}, [], None, 3)),
        *({"files": {"model.safetensors": entry, "optimizer.safetensors": ENTRY}} for entry in (3, None, [], "x")),
        *({"state": {**state, key: value}} for key in state for value in (None, "x", ["x"])),
        *({"state": {**state, key: value}} for key in ("step", "epoch", "batch") for value in (-1, 10**400, 0.5)),
        *({"state": {**state, "settings": {**state["settings"], key: value}}}
          for key, value in (("threads", 10**6), ("threads", 0), ("precision", "os.system"), ("code", "x"))),
        {"state": {**state, "step": state["step"] - 1}},
        {"state": {}},
        {"state": []},
    ]  # fmt: skip
    for data in files[number::NUM_THIRDS]:
        (checkpoint / "state.json").write_bytes(data)
        refused(base, "train", "--recipe", "tiny.toml", names="training")
    for change in changes[number::NUM_THIRDS]:
        (checkpoint / "state.json").write_bytes(original)
        resealed(checkpoint, **change)
        refused(base, "train", "--recipe", "tiny.toml", names="training")
    record_property("files", (len(files) + len(changes)) // NUM_THIRDS)


def test_names_and_lineages_in_manifests(base: Path, run: Path, record_property: Record) -> None:
    digest = {"size": 0, "sha256": hashlib.sha256(b"").hexdigest()}
    deep: object = {}
    for _ in range(150):
        deep = {"stage": "x", "fingerprint": "f", "inputs": {"x": {"fingerprint": "f", "path": None, "lineage": deep}}}
    entry = {"fingerprint": "f", "path": None}
    cases: list[dict[str, object]] = [
        *({"files": {name: digest}} for name in ("../tiny.toml", "/etc/passwd", "a/../../x", "a\0b", "..", "a\\..\\b")),
        {"inputs": {"x": {**entry, "lineage": deep}}},
        {"inputs": {"x": {**entry, "lineage": {"stage": 3}}}},
        {"inputs": {"x": {**entry, "lineage": {"stage": "s", "fingerprint": "f", "inputs": {"y": 3}}}}},
        {"inputs": {"x": {**entry, "lineage": {"stage": "s", "fingerprint": "f", "inputs": []}}}},
    ]
    for case in cases:
        rewritten((run / "tokenizer").resolve(), **case)
        refused(base, "inspect", run / "tokenizer", names="tokenizer/manifest.json")
        refused(base, "preprocess", "--recipe", "tiny.toml", names="tokenizer/manifest.json")
    record_property("files", len(cases))


def test_a_manifest_of_control_characters_steers_no_terminal(base: Path, run: Path) -> None:
    rewritten((run / "tokenizer").resolve(), stage="\x1b[2J\ud800\nx", command=["tfm", "\udcff\x07"])
    for words in (("inspect", run / "tokenizer"), ("inspect", run / "tokenizer", "--json")):
        result = tfm(*words)
        assert result.code == 0, result
        assert not set("\x1b\x07\ud800\udcff") & set(result.out)
    assert "\\x1b[2J" in tfm("inspect", run / "tokenizer").out


def test_links_out_of_an_artifact(base: Path, run: Path) -> None:
    folder = (run / "model").resolve()
    for target in ("/etc/passwd", "/dev/zero", "../../../tiny.toml", ".", "nowhere"):
        signed(folder)
        (folder / "tokenizer.json").rename(folder / "aside")
        (folder / "tokenizer.json").symlink_to(target)
        assert "is a link or special file" in refused(base, *TRANSLATE, names="tokenizer.json")
        (folder / "tokenizer.json").unlink()
        (folder / "aside").rename(folder / "tokenizer.json")
    (folder / "pipe").unlink(missing_ok=True)
    os.mkfifo(folder / "pipe")
    refused(base, *TRANSLATE, names="'pipe'")


@pytest.mark.parametrize("name", ["manifest.json", "config.json", "tokenizer.json", "model.safetensors"])
def test_ten_gigabytes_of_nothing_are_not_read(base: Path, run: Path, name: str) -> None:
    hostile.sparse((run / "model").resolve() / name, 10**10)
    refused(base, *TRANSLATE, names=name)


@pytest.mark.parametrize(("name", "size"), [("config.json", 17), ("tokenizer.json", 65)])
def test_more_than_any_of_ours_is_not_read_though_the_manifest_says_it(
    base: Path, run: Path, name: str, size: int
) -> None:
    hostile.sparse((run / "model").resolve() / name, size * 2**20)
    signed((run / "model").resolve())
    assert "is larger than any" in refused(base, *TRANSLATE, names=name)


def test_scores_that_are_none(base: Path, run: Path, record_property: Record) -> None:
    number = {"metrics": {"bleu": {"score": "x", "signature": 3}}}
    changes: Changes = {
        "nothing": b"", "deep": hostile.DEEP, "a list": b"[]", "an object": b"{}", "others": hostile.changed(others=3),
        "metrics": lambda document: document | number, "samples": hostile.changed(samples={"worst": 3}),
    }  # fmt: skip
    all_refused(base, "scores", "scores.json", changes, ("evaluate", "--recipe", "tiny.toml"), record=record_property)


def test_metrics_of_a_training_that_are_none_leave_a_gap_in_the_curves(base: Path, run: Path) -> None:
    figures = [b"1e999", b"NaN", b"9" * 400, b'"x"', b"[]"]
    lines = [b"\xff", b"[]", b"3", hostile.DEEP, b'{"event": []}']
    lines += [b'{"event": "train", "step": 1, "loss": ' + figure + b"}" for figure in figures]
    lines += [b'{"event": "train", "step": ' + figure + b', "loss": 1}' for figure in figures]
    with open(run / "training" / "metrics.jsonl", "ab") as stream:
        stream.write(b"\n".join(lines) + b"\n")
    shutil.rmtree(run / "scores")
    result = tfm("evaluate", "--recipe", "tiny.toml")
    assert result.code == 0, result.err


# How much memory it takes


@pytest.mark.slow
def test_memory_is_bounded(base: Path, run: Path, made: Path, record_property: Record) -> None:
    code, _, usual = peak_of(base, *TRANSLATE)
    assert code == 0
    zeros = b"[" + b"0," * (MAX_FILE_BYTES // 2 - 10) + b"0]"
    lists = b"[" + b"[]," * (MAX_FILE_BYTES // 3 - 10) + b"0]"
    cases: dict[str, dict[str, bytes | hostile.Change]] = {
        "model.safetensors": {
            "terabytes": hostile.WEIGHTS["terabytes"],
            "many": hostile.weights({f"{n}": hostile.one([0], 0, 0)["w"] for n in range(250_000)}),
        },
        "config.json": {
            "lists": b'{"a":' + lists + b"}",
            "10^12": hostile.CONFIGS["10^12 parameters"],
            "learned": hostile.CONFIGS["10^5 learned positions"],
            "wide": hostile.CONFIGS["wide embeddings"],
            "layers": hostile.CONFIGS["more layers than the file has"],
        },
        "tokenizer.json": {"numbers": b'{"version":' + zeros + b"}", "text": b'"' + b"\\ud83d\\ude00" * 10**6 + b'"'},
    }
    folder = (run / "model").resolve()
    for name, changes in cases.items():
        original = (folder / name).read_bytes()
        for kind, change in changes.items():
            put(folder / name, original, change)
            signed(folder)
            code, said, peak = peak_of(base, *TRANSLATE)
            assert code == 65, (kind, said)
            assert peak < usual + 500 * 2**20, (name, kind, peak - usual)
            record_property("files", 1)
        (folder / name).write_bytes(original)
    for data in (b'{"tfm_format":1,"a":' + lists + b"}", b'{"tfm_format":1,"a":' + zeros + b"}"):
        (folder / "manifest.json").write_bytes(data)
        code, said, peak = peak_of(base, *TRANSLATE)
        assert code == 65, said
        assert peak < usual + 500 * 2**20, peak - usual
        record_property("files", 1)
