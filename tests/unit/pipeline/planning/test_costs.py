"""The arithmetic of a plan, counted a second time: by hand, by the paper's own figures, and by torch's counter."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from tfm.model.build import build
from tfm.model.config import ModelConfig
from tfm.model.layers.lora import add_lora
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.model_weights import model_weight_shapes
from tfm.pipeline.planning.corpus_size import assume_corpus_and_vocabularies, batches_and_epochs
from tfm.pipeline.planning.costs import memory_by_use, num_optimizer_numbers
from tfm.pipeline.planning.devices import ASSUMED_PEAK_SHARES, DEVICES, parse_devices
from tfm.pipeline.planning.operations import UpdateSizes, flop_of_update
from tfm.pipeline.planning.run_plan import RunPlan, make_plan
from tfm.pipeline.recipes.recipe import Recipe, load_recipe
from tfm.pipeline.training.optimizers import make_optimizer
from tfm.pipeline.training_config import TrainingConfig

RECIPES = Path(__file__).parents[4] / "recipes"
WMT14_PAIRS, WMT14_TOKENS = 4_500_000, 28.0


def plan_of(recipe: Recipe, devices: str, **more: float) -> RunPlan:
    """The plan of a recipe for a corpus of the size of WMT 2014."""
    parsed = parse_devices(devices)
    corpus, source, target = assume_corpus_and_vocabularies(recipe, WMT14_PAIRS, WMT14_TOKENS, parsed[0])
    return make_plan(recipe, corpus, (source, target), parsed, None, price=more.get("price"))


def test_operations_of_the_base_model_by_hand() -> None:
    model, vocab, tokens = ModelConfig(), 32_000, 1000.0
    shapes = model_weight_shapes(model, source_vocab=vocab, target_vocab=vocab)
    found = flop_of_update(shapes, model, TrainingConfig(), UpdateSizes(tokens, tokens, tokens, 0, 0, 4096, 30), vocab)
    width, inner = 512, 2048
    encoder = 6 * (4 * width**2 + 2 * width * inner)
    decoder = 6 * (8 * width**2 + 2 * width * inner) + vocab * width
    assert found == 6 * tokens * (encoder + decoder)
    assert found / tokens / 1e6 == pytest.approx(368, rel=0.03), "operations a target token, measured elsewhere"
    with_attention = flop_of_update(
        shapes, model, TrainingConfig(), UpdateSizes(tokens, tokens, tokens, 30, 30, 4096, 30), vocab
    )
    assert with_attention - found == 3 * 4 * width * 6 * tokens * (30 + 30 + 30)


@pytest.mark.slow
def test_operations_of_a_layer_are_those_that_torch_counts() -> None:
    """One encoder layer of torch's own, whose products are counted while they run; its attention is counted by hand."""
    width, inner, rows = 32, 64, 5
    stack = {"layers": 1, "dim": width, "heads": 4, "feed_forward_dim": inner}
    model = ModelConfig.model_validate({"task": "classification", "architecture": "encoder_only", "encoder": stack})
    every = model_weight_shapes(model, source_vocab=20, target_vocab=3)
    shapes = {name: shape for name, shape in every.items() if "encoder.0" in name}
    layer = nn.TransformerEncoderLayer(width, 4, inner, batch_first=True, dropout=0.0)
    with FlopCounterMode(display=False) as counter:
        layer(torch.randn(1, rows, width, requires_grad=True)).sum().backward()
    found = flop_of_update(shapes, model, TrainingConfig(), UpdateSizes(rows, 0, 0, rows, 0, 64, 1), 3)
    assert found == counter.get_total_flops() + 3 * 4 * width * rows * rows


def test_the_twelve_hours_of_the_paper() -> None:
    recipe = load_recipe(RECIPES / "wmt14-en-de.toml", ["training.accumulate=1"])
    made = plan_of(recipe, "8 x P100", price=2.0)
    assert made.corpus.updates == 100_000
    assert 1 / 1.5 < made.total_seconds / (12 * 3600) < 1.5
    assert made.parameters / 1e6 == pytest.approx(65, rel=0.03)
    assert made.cost == pytest.approx(2.0 * 8 * made.total_seconds / 3600)
    assert made.energy_kwh == pytest.approx(8 * 300 * made.total_seconds / 3.6e6)
    assert any(f"{ASSUMED_PEAK_SHARES['fp32']:.0%} of P100" in each for each in made.assumptions)


def test_the_base_model_on_an_h200_is_as_measured() -> None:
    """269,275 target tokens a second, in updates of 23,593 of them (docs/results/gpus.md)."""
    recipe = load_recipe(RECIPES / "transformer-base.toml", [])
    made = plan_of(recipe, "H200")
    assert made.total_seconds / made.corpus.updates == pytest.approx(23_593 / 269_275, rel=0.3)


def test_more_devices_with_fewer_parts_take_the_same_work_in_less_time() -> None:
    one, eight = (
        plan_of(load_recipe(RECIPES / "wmt14-en-de.toml", [f"training.accumulate={parts}"]), devices)
        for parts, devices in ((8, "H100"), (1, "8 x H100"))
    )
    assert one.flop_per_update == pytest.approx(eight.flop_per_update)
    assert one.total_seconds == pytest.approx(8 * eight.total_seconds)


def test_what_does_not_fit_is_said_with_keys_that_make_it_fit() -> None:
    large = ["data.batch_tokens=60000", "training.accumulate=1"]
    recipe = load_recipe(RECIPES / "wmt14-en-de-big.toml", large)
    made = plan_of(recipe, "T4")
    (remedy,) = made.remedies
    keys = [each.replace(" ", "") for each in remedy.split(", ")]
    assert not plan_of(load_recipe(RECIPES / "wmt14-en-de-big.toml", keys), "T4").remedies
    assert plan_of(recipe, "H200").remedies == ()
    assert made.as_json()["fits"] is False


@pytest.mark.parametrize(("optimizer", "copies"), [("adam", 2), ("adagrad", 1), ("sgd", 1)])
def test_memory_of_an_optimizer(optimizer: str, copies: int) -> None:
    model = ModelConfig()
    shapes = model_weight_shapes(model, source_vocab=100, target_vocab=100)
    config = TrainingConfig.model_validate({"optimizer": {"name": optimizer}})
    network = nn.Linear(7, 3)
    optimizers = {"adam": torch.optim.Adam, "adagrad": torch.optim.Adagrad, "sgd": torch.optim.SGD}
    extra = {"momentum": 0.9} if optimizer == "sgd" else {}
    step = optimizers[optimizer](network.parameters(), lr=0.1, **extra)
    network(torch.ones(2, 7)).sum().backward()
    step.step()
    kept = sum(each.numel() for state in step.state.values() for each in state.values() if each.dim())
    assert kept == copies * sum(each.numel() for each in network.parameters())
    memory = memory_by_use(shapes, model, config, UpdateSizes(1, 1, 1, 1, 1, 10, 1), 100, low_precision=False)
    assert memory["optimizer"] == copies * memory["weights"]


@pytest.mark.parametrize("lora", [False, True])
@pytest.mark.few(1)
def test_muon_keeps_one_number_of_a_matrix_within_layers_and_two_of_others(lora: bool) -> None:
    size = {"dim": 32, "heads": 2, "feed_forward_dim": 48}
    model = ModelConfig.model_validate({"encoder": {"layers": 1, **size}, "decoder": {"layers": 2, **size}})
    network = build(model, source_vocab=50, target_vocab=50)
    shapes = model_weight_shapes(model, source_vocab=50, target_vocab=50)
    if lora:
        add_lora(network, 3, 3.0, None, seed=1)
    settings = {"optimizer": {"name": "muon"}, **({"init_from": "x", "lora": {"rank": 3}} if lora else {})}
    config = TrainingConfig.model_validate(settings)
    optimizer = make_optimizer(network, config.optimizer)
    for each in network.parameters():
        each.grad = torch.zeros_like(each) if each.requires_grad else None
    optimizer.step()
    kept = sum(each.numel() for state in optimizer.state.values() for each in state.values() if each.dim())
    assert kept == num_optimizer_numbers(shapes, config)


@pytest.mark.parametrize(
    "text", ["", "8 x", "x H100", "0 x H100", "8 x Q9", "1000000 x H100", "-1 x H100", "8.5 x H100"]
)
def test_what_is_no_device_is_refused(text: str) -> None:
    with pytest.raises(RecipeError, match="--on"):
        parse_devices(text)


def test_devices_are_read_as_people_write_them() -> None:
    for text in ("8 x H100", "8xH100".replace("x", "x "), "8 h100", " 8 × H100 "):
        assert parse_devices(text) == (8, DEVICES["H100"])
    assert parse_devices("L4") == (1, DEVICES["L4"])


def test_devices_share_weights_and_layers_are_computed_again_as_the_recipe_says() -> None:
    model = ModelConfig()
    shapes = model_weight_shapes(model, source_vocab=32_000, target_vocab=32_000)

    def memory(devices: int, **settings: object) -> dict[str, float]:
        config, sizes = TrainingConfig.model_validate(settings), UpdateSizes(1, 1, 1, 1, 1, 1000, 1)
        return memory_by_use(shapes, model, config, sizes, 100, low_precision=False, num_devices=devices)

    whole, full, optimizer = (memory(4, shard=shard) for shard in ("none", "full", "optimizer"))
    for holder in ("weights", "gradients", "optimizer"):
        assert full[holder] == optimizer[holder] == whole[holder] / 4
    layer = sum(torch.Size(shape).numel() for name, shape in shapes.items() if name.startswith("decoder.0."))
    others = sum(torch.Size(shape).numel() for name, shape in shapes.items() if name.split(".")[1].isdigit() is False)
    assert full["gathered weights"] == 4 * 2 * (layer + others)
    assert optimizer["gathered weights"] == whole["weights"] + 4 * (layer + others)
    assert whole["gathered weights"] == memory(1, shard="full")["gathered weights"] == 0
    again = memory(1, recompute=True)["activations"]
    inputs = 4 * 1000 * 12 * 512
    assert again - inputs == pytest.approx(4 * 1000 * (15 * 512 + 2 * 2048))
    assert again < whole["activations"] / 4


def test_weights_that_do_not_fit_are_to_be_shared() -> None:
    keys = ["model.encoder.dim=8192", "model.decoder.dim=8192", "training.accumulate=1", "model.encoder.heads=64"]
    recipe = load_recipe(RECIPES / "wmt14-en-de-big.toml", [*keys, "model.decoder.heads=64"])
    assert any('training.shard = "full"' in each for each in plan_of(recipe, "8 x T4").remedies)
    assert not any("training.shard" in each for each in plan_of(recipe, "T4").remedies)


@pytest.mark.parametrize(
    ("settings", "copies"), [((), 3), (("training.optimizer.name=sgd",), 2), (("training.ema=0.9",), 4)]
)
def test_checkpoints_have_weights_optimizer_and_moving_average(settings: tuple[str, ...], copies: int) -> None:
    recipe = load_recipe(RECIPES / "transformer-base.toml", list(settings))
    made, keep = plan_of(recipe, "H100"), recipe.training.keep
    assert made.disk["checkpoints"] == 4 * copies * made.parameters * (keep.last + keep.best)


def test_batches_of_an_update_are_fewer_where_an_epoch_ends_and_more_where_updates_grow() -> None:
    plain, growing = (
        TrainingConfig.model_validate({"accumulate": 4, **more})
        for more in ({}, {"batch_growth": {"factor": 2, "steps": [3]}})
    )
    assert batches_and_epochs(plain, lambda _: 10, 6, 1) == (20, 2)
    assert batches_and_epochs(plain, lambda _: 10, 4, 1) == (14, 1.4)
    assert batches_and_epochs(growing, lambda _: 10, 5, 1) == (20, 2)
    assert batches_and_epochs(plain, lambda _: 10, 3, 2) == (18, 1.8)
    assert batches_and_epochs(plain, [10, 6, 9].__getitem__, 5, 1) == (16, 2), "epochs of 3 updates and of 2"


def test_a_dataset_of_images_takes_their_pixels_and_maps_take_memory() -> None:
    recipe, on = load_recipe(RECIPES / "captions.toml", ()), parse_devices("L4")
    corpus, source, target = assume_corpus_and_vocabularies(recipe, 1000, 12.0, 1)
    made = make_plan(recipe, corpus, (source, target), on, None, price=None)
    assert made.disk["dataset"] == 1000 * (48 * 48 * 3 + 4 * 13 + 16)
    wider = recipe.model.vision.model_copy(update={"blocks": 3}) if recipe.model.vision is not None else None
    changed = recipe.model_copy(update={"model": recipe.model.model_copy(update={"vision": wider})})
    deeper = make_plan(changed, corpus, (source, target), on, None, price=None)
    numbers = 4 * (2 * 32 * 24**2 + 2 * 64 * 12**2 + 2 * 128 * 6**2)
    assert deeper.memory["activations"] - made.memory["activations"] == pytest.approx(2 * numbers * 64), (
        "of 64 images, in bf16"
    )
    assert deeper.flop_per_update > 2 * made.flop_per_update
