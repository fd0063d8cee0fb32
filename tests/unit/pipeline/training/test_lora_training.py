"""A training of adapters: the model stays, it resumes to the same bits, and merged or beside it is the same model."""

import json
import shutil
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.invariants.test_resume import SignalAt
from tests.killing import result
from tests.tiny_artifact import signed
from tests.tiny_model import tiny_model
from tests.tiny_training import MODEL, in_float64, run, training, write_dataset
from tfm.model.layers.lora import LoraLinear, add_lora
from tfm.pipeline.decoding.teacher_forcing import target_log_probs
from tfm.pipeline.errors import DataError, RecipeError, StoppedError
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.recipes.recipe import load_recipe
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.training import session
from tfm.pipeline.training.checkpoints.unfinished_model import load_checkpoint
from tfm.pipeline.training.optimizers import make_optimizer
from tfm.pipeline.training_config import TrainingConfig
from tfm.pipeline.update_config import OptimizerConfig

SHORT = {"max_steps": 6, "validation": {"every_steps": 3}}
LORA = {"rank": 2, "alpha": 6.0, "products": ["query_key_value", "outer"]}


@pytest.fixture(scope="module", autouse=True)
def _no_curves():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "draw_curves", lambda metrics, file: None)
        yield


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return write_dataset(tmp_path_factory.mktemp("data") / "dataset")


@pytest.fixture(scope="module")
def first(dataset, tmp_path_factory):
    return run(dataset, tmp_path_factory.mktemp("first"), training(max_steps=8))


def config_of(first, **changes):
    return training(**SHORT, init_from=str(first), **changes)


@pytest.fixture(scope="module")
def adapted(dataset, first, tmp_path_factory):
    """A training published as an adapter beside the model that stayed."""
    out = tmp_path_factory.mktemp("adapted")
    run(dataset, out, config_of(first, lora={**LORA, "publish": "adapter"}))
    return out


def test_the_model_beside_the_adapter_is_the_one_it_began_with(first, adapted):
    for name in ("config.json", "tokenizer.json"):
        assert (adapted / "model" / name).read_bytes() == (first / name).read_bytes()
    before, after = (load_file(each / "model.safetensors") for each in (first, adapted / "model"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    adapter = load_file(adapted / "model" / "adapter.safetensors")
    assert json.loads((adapted / "model" / "adapter.json").read_text()) == {"rank": 2, "alpha": 6.0}
    assert {name.rpartition(".")[2] for name in adapter} == {"a", "b"}
    assert all(each.abs().max() > 0 for each in adapter.values())
    loaded = load_model(adapted / "model", "cpu").model.state_dict()
    changed = {name for name in after if not torch.equal(loaded[name], after[name])}
    assert changed == {f"{name.rpartition('.')[0]}.weight" for name in adapter}


@pytest.mark.slow
def test_merged_it_is_adapter_and_model_to_1e_12_in_float64(dataset, tmp_path):
    """Two trainings to the same bits, published in both ways; the sum is computed here once more, by itself."""
    with in_float64():
        first = run(dataset, tmp_path / "first", training(max_steps=2))
        ways = {
            way: run(dataset, tmp_path / way, config_of(first, lora={**LORA, "publish": way}))
            for way in ("merged", "adapter")
        }
    merged, frozen = (load_file(ways[way] / "model.safetensors") for way in ways)
    adapter = load_file(ways["adapter"] / "adapter.safetensors")
    assert not (ways["merged"] / "adapter.json").exists()
    for name, weight in frozen.items():
        layer = name.removesuffix(".weight")
        assert weight.dtype == torch.float64
        if f"{layer}.a" in adapter and name != layer:
            weight = weight + 3.0 * torch.einsum("or,ri->oi", adapter[f"{layer}.b"], adapter[f"{layer}.a"])
        assert torch.allclose(merged[name], weight, rtol=0, atol=1e-12), name
    one, other = (load_model(ways[way], "cpu", torch.float64).model for way in ways)
    texts = [[5, 6, 7, 8], [9], [4, 4]]
    assert abs(target_log_probs(one, texts, texts) - target_log_probs(other, texts, texts)).max() < 1e-12


def test_the_optimiser_holds_the_adapters_alone():
    network = tiny_model().model
    add_lora(network, 2, 2.0, None, seed=1)
    optimizer = make_optimizer(network, OptimizerConfig())
    held = {id(each) for group in optimizer.param_groups for each in group["params"]}
    wanted = {id(each) for one in network.modules() if isinstance(one, LoraLinear) for each in (one.a, one.b)}
    assert held == wanted


def test_a_checkpoint_holds_of_the_optimiser_what_adapters_need(adapted):
    newest = max((adapted / "training" / "checkpoints").glob("step-*"))
    names = {name.rpartition("/")[0].rpartition(".")[2] for name in load_file(newest / "optimizer.safetensors")}
    assert names == {"a", "b"}


AVERAGED = {"ema": 0.9, "keep": {"last": 2, "average": "last"}, "precision": "bf16"}


@pytest.mark.parametrize("more", [{}, pytest.param(AVERAGED, marks=pytest.mark.slow)])
def test_stopped_and_resumed_is_the_same(dataset, first, tmp_path, more):
    config = config_of(first, lora=LORA, save_every=2, **more)
    run(dataset, tmp_path / "straight", config)
    with pytest.raises(StoppedError):
        run(dataset, tmp_path / "stopped", config, reporter=SignalAt(4, signal.SIGTERM))
    run(dataset, tmp_path / "stopped", config)
    assert result(tmp_path / "stopped") == result(tmp_path / "straight")


def test_what_validation_found_is_what_the_published_model_has(dataset, first, tmp_path, adapted):
    merged = run(dataset, tmp_path, config_of(first, lora=LORA))
    one, other = (json.loads((each / "manifest.json").read_text())["figures"] for each in (merged, adapted / "model"))
    assert one["validation"] == other["validation"]
    both = [load_model(each, "cpu").model.state_dict() for each in (merged, adapted / "model")]
    assert all(torch.equal(both[0][name], both[1][name]) for name in both[0])
    (step,) = one["steps"]
    of_checkpoint = load_checkpoint(tmp_path, step, "cpu").model.state_dict()
    assert all(torch.equal(both[0][name], of_checkpoint[name]) for name in both[0])


def test_what_is_adapted_can_be_adapted_again_and_it_says_how_much_is_trained(dataset, adapted, tmp_path):
    said = []

    class Told(NullReporter):
        def line(self, text):
            said.append(text)

    run(dataset, tmp_path, config_of(adapted / "model", lora={"rank": 1}), reporter=Told())
    (share,) = [each for each in said if "adapters are trained" in each]
    assert share.startswith("training: ")
    found = load_file(tmp_path / "model" / "model.safetensors")
    before = load_model(adapted / "model", "cpu").model.state_dict()
    assert any(not torch.equal(found[name], before[name]) for name in found)
    assert all(torch.equal(found[name], before[name]) for name in found if "query" not in name and "key" not in name)


def test_what_adapters_cannot_do_is_refused(dataset, first, tmp_path):
    with pytest.raises(ValueError, match=r"training.lora adapts a model that was trained: give training.init_from"):
        TrainingConfig.model_validate({**SHORT, "lora": {}})
    with pytest.raises(RecipeError, match=r"the model has no product queery; it has inner, key_value, outer, output"):
        run(dataset, tmp_path / "a", config_of(first, lora={"products": ["queery"]}))
    other = MODEL.model_copy(update={"normalization": "batch"})
    batch = run(dataset, tmp_path / "batch", training(max_steps=2), model=other)
    with pytest.raises(RecipeError, match="has statistics that change"):
        run(dataset, tmp_path / "b", config_of(batch, lora={}))


def test_an_adapter_that_does_not_fit_is_refused(adapted, tmp_path):
    copy = Path(shutil.copytree(adapted / "model", tmp_path / "model"))
    for content, problem in (
        ('{"rank": 0, "alpha": 1}', "adapter.json: not an adapter: rank"),
        ("{", "adapter.json"),
        ('{"rank": 2, "alpha": 6.0}', "its adapter does not fit"),
    ):
        (copy / "adapter.json").write_text(content)
        if "fit" in problem:
            shutil.copyfile(copy / "model.safetensors", copy / "adapter.safetensors")
        signed(copy)
        with pytest.raises(DataError, match=problem):
            load_model(copy, "cpu")


def test_a_recipe_names_its_products(tmp_path):
    (tmp_path / "r.toml").write_text(
        'data.path = "corpus"\n[training]\ninit_from = "m"\nlora = { rank = 4, products = ["inner", "outer"] }\n'
    )
    found = load_recipe(tmp_path / "r.toml", ["training.lora.alpha=2"]).training.lora
    assert (found.rank, found.scale, found.products, found.publish) == (4, 2.0, ("inner", "outer"), "merged")
    assert load_recipe(tmp_path / "r.toml", ["training.lora=none"]).training.lora is None
    for setting, problem in (
        ("products=[]", "at least"),
        ("rank=0", "at least 1"),
        ("products=inner", "must be a list"),
    ):
        with pytest.raises(RecipeError, match=problem):
            load_recipe(tmp_path / "r.toml", [f"training.lora.{setting}"])
    with pytest.raises(RecipeError, match=r"give training\.init_from"):
        load_recipe(tmp_path / "r.toml", ["training.init_from=none"])


@pytest.mark.few(1)
@pytest.mark.parametrize("average", ["last", "best"])
def test_the_mean_of_merged_models_is_the_mean_of_the_models_that_it_names(dataset, tmp_path, average):
    """In float64, beside the sum W + alpha / r * B A of each checkpoint, written out."""
    with in_float64():
        first = run(dataset, tmp_path / "first", training(max_steps=2))
        keep = {"average": average, "last": 3, "best": 3}
        config = training(
            max_steps=9,
            validation={"every_steps": 3},
            init_from=str(first),
            lora={**LORA, "publish": "merged"},
            keep=keep,
        )
        folder = run(dataset, tmp_path / "mean", config)
        manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
        steps = manifest["figures"]["steps"]
        assert len(steps) == 3
        wholes = []
        for step in steps:
            saved = load_file(tmp_path / "mean" / "training" / "checkpoints" / f"step-{step:07d}" / "model.safetensors")
            whole = {}
            for name, weight in saved.items():
                layer, frozen, rest = name.partition(".frozen.")
                if frozen and rest == "weight":
                    down, up = saved[f"{layer}.a"], saved[f"{layer}.b"]
                    whole[f"{layer}.weight"] = weight + LORA["alpha"] / LORA["rank"] * (up @ down)
            wholes.append(whole)
        published = load_file(folder / "model.safetensors")
    assert wholes[0]
    for name in wholes[0]:
        torch.testing.assert_close(published[name], sum(each[name] for each in wholes) / 3, rtol=0, atol=1e-12)
