"""Captions and labels of images, as a user runs them; and what other commands say of such a run."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from PIL import Image

from tests.cli.user import tfm
from tests.tiny_images import COLOURS, write_folder, write_idx
from tfm import load
from tfm.data.errors import DataError, TfmError

RECIPE = """
[tokenizer]
kind = "word"
vocab_size = 60
min_frequency = 1

[data]
batch_tokens = 512
train = { format = "imagefolder", path = "train", target = "text" }
valid = { format = "imagefolder", path = "valid", target = "text" }
tests.main = { format = "imagefolder", path = "test", target = "text" }

[data.images]
height = 8
width = 8
shift = 1

[model]
tie = "output"
max_length = 16
vision = { encoder = "patches", patch = 4 }
encoder = { layers = 1, dim = 16, heads = 2, feed_forward_dim = 16 }
decoder = { layers = 1, dim = 16, heads = 2, feed_forward_dim = 16 }

[training]
max_steps = 8
precision = "fp32"
validation = { every_steps = 4, bleu = true }
schedule = { name = "cosine", peak = 0.02, warmup_steps = 3 }

[decoding]
beam = 2
max_length = 8

[evaluation]
metrics = ["bleu", "meteor", "rougeL", "cider_d", "exact_match", "perplexity"]

"""
LIMITS = "[data.limits]\nmax_length = 15\n"
LABELS = """
[data]
batch_tokens = 512
images = {{ height = 8, width = 8, colour = false }}
train = {train}
valid = {train}
tests.main = {train}

[model]
architecture = "encoder_only"
task = "classification"
vision = {{ encoder = "convolution", channels = [4, 8] }}
encoder = {{ layers = 0, dim = 16 }}

[training]
max_steps = 10
precision = "fp32"
schedule = {{ name = "cosine", peak = 0.01, warmup_steps = 3 }}
"""


def as_toml(about: dict[str, Any]) -> str:
    return "{ " + ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in about.items()) + " }"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs of images, captions and labels."""
    folder = tmp_path_factory.mktemp("images")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, size in (("train", 30), ("valid", 6), ("test", 5)):
            write_folder(Path(name), size, size)
        Path("captions.toml").write_text(RECIPE + LIMITS, encoding="utf-8")
        Path("labels.toml").write_text(LABELS.format(train=as_toml(write_idx(Path("idx"), 30))), encoding="utf-8")
        for name in ("captions", "labels"):
            done = tfm("run", f"{name}.toml", "--device", "cpu")
            assert done.code == 0, done.err
        shutil.copytree("runs/captions", "runs/other")
    return folder


@pytest.fixture(autouse=True)
def here(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)


def scores(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(f"runs/{name}/scores/scores.json").read_text("utf-8"))
    return found["metrics"]


def test_captions_are_scored_against_all_of_an_image() -> None:
    found = scores("captions")
    assert {"bleu", "meteor", "rougeL", "cider_d", "exact_match", "perplexity"} <= found.keys()
    assert "nrefs:2" in found["exact_match"]["signature"]
    assert "segments:10" in found["perplexity"]["signature"]
    page = Path("runs/captions/scores/report.html").read_text("utf-8")
    assert "0.png" in page
    assert "ब्लू" in page
    lines = Path("runs/captions/training/metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["bleu"] is not None for line in lines if '"valid"' in line] == [True, True]


def test_a_validation_split_is_scored_as_a_test_set_is() -> None:
    done = tfm("run", "captions.toml", "--device", "cpu", "--set", "evaluation.tests=final")
    assert done.code == 0, done.err
    found = json.loads(Path("runs/captions/scores-valid/scores.json").read_text("utf-8"))
    assert len(Path("runs/captions/translations-valid/valid.txt").read_text("utf-8").splitlines()) == 6
    assert "nrefs:2" in found["metrics"]["exact_match"]["signature"]


def test_labels_are_scored_by_accuracy() -> None:
    assert scores("labels").keys() == {"accuracy", "macro_f1", "exact_match"}
    assert {*Path("runs/labels/translations/main.txt").read_text("utf-8").split()} <= {*COLOURS}


def test_again_there_is_nothing_to_do() -> None:
    done = tfm("run", "captions.toml", "--device", "cpu")
    assert done.code == 0
    assert done.err.count("up to date") >= 5, done.err


def test_attention_is_shown_on_the_image(tmp_path: Path) -> None:
    page, png = tmp_path / "seen.html", tmp_path / "seen.png"
    about = ("--device", "cpu", "--out", str(page), "--png", str(png))
    done = tfm("attend", "runs/captions", "test/0.png", "--target", "rot ist oben links", *about)
    assert done.code == 0, done.err
    assert 'id="image"' in page.read_text("utf-8")
    assert png.read_bytes().startswith(b"\x89PNG")
    done = tfm("attend", "runs/captions", "test/0.png", "--json", "--device", "cpu")
    found = json.loads(done.out)
    assert found["image"] == {"rows": 2, "columns": 2}
    assert found["target"] == tfm("translate", "runs/captions", "test/0.png", "--beam", "5", "--device", "cpu").out[:-1]
    keys = ["row 1, column 1", "row 1, column 2", "row 2, column 1", "row 2, column 2"]
    assert found["tokens"]["cross"]["keys"] == keys == found["tokens"]["encoder"]["queries"]
    assert load("runs/captions").attend("test/0.png").source == "test/0.png"


def test_what_cannot_be_shown_on_an_image_is_refused(tmp_path: Path) -> None:
    Path(tmp_path / "text.txt").write_text("a dog\n", encoding="utf-8")
    for what, why in (
        (("runs/captions", "nowhere.png"), "nowhere.png"),
        (("runs/captions", "train/metadata.jsonl"), "train/metadata.jsonl"),
        (("runs/captions", "--head-report", str(tmp_path / "text.txt")), "reads images, not text"),
        (("runs/labels", "test/0.png"), "no attention"),
    ):
        done = tfm("attend", *what, "--device", "cpu")
        assert done.code in (2, 65)
        assert why in done.err, done.err


def test_image_files_get_captions() -> None:
    one = tfm("translate", "runs/captions", "test/0.png", "--device", "cpu")
    assert (one.code, one.out.count("\n")) == (0, 1), one.err
    several = tfm("translate", "runs/captions", "test", "valid/1.png", "--device", "cpu")
    assert several.out.splitlines()[0] == one.out.strip()
    assert len(several.out.splitlines()) == 6
    translated = Path("runs/captions/translations/main.txt").read_text("utf-8").splitlines()
    with_beam = tfm("translate", "runs/captions", "test", "--beam", "2", "--max-length", "8", "--device", "cpu")
    assert with_beam.out.splitlines() == translated
    rows = tfm("translate", "runs/captions", "test/0.png", "--jsonl", "--n-best", "2", "--device", "cpu").out
    assert json.loads(rows)["source"] == "test/0.png"
    assert len(json.loads(rows)["translations"]) == 2
    labels = tfm("translate", "runs/labels", "test/0.png", "--n-best", "3", "--device", "cpu")
    assert {line.split("\t")[2] for line in labels.out.splitlines()} == {*COLOURS}


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("data.images.width=12", "set data.images = { height = 8, width = 8, colour = true }"),
        ("model.encoder.layers=2", "model.encoder.layers = 2 is not that of runs/captions/model"),
        ("training.init_from=runs/gone", "runs/gone: there is nothing here"),
    ],
)
def test_a_model_to_start_from_that_does_not_fit_is_refused_before_any_stage(setting: str, said: str) -> None:
    settings = [f"--set={each}" for each in ("name=tuned", "training.init_from=runs/captions", setting)]
    done = tfm("run", "captions.toml", *settings)
    assert done.code in (2, 65)
    assert said in " ".join(done.err.split()), done.err
    assert not Path("runs/tuned").exists()


def test_the_cost_of_minimum_bayes_risk_is_told_of_images_as_of_texts() -> None:
    settings = [word for key in ("strategy=mbr", "mbr_size=4") for word in ("--set", f"decoding.{key}")]
    captioned = tfm("translate", "runs/captions", "test", *settings)
    assert captioned.err.count("minimum Bayes risk: 4 hypotheses of each line, and up to 16 utilities (chrf)") == 1
    assert len(captioned.out.splitlines()) == len(list(Path("test").glob("*.png")))


def test_a_training_starts_from_a_run_or_its_model() -> None:
    for name in ("runs/captions", "runs/captions/model"):
        settings = [f"--set={each}" for each in ("name=tuned", f"training.init_from={name}", "training.max_steps=2")]
        done = tfm("run", "captions.toml", *settings, "--device", "cpu")
        assert done.code == 0, done.err
    assert "model: up to date" in done.err


def test_judges_of_captions_need_the_images_too(tmp_path: Path) -> None:
    asked = ("--kind", "likert", "--segments", "2", "--judges", "1")
    done = tfm("judge", "make", "runs/captions", *asked, "--out", tmp_path / "judging")
    assert done.code == 0, done.err
    assert "warning: the sources are images, and judges are shown their names alone" in done.err


def test_checkpoints_ensembles_and_folders() -> None:
    last = tfm("translate", "runs/captions", "test/0.png", "--step", "last", "--device", "cpu")
    assert (last.code, last.out.count("\n")) == (0, 1), last.err
    both = tfm("translate", "runs/captions", "test/0.png", "--ensemble", "runs/captions", "--device", "cpu")
    assert both.out == tfm("translate", "runs/captions", "test/0.png", "--device", "cpu").out
    done = tfm("translate", "runs/captions", "test", "--out", "captioned", "--device", "cpu")
    assert done.code == 0, done.err
    assert Path("captioned/source.txt").read_text().splitlines() == [f"test/{number}.png" for number in range(5)]
    assert len(Path("captioned/hypotheses.txt").read_text("utf-8").splitlines()) == 5
    scored = tfm("evaluate", "--hypotheses", "captioned/hypotheses.txt", "--reference", "captioned/hypotheses.txt")
    assert scored.code == 0, scored.err


def test_a_cluster_does_not_caption_images(tmp_path: Path) -> None:
    done = tfm("translate", "runs/captions", "test", "--out", tmp_path / "out", "--cluster", "auto")
    assert done.code == 2
    assert "--cluster: is for texts: this process captions images" in " ".join(done.err.split()).replace("'", "")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such a name")
def test_images_may_have_any_name(tmp_path: Path) -> None:
    for name in (b"a\nb.png", b"\xe9.png"):
        shutil.copy("test/0.png", os.fsencode(tmp_path) + b"/" + name)
    done = tfm("translate", "runs/captions", tmp_path, "--out", tmp_path / "out", "--device", "cpu")
    assert done.code == 0, done.err
    names = Path(tmp_path / "out" / "source.txt").read_text("utf-8").splitlines()
    assert names == [f"{tmp_path}/a\\nb.png", f"{tmp_path}/\\udce9.png"]


def test_a_model_stands_alone(tmp_path: Path) -> None:
    shutil.copytree("runs/captions/model", tmp_path / "alone")
    shutil.copy("test/0.png", tmp_path / "0.png")
    found = tfm("translate", tmp_path / "alone", tmp_path / "0.png", "--device", "cpu")
    assert found.out == tfm("translate", "runs/captions", "test/0.png", "--device", "cpu").out


def test_wrong_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("text")
    (tmp_path / "empty").mkdir()
    Image.new("P", (8, 8)).save(tmp_path / "still.gif")
    frames = [Image.new("RGB", (8, 8), (each, 0, 0)) for each in (1, 99)]
    frames[0].save(tmp_path / "moving.gif", save_all=True, append_images=frames[1:])
    for name, why in (
        ("gone.png", "no such file"),
        ("text.png", "is not an image"),
        ("empty", "holds no image"),
        ("moving.gif", "is animated"),
    ):
        done = tfm("translate", "runs/captions", tmp_path / name, "--device", "cpu")
        assert done.code == 65
        assert f"{tmp_path / name}: {why}" in done.err.replace("\n", "")
    assert tfm("translate", "runs/captions", tmp_path / "still.gif", "--device", "cpu").code == 0
    model = load("runs/captions", device="cpu")
    for name, why in (("a" * 5000, "a name of 5,000 characters, which is too long"), ("a\0", "has a null character")):
        for read in (model.translate, model.attend):
            with pytest.raises(TfmError, match=why):
                read(name)


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("translate", "runs/captions"), 2, "reads images: name files"),
        (("translate", "runs/captions", "-"), 2, "reads images: name files"),
        (("generate", "runs/captions", "--prompt", "x"), 65, "not a language model"),
        (
            ("evaluate", "--model", "runs/captions", "--source", "test", "--reference", "test.txt"),
            65,
            "reads images, not text: `tfm translate MODEL IMAGES --out DIR` writes captions, which --hypotheses scores",
        ),
        (("export", "runs/captions", "--to", "ctranslate2", "--out", "ct2"), 65, "reads images, not text"),
        (("export", "runs/captions", "--to", "huggingface", "--out", "hf"), 65, "reads images, not text"),
        (("export", "runs/labels", "--to", "huggingface", "--out", "hf"), 65, "reads images, not text"),
        (("embed", "runs/captions", "--side", "source", "--nearest", "rot"), 65, "reads images, not text"),
        (("evaluate", "--model", "runs/captions", "--contrast", "it"), 65, "reads images, not text"),
        (
            ("evaluate", "--model", "runs/captions", "--source", "captions.toml", "--reference", "captions.toml"),
            65,
            "`tfm translate MODEL IMAGES --out DIR`",
        ),
    ],
)
def test_what_has_no_meaning_of_images_is_refused(words: tuple[str, ...], code: int, why: str) -> None:
    done = tfm(*words)
    assert done.code == code, done.err
    assert why in " ".join(done.err.split())


def test_python_reads_image_files_too() -> None:
    files = [f"test/{number}.png" for number in range(5)]
    captions = load("runs/captions", device="cpu").translate(files, beam=2, max_length=8)
    assert captions == Path("runs/captions/translations/main.txt").read_text("utf-8").splitlines()
    assert load("runs/labels", device="cpu").classify(files[0])[0] in COLOURS
    with pytest.raises(DataError, match="gone: no such file"):
        load("runs/captions", device="cpu").translate("gone")
    with pytest.raises(DataError, match="reads images, not text"):
        load("runs/captions", device="cpu").score(["a"], ["b"])


def test_other_commands_know_a_run_of_images() -> None:
    for words in (
        ("inspect", "runs/captions"),
        ("compare", "runs/captions", "runs/other", "--html", "other.html"),
        ("inspect", "runs/captions/dataset"),
        ("inspect", "runs/labels/model"),
        ("compare", "runs/captions", "runs/labels", "--html", "page.html"),
        ("compare", "runs/captions", "--json"),
        ("embed", "runs/captions", "--nearest", "rot"),
    ):
        done = tfm(*words)
        assert done.code == 0, (words, done.err)
    page = Path("other.html").read_text("utf-8")
    assert "of the reference" in page
    assert "of the source" not in page


def test_texts_alone_are_not_what_a_model_of_images_is_scored_by() -> None:
    for more in ((), ("--source", "captions.toml")):
        done = tfm("evaluate", "--model", "runs/captions", "--reference", "captions.toml", *more)
        assert done.code == 65
        assert "reads images, not text: `tfm translate MODEL IMAGES --out DIR` writes captions" in done.err


def test_from_python_files_are_named() -> None:
    model = load("runs/captions", device="cpu")
    for ask in (model.translate, model.attend):
        with pytest.raises(DataError, match="the name of an image is empty"):
            ask("")
        with pytest.raises(DataError, match="test: is a folder: name the images in it"):
            ask("test")
    with pytest.raises(DataError, match=r"it has no generate\(\); it has translate\(\), embed\(\), attend\(\)$"):
        model.generate("x")
    with pytest.raises(DataError, match="reads images, not text"):
        model.score(["test/0.png"], ["rot"])


def post_image(address: str, image: bytes, **fields: str) -> tuple[int, Any]:
    """The answer of a server to a form with an image."""
    border = "image-border"
    parts = [
        f'--{border}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{fields[name]}\r\n' for name in fields
    ]
    head = f'--{border}\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n\r\n'
    body = "".join(parts).encode() + head.encode() + image + f"\r\n--{border}--\r\n".encode()
    request = Request(address, body, {"Content-Type": f"multipart/form-data; boundary={border}"})
    try:
        with urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.slow
def test_a_server_describes_and_classifies_images_as_translate_does(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="no uvicorn (extra: serve)")
    from tests.serving import running_server

    image = Path("test/0.png")
    grey = tmp_path / "grey.png"
    Image.open(image).convert("L").save(grey)
    with running_server(Path("runs/captions").resolve(), Path("runs/labels").resolve(), folder=tmp_path) as server:
        status, found = post_image(f"{server.url}/v1/caption", image.read_bytes(), beam="2", alternatives="1")
        assert status == 200
        assert found["model"] == "captions"
        assert found["captions"][0]["text"] == tfm("translate", "runs/captions", image, "--beam", "2").out.rstrip("\n")
        assert len(found["captions"]) <= 2
        status, found = post_image(f"{server.url}/v1/classify", grey.read_bytes(), top="100")
        assert status == 200
        labels = found["results"][0]["labels"]
        assert labels[0]["label"] == tfm("translate", "runs/labels", grey).out.rstrip("\n")
        probabilities = [each["probability"] for each in labels]
        assert probabilities == sorted(probabilities, reverse=True)
        assert 0 < sum(probabilities) < 1.00001
        for path in ("caption", "classify"):
            status, found = post_image(f"{server.url}/v1/{path}", b"no image")
            assert status == 400
            assert "image" in found["error"]["message"]
