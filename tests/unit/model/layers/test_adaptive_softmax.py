"""Adaptive softmax and adaptive inputs: their equations, torch's own, ties, what is left out, what is refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save
from torch import Tensor, nn

from bench.kernels.flops import TokenCounts, forward_flops
from tests.rounding import assert_rounds_like
from tests.tiny_training import run, training, write_dataset
from tfm.data.batching.batches import pair_batch_from_ids
from tfm.model.build import build, num_parameters
from tfm.model.config import AdaptiveConfig, DropoutConfig, ModelConfig, StackConfig
from tfm.model.layers.adaptive_softmax import AdaptiveEmbedding, AdaptiveSoftmax, VocabularyCluster, make_clusters
from tfm.model.layers.linear import Linear, inference_precision
from tfm.model.layout import Layout
from tfm.pipeline.decoding.teacher_forcing import stepped_log_probs, target_log_probs
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.export import ctranslate2_unsupported_part
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.model_io.model_weights import drop_shared_tensors, load_weights, model_weight_shapes
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.tasks.criteria import CrossEntropy
from tfm.pipeline.tasks.losses import linear_cross_entropy, output_loss
from tfm.pipeline.tasks.masked_language_model import MaskedLanguageModel
from tfm.pipeline.tasks.translation import Translation
from tfm.tokenizer.special import BOS_ID, EOS_ID

V, E = 30, 16
STACK = StackConfig(layers=1, dim=E, heads=2, feed_forward_dim=24)
CUTOFFS = (6, 11, 19)


def layer(cutoffs: tuple[int, ...] = CUTOFFS, factor: int = 2, seed: int = 0) -> AdaptiveSoftmax:
    torch.manual_seed(seed)
    clusters = make_clusters(AdaptiveConfig(cutoffs=cutoffs, factor=factor), E, V)
    return AdaptiveSoftmax(clusters, compute_dtype=torch.float64).double()


def rows(number: int = 40, seed: int = 1) -> tuple[Tensor, Tensor]:
    """What enters the layer (N, E), and ids of every cluster (N,)."""
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(number, E, generator=generator, dtype=torch.float64)
    return hidden.requires_grad_(), torch.randint(V, (number,), generator=generator)


def network(task: str = "translation", architecture: str = "transformer", **changes: Any) -> Any:
    base = {"adaptive": {"cutoffs": CUTOFFS, "factor": 2}, "dropout": DropoutConfig(residual=0, embedding=0)}
    stacks = {"encoder": STACK, "decoder": STACK, "max_length": 32, "task": task, "architecture": architecture}
    config = ModelConfig.model_validate(base | stacks | changes)
    return build(config, source_vocab=V, target_vocab=V, seed=3).double()


def assert_gradients_agree(ours: Tensor, theirs: Tensor, of: list[Tensor]) -> None:
    for mine, wanted in zip(torch.autograd.grad(ours, of), torch.autograd.grad(theirs, of), strict=True):
        torch.testing.assert_close(mine, wanted, rtol=0, atol=1e-11)


def test_clusters_are_as_wide_as_the_paper_has_them() -> None:
    found = make_clusters(AdaptiveConfig(cutoffs=(20_000, 60_000)), 1024, 267_735)  # Baevski & Auli 2019, section 4.2
    assert found == [VocabularyCluster(20_000, 1024), VocabularyCluster(40_000, 256), VocabularyCluster(207_735, 64)]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_one_cluster_is_the_full_softmax(smoothing: float) -> None:
    output, (hidden, targets) = layer(()), rows()
    weight = output.words.weight
    torch.testing.assert_close(output(hidden), (hidden @ weight.T).log_softmax(-1), rtol=0, atol=1e-12)
    total, nll = output_loss(output, hidden, targets, smoothing=smoothing)
    want = F.cross_entropy(hidden @ weight.T, targets, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(total, want, rtol=1e-12, atol=0)
    torch.testing.assert_close(nll, F.cross_entropy(hidden @ weight.T, targets, reduction="sum"), rtol=1e-12, atol=0)
    assert_gradients_agree(total, want, [hidden, weight])


@given(st.sets(st.integers(1, V - 1), max_size=4), st.integers(1, 2))
@settings(max_examples=30, deadline=None)
def test_probabilities_add_up_to_one(cutoffs: set[int], factor: int) -> None:
    output = layer(tuple(sorted(cutoffs)), factor)
    with torch.no_grad():
        log_probs = output(rows(5)[0] * 3)
    assert log_probs.shape == (5, V)
    torch.testing.assert_close(log_probs.exp().sum(1), torch.ones(5, dtype=torch.float64), rtol=0, atol=1e-12)


def test_it_is_torchs_adaptive_softmax_with_the_same_weights() -> None:
    output, (hidden, targets) = layer(), rows()
    theirs = nn.AdaptiveLogSoftmaxWithLoss(E, V, cutoffs=list(CUTOFFS), div_value=2.0, dtype=torch.float64)
    with torch.no_grad():
        theirs.head.weight.copy_(output.head_weight())
        for own, tail in zip(theirs.tail, output.iterate_tails(), strict=True):
            own[0].weight.copy_(tail.project.weight)  # type: ignore[index]
            own[1].weight.copy_(tail.words.weight)  # type: ignore[index]
    torch.testing.assert_close(output(hidden), theirs.log_prob(hidden), rtol=0, atol=1e-12)
    total, nll = output_loss(output, hidden, targets, smoothing=0.0)
    want = theirs(hidden, targets).loss * len(targets)
    torch.testing.assert_close(total, want, rtol=1e-12, atol=0)
    assert nll == total
    assert_gradients_agree(total, want, [hidden])


@pytest.mark.parametrize("number", [1, 40, 700])
def test_the_loss_is_that_of_all_probabilities(number: int) -> None:
    output, (hidden, targets) = layer(), rows(number)
    total, _ = output_loss(output, hidden, targets, smoothing=0.0)
    want = F.nll_loss(output(hidden), targets, reduction="sum")
    torch.testing.assert_close(total, want, rtol=1e-12, atol=0)
    assert_gradients_agree(total, want, [hidden, *output.parameters()])  # zeros, not none, of a tail without rows


@pytest.mark.slow
def test_gradients_are_the_slopes() -> None:
    output, (hidden, targets) = layer((12, 20)), rows(4)
    parameters = list(output.parameters())

    def loss(given: Tensor, *_: Tensor) -> Tensor:
        return output_loss(output, given, targets, smoothing=0.0)[0]

    assert torch.autograd.gradcheck(loss, (hidden, *parameters))


def test_a_tail_is_computed_for_its_own_rows_alone() -> None:
    output, (hidden, targets) = layer(), rows()
    seen = []
    for tail in output.iterate_tails():
        tail.project.register_forward_hook(lambda _, inputs, __: seen.append(len(inputs[0])))
        tail.words.register_forward_hook(lambda *_: pytest.fail("all logits of a tail"))
    output_loss(output, hidden, targets, smoothing=0.0)
    bounds = (*CUTOFFS, V)
    assert seen == [
        int(((targets >= begin) & (targets < end)).sum()) for begin, end in zip(bounds, bounds[1:], strict=False)
    ]
    assert 0 < sum(seen) < len(targets)


def test_filler_counts_nowhere() -> None:
    output, (hidden, targets) = layer(), rows()
    counts = (torch.arange(len(targets)) < 25).double()
    found = output_loss(output, hidden, targets, smoothing=0.0, row_mask=counts)
    want = output_loss(output, hidden[:25], targets[:25], smoothing=0.0)
    for mine, wanted in zip(found, want, strict=True):
        torch.testing.assert_close(mine, wanted, rtol=1e-12, atol=0)
    assert_gradients_agree(found[0], want[0], [hidden, *output.parameters()])


def test_smoothing_is_refused_where_there_are_tails() -> None:
    with pytest.raises(ValueError, match="must be 0"):
        output_loss(layer(), *rows(), smoothing=0.1)


def test_low_precision_rounds_as_torchs_does() -> None:
    """Of products in bf16, beside torch's own under autocast."""
    made: list[list[Tensor]] = []
    for dtype, autocast in ((torch.bfloat16, False), (torch.float32, True), (torch.float64, False)):
        torch.manual_seed(0)
        output = AdaptiveSoftmax(
            make_clusters(AdaptiveConfig(cutoffs=(30, 60), factor=2), 64, 100), compute_dtype=dtype
        )
        hidden, targets = torch.randn(600, 64), torch.randint(100, (600,))
        if dtype is torch.float64:
            output, hidden = output.double(), hidden.double()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            log_probs = output(hidden.requires_grad_())
            total = -log_probs[torch.arange(600), targets].sum()
        if dtype is torch.bfloat16:
            total, _ = output_loss(output, hidden, targets, smoothing=0.0)
        made.append([total / 600, *torch.autograd.grad(total, [hidden, *output.parameters()])])
    for fast, plain, exact in zip(*made, strict=True):
        assert_rounds_like(fast, plain.float(), exact, products=torch.bfloat16)
        assert not torch.equal(fast, plain)


def test_the_loss_of_a_linear_layer_is_the_same_function_as_before() -> None:
    hidden, targets = rows()
    linear = Linear(E, V, bias=False, compute_dtype=torch.float32).double()
    for counts in (None, (targets > 3).double()):
        found = output_loss(linear, hidden, targets, smoothing=0.1, row_mask=counts)
        weight, dtype = linear.weight, linear.compute_dtype
        want = linear_cross_entropy(hidden, weight, targets, smoothing=0.1, compute_dtype=dtype, row_mask=counts)
        assert found[0] == want[0]
        assert found[1] == want[1]


def test_adaptive_inputs_are_their_equation() -> None:
    torch.manual_seed(0)
    sizes, widths = (6, 5, 8, 11), (16, 8, 4, 2)
    tables = [nn.Embedding(size, width) for size, width in zip(sizes, widths, strict=True)]
    inputs = AdaptiveEmbedding(tables, compute_dtype=torch.float64).double()
    assert (inputs.num_embeddings, inputs.embedding_dim) == (V, E)
    tokens = torch.tensor([0, 5, 6, 10, 11, 18, 19, 29, 7])
    found, wanted = inputs(tokens), []
    for token in tokens.tolist():
        number = sum(token >= cutoff for cutoff in CUTOFFS)
        vector = tables[number].weight[token - (0, *CUTOFFS)[number]]
        wanted.append(vector if number == 0 else inputs.project[number - 1].weight @ vector)  # type: ignore[operator]
    torch.testing.assert_close(found, torch.stack(wanted), rtol=0, atol=1e-12)
    weights = list(inputs.parameters())
    assert_gradients_agree(found.square().sum(), torch.stack(wanted).square().sum(), weights)
    inputs(torch.tensor([0, 1])).square().sum().backward()
    assert all(each.grad is not None for each in weights)
    for table in tables[1:]:
        assert not table.weight.grad.any()  # type: ignore[union-attr]


def test_one_cluster_of_inputs_is_the_plain_embedding() -> None:
    table = nn.Embedding(V, E)
    tokens = torch.arange(V)
    assert torch.equal(AdaptiveEmbedding([table], compute_dtype=torch.float32)(tokens), table(tokens))


@pytest.mark.parametrize("architecture", ["transformer", "decoder_only", "recurrent"])
@pytest.mark.parametrize("tie", ["none", "embeddings", "output", "all"])
def test_ties_share_each_clusters_tensor_and_outlive_a_file(tie: str, architecture: str) -> None:
    model = network(architecture=architecture, tie=tie)
    sides = [model.embedding] if architecture == "decoder_only" else [model.source_embedding, model.target_embedding]
    again = network(architecture=architecture, tie=tie, embedding_dim=E)
    for parameter in again.parameters():
        nn.init.zeros_(parameter)
    file = save(drop_shared_tensors(model.state_dict()))
    load_weights(again, load(file), Path("model"))
    for each in (model, again):
        parts = [each.embedding] if architecture == "decoder_only" else [each.source_embedding, each.target_embedding]
        outputs = [each.output.words.weight, *(tail.words.weight for tail in each.output.tails)]
        tables = [[table.weight for table in part.table.tables] for part in parts]
        same = [mine is theirs for mine, theirs in zip(tables[-1], outputs, strict=True)]
        assert same == [tie in ("output", "all")] * len(same)
        assert (tables[0][1] is tables[-1][1]) == (len(sides) == 1 or tie in ("embeddings", "all"))
    for mine, theirs in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_shapes_are_found_without_memory() -> None:
    config = ModelConfig.model_validate(
        {"encoder": STACK, "decoder": STACK, "adaptive": {"cutoffs": CUTOFFS, "factor": 2}}
    )
    model = build(config, source_vocab=V, target_vocab=V)
    found = model_weight_shapes(config, source_vocab=V, target_vocab=V)
    assert found == {name: tuple(each.shape) for name, each in drop_shared_tensors(model.state_dict()).items()}
    assert sum(torch.Size(each).numel() for each in found.values()) == num_parameters(model)


@pytest.mark.parametrize("inputs", [True, False])
@pytest.mark.parametrize("architecture", ["transformer", "decoder_only", "recurrent"])
def test_cached_steps_say_what_teacher_forcing_does(architecture: str, inputs: bool) -> None:
    adaptive = {"cutoffs": CUTOFFS, "factor": 2, "inputs": inputs}
    model = network(architecture=architecture, tie="all" if inputs else "none", adaptive=adaptive).eval()
    sources, targets = [[4, 8, 12, 25], [29, 7], [20]], [[29, 5, 12], [], [7, 11, 19, 4]]
    batch = pair_batch_from_ids(sources, targets)
    with torch.inference_mode():
        state = model.start(batch.source, Layout.from_lengths(batch.source_lengths))
    begins = torch.full((3,), BOS_ID)
    found = stepped_log_probs(model, state, begins, [[*target, EOS_ID] for target in targets])
    want = target_log_probs(model, sources, targets)
    assert [sum(each) for each in found] == pytest.approx(want.tolist(), abs=1e-10)


def test_inference_in_bf16_is_near() -> None:
    output, (hidden, _) = layer(), rows()
    with torch.inference_mode():
        exact = output.eval()(hidden)
        with inference_precision(output, torch.bfloat16):
            low = output(hidden)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        plain = output.float()(hidden.float())
    assert not torch.equal(low, exact)
    assert_rounds_like(low.float(), plain.float(), exact, products=torch.bfloat16)


def test_tasks_ask_for_it_by_the_same_name() -> None:
    model = network().train()
    batch = pair_batch_from_ids([[4, 15, 29], [7]], [[8], [9, 20, 28, 12]])
    padded, flat = (Translation(CrossEntropy(0.0), flat_rows).loss(model, batch) for flat_rows in (None, 16))
    layouts = Layout.from_lengths(batch.source_lengths), Layout.from_lengths(batch.target_lengths)
    logits = model.output(model(batch.source, layouts[0], batch.target_in, layouts[1]))
    want = F.cross_entropy(logits, batch.target_out, reduction="sum")
    for loss in (padded, flat):
        torch.testing.assert_close(loss.sum, want, rtol=1e-10, atol=0)
    assert_gradients_agree(padded.sum, flat.sum, list(model.parameters()))
    torch.testing.assert_close(Translation(CrossEntropy(0.0)).evaluate(model, batch).nll, want, rtol=1e-10, atol=0)
    masked = network("masked_language_model", "encoder_only").train()
    masked.dropout_rng.seed_batch(1, 1)
    loss = MaskedLanguageModel(CrossEntropy(0.0)).loss(masked, batch)
    loss.sum.backward()
    assert all(parameter.grad is not None for parameter in masked.parameters())


def test_a_training_publishes_a_model_that_loads(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "dataset")
    stack = StackConfig(layers=1, dim=16, heads=2, feed_forward_dim=24)
    config = ModelConfig.model_validate(
        {"encoder": stack, "decoder": stack, "adaptive": {"cutoffs": (6, 10), "factor": 2}, "max_length": 32}
    )
    validation = {"every_steps": 4, "bleu": False}
    exact = training(max_steps=4, label_smoothing=0.0, validation=validation)
    loaded = load_model(run(dataset, tmp_path / "run", exact, model=config))
    assert loaded.model.output.tails[1].words.weight is loaded.model.source_embedding.table.tables[2].weight
    with pytest.raises(RecipeError, match=r"label_smoothing = 0\.1 .* must be 0"):
        run(dataset, tmp_path / "smoothed", training(), model=config)
    beyond = config.model_copy(update={"adaptive": AdaptiveConfig(cutoffs=(6, 40), factor=2)})
    with pytest.raises(RecipeError, match="begins at id 40, and the vocabulary has 14 pieces"):
        run(dataset, tmp_path / "beyond", exact, model=beyond)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "not ascending": ({"adaptive": {"cutoffs": (9, 9)}}, "cutoffs must ascend, not 9, 9"),
    "classes": (
        {"adaptive": {"cutoffs": (9,)}, "task": "classification", "architecture": "encoder_only"},
        'not "classification"',
    ),
    "tags": ({"adaptive": {}, "task": "tagging", "architecture": "encoder_only"}, 'not "tagging"'),
    "tied without inputs": ({"adaptive": {"cutoffs": (9,), "inputs": False}}, "adaptive.inputs = true"),
    "no width left": ({"adaptive": {"cutoffs": (9, 10, 11), "factor": 4}, "embedding_dim": 32}, "factor 4"),
    "no width left beside": (
        {"adaptive": {"cutoffs": (9, 10)}, "encoder": StackConfig(dim=8, heads=2), "tie": "none"},
        "embeddings 8 wide",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_combine_is_refused_with_its_reason(case: str) -> None:
    changes, reason = REFUSED[case]
    with pytest.raises(ValueError) as caught:
        ModelConfig.model_validate(changes)
    assert reason in str(caught.value)


def test_a_recipe_that_smooths_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "adaptive.toml"
    file.write_text("data.path = 'a'\nmodel.adaptive.cutoffs = [1000]\n", "utf-8")
    with pytest.raises(RecipeError, match=r"label_smoothing = 0\.1 .* must be 0"):
        load_recipe(file)
    recipe = load_recipe(file, ["training.label_smoothing=0"])
    assert recipe.model.adaptive == AdaptiveConfig(cutoffs=(1000,))
    assert recipe.model.has_adaptive_tails
    assert load_recipe(file, ["model.adaptive.cutoffs=[]"]).training.label_smoothing == 0.1


def test_what_has_no_room_for_it_says_so() -> None:
    config = ModelConfig(encoder=STACK, decoder=STACK, adaptive=AdaptiveConfig(cutoffs=(9,)))
    assert ctranslate2_unsupported_part(config) == "an adaptive softmax"
    with pytest.raises(RecipeError, match=r"model\.adaptive = .* not counted"):
        forward_flops(config, V, TokenCounts.from_lengths([(3, 5)]))
