"""The exported folder: its script writes what tfm writes, int8 is int8, and what is not written is refused."""

import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch

from tests.huggingface_models import KINDS, published
from tests.onnx_models import in_float64, onnxruntime, script_output, smallest_gap
from tests.tiny_model import STACK, TEXTS
from tfm.model.build import build
from tfm.model.config import ModelConfig, StackConfig
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.inference.generation.generator import TextGenerator
from tfm.pipeline.inference.generation.prompt_encoder import PromptEncoder
from tfm.pipeline.inference.labelling import label_texts
from tfm.pipeline.inference.source_problems import SourceProblems
from tfm.pipeline.inference.translation_records import join_to_one_line
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.model_io.onnx.export import to_onnx
from tfm.pipeline.runtime.progress import NullReporter
from tfm.tokenizer.code_points import save_pair
from tfm.tokenizer.config import LabelKind, TokenizerConfig
from tfm.tokenizer.tokenizer import Tokenizer
from tfm.tokenizer.train import make_label_tokenizer, train

NEAR = 1e-4
STRANGE = (
    "",
    "  ",
    "a dog <s> runs </s>\t\tthrough THE snow \u0001.",
    "\ufeffa cat",
    "the sea " * 60,
    "שלום",
    "a\x85dog",
)


def exported(ours: LoadedModel, folder: Path, precision: Any = "fp32") -> Path:
    onnxruntime()
    folder.mkdir()
    to_onnx(ours, folder, precision)
    return folder


def lines_of_words(count: int) -> list[str]:
    draw, words = random.Random(4), sorted({word for text in TEXTS for word in text.split()})
    return [" ".join(draw.choices(words, k=draw.randint(1, 9))) for _ in range(count)]


def assert_greedy(ours: LoadedModel, lines: Sequence[str], written: str) -> None:
    """What was written are the translations that we find without a beam, but for those with a near tie."""
    sources, found = ours.source_tokenizer.encode_batch(lines), written.split("\n")
    assert found.pop() == ""
    hypotheses = [list(one[0].ids) for one in decode(ours.model, sources, DecodingConfig(beam=1))]
    wanted = [join_to_one_line(text) for text in ours.target_tokenizer.decode_batch(hypotheses)]
    assert len(found) == len(wanted)
    assert len({*wanted}) > len(lines) // 4
    apart = [number for number, text in enumerate(wanted) if found[number] != text]
    exact = in_float64(ours)
    assert all(smallest_gap(exact, sources[number][:95], hypotheses[number]) < NEAR for number in apart)
    assert len(apart) <= len(lines) // 50


def script_in(readme: Path, name: str) -> str:
    """The code that README.md has of a script."""
    (code,) = re.findall(rf"^## {name}\n\n```python\n(.*?)^```$", readme.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return str(code)


@pytest.mark.parametrize("kind", ["post-norm, untied, GELU", "GPT-2 that translates"])
@pytest.mark.few(1)
def test_the_script_translates_as_we_do(kind: str, tmp_path: Path) -> None:
    """The script of README.md, without tfm and torch: 200 lines, and some that are strange."""
    ours = published(tmp_path / "model", **KINDS[kind][1])
    folder = exported(ours, tmp_path / "out")
    lines = [*lines_of_words(200), *STRANGE]
    code = script_in(folder / "README.md", "translate.py")
    assert code == (folder / "translate.py").read_text("utf-8")
    (folder / "translate.py").unlink()
    (folder / "copied.py").write_text(code, encoding="utf-8")
    written = script_output(folder / "copied.py", "".join(f"{line}\n" for line in lines))
    assert_greedy(ours, lines, written)


def test_two_vocabularies_and_a_language_that_is_asked_for(tmp_path: Path) -> None:
    target = published(tmp_path / "plain").source_tokenizer
    source = train(["a dog sits by the sea", "snow !"], TokenizerConfig(kind="word", vocab_size=60, min_frequency=1))
    source = source.with_languages("deu", "hin")
    two = pair(tmp_path / "two", {"tie": "none"}, source, target)
    folder = exported(two, tmp_path / "out")
    assert "translate.py --to deu <" in (folder / "README.md").read_text("utf-8")
    lines = ["a dog sits", "the sea !", "snow", ""]
    found = {}
    for language in ("deu", "hin"):
        text = "".join(f"{line}\n" for line in lines)
        found[language] = script_output(folder / "translate.py", text, "--to", language)
        assert_greedy(two.for_languages(language), lines, found[language])
    assert found["deu"] != found["hin"]


def pair(folder: Path, changes: dict[str, Any], source: Tokenizer, target: Tokenizer) -> LoadedModel:
    """A model with two vocabularies, sure of what it says."""
    folder.mkdir()
    save_pair(source, target, folder)
    config = ModelConfig.model_validate({"encoder": STACK, "decoder": STACK, "max_length": 32, **changes})
    model = build(config, source_vocab=source.vocab_size, target_vocab=target.vocab_size, seed=5).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(2)
    return LoadedModel(model, source, target, config, folder)


@pytest.mark.parametrize(("task", "kind"), [("classification", "label"), ("tagging", "tags")])
def test_the_script_labels_as_we_do(task: str, kind: LabelKind, tmp_path: Path) -> None:
    source = train(TEXTS, TokenizerConfig(kind="char", vocab_size=60, min_frequency=1))  # spaces are pieces
    names = make_label_tokenizer(["New York" if kind == "label" else "B-x", "<s>", "##é", "I"], kind)
    ours = pair(tmp_path / "model", {"architecture": "encoder_only", "task": task, "tie": "none"}, source, names)
    folder = exported(ours, tmp_path / "out")
    lines = [*lines_of_words(60), *STRANGE]
    wanted = [best[0][0] for best in label_texts(ours, lines, SourceProblems())]
    assert len({*wanted}) > 3
    assert script_output(folder / "label.py", "".join(f"{line}\n" for line in lines)).split("\n")[:-1] == wanted


@pytest.mark.parametrize("block", [None, 24])
def test_the_script_goes_on_with_a_prompt_as_we_do(block: int | None, tmp_path: Path) -> None:
    """Line by line until the end, and as running text, which goes on where the window is full."""
    changes = {**KINDS["Llama, grouped heads"][1], "block": block, "max_length": 40}
    ours = published(tmp_path / "model", **changes)
    folder = exported(ours, tmp_path / "out")
    writer = TextGenerator(PromptEncoder(ours), DecodingConfig(beam=1, max_length=60), NullReporter())
    prompt = "a dog runs\nthe sea" if block else "a dog runs"
    (wanted,) = writer.generate_texts(prompt)
    found = script_output(folder / "generate.py", "", "--prompt", prompt, "--max-tokens", "60")
    assert found == writer.decode_encoded_prompt(prompt) + wanted.text + "\n"
    assert len(wanted.text) > 10


@pytest.mark.parametrize("block", [None, 24])
def test_the_script_goes_on_with_each_line_of_stdin(block: int | None, tmp_path: Path) -> None:
    ours = published(tmp_path / "model", **{**KINDS["Llama, grouped heads"][1], "block": block, "max_length": 40})
    folder = exported(ours, tmp_path / "out")
    writer, prompts = (
        TextGenerator(PromptEncoder(ours), DecodingConfig(beam=1, max_length=9), NullReporter()),
        ["a dog", "", "the sea"],
    )
    wanted = [f"{writer.decode_encoded_prompt(each)}{writer.generate_texts(each)[0].text}\n" for each in prompts]
    lines = "".join(f"{each}\n" for each in prompts)
    assert script_output(folder / "generate.py", lines, "--max-tokens", "9") == ("---\n" if block else "").join(wanted)


def test_in_8_bits_every_matrix_is_one_of_integers(tmp_path: Path) -> None:
    """Tied ones too; and what it computes is near to what the floats give."""
    runtime = onnxruntime()
    import onnx

    from tests.onnx_models import onnx_logits

    ours = published(tmp_path / "model", tie="all")
    folders = [exported(ours, tmp_path / precision, precision) for precision in ("fp32", "int8")]
    logits = []
    for folder in folders:
        sessions = {name: runtime.InferenceSession(str(folder / f"{name}.onnx")) for name in ("encoder", "decoder")}
        logits.append(onnx_logits(sessions, ours, [5, 6, 7, 8, 20, 9], [9, 10, 30, 12], right=2))
    wanted, found = logits
    assert float((found - wanted).square().mean().sqrt() / wanted.std()) < 0.1
    assert not torch.equal(found, wanted)
    for name in ("encoder", "decoder"):
        whole, in_8_bits = (onnx.load(str(folder / f"{name}.onnx")).graph for folder in folders)
        rows = {each.name: each for each in whole.initializer}
        products = [each for each in whole.node if each.op_type == "MatMul"]
        constant = [each for each in products if each.input[1] in rows or "Transpose" in each.input[1]]
        of_weights = [each for each in constant if each.input[1] in rows or tied(whole, each.input[1], rows)]
        integers = sum(each.op_type == "MatMulInteger" for each in in_8_bits.node)
        assert integers == len(of_weights) > 4
        floats = [each for each in in_8_bits.initializer if each.data_type == 1 and len(each.dims) == 2]
        assert {tuple(each.dims) for each in floats} <= {(96, 16)}, "tables of positions"
    assert '"precision": "int8"' in (folders[1] / "config.json").read_text("utf-8")
    assert script_output(folders[1] / "translate.py", "a dog runs\n").endswith("\n")


def tied(graph: Any, name: str, stored: dict[str, Any]) -> bool:
    """Whether a value is a stored table, transposed."""
    return any(each.output[0] == name and each.input[0] in stored for each in graph.node)


LACKING: dict[str, dict[str, Any]] = {
    "model.window = 3": {"window": 3},
    'model.mixing = "convolution"': {"mixing": "convolution"},
    'model.score = "additive"': {"score": "additive"},
    'model.positions = "shaw"': {"positions": "shaw"},
    'model.positions_join = "concatenate"': {"positions_join": "concatenate"},
    'model.architecture = "recurrent"': {"architecture": "recurrent"},
    'model.task = "span_corruption"': {"task": "span_corruption"},
    "model.adaptive = { .. }": {"adaptive": {"cutoffs": [20]}},
    "model.canine = { .. }": {"canine": {}, "tie": "output"},
}


@pytest.mark.parametrize("part", LACKING)
def test_a_part_that_is_not_written_is_named(part: str) -> None:
    onnxruntime()
    from tfm.pipeline.model_io.onnx.supported import unsupported_reason

    assert unsupported_reason(ModelConfig.model_validate(LACKING[part])) == part
    assert unsupported_reason(ModelConfig()) is None


def test_a_part_that_is_new_is_refused_until_it_is_written() -> None:
    onnxruntime()
    from tfm.pipeline.model_io.onnx.supported import unsupported_reason

    class NewStack(StackConfig):
        experts: int = 1

    class Newer(ModelConfig):
        frobnication: float = 0.0
        encoder: NewStack = NewStack()

    assert unsupported_reason(Newer()) is None
    assert unsupported_reason(Newer(frobnication=0.5)) == "model.frobnication = 0.5"
    assert unsupported_reason(Newer(encoder=NewStack(experts=2))) == "model.encoder.experts = 2"


def test_a_refused_model_leaves_nothing(tmp_path: Path) -> None:
    onnxruntime()
    ours = published(tmp_path / "model", window=3)
    (tmp_path / "out").mkdir()
    with pytest.raises(RecipeError, match=r"a model with model\.window = 3 is not written as ONNX"):
        to_onnx(ours, tmp_path / "out", "fp32")
    assert not any((tmp_path / "out").iterdir())


def test_a_vocabulary_that_names_the_languages_of_both_texts_is_refused(tmp_path: Path) -> None:
    """Its sources begin with two tokens, of which the script would give one."""
    onnxruntime()
    plain = published(tmp_path / "plain")
    whole = tokenizers.Tokenizer.from_file(str(tmp_path / "plain" / "tokenizer.json"))
    whole.add_special_tokens(["deu_Latn", "eng_Latn"])
    ours = published(tmp_path / "model", tokenizer=Tokenizer(whole))
    assert (ours.source_tokenizer.has_source_language, plain.source_tokenizer.has_source_language) == (True, False)
    (tmp_path / "out").mkdir()
    with pytest.raises(RecipeError, match="sources begin with two languages"):
        to_onnx(ours, tmp_path / "out", "fp32")
    assert not any((tmp_path / "out").iterdir())


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = published(tmp_path / "model")
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "out").mkdir()
    with pytest.raises(RecipeError, match=r'pip install "tfm-toolkit\[onnx\]"'):
        to_onnx(ours, tmp_path / "out", "fp32")
