"""BERT and RoBERTa come in by one command, label what their like labels there, and start trainings; ours go out."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.cli.user import tfm
from tests.huggingface_encoders import NAMES, TAG_NAMES, lines_of, made, transformers
from tfm.model.layout import Layout
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.tokenizer.special import EOS_ID, PAD_ID

RECIPE = """
name = "labels"
[tokenizer]
kind = "word"
min_frequency = 1
vocab_size = 60
shared = false
[data]
batch_tokens = 256
limits.max_length = 50
train = { format = "tsv", path = "train.tsv", source = "text", target = "label" }
valid = { format = "tsv", path = "train.tsv", source = "text", target = "label" }
tests = { main = { format = "tsv", path = "train.tsv", source = "text", target = "label" } }
[model]
architecture = "encoder_only"
task = "classification"
[training]
max_steps = 80
precision = "fp32"
[training.schedule]
peak = 0.02
warmup_steps = 10
"""
BERT = """
norm = "post"
positions = "learned"
activation = "gelu"
embedding_norm = true
begin_token = true
head_transform = true
output_bias = true
scale_embedding = false
max_length = 60
encoder = { layers = 1, dim = 16, heads = 2, feed_forward_dim = 16 }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder with a corpus of texts and what kind of thing each is of."""
    monkeypatch.chdir(tmp_path)
    pairs = (("A dog runs through THE snow", "land"), ("the sea is cold !", "sea"), ("東京 hello", "city"))
    rows = ["text\tlabel", *(f"{text} {number}\t{label}" for number in range(30) for text, label in pairs)]
    Path("train.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def said_there(name: str, lines: list[str]) -> list[str]:
    """What a model of transformers labels texts with, read from its folder."""
    model = getattr(transformers, name).from_pretrained("theirs").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained("theirs")
    read = tokenizer(lines, return_tensors="pt", padding=True, split_special_tokens=True)
    with torch.no_grad():
        return [NAMES[number] for number in model(**read).logits.argmax(-1).tolist()]


@pytest.mark.slow
def test_a_classifier_labels_as_there_and_is_scored() -> None:
    name = "RobertaForSequenceClassification"
    made(Path("theirs"), name)
    done = tfm("import", "theirs", "--out", "ours")
    assert done.code == 0, done.err
    assert f"a {name} of" in done.err
    manifest = json.loads(Path("ours/manifest.json").read_text("utf-8"))
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {*manifest["inputs"]}
    lines = lines_of(60)
    wanted = said_there(name, lines)
    Path("lines").write_text("\n".join(lines) + "\n", encoding="utf-8")
    Path("labels").write_text("\n".join(wanted) + "\n", encoding="utf-8")
    assert tfm("translate", "ours", "lines").out.splitlines() == wanted
    scored = tfm("evaluate", "--model", "ours", "--source", "lines", "--reference", "labels", "--json")
    assert json.loads(scored.out)["metrics"]["accuracy"]["score"] == 100.0
    page = tfm("attend", "ours", "a DOG", "--out", "page.html")
    assert page.code == 0, page.err
    assert tfm("inspect", "ours").code == 0
    assert "nothing to do" in tfm("import", "theirs", "--out", "ours").err


def test_a_tagger_tags_words() -> None:
    made(Path("theirs"), "BertForTokenClassification")
    assert tfm("import", "theirs", "--out", "ours").code == 0
    tagged = tfm("translate", "ours", stdin="the DOG's  snow\nCafé\n")
    assert tagged.code == 0, tagged.err
    assert [len(line.split(" ")) for line in tagged.out.splitlines()] == [3, 1]
    assert {*tagged.out.split()} <= {*TAG_NAMES}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["BertForMaskedLM", pytest.param("RobertaModel", marks=pytest.mark.slow)])
def test_an_encoder_starts_a_training_of_another_task(name: str) -> None:
    made(Path("theirs"), name)
    done = tfm("import", "theirs", "--out", "ours")
    assert done.code == 0, done.err
    assert ("has no MLM head" in done.err) == (name == "RobertaModel")
    if name == "BertForMaskedLM":
        scored = tfm("evaluate", "--model", "ours", "--reference", "train.tsv", "--device", "cpu", "--json")
        assert scored.code == 0, scored.err
        assert json.loads(scored.out)["metrics"].keys() == {"perplexity", "token_accuracy"}
    Path("labels.toml").write_text(RECIPE, encoding="utf-8")
    first = ("tokenizer.source_from=ours", "training.init_from=ours", "model.pooling=first")
    run = tfm("run", "labels.toml", "--device", "cpu", *(word for each in first for word in ("--set", each)))
    assert run.code == 0, run.err
    assert "begins with the encoder of ours (masked_language_model); its head is initialized at random" in run.err
    config = json.loads(Path("runs/labels/model/config.json").read_text("utf-8"))
    assert (config["begin_token"], config["head_transform"], config["embedding_norm"]) == (True, False, True)
    report = json.loads(Path("runs/labels/scores/scores.json").read_text("utf-8"))
    assert report["metrics"]["accuracy"]["score"] == 100.0


@pytest.mark.slow
def test_a_masked_language_model_goes_out_and_comes_back() -> None:
    recipe = RECIPE.replace('"classification"', '"masked_language_model"' + BERT).replace('"labels"', '"masked"')
    Path("masked.toml").write_text(recipe, encoding="utf-8")
    run = tfm("run", "masked.toml", "--device", "cpu", "--set", "tokenizer.target_kind=word")
    assert run.code == 0, run.err
    done = tfm("export", "runs/masked", "--to", "huggingface", "--out", "theirs")
    assert done.code == 0, done.err
    tokenizer = transformers.AutoTokenizer.from_pretrained("theirs")
    model = transformers.AutoModelForMaskedLM.from_pretrained("theirs").eval()
    assert type(model).__name__ == "BertForMaskedLM"
    text = "A dog runs through THE snow"
    filled = transformers.pipeline("fill-mask", model=model, tokenizer=tokenizer)(text.replace("dog", "<mask>"))
    ours = load_model(Path("runs/masked/model"), "cpu")
    ids = torch.tensor([*ours.source_tokenizer.encode(text), EOS_ID]).index_fill(0, torch.tensor(1), PAD_ID)
    with torch.no_grad():
        likely = (
            ours.model.output(ours.model(ids, Layout.from_lengths(torch.tensor([len(ids)]))))[1].softmax(-1).topk(3)
        )
    assert [each["token"] for each in filled[:3]] == likely.indices.tolist()
    assert [each["score"] for each in filled[:3]] == pytest.approx(likely.values.tolist(), rel=1e-3)
    assert tfm("import", "theirs", "--out", "back").code == 0
    both = [load_file(Path(each) / "model.safetensors") for each in ("runs/masked/model", "back")]
    assert both[0].keys() == both[1].keys()
    assert all(torch.equal(both[0][name], both[1][name]) for name in both[0])
    asked = ("--reference", "train.tsv", "--device", "cpu", "--json")
    scored = [json.loads(tfm("evaluate", "--model", each, *asked).out) for each in ("runs/masked", "back")]
    assert scored[0]["metrics"] == scored[1]["metrics"]
