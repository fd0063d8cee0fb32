"""The law of exchange: what leaves and comes back is what it was, and texts are what tfm makes of them.

Export, import, export: the same files. Ids of hostile texts, greedy text and the length at which it ends: those of
transformers, where that is installed.
"""

from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch

from tests.foreign_tokenizers import KINDS as FOREIGN_KINDS
from tests.foreign_tokenizers import document_of, write
from tests.huggingface_models import KINDS, LANGUAGE, LLAMA, published
from tests.tiny_model import TEXTS
from tests.unit.pipeline.model_io.huggingface.test_export import exported, quick, theirs
from tests.unit.pipeline.model_io.huggingface.test_import import taken
from tfm.data.foreign_tokenizers.loading import load_foreign_tokenizer
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.inference.generation.generator import TextGenerator
from tfm.pipeline.inference.generation.prompt_encoder import PromptEncoder
from tfm.pipeline.model_io.huggingface.card import ModelCard
from tfm.pipeline.model_io.huggingface.export import to_huggingface
from tfm.pipeline.model_io.huggingface.tokenizer_files import surrounding_tokens
from tfm.pipeline.model_io.loaded_model import LoadedModel
from tfm.pipeline.runtime.progress import NullReporter
from tfm.tokenizer.config import Kind, TokenizerConfig
from tfm.tokenizer.special import BOS_ID, EOS_ID, SPECIAL_TOKENS
from tfm.tokenizer.train import train

HOSTILE = (
    *(
        "",
        "   ",
        " a  dog ",
        "<s>",
        "a</s>dog <s> <pad><unk>",
        "</s></s>",
        "snow \u2603\u2603 \u0001\ue000",
        "\t\u00a0!",
    ),
    *("<unnumbered>", "##a", "<unused:5>", ">>fra<<", "स्नो שלום"),
)
BLOCK = {"block": 24, "max_length": 40}
LIMITED = KINDS | {
    "GPT-2, learned, that translates": ("GPT2LMHeadModel", {"architecture": "decoder_only", "positions": "learned"}),
    "GPT-2 of running text": ("GPT2LMHeadModel", LANGUAGE | BLOCK | {"positions": "learned"}),
    "Llama of running text": ("LlamaForCausalLM", LANGUAGE | BLOCK | LLAMA),
}
HELD_HERE = {kind: each for kind, each in LIMITED.items() if "tagger" not in kind and "classifier" not in kind}
WRITERS = {kind: each for kind, each in HELD_HERE.items() if "masked" not in kind}
QUICK = ("post-norm", "GPT-2 of running text", "Llama, grouped heads")


def contents(folder: Path) -> dict[str, bytes]:
    """The files of an export, but for the card, which says where the model is from."""
    return {
        file.name: file.read_bytes() for file in folder.iterdir() if file.name not in ("README.md", "model.safetensors")
    }


@pytest.mark.parametrize("kind", quick(*QUICK, "masked", all_kinds=HELD_HERE))
def test_export_import_export_gives_the_same_files(kind: str, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    ours, folder = exported(tmp_path, **HELD_HERE[kind][1])
    back = taken(folder.rename(tmp_path / "theirs"))
    (again := tmp_path / "again").mkdir()
    to_huggingface(back, again, ModelCard())
    folder = tmp_path / "theirs"
    assert back.target_tokenizer.document == ours.target_tokenizer.document
    if "scale" not in kind and not ours.config.scale_embedding:
        assert contents(again) == contents(folder)
    first, second = (load_file(each / "model.safetensors") for each in (folder, again))
    for name in first.keys() & second.keys():
        torch.testing.assert_close(first[name], second[name], atol=1e-5, rtol=1e-5)
    for name in ("generation_config.json", "tokenizer.json", "tokenizer_config.json"):
        assert contents(again).get(name) == contents(folder).get(name), name


@pytest.mark.parametrize("pieces", ["bpe", "char", "byte", "wordpiece", "unigram", "word"])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.few(6)
def test_hostile_texts_have_our_ids_there_and_after_they_came_back(pieces: Kind, several: bool, tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
    size = 270 if pieces == "byte" else 60
    tokenizer = train(TEXTS, TokenizerConfig(kind=pieces, vocab_size=size, min_frequency=1))
    tokenizer = tokenizer.with_languages("deu", "hin") if several else tokenizer
    changes = {} if several else LANGUAGE | BLOCK
    ours, folder = exported(tmp_path, tokenizer=tokenizer, **changes)
    there, back = transformers.AutoTokenizer.from_pretrained(folder), taken(folder)
    before, after = ([SPECIAL_TOKENS.index(token) for token in side] for side in surrounding_tokens(ours.config))
    for text in HOSTILE:
        asked = ours.for_languages("hin") if several else ours
        ids = asked.source_tokenizer.encode(text)
        assert not {0, 2, 3} & {*ids}
        spelled = f">>hin<<{text}" if several and ids else text
        assert there(spelled).input_ids == [*before, *ids, *after], text
        assert back.source_tokenizer.encode(text) == ours.source_tokenizer.encode(text)
    assert back.source_tokenizer.languages == ours.source_tokenizer.languages


@pytest.mark.parametrize("name", ["llama", "t5"])
def test_pieces_with_line_breaks_of_another_program_are_not_the_ends_of_lines(name: str, tmp_path: Path) -> None:
    """Gemma's tokenizer, for one, has line breaks as pieces; running text has the end token there."""
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
    theirs = FOREIGN_KINDS[name]()
    theirs.add_tokens([tokenizers.AddedToken(each, normalized=False) for each in ("\n", "\n\n", "<b>", "</b>")])
    document = document_of(theirs)
    if name == "llama":
        document["model"]["vocab"] |= {"\n": theirs.token_to_id("\n"), "\n\n": theirs.token_to_id("\n\n")}
        document["model"]["merges"].append(["\n", "\n"])
    tokenizer = load_foreign_tokenizer(TokenizerConfig(file=str(write(tmp_path, document)))).tokenizer
    ours, folder = exported(tmp_path / "out", tokenizer=tokenizer, **LANGUAGE | BLOCK)
    there, back = transformers.AutoTokenizer.from_pretrained(folder), taken(folder)
    text = "a <b>dog</b> runs"
    ids = ours.source_tokenizer.encode(text)
    assert there(text).input_ids == [BOS_ID, *ids]
    assert there(f"{text}\n\n{text}").input_ids == [BOS_ID, *ids, EOS_ID, EOS_ID, *ids]
    assert there.decode(ids) == ours.source_tokenizer.decode(ids)
    assert back.source_tokenizer.encode(text) == ids
    assert back.source_tokenizer.decode(ids) == ours.source_tokenizer.decode(ids)


@pytest.mark.parametrize("kind", quick(*QUICK, "GPT-2, learned, that translates", all_kinds=WRITERS))
@pytest.mark.few(2)
def test_a_text_ends_there_where_it_ends_here(kind: str, tmp_path: Path) -> None:
    """Ends come as late as they may."""
    length = {} if "running" in kind else {"max_length": 12}
    ours, folder = exported(tmp_path, **HELD_HERE[kind][1] | length)
    model = theirs(folder)
    if ours.config.task == "language_model":
        assert_goes_on_as_here(ours, folder, model)
        return
    limit = DecodingConfig(beam=1, max_ratio=50, min_length=11)
    for source in ([5, 6, 7], [*range(4, 15)]):  # the second one as long as may be
        ((one,),) = decode(ours.model, [source], limit)
        between = [2] if ours.config.architecture == "decoder_only" else []
        read = torch.tensor([[*source, 3, *between]])
        most = {"max_new_tokens": 12} if between else {}  # there the limit is of source and target together
        options = {"attention_mask": torch.ones_like(read), "num_beams": 1, "min_new_tokens": 11, **most}
        written = model.generate(read, **options)[0]
        assert written[len(read[0]) if between else 1 :].tolist() == [*one.ids, 3]
        assert len(one.ids) == 11
    if between:  # as far as its positions go, without a limit of ours
        options |= {"max_new_tokens": None, "min_new_tokens": 12}
        assert model.generate(read, **options).shape[1] == 25


def test_beams_below_the_limit_find_the_same_texts(tmp_path: Path) -> None:
    """At the limit the end has probability 1 there, and that of the model here (docs/exchange/to-transformers.md)."""
    ours, folder = exported(tmp_path, **HELD_HERE["post-norm"][1])
    model, found = theirs(folder), set()
    for first in range(4, 44, 4):
        source = [*range(first, first + 5)]
        ((one,),) = decode(ours.model, [source], DecodingConfig(min_length=6, max_length=40))
        read = torch.tensor([[*source, 3]])
        written = model.generate(read, attention_mask=torch.ones_like(read), max_length=42, min_new_tokens=6)
        assert written[0, 1:].tolist() == [*one.ids, 3]
        assert len(one.ids) < 40
        found.add(one.ids)
    assert len(found) > 2


def assert_goes_on_as_here(ours: LoadedModel, folder: Path, model: Any) -> None:
    import transformers

    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    reader = PromptEncoder(ours)
    for prompt in ("", "a dog", "a dog\nthe sea" if reader.continue_past_line_end else "the sea"):
        inputs = tokenizer(prompt, return_tensors="pt")
        room = reader.context - inputs.input_ids.shape[1]
        config = DecodingConfig(beam=1, strategy="sample", temperature=0, max_length=room, min_length=room)
        writer = TextGenerator(reader, config, NullReporter())
        wanted = writer.decode_encoded_prompt(prompt) + writer.generate_texts(prompt)[0].text
        written = model.generate(**inputs, **({} if reader.continue_past_line_end else {"min_new_tokens": room}))
        assert written.shape[1] == reader.context
        assert tokenizer.decode(written[0], skip_special_tokens=True) == wanted
    assert model.config.max_position_embeddings == reader.context


def test_running_text_goes_on_after_the_end_of_a_line(tmp_path: Path) -> None:
    """Greedy text there has the line breaks that it has here."""
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra `dev`")
    ours = published(tmp_path / "model", **LANGUAGE, **BLOCK, positions="learned", tie="none")
    often = DecodingConfig(beam=1, strategy="sample", temperature=0, max_length=40)
    written = TextGenerator(PromptEncoder(ours), often, NullReporter())._generate_hypotheses([[5, 6]], [0])[0].ids
    common = max(written, key=written.count)
    ours.model.output.weight.data[[3, common]] = ours.model.output.weight.data[[common, 3]]
    (folder := tmp_path / "out").mkdir()
    to_huggingface(ours, folder, ModelCard())
    tokenizer, model, reader = transformers.AutoTokenizer.from_pretrained(folder), theirs(folder), PromptEncoder(ours)
    breaks = 0
    for prompt in ("a dog", "the sea\n\nis cold", "\nsnow", "two dogs and a cat\n"):
        inputs = tokenizer(prompt, return_tensors="pt")
        assert inputs.input_ids[0].tolist() == [2, *reader.encode(prompt)]
        room = reader.context - inputs.input_ids.shape[1]
        config = DecodingConfig(beam=1, strategy="sample", temperature=0, max_length=room)
        writer = TextGenerator(reader, config, NullReporter())
        wanted = writer.decode_encoded_prompt(prompt) + writer.generate_texts(prompt)[0].text
        assert tokenizer.decode(model.generate(**inputs)[0], skip_special_tokens=True) == wanted
        breaks += wanted.count("\n") - prompt.count("\n")
    assert breaks > 4
