"""BERT, RoBERTa and their like from transformers compute here what they compute there, from the same texts."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.huggingface_encoders import (
    CONTROL,
    NAMES,
    ODD,
    SCRIPTS,
    TAG_NAMES,
    byte_pairs,
    lines_of,
    made,
    their_logits,
    transformers,
    word_pieces,
)
from tfm.data.batching.batches import pair_batch_from_ids
from tfm.model.layout import Layout
from tfm.pipeline.errors import DataError
from tfm.pipeline.inference.labelling import label_texts
from tfm.pipeline.inference.source_problems import SourceProblems
from tfm.pipeline.model_io.huggingface.card import ModelCard
from tfm.pipeline.model_io.huggingface.export import to_huggingface
from tfm.pipeline.model_io.huggingface.importing import import_model
from tfm.pipeline.model_io.loaded_model import LoadedModel, load_model
from tfm.pipeline.runtime.progress import NullReporter
from tfm.tokenizer.special import EOS_ID, PAD_ID

CLASSES = [
    *("BertForMaskedLM", "BertForSequenceClassification", "BertForTokenClassification"),
    *("RobertaForMaskedLM", "RobertaForSequenceClassification", "RobertaForTokenClassification"),
    *("RobertaPreLayerNormForMaskedLM", "RobertaPreLayerNormForSequenceClassification"),
    *("RobertaPreLayerNormForTokenClassification", "MegatronBertForMaskedLM"),
    *("MegatronBertForSequenceClassification", "MegatronBertForTokenClassification"),
]
TEXTS = [*SCRIPTS, *ODD[1:], *CONTROL]


class Warned(NullReporter):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def taken(folder: Path) -> LoadedModel:
    out = folder.with_name("ours")
    import_model(folder, out, command=["tfm", "import"], reporter=NullReporter())
    return load_model(out, "cpu")


def our_logits(ours: LoadedModel, texts: list[str]) -> torch.Tensor:
    """Of all rows, or of all texts."""
    batch = pair_batch_from_ids(ours.source_tokenizer.encode_batch(texts), [[]] * len(texts))
    with torch.no_grad():
        found: torch.Tensor = ours.model.output(ours.model(batch.source, Layout.from_lengths(batch.source_lengths)))
    return found


def rows_there(ours: LoadedModel, model: Any) -> list[int]:
    """By our id the row there, told by the table of the input, whose rows all differ."""
    table = model.get_input_embeddings().weight.detach().float()
    return [int((table - each).abs().sum(1).argmin()) for each in ours.model.embedding.table.weight.detach().float()]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (place > 6)) for place, name in enumerate(CLASSES)]
)
def test_logits_are_theirs(name: str, tmp_path: Path) -> None:
    model, tokenizer = made(tmp_path / "theirs", name)
    ours = taken(tmp_path / "theirs")
    for precision, bound in ((torch.float32, 1e-4), (torch.float64, 1e-10)):
        model.to(precision), ours.model.to(precision)
        logits, is_text, _ = their_logits(model, tokenizer, TEXTS)
        found = our_logits(ours, TEXTS)
        if "Sequence" not in name:
            is_text[:, 0] = False  # where [CLS] is
            logits = logits[is_text]
        there = torch.tensor(rows_there(ours, model)) if "Masked" in name else None
        wanted = logits if there is None else logits[:, there]
        found = found if there is not None else found[:, 4:]
        assert wanted.std() > 0.3
        torch.testing.assert_close(found, wanted, atol=bound, rtol=0)
        if there is not None:
            assert sorted(there.tolist()) == [*range(model.config.vocab_size)]
        else:
            log_p = our_logits(ours, TEXTS).log_softmax(-1)[:, 4:]
            torch.testing.assert_close(log_p, wanted.log_softmax(-1), atol=bound, rtol=0)


@pytest.mark.parametrize("name", ["BertForMaskedLM", "RobertaForMaskedLM"])
def test_hidden_pieces_are_predicted_as_there(name: str, tmp_path: Path) -> None:
    model, tokenizer = made(tmp_path / "theirs", name)
    ours = taken(tmp_path / "theirs")
    ids = ours.source_tokenizer.encode(SCRIPTS[3])
    hidden = torch.tensor([*ids[:2], PAD_ID, *ids[3:], EOS_ID])
    with torch.no_grad():
        found = ours.model.output(ours.model(hidden, Layout.from_lengths(torch.tensor([len(hidden)]))))[2]
    read = tokenizer(SCRIPTS[3], return_tensors="pt", split_special_tokens=True)
    read["input_ids"][0, 3] = tokenizer.mask_token_id
    with torch.no_grad():
        wanted = model(**read).logits[0, 3]
    row = rows_there(ours, model)
    assert row[PAD_ID] == tokenizer.mask_token_id
    torch.testing.assert_close(found.log_softmax(-1), wanted.log_softmax(-1)[row], atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", ["BertForSequenceClassification", "RobertaForSequenceClassification"])
@pytest.mark.few(1)
def test_labels_are_theirs(name: str, tmp_path: Path) -> None:
    model, tokenizer = made(tmp_path / "theirs", name)
    ours, lines = taken(tmp_path / "theirs"), lines_of(200)
    lines[7] = " ".join(lines[:90])
    tokenizer.model_max_length = 300 if name.startswith("Bert") else 298
    model.double(), ours.model.double()  # so that no label is nearly as likely as another
    logits, is_text, _ = their_logits(model, tokenizer, lines)
    assert is_text[7].sum() == tokenizer.model_max_length  # it was cut, as it is here
    wanted = [NAMES[number] for number in logits.argmax(-1).tolist()]
    assert len({*wanted}) > 1
    assert [found[0][0] for found in label_texts(ours, lines, SourceProblems())] == wanted
    three = next(label_texts(ours, lines[:1], SourceProblems(), n_best=3))
    best = logits[0].log_softmax(-1).sort(descending=True)
    assert [each[0] for each in three] == [NAMES[number] for number in best.indices[:3].tolist()]
    assert [each[1] for each in three] == pytest.approx(best.values[:3].tolist(), abs=1e-4)


@pytest.mark.parametrize("name", ["BertForTokenClassification", "RobertaForTokenClassification"])
def test_tags_are_theirs_at_the_first_piece_of_each_word(name: str, tmp_path: Path) -> None:
    model, tokenizer = made(tmp_path / "theirs", name)
    ours, lines = taken(tmp_path / "theirs"), lines_of(200)
    model.double(), ours.model.double()
    seen = set()
    for text, found in zip(lines, label_texts(ours, lines, SourceProblems()), strict=True):
        read = tokenizer(text, return_tensors="pt", split_special_tokens=True)
        words = text.split(" ")
        before = [" ".join(words[:place]) for place in range(len(words))]  # a word's first piece follows all of these
        firsts = [len(ids) - 1 for ids in tokenizer(before, split_special_tokens=True).input_ids]
        with torch.no_grad():
            tags = model(**read).logits[0].argmax(-1)[firsts].tolist()
        seen |= {*tags}
        assert found[0][0] == " ".join(TAG_NAMES[number] for number in tags), text
    assert len(seen) > 2


@pytest.mark.parametrize(
    ("name", "changes"), [("BertModel", {"lower": True}), ("BertModel", {"lower": False}), ("RobertaModel", {})]
)
def test_a_text_has_the_same_pieces_in_any_script(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    """A text that spells a control token is text: there it is where it is asked for, as here."""
    model, tokenizer = made(tmp_path / "theirs", name, **changes)
    ours = taken(tmp_path / "theirs")
    row = rows_there(ours, model)
    lines = [*SCRIPTS, *ODD, *CONTROL, *lines_of(100)]
    unknown = 0
    for text in lines:
        ids = ours.source_tokenizer.encode(text)
        wanted = tokenizer(text, add_special_tokens=False, split_special_tokens=True).input_ids
        assert [row[number] for number in ids] == wanted, text
        unknown += tokenizer.unk_token_id in wanted
    assert bool(unknown) == name.startswith("Bert")
    typed = tokenizer("a [MASK]" if unknown else "a <mask>", add_special_tokens=False).input_ids
    assert tokenizer.mask_token_id in typed  # which is the difference


@pytest.mark.parametrize("name", ["BertModel", "RobertaModel", "RobertaPreLayerNormModel", "MegatronBertModel"])
def test_an_encoder_without_a_head_is_one_to_start_from(name: str, tmp_path: Path) -> None:
    model, tokenizer = made(tmp_path / "theirs", name)
    reporter = Warned()
    import_model(tmp_path / "theirs", tmp_path / "ours", command=["tfm", "import"], reporter=reporter)
    assert "has no MLM head" in reporter.warnings[0]
    ours = load_model(tmp_path / "ours", "cpu")
    read = tokenizer(SCRIPTS[5], return_tensors="pt", split_special_tokens=True)
    with torch.no_grad():
        wanted = model(**read).last_hidden_state[0]
        ids = torch.tensor([*ours.source_tokenizer.encode(SCRIPTS[5]), EOS_ID])
        found = ours.model.encode(ids, Layout.from_lengths(torch.tensor([len(ids)])))
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=0)


def test_a_vocabulary_alone_is_a_tokenizer(tmp_path: Path) -> None:
    """As old folders have it: vocab.txt, or vocab.json and merges.txt; and norms whose weights are gamma and beta."""
    for name, lower in (("BertForMaskedLM", True), ("BertModel", False), ("RobertaForMaskedLM", None)):
        folder = tmp_path / f"{name}-{lower}"
        made(folder, name, **({} if lower is None else {"lower": lower}))
        (folder.parent / "whole").mkdir(exist_ok=True)
        import_model(folder, folder.parent / "whole" / folder.name, command=["tfm"], reporter=NullReporter())
        whole = load_model(folder.parent / "whole" / folder.name, "cpu").source_tokenizer
        model = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]
        for file in ("tokenizer.json", "tokenizer_config.json"):
            (folder / file).unlink()
        if lower is None:
            (folder / "vocab.json").write_text(json.dumps(model["vocab"]), encoding="utf-8")
            merges = ["#version: 0.2", *(" ".join(pair) for pair in model["merges"])]
            (folder / "merges.txt").write_text("\n".join(merges) + "\n", encoding="utf-8")
        else:
            pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
            (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
            (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lower}), encoding="utf-8")
        weights = {
            key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
            for key, value in load_file(folder / "model.safetensors").items()
        }
        save_file(weights | {"cls.seq_relationship.bias": torch.zeros(2)}, folder / "model.safetensors")
        ours = taken(folder).source_tokenizer
        (tmp_path / "ours").rename(tmp_path / f"ours-{name}-{lower}")
        theirs = transformers.AutoTokenizer.from_pretrained(folder)
        for text in (*SCRIPTS, *ODD, *CONTROL):
            assert ours.encode(text) == whole.encode(text), text
            spelled = [{"[UNK]": "<unk>"}.get(each, each) for each in theirs.tokenize(text, split_special_tokens=True)]
            assert ours.pieces(text) == spelled, text


def test_settings_beside_the_tokenizer_count_as_they_do_there(tmp_path: Path) -> None:
    """transformers builds BERT's tokenizer by tokenizer_config.json, whatever tokenizer.json normalises."""
    made(tmp_path / "theirs", "BertForMaskedLM", lower=True)
    file = tmp_path / "theirs" / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | {"do_lower_case": False}), encoding="utf-8")
    theirs, ours = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs"), taken(tmp_path / "theirs")
    for text in ("The DOG", "Café é", *SCRIPTS):
        spelled = [{"[UNK]": "<unk>"}.get(each, each) for each in theirs.tokenize(text)]
        assert ours.source_tokenizer.pieces(text) == spelled


WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "another activation": ("BertForMaskedLM", {"hidden_act": "quick_gelu"}, "the activation 'quick_gelu' is not known"),
    "another head": (
        "RobertaForMaskedLM",
        {"hidden_act": "relu"},
        "hidden_act = 'relu' is not that of its head, gelu",
    ),
    "relative positions": (
        "BertForMaskedLM",
        {"position_embedding_type": "relative_key"},
        "position_embedding_type = 'relative_key' is not supported, only 'absolute'",
    ),
    "a decoder": ("BertForMaskedLM", {"is_decoder": True}, "is_decoder = True is not supported"),
    "cross-attention": ("BertModel", {"add_cross_attention": True}, "add_cross_attention = True is not supported"),
    "several labels a text": (
        "BertForSequenceClassification",
        {"problem_type": "multi_label_classification"},
        "problem_type = 'multi_label_classification' is not supported",
    ),
    "a figure": (
        "BertForSequenceClassification",
        {"id2label": {"0": "height"}},
        "id2label has 1 name and its output 5 rows",
    ),
    "a tag with a space": (
        "BertForTokenClassification",
        {"id2label": {str(i): name for i, name in enumerate(["O", "B PER", "x", "y", "z"])}},
        "the label 'B PER' is empty or has white space in or around it",
    ),
    "two labels of one name": (
        "BertForSequenceClassification",
        {"id2label": {str(i): name for i, name in enumerate("abacd")}},
        "two labels are called 'a'",
    ),
    "a layer more": ("RobertaForMaskedLM", {"num_hidden_layers": 3}, "it has no 'roberta.encoder.layer.2"),
    "a layer less": ("BertModel", {"num_hidden_layers": 1}, "does not use, bert.encoder.layer.1"),
    "another class": ("BertModel", {"architectures": ["BertForQuestionAnswering"]}, "cannot import BertForQuestion"),
    "a head that is missing": (
        "BertModel",
        {"architectures": ["BertForMaskedLM"]},
        "it has no 'cls.predictions.transform.dense.weight'",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_fit_is_refused_with_the_reason(what: str, tmp_path: Path) -> None:
    name, changes, reason = WRONG[what]
    made(tmp_path / "theirs", name)
    file = tmp_path / "theirs" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | changes), encoding="utf-8")
    with pytest.raises(DataError) as raised:
        taken(tmp_path / "theirs")
    assert reason in str(raised.value)
    assert not (tmp_path / "ours").exists()


def test_one_label_is_a_figure_and_refused(tmp_path: Path) -> None:
    made(tmp_path / "theirs", "BertForSequenceClassification", num_labels=1, id2label={0: "height"}, label2id={})
    with pytest.raises(DataError, match="it has one label, so what it gives is a figure"):
        taken(tmp_path / "theirs")


def test_labels_without_names_are_called_as_there(tmp_path: Path) -> None:
    model, _ = made(
        tmp_path / "theirs", "BertForSequenceClassification", id2label={0: "LABEL_0", 1: "LABEL_1"}, label2id={}
    )
    assert "id2label" not in json.loads((tmp_path / "theirs" / "config.json").read_text("utf-8"))
    ours = taken(tmp_path / "theirs").target_tokenizer
    assert [ours.surface(number).strip() for number in range(4, ours.vocab_size)] == [*model.config.id2label.values()]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"post_processor": None}, "its tokenizer puts 0 tokens before a text and 0 after it"),
        ({"model": {"type": "Strange", "vocab": 5}}, "is of a kind that is not known (Strange)"),
    ],
)
def test_a_tokenizer_that_does_not_fit_is_refused(change: dict[str, Any], reason: str, tmp_path: Path) -> None:
    made(tmp_path / "theirs", "BertForMaskedLM")
    file = tmp_path / "theirs" / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | change), encoding="utf-8")
    with pytest.raises(DataError) as raised:
        taken(tmp_path / "theirs")
    assert reason in str(raised.value)


def test_control_tokens_called_as_ours_may_have_other_roles(tmp_path: Path) -> None:
    """There <pad> is padding and <mask> stands for hidden pieces; here <pad> does, whatever the others are called."""
    folder = tmp_path / "theirs"
    model, tokenizer = made(folder, "BertForMaskedLM")
    text = (folder / "tokenizer.json").read_text("utf-8")
    for old, new in (("[PAD]", "<pad>"), ("[unused0]", "<unk>"), ("[unused1]", "<s>"), ("[UNK]", "</s>")):
        text = text.replace(old, new)
    document = json.loads(text)
    numbers, template = document["model"]["vocab"], document["post_processor"]
    assert [numbers[each] for each in ("<pad>", "<unk>", "<s>", "</s>")] == [0, 1, 2, 3]
    template["special_tokens"] = {
        name: {"id": name, "ids": [numbers[token]], "tokens": [token]}
        for name, token in (("[CLS]", "<s>"), ("[SEP]", "</s>"))
    }
    steps = [{"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}, template]
    document |= {"post_processor": {"type": "Sequence", "processors": steps}}
    document["model"]["unk_token"] = "<unk>"
    (folder / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "mask_token": {"content": "[MASK]"}, "pad_token": "<pad>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
    ours = taken(folder)
    mask = tokenizer.mask_token_id
    assert rows_there(ours, model) == [mask, *range(1, mask), 0, *range(mask + 1, model.config.vocab_size)]
    ids = ours.source_tokenizer.encode("a dog")
    assert ids == tokenizer("a dog", add_special_tokens=False).input_ids
    with torch.no_grad():
        found = ours.model.output(
            ours.model(torch.tensor([*ids, EOS_ID]), Layout.from_lengths(torch.tensor([len(ids) + 1])))
        )
        wanted = model(torch.tensor([[2, *ids, 3]])).logits[0, 1:]
    torch.testing.assert_close(found[:, 1:mask], wanted[:, 1:mask], atol=1e-4, rtol=0)
    torch.testing.assert_close(found[:, 0], wanted[:, mask], atol=1e-4, rtol=0)


def test_a_roberta_goes_out_as_a_bert(tmp_path: Path) -> None:
    """Both are the same network but for the numbers of positions, so that BERT's class holds it."""
    model, tokenizer = made(tmp_path / "theirs", "RobertaForMaskedLM")
    ours = taken(tmp_path / "theirs")
    (tmp_path / "out").mkdir()
    to_huggingface(ours, tmp_path / "out", ModelCard())
    again = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "out").eval()
    assert type(again).__name__ == "BertForMaskedLM"
    with torch.no_grad():
        read = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")(TEXTS[3], return_tensors="pt")
        found = again(**read).logits[0, :, : model.config.vocab_size]
        wanted = model(**tokenizer(TEXTS[3], return_tensors="pt")).logits[0]
    torch.testing.assert_close(found, wanted[:, rows_there(ours, model)], atol=1e-4, rtol=0)


def test_missing_vocabularies_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    made(folder, "BertForMaskedLM")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(DataError, match=r"has no tokenizer.json, and no vocab.txt, or vocab.json with merges.txt"):
        taken(folder)
    (folder / "vocab.txt").write_text("[UNK]\na\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"its vocabulary lacks \[CLS\] or \[SEP\]"):
        taken(folder)
    (folder / "added_tokens.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=r"has added_tokens.json without tokenizer.json"):
        taken(folder)
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertweetTokenizer"}', encoding="utf-8")
    with pytest.raises(DataError, match=r"its tokenizer is a BertweetTokenizer without tokenizer.json"):
        taken(folder)


def test_tokenizers_of_tests_are_real_ones() -> None:
    assert word_pieces(lower=True).tokenize("Üb 東京") == ["ub", "東", "京"]
    assert byte_pairs().tokenize(" dog")[0].startswith("Ġ")
