"""Training of a head to align: its loss against plain loops, its gradients, its links, and the trainings it changes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.invariants.test_resume import SignalAt
from tests.killing import result
from tests.tiny_model import tiny_model
from tests.tiny_training import MODEL, run, training, write_dataset
from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.batching.batches import pair_batch_from_ids
from tfm.data.dataset.split import Split, TokenIdColumn
from tfm.data.dataset.store import load_dataset
from tfm.model.attention.explicit_attention import ExplicitAttention
from tfm.model.attention.relative_positions import AttentionPositions
from tfm.model.attention.scores import SCORES
from tfm.model.layers.dropout import Dropout, DropoutRng
from tfm.model.masks import Mask
from tfm.pipeline.alignment.cross_attention import cross_attentions
from tfm.pipeline.alignment.extraction import AlignmentHead, SentencePair, WordAligner, link_by_argmax
from tfm.pipeline.alignment.guided_loss import GuidedAlignmentLoss, log_attention
from tfm.pipeline.alignment.pharaoh import counted_from_one_warning
from tfm.pipeline.alignment.piece_links import PieceLinks, link_pieces, read_piece_links
from tfm.pipeline.alignment.word_pieces import attention_between_words
from tfm.pipeline.config import GuidedAlignmentConfig
from tfm.pipeline.errors import DataError, RecipeError, StoppedError
from tfm.pipeline.model_io.loaded_model import LoadedModel, load_model
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.tasks.criteria import CrossEntropy, RDrop
from tfm.pipeline.tasks.task import LossSums
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.training.checkpoints.unfinished_model import load_checkpoint
from tfm.tokenizer.tokenizer import Tokenizer

TEXTS = [
    ("two dogs sit by the sea", "a cat and a dog"),
    ("a dog runs", "the sea is cold ! asleep"),
    ("snow", "two dogs sit , asleep ."),
]
WORD_LINKS = [{(0, 3), (1, 4), (1, 3), (5, 0)}, set(), {(0, 0), (0, 5)}]


def pieces_and_links(loaded: LoadedModel) -> tuple[list[list[int]], list[list[int]], list[list[tuple[int, int]]]]:
    """Ids of both sides of TEXTS, and some links (target, source) between pieces."""
    sources, targets = (loaded.source_tokenizer.encode_batch([pair[side] for pair in TEXTS]) for side in (0, 1))
    draw = np.random.default_rng(3)
    links = [
        sorted((row, column) for row in range(len(target)) for column in range(len(source)) if draw.random() < chance)
        for source, target, chance in zip(sources, targets, (0.3, 0.0, 0.6), strict=True)
    ]
    return sources, targets, links


def make_guide(links: list[list[tuple[int, int]]], **changes: Any) -> GuidedAlignmentLoss:
    found = PieceLinks(
        *(TokenIdColumn.from_lists([[link[side] for link in each] for each in links]) for side in (0, 1))
    )
    config = GuidedAlignmentConfig(links="links", **changes)
    return GuidedAlignmentLoss(found, config, config.choose_layer(2))


def plain_loss(loaded: LoadedModel, guide: GuidedAlignmentLoss, links: list[list[tuple[int, int]]]) -> float:
    """The loss by loops over the attention that alignments are read from."""
    sources, targets, _ = pieces_and_links(loaded)
    total = 0.0
    for row, layers in cross_attentions(loaded, sources, targets):
        for target, source in links[row]:
            weights = whole_attention(loaded, sources[row], targets[row])[guide.layer - 1]
            share = 1 / sum(each == target for each, _ in links[row])
            total -= share * np.log(weights[0, target + guide.config.is_shifted, source])
        assert len(layers) == 2
    return total


def whole_attention(loaded: LoadedModel, source: list[int], target: list[int]) -> list[np.ndarray]:
    """The weights (H, T + 1, S) of each layer, with those of the end token added to none."""
    ((_, layers),) = cross_attentions(loaded, [source], [target])
    return layers


@pytest.mark.parametrize("changes", [{}, {"layer": 2}, {"row": "predicts"}, {"weight": 3.0}])
def test_the_loss_is_that_of_plain_loops(changes: dict[str, Any]) -> None:
    """Beside a translation whose loss, and whose hidden states, are the same to the bit."""
    loaded = tiny_model(dtype=torch.float64)
    sources, targets, links = pieces_and_links(loaded)
    guide, batch = make_guide(links, **changes), pair_batch_from_ids(sources, targets)
    plain = Translation(CrossEntropy(0.1)).loss(loaded.model, batch)
    guided = Translation(CrossEntropy(0.1), guide=guide).loss(loaded.model, batch)
    assert torch.equal(guided.nll, plain.nll)
    assert guided.count == plain.count
    wanted = guide.config.weight * plain_loss(loaded, guide, links)
    assert wanted > 0
    assert (guided.sum - plain.sum).item() == pytest.approx(wanted, rel=1e-9)
    twice = Translation(RDrop(0.1, 2.0), guide=guide).loss(loaded.model, batch)
    assert (twice.sum - plain.sum).item() == pytest.approx(wanted, rel=1e-9)


def test_a_batch_adds_up_to_its_rows() -> None:
    loaded = tiny_model(dtype=torch.float64)
    sources, targets, links = pieces_and_links(loaded)
    guide = make_guide(links)

    def loss(rows: list[int]) -> LossSums:
        batch = pair_batch_from_ids([sources[row] for row in rows], [targets[row] for row in rows])
        own = make_guide([links[row] for row in rows])
        return Translation(CrossEntropy(0.1), guide=own).loss(loaded.model, batch)

    alone = [loss([row]).sum.item() for row in range(len(TEXTS))]
    assert loss([0, 1, 2]).sum.item() == pytest.approx(sum(alone), rel=1e-12)
    assert loss([2, 0, 2]).sum.item() == pytest.approx(alone[2] * 2 + alone[0], rel=1e-12)
    assert guide.links.num_linked_rows == 2


@pytest.mark.slow
def test_gradients_are_finite_differences() -> None:
    """The gradient of every parameter of the network is that of finite differences along a random direction."""
    loaded = tiny_model(dtype=torch.float64)
    sources, targets, links = pieces_and_links(loaded)
    task, batch = (
        Translation(CrossEntropy(0.0), guide=make_guide(links, weight=2.0)),
        pair_batch_from_ids(sources, targets),
    )
    parameters = list(loaded.model.parameters())
    gradients = torch.autograd.grad(task.loss(loaded.model, batch).sum, parameters)
    generator = torch.Generator().manual_seed(4)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        sums = []
        with torch.no_grad():
            for step in (1e-6, -2e-6):
                parameter.add_(direction, alpha=step)
                sums.append(task.loss(loaded.model, batch).sum.item())
            parameter.add_(direction, alpha=1e-6)
        assert (sums[0] - sums[1]) / 2e-6 == pytest.approx((gradient * direction).sum().item(), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("groups", [1, 4])
def test_the_attention_of_one_head_is_that_of_the_equation(score: str, groups: int) -> None:
    generator = torch.Generator().manual_seed(1)
    query, key = (torch.randn(2, heads, 3, 5, generator=generator).double() for heads in (4, groups))
    allowed = torch.tensor([[True, True, True], [True, False, True]])[:, None, None]
    equation = ExplicitAttention(SCORES[score](4, 5), AttentionPositions(), Dropout(0.0, DropoutRng())).double()
    kept: list[Tensor] = []
    equation.dropout.register_forward_hook(lambda *given: kept.append(given[2]))
    equation(query, key, key, Mask(allowed=allowed), torch.empty(0), torch.empty(0))
    for head in range(4):
        found = log_attention(equation, query, key, Mask(allowed=allowed), head)
        torch.testing.assert_close(found.exp(), kept[0][:, head], rtol=1e-12, atol=1e-12)


WORDS = st.lists(st.integers(0, 4), max_size=8).map(sorted)


@given(
    source_words=WORDS,
    target_words=WORDS,
    links=st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=8),
)
def test_links_of_pieces_are_links_of_words(
    source_words: list[int], target_words: list[int], links: frozenset[tuple[int, int]]
) -> None:
    """Two pieces are linked where their words are; read back by word, each word has a link that was given."""
    found = link_pieces(links, source_words, target_words)
    pairs = [(target, source) for target in range(len(target_words)) for source in range(len(source_words))]
    assert found == [pair for pair in pairs if (source_words[pair[1]], target_words[pair[0]]) in links]
    weights = np.zeros((len(target_words), len(source_words)))
    for target, source in found:
        weights[target, source] = 1 / sum(each == target for each, _ in found)
    if weights.size:
        read = link_by_argmax(attention_between_words(weights, target_words, source_words))
        assert read <= links
        assert {target for _, target in read} == {target_words[target] for target, _ in found}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("guided") / "data")


@pytest.fixture
def links(dataset: Path, tmp_path: Path) -> Path:
    """Each word of a copied text with itself."""
    lengths = load_dataset(dataset).train.source_lengths
    lines = [" ".join(f"{place}-{place}" for place in range(length)) for length in lengths]
    (tmp_path / "links").write_text("\n".join([*lines, ""]), "utf-8")
    return tmp_path / "links"


def test_links_are_read_of_each_row(dataset: Path, links: Path) -> None:
    data = load_dataset(dataset)
    found = read_piece_links(links, data.train, load_tokenizer_pair(data.tokenizer_folder))
    assert found.num_linked_rows == len(found) == len(data.train)
    pair, target, source = found.links_of_rows(np.array([3, 0]))
    assert np.array_equal(target, source)
    lengths = data.train.source_lengths[[3, 0]]
    assert np.array_equal(np.bincount(pair), lengths)


@pytest.mark.parametrize("first", [0, 1])
def test_links_that_spare_every_first_word_are_known(dataset: Path, links: Path, first: int) -> None:
    data = load_dataset(dataset)
    lengths = data.train.source_lengths
    lines = [" ".join(f"{place}-{place}" for place in range(first, length)) for length in lengths]
    links.write_text("\n".join([*lines, ""]), "utf-8")
    found = read_piece_links(links, data.train, load_tokenizer_pair(data.tokenizer_folder))
    assert found.from_one is bool(first)
    assert (counted_from_one_warning(found.num_linked_rows, from_one=found.from_one) is None) is not bool(first)


def test_links_of_other_pairs_are_refused(dataset: Path, links: Path) -> None:
    data = load_dataset(dataset)
    lines = links.read_text("utf-8").splitlines()
    for text, reason in (
        (lines[:-1], "links: has 59 lines, but the dataset has 60 training pairs"),
        ([*lines, "", ""], "links: has 62 lines"),
        ([*lines[:4], "0-8", *lines[5:]], "links, line 5: links word 0 with word 8, counted from 0"),
        (["0-0", "", *lines[2:4], "0-8", *lines[5:]], "are the links of these texts"),
        (["1-1", "", "", "", "1-8", *lines[5:]], "links, line 5: .*does the file count from 1"),
        ([*lines[:4], "0:8", *lines[5:]], "links, line 5: '0:8' is no link"),
        ([""] * 60, "links: has no link"),
    ):
        links.write_text("\n".join([*text, ""]), "utf-8")
        with pytest.raises(DataError, match=reason):
            read_piece_links(links, data.train, load_tokenizer_pair(data.tokenizer_folder))


ASKED: dict[str, Any] = {"max_steps": 9, "log_every": 1, "validation": {"every_steps": 9, "bleu": False}}


@pytest.mark.slow
def test_a_training_resumes_to_the_same_bits(dataset: Path, links: Path, tmp_path: Path) -> None:
    asked = {**ASKED, "guided_alignment": {"links": str(links), "weight": 1.0}}
    run(dataset, tmp_path / "straight", training(**asked))
    with pytest.raises(StoppedError):
        run(dataset, tmp_path / "stopped", training(**asked), reporter=SignalAt(4, 15))  # type: ignore[arg-type]
    run(dataset, tmp_path / "stopped", training(**asked))
    assert result(tmp_path / "stopped") == result(tmp_path / "straight")
    run(dataset, tmp_path / "plain", training(**ASKED))
    guided, plain = (
        [line for line in result(tmp_path / name)[1] if line["event"] == "train"] for name in ("straight", "plain")
    )
    assert guided[0]["nll"] == plain[0]["nll"]
    assert guided[0]["loss"] > plain[0]["loss"]


@pytest.mark.slow
def test_the_head_aligns_and_is_taken_from_then_on(dataset: Path, links: Path, tmp_path: Path) -> None:
    asked = {**ASKED, "max_steps": 80, "validation": {"every_steps": 80, "bleu": False}}
    asked["guided_alignment"] = {"links": str(links), "weight": 1.0}
    folder = run(dataset, tmp_path / "guided", training(**asked))
    loaded = load_model(folder, "cpu")
    aligner = WordAligner(loaded)
    head = aligner.choose_head()
    assert head == AlignmentHead(1, 1, shifted=True)
    assert aligner.choose_head(1) == AlignmentHead(1)
    (found,) = aligner.align([SentencePair("one two three", "one two three")], [head])[0]
    assert found == {(0, 0), (1, 1), (2, 2)}
    assert loaded.artifact is not None
    assert "links" in (folder / "manifest.json").read_text("utf-8")


def test_a_checkpoint_has_the_head_that_is_trained(dataset: Path, links: Path, tmp_path: Path) -> None:
    guided = {"links": str(links), "layer": 1, "row": "predicts"}
    folder = run(dataset, tmp_path / "guided", training(**{**ASKED, "max_steps": 1, "guided_alignment": guided}))
    checkpoint, published = load_checkpoint(tmp_path / "guided", None, "cpu"), load_model(folder, "cpu")
    assert checkpoint.guided == published.guided is not None
    assert WordAligner(checkpoint).choose_head() == AlignmentHead(1, 1)


def test_where_no_head_can_be_trained_it_is_refused(tmp_path: Path) -> None:
    recipe = tmp_path / "some.toml"
    recipe.write_text('data.path = "corpora"\nmodel.decoder = { layers = 3 }\n', "utf-8")
    base = ("training.guided_alignment.links=links",)
    found = load_recipe(recipe, base).training.guided_alignment
    assert found is not None
    assert (found.choose_layer(3), found.choose_layer(1), found.weight) == (2, 1, 0.05)
    for more, reason in (
        (("model.architecture=decoder_only",), "trains a head of a Transformer's cross-attention"),
        (("training.guided_alignment.layer=4",), "the decoder has layers 1 to 3"),
        (("training.layout=flat",), "its kernels keep no attention weights"),
        (("training.recompute=true",), "a layer that is computed again"),
        (("training.shard=full",), "a gathered layer"),
        (("training.bpe_dropout=0.1",), "links are between the pieces of the dataset"),
    ):
        with pytest.raises(RecipeError, match=reason):
            load_recipe(recipe, (*base, *more))


def test_models_without_it_stay_as_they_were(dataset: Path, tmp_path: Path) -> None:
    """Neither the plan of a training nor its manifest has the key."""
    folder = run(dataset, tmp_path / "plain", training(**{**ASKED, "max_steps": 1}), model=MODEL)
    assert "guided_alignment" not in (folder / "manifest.json").read_text("utf-8")
    assert load_model(folder, "cpu").guided is None


Tokenizers = tuple[Tokenizer, Tokenizer]


@pytest.fixture(scope="module")
def links_of_three(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Split, Tokenizers]:
    data = load_dataset(dataset)
    split = data.train.select_training_rows(np.arange(3))
    return tmp_path_factory.mktemp("three") / "links", split, load_tokenizer_pair(data.tokenizer_folder)


@settings(max_examples=30)
@given(content=st.binary(max_size=60))
def test_any_file_of_links_is_read_or_refused(content: bytes, links_of_three: tuple[Path, Split, Tokenizers]) -> None:
    """Any bytes: links of three pairs, or an error with the file in it."""
    file, split, tokenizers = links_of_three
    file.write_bytes(content)
    try:
        problem = "links" if read_piece_links(file, split, tokenizers).num_linked_rows else ""
    except DataError as error:
        problem = str(error)
    assert "links" in problem


def test_links_of_three_pairs(links_of_three: tuple[Path, Split, Tokenizers]) -> None:
    file, split, tokenizers = links_of_three
    file.write_text("0-0\n\n0-0\n", "utf-8")
    assert read_piece_links(file, split, tokenizers).num_linked_rows == 2
