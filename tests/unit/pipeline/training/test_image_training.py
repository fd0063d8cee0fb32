"""Training on images: varied as (seed, step, row) say, normalised by the training set's figures, resumed to the same
bits, and the same however the rows of an update are divided."""

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from tests.invariants.test_resume import SignalAt
from tests.killing import result
from tests.tiny_images import COLOURS, write_folder
from tests.tiny_training import STACK, run, training
from tests.unit.pipeline.stages.test_images import config, dataset_of, folder_of
from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.batching.augmented_images import ImageAugmenter
from tfm.data.batching.resegmentation import Resegmenter
from tfm.data.config import DataConfig
from tfm.data.dataset.split import Dataset, Split
from tfm.data.dataset.store import load_dataset
from tfm.data.images.augmentation import Augmentation
from tfm.data.images.preparation import ImageTransform
from tfm.model.build import build
from tfm.model.config import DropoutConfig, ModelConfig
from tfm.model.vision.image_shape import ImageShape, num_tokens
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.decode import decode
from tfm.pipeline.errors import DataError, StoppedError
from tfm.pipeline.inference.translation import translate_images
from tfm.pipeline.model_io.loaded_model import load_model
from tfm.pipeline.runtime.distributed import World
from tfm.pipeline.runtime.progress import NullReporter
from tfm.pipeline.stages.preprocess import preprocess
from tfm.pipeline.stages.translate import plan_test_translation, translate_tests
from tfm.pipeline.tasks.criteria import CrossEntropy
from tfm.pipeline.tasks.translation import Translation
from tfm.pipeline.training import metrics_log, session
from tfm.pipeline.training.update import GradientComputer
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.special import BOS_ID, EOS_ID
from tfm.tokenizer.train import train

MODEL = ModelConfig.model_validate(
    {
        "vision": {"encoder": "patches", "patch": 4},
        "encoder": STACK.model_dump(),
        "decoder": STACK.model_dump(),
        "max_length": 16,
        "tie": "output",
        "dropout": {"residual": 0.2, "embedding": 0.1},
    }
)
VARIED = {"shift": 1, "flip": True, "crop": 0.6}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset whose training images are varied; beside it, one whose are not, of the same images."""
    place = tmp_path_factory.mktemp("images")
    plain = config(place / "corpora", batch_tokens=64)
    dataset_of({**plain, "images": {**plain["images"], **VARIED}}, place)
    return place / "dataset"


@pytest.fixture(scope="module")
def data(folder: Path) -> Dataset:
    return load_dataset(folder)


def network(data: Dataset) -> Any:
    exact = MODEL.model_copy(update={"dropout": DropoutConfig(residual=0, embedding=0)})
    size = int(data.train.target.take(np.arange(len(data.train)))[0].max()) + 1
    return build(exact, source_vocab=0, target_vocab=size, image=ImageShape(8, 8, 3), seed=1).double()


def test_stopped_and_resumed_is_the_same(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "draw_curves", lambda metrics, file: None)  # takes most of such a short run's time
    monkeypatch.setattr(metrics_log, "draw_curves", lambda metrics, file: None)
    settings = training(max_steps=6, accumulate=2, validation={"every_steps": 6, "bleu": False})
    run(folder, tmp_path / "straight", settings, model=MODEL)
    with pytest.raises(StoppedError):
        run(folder, tmp_path / "stopped", settings, model=MODEL, reporter=SignalAt(3, signal.SIGTERM))
    run(folder, tmp_path / "stopped", settings, model=MODEL)
    assert result(tmp_path / "stopped") == result(tmp_path / "straight")
    loaded = load_model(tmp_path / "straight" / "model", "cpu")
    assert loaded.images == load_dataset(folder).preparation
    other = run(folder, tmp_path / "other", settings, model=MODEL, seed=4)
    assert load_model(other, "cpu").images == loaded.images


def test_a_model_stands_alone(folder: Path, tmp_path: Path) -> None:
    out = run(folder, tmp_path, training(max_steps=1, validation={"every_steps": 1, "bleu": False}), model=MODEL)
    assert sorted(file.name for file in out.iterdir() if file.name != "manifest.json") == [
        "config.json",
        "images.json",
        "model.safetensors",
        "tokenizer.json",
    ]


def test_each_update_sees_what_seed_step_and_row_say(data: Dataset) -> None:
    assert data.augmentation == Augmentation(**VARIED)
    assert data.train.images is not None
    varied = ImageAugmenter(data.augmentation, 7)
    rows = np.array([5, 0, 39, 5])
    plain = data.train.images.take(rows)
    for step in (1, 2):
        batch = Translation(CrossEntropy(0.1)).batch(varied(data.train, step), rows)
        assert np.array_equal(batch.source.numpy(), data.augmentation(plain, 7, step, rows))
        assert np.array_equal(batch.source[0], batch.source[3])
    once, again, later, of_other_seed = (
        np.asarray(Translation(CrossEntropy(0.1)).batch(each(data.train, step), rows).source)
        for each, step in ((varied, 1), (varied, 1), (varied, 2), (ImageAugmenter(data.augmentation, 8), 1))
    )
    assert np.array_equal(once, again)
    assert not np.array_equal(once, later)
    assert not np.array_equal(once, of_other_seed)
    of_validation = Translation(CrossEntropy(0.1)).batch(data.valid, np.arange(3)).source
    assert np.array_equal(of_validation, data.valid.images.take(np.arange(3)))  # type: ignore[union-attr]


def test_other_pieces_of_captions_leave_their_images(data: Dataset) -> None:
    """Where captions are segmented anew, in parts of a batch, each row keeps the image that it has at this update."""
    assert data.augmentation is not None
    captions = train(["".join(COLOURS)], TokenizerConfig(kind="bpe", vocab_size=80, min_frequency=1))
    sampler = captions.sampler(bpe_dropout=0.5)
    how = Resegmenter(None, sampler, seed=1, max_tokens=32, budget=40)
    varied, rows = ImageAugmenter(data.augmentation, 7)(data.train, 3), np.arange(3, 15)
    parts = [
        Translation(CrossEntropy(0.1)).batch(part, np.arange(len(part)))
        for part, _ in how.iterate_resegmented_parts(varied, rows, 3)
    ]
    assert len(parts) > 1
    whole = Translation(CrossEntropy(0.1)).batch(varied, rows)
    seen = sorted(each.tobytes() for part in parts for each in part.source.numpy())
    assert seen == sorted(each.tobytes() for each in whole.source.numpy())


def test_a_batch_is_normalised_by_the_training_images(data: Dataset) -> None:
    rows = np.array([3, 1])
    assert data.tests["test"].images is not None
    values = data.tests["test"].images.take(rows).astype(np.float64)
    of_training = data.train.images.store.pixels.reshape(-1, 3).astype(np.float64)  # type: ignore[union-attr]
    expected = (values - of_training.mean(0)) / of_training.std(0)
    batch = Translation(CrossEntropy(0.1)).batch(data.tests["test"], rows).to("cpu")
    np.testing.assert_allclose(batch.source.numpy(), expected.transpose(0, 3, 1, 2), rtol=1e-5, atol=1e-5)
    assert batch.source_lengths.tolist() == [1, 1]
    assert batch.target_in[0] == BOS_ID
    assert batch.target_out[-1] == EOS_ID


class Exact(ImageTransform):
    """In float64."""

    def __call__(self, pixels: Tensor) -> Tensor:
        return super().__call__(pixels).double()


def exact(split: Split, preparation: ImageTransform) -> Split:
    assert split.images is not None
    exactly = Exact(preparation.shape, preparation.statistics)
    return replace(split, images=replace(split.images, preparation=exactly))


def test_an_update_is_the_same_however_its_rows_are_divided(data: Dataset) -> None:
    assert data.preparation is not None
    assert data.augmentation is not None
    model, rows = network(data), np.arange(12)
    found = []
    for group in ([rows], [rows[:5], rows[5:]]):
        made = GradientComputer(
            model,
            Translation(CrossEntropy(0.1)),
            exact(data.train, data.preparation),
            training(clip_norm=None),
            1,
            World(),
            at_step=ImageAugmenter(data.augmentation, 1),
        )
        update = made.compute(group, 3, stop=False)
        found.append((update, [each.grad.clone() for each in model.parameters() if each.grad is not None]))
    (one, gradients), (other, in_parts) = found
    assert other.loss == pytest.approx(one.loss, rel=1e-12)
    torch.testing.assert_close(in_parts, gradients, rtol=1e-9, atol=1e-12)


def test_images_count_as_their_tokens(data: Dataset) -> None:
    assert MODEL.vision is not None
    assert num_tokens(MODEL.vision, ImageShape(8, 8, 3)) == network(data).source_embedding.num_tokens == 4
    task = Translation(CrossEntropy(0.1), image_tokens=16)
    assert {*task.lengths(data.train)[0].tolist()} == {16}
    batches = task.epochs(data.train, 64, 1)(0)
    assert max(map(len, batches)) == 4
    assert sorted(row for rows in batches for row in rows) == list(range(40))


def test_hypotheses_do_not_hang_on_what_else_is_in_the_batch(data: Dataset) -> None:
    assert data.preparation is not None
    model, test = network(data).eval(), exact(data.tests["test"], data.preparation)
    assert test.images is not None
    for settings in ({"beam": 1}, {"beam": 3, "n_best": 2}, {"strategy": "sample", "n_best": 2, "top_k": 5}):
        how = DecodingConfig(**{"batch_sentences": 2, "max_length": 6, **settings})
        together = decode(model, test.images, how)
        apart = [decode(model, test.images.select_rows(np.array([row])), how)[0] for row in range(5)]
        assert [[each.ids for each in best] for best in together] == [[each.ids for each in best] for best in apart]


def test_validation_has_an_image_once_with_all_its_captions(data: Dataset) -> None:
    assert data.valid.images is not None
    captions = data.valid.texts()[1]
    once = data.valid.group_by_image()
    assert once.images is not None
    assert len(once) == len(once.images) == 6
    assert np.array_equal(once.images.take(np.arange(6)), data.valid.images.take(np.arange(0, 12, 2)))
    columns = [once.texts()[1], *once.further_references()]
    assert [list(each) for each in zip(*columns, strict=True)] == [captions[row : row + 2] for row in range(0, 12, 2)]


@pytest.mark.slow
def test_a_caption_is_learned(folder: Path, tmp_path: Path) -> None:
    """Of 20 images the colour is told right of nearly all; by chance it would be of 7."""
    plain = MODEL.model_copy(update={"dropout": DropoutConfig(residual=0, embedding=0)})
    schedule = {"name": "cosine", "peak": 0.01, "warmup_steps": 5}
    validation = {"every_steps": 120, "bleu": False}
    steady = training(max_steps=120, label_smoothing=0.0, schedule=schedule, validation=validation)
    out = run(folder, tmp_path, steady, model=plain)
    loaded, data = load_model(out, "cpu"), load_dataset(folder)
    assert data.train.images is not None
    images = [data.train.images.select_rows(np.arange(0, 40, 2))]
    captions = translate_images(loaded, images, DecodingConfig(beam=1), reporter=NullReporter())
    said = [next((each for each in COLOURS if each in best.text), None) for (best,) in captions]
    shown = [next(each for each in COLOURS if each in text) for text in texts_of(data)[::2]]
    assert sum(one == other for one, other in zip(said, shown, strict=True)) >= 16


SHORT = {"max_steps": 1, "validation": {"every_steps": 1, "bleu": False}}


class Lines(NullReporter):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)


def darkened(folder: Path, place: Path, **images: Any) -> Path:
    """A dataset of other and much darker images, with the tokenizer of the dataset in `folder`."""
    for file in write_folder(place / "new", 8, 77).glob("*.png"):
        with Image.open(file) as image:
            image.point(lambda value: value // 5).save(file)
    about = {**config(place / "corpora"), "train": folder_of(place / "new")}
    other = DataConfig.model_validate({**about, "images": {**about["images"], **images}})
    preprocess(other, folder.parent / "tokenizer", place / "data", command=["test"], reporter=NullReporter())
    return place / "data"


def test_training_on_other_images_keeps_the_statistics_of_the_model(folder: Path, tmp_path: Path) -> None:
    """An update without effect leaves what the model says of any images; either model captions either dataset."""
    first = run(folder, tmp_path / "first", training(**SHORT), model=MODEL)
    data, lines = darkened(folder, tmp_path), Lines()
    still = training(**SHORT, init_from=str(first), schedule={"name": "constant", "peak": 1e-9})
    second = run(data, tmp_path / "second", still, model=MODEL, reporter=lines)
    old, new = load_model(first, "cpu"), load_model(second, "cpu")
    assert new.images == old.images != load_dataset(data).preparation
    assert (first / "images.json").read_bytes() == (second / "images.json").read_bytes()
    assert any("image_statistics" in line for line in lines.lines)
    assert run(data, tmp_path / "second", still, model=MODEL) == second  # fresh
    for number, dataset in enumerate((folder, data)):
        said = []
        for name, model in (("first", first), ("second", second)):
            out = tmp_path / f"{name} {number}"
            translate_tests(model, dataset, DecodingConfig(max_length=6), out, command=["t"], reporter=NullReporter())
            said.append({file.name: file.read_bytes() for file in out.glob("*.txt")})
        assert said[0] == said[1]


def test_the_statistics_of_the_new_images_are_taken_where_they_are_asked_for(folder: Path, tmp_path: Path) -> None:
    first = run(folder, tmp_path / "first", training(**SHORT), model=MODEL)
    data = darkened(folder, tmp_path)
    asked = training(**SHORT, init_from=str(first), image_statistics="dataset")
    second = run(data, tmp_path / "second", asked, model=MODEL)
    assert load_model(second, "cpu").images == load_dataset(data).preparation
    again = run(data, tmp_path / "second", training(**SHORT, init_from=str(first)), model=MODEL)  # not up to date
    assert load_model(again, "cpu").images == load_model(first, "cpu").images
    with pytest.raises(ValueError, match="image_statistics"):
        training(**SHORT, image_statistics="dataset")


def test_images_of_another_size_are_refused_before_any_work(folder: Path, tmp_path: Path) -> None:
    first = run(folder, tmp_path / "first", training(**SHORT), model=MODEL)
    data = darkened(folder, tmp_path, height=12)
    with pytest.raises(DataError, match=r"reads images of 8 x 8 pixels, in colour, and those of .* height = 8"):
        run(data, tmp_path / "second", training(**SHORT, init_from=str(first)), model=MODEL)
    assert not (tmp_path / "second").exists()
    with pytest.raises(DataError, match=r"reads images of 8 x 8 pixels"):
        plan_test_translation(first, data, DecodingConfig(), tmp_path / "out")


def texts_of(data: Dataset) -> list[str]:
    return load_tokenizer_pair(data.tokenizer_folder)[1].decode_batch(data.train.target.to_lists())
