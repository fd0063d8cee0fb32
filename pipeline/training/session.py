"""A training from start to published model: the process that may write there, the checkpoint to resume from, and the
published model.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.dataset.split import Dataset
from tfm.data.dataset.store import TOKENIZER_FOLDER, check_token_ids, load_dataset
from tfm.data.image_config import IMAGES_FILE
from tfm.data.images.preparation import read_image_transform
from tfm.model.build import num_parameters
from tfm.model.config import ModelConfig
from tfm.model.layers.lora import merge_adapters, merge_saved_adapters, split_adapters
from tfm.pipeline.artifacts.artifact import (
    Manifest,
    Plan,
    check_output_is_writable,
    lock_folder,
    publish,
    read_artifact,
)
from tfm.pipeline.artifacts.files import convert_os_errors, write_bytes_atomically
from tfm.pipeline.artifacts.no_symlinks import check_tree_has_no_symlinks, make_folder_below, remove_path_below
from tfm.pipeline.config import DecodingConfig, EvaluationConfig
from tfm.pipeline.model_io.adapter import AdapterSettings, save_adapter
from tfm.pipeline.model_io.loaded_model import TOKENIZER_FILES, save_model
from tfm.pipeline.reports.training_curves import draw_curves
from tfm.pipeline.runtime.devices import DEVICE_MEMORY, resolve_device
from tfm.pipeline.runtime.distributed import World, init_world
from tfm.pipeline.runtime.out_of_memory import raise_oom_as_data_error
from tfm.pipeline.runtime.progress import Reporter
from tfm.pipeline.runtime.stop_signal import catch_stop_signals
from tfm.pipeline.training.assembly.assemble import assemble_trainer
from tfm.pipeline.training.assembly.parts import TrainingSession, training_folder
from tfm.pipeline.training.checkpoints.checkpoint_folder import Checkpoints
from tfm.pipeline.training.checkpoints.resume import find_resume_step
from tfm.pipeline.training.checkpoints.train_state import published_weights
from tfm.pipeline.training.checkpoints.weight_averaging import mean_weights
from tfm.pipeline.training.early_stopping import Validation, ValidationCallback, sort_best_first
from tfm.pipeline.training.helpers import start_gradient_workers
from tfm.pipeline.training.loop import Trainer
from tfm.pipeline.training.metrics_log import MetricsLog
from tfm.pipeline.training.recipe_warnings import divergence_problem
from tfm.pipeline.training_config import TrainingConfig

SIGNAL_ECHO_SECONDS = 2.0


def train_and_publish(
    plan: Plan,
    config: TrainingConfig,
    model: ModelConfig,
    decoding: DecodingConfig,
    evaluation: EvaluationConfig,
    dataset: Path,
    *,
    command: Sequence[str],
    reporter: Reporter,
    on_validation: ValidationCallback = lambda validation, is_last: None,
) -> None:
    """Train, from the newest checkpoint if there is one, and publish the model.

    Args:
        plan: the plan of the model.
        config: the [training] part of a recipe.
        model: the [model] part of a recipe.
        decoding: the [decoding] part of a recipe.
        evaluation: the [evaluation] part of a recipe.
        dataset: the folder of the dataset.
        command: the command line, for the manifest.
        reporter: receives messages.
        on_validation: called with each validation, and whether it is the last.

    Raises:
        WriteError: anything in the folder of the training is a link or special file; raised before any work.
    """
    with init_world(resolve_device(config.device)) as world, ExitStack() as resources:
        world.run_on_rank_zero(lambda: check_tree_has_no_symlinks(training_folder(plan)))
        data = read_artifact(dataset, lambda _: read_dataset(dataset), must_match=plan.inputs["dataset"])
        session = TrainingSession(plan, config, model, decoding, evaluation, data, reporter, world, on_validation)
        checkpoints = Checkpoints(session.folder / "checkpoints")
        world.run_on_rank_zero(lambda: resources.enter_context(lock_folder(session.folder)))
        world.run_on_rank_zero(lambda: check_output_is_writable(plan))
        step = world.run_on_rank_zero(lambda: find_resume_step(checkpoints, plan, config, reporter))
        session = replace(session, data=normalize_like_pretrained(session))
        world.run_on_rank_zero(lambda: save_tokenizer(session, dataset))
        session = replace(session, data=replace(session.data, tokenizer_folder=session.folder / TOKENIZER_FOLDER))
        with raise_oom_as_data_error(
            lambda: "the model and its optimiser do not fit in memory; make the model smaller ([model])"
        ):
            checkpoint = None if step is None else world.run_on_every_rank(partial(checkpoints.read, step))
            trainer = assemble_trainer(session, checkpoints, checkpoint)
        resources.enter_context(close_trackers_on_failure(trainer.log))
        echo = SIGNAL_ECHO_SECONDS if world.size > 1 else 0.0
        with (
            catch_stop_signals(echo_seconds=echo, acknowledges=world.is_main_process) as stop,
            start_gradient_workers(trainer.gradients, trainer.state.progress.settings.num_gradient_workers) as helpers,
        ):
            trainer.stop, trainer.gradients.helpers = stop, helpers
            trainer.run()
        if world.is_main_process:
            draw_curves(trainer.log.lines, session.folder / "curves.svg")
            publish_model(session, trainer, command)
            tags = {"model": read_artifact(plan.folder, lambda manifest: manifest.fingerprint)}
            trainer.log.close([session.folder / "curves.svg", plan.folder / "manifest.json"], tags, is_finished=True)


@contextmanager
def close_trackers_on_failure(log: MetricsLog) -> Iterator[None]:
    """Close the trackers where the training is stopped or fails: it may go on in them later.

    Args:
        log: the lines of metrics.jsonl, with the trackers that mirror them.
    """
    try:
        yield
    except BaseException:
        log.close(is_finished=False)
        raise


def read_dataset(dataset: Path) -> Dataset:
    """The dataset in a folder, whose ids are those of its tokenizers."""
    data = load_dataset(dataset)
    return check_token_ids(data, *(each.vocab_size for each in load_tokenizer_pair(data.tokenizer_folder)))


def normalize_like_pretrained(session: TrainingSession) -> Dataset:
    """The dataset, its images normalized by the means and deviations of the model that training starts from, whose
    weights learned to read numbers of this size; `training.image_statistics` may ask for those of the dataset."""
    if "image_statistics" not in session.plan.config:
        return session.data
    folder = Path(str(session.config.init_from))
    pretrained_input = session.plan.inputs["init_from"]
    preparation = read_artifact(
        folder, lambda manifest: read_image_transform(manifest.folder, manifest.path), must_match=pretrained_input
    )
    if session.data.preparation == preparation:
        return session.data
    session.reporter.line(
        f"training: images are normalised by the means and deviations of {folder}, not by those of the new images "
        '(training.image_statistics = "dataset")'
    )
    return session.data.with_image_transform(preparation)


def save_tokenizer(session: TrainingSession, dataset: Path) -> None:
    """Copy the dataset's tokenizer into the work in progress, so that the model has this version even if the dataset
    changes, and checkpoints can translate. Images are read with the session's transform.
    """
    preparation = session.data.preparation
    images = None if preparation is None else preparation.to_json_bytes()
    source, copy_folder = session.data.tokenizer_folder, session.folder / TOKENIZER_FOLDER

    def copy_tokenizer_files(_: Manifest) -> None:
        for name in TOKENIZER_FILES:
            wanted_bytes, present_bytes = (
                (folder / name).read_bytes() if (folder / name).exists() else None for folder in (source, copy_folder)
            )
            wanted_bytes = images if name == IMAGES_FILE else wanted_bytes
            if wanted_bytes is None:
                remove_path_below(session.run_folder, copy_folder / name)
            elif wanted_bytes != present_bytes:
                write_bytes_atomically(copy_folder / name, wanted_bytes, root=session.run_folder)

    with convert_os_errors(session.folder):
        make_folder_below(session.run_folder, copy_folder)
    read_artifact(dataset, copy_tokenizer_files, must_match=session.plan.inputs["dataset"])


def save_trained_model(folder: Path, session: TrainingSession, weights: dict[str, Tensor]) -> int:
    """Write the model; its adapters, if it has some, merged into it or in files of their own.

    Args:
        folder: the folder to write to.
        session: the settings and data of the training.
        weights: the trained weights by name.

    Returns:
        The number of the adapters' weights.
    """
    lora, (frozen, adapters) = session.config.lora, split_adapters(weights)
    if lora is not None:
        adapter_settings = AdapterSettings(rank=lora.rank, alpha=lora.scale)
        if lora.publish == "adapter":
            save_adapter(folder, adapters, adapter_settings)
        else:
            frozen = merge_adapters(frozen, adapters, adapter_settings.factor)
    save_model(folder, session.model, frozen, session.data.tokenizer_folder)
    return sum(each.numel() for each in adapters.values())


def publish_model(session: TrainingSession, trainer: Trainer, command: Sequence[str]) -> None:
    """Publish the best checkpoint, or the mean of the kept last or best ones, which is validated once more.

    Args:
        session: the settings and data of the training.
        trainer: the trainer at its end.
        command: the command line, for the manifest.
    """
    progress, keep, metric = trainer.state.progress, session.config.keep, session.config.early_stopping.metric
    best = sort_best_first(progress.validations, metric)
    steps = {
        "none": [best[0].step],
        "last": progress.saved[-keep.last :],
        "best": sorted(each.step for each in best[: keep.best]),
    }[keep.average]
    figures: Mapping[str, Any] = best[0].model_dump()
    figure_names = ["loss", "perplexity", "accuracy", "bleu", "bleu_signature"]
    figure_names += [name for name in ("scores", "directions") if getattr(best[0], name)]
    with publish(session.plan, command=command, seconds_before=progress.seconds) as draft:
        weights = _read_weights(session, trainer, steps)
        if steps != [best[0].step]:
            figures = {**figures, **_validate_weights(session, trainer, weights, best[0])}
        num_adapters = save_trained_model(draft.folder, session, weights)
        draft.figures.update(
            steps=steps,
            validation={key: figures[key] for key in figure_names},
            updates=progress.step,
            epochs=progress.epoch,
            training_seconds=round(progress.seconds, 3),
            parameters=num_parameters(trainer.state.model) - num_adapters,
            settings=progress.settings.model_dump(),
            metrics_sha256=trainer.log.sha256(),  # by which `tfm compare` knows that the curve is this training's
        )
        device = session.world.device
        if device.type in DEVICE_MEMORY:
            draft.figures["device_memory"] = DEVICE_MEMORY[device.type](device)
        if num_adapters:
            draft.figures["adapter_parameters"] = num_adapters
        if progress.changes:
            draft.figures["changed_during_training"] = [each.describe() for each in progress.changes]
    num_outputs = load_tokenizer_pair(session.data.tokenizer_folder)[1].vocab_size
    if problem := divergence_problem(figures["loss"], num_outputs):
        session.reporter.warn(f"{session.plan.folder}: {problem}")
    scores = {} if figures["bleu"] is None else {"BLEU": figures["bleu"]}
    scores |= {name: each["score"] for name, each in figures["scores"].items()}
    score_list = "".join(f", {name} {score:.2f}" for name, score in scores.items())
    session.reporter.line(
        f"model: {_describe_steps(session, steps)}, validation loss {figures['loss']:.4f}{score_list}; published as "
        f"{session.plan.folder}"
    )


def _read_weights(session: TrainingSession, trainer: Trainer, steps: Sequence[int]) -> dict[str, Tensor]:
    """Read the weights of a checkpoint, or the mean of several."""
    checkpoints = (published_weights(trainer.checkpoints.read(step)) for step in steps)
    lora = session.config.lora
    if lora is not None and lora.publish == "merged" and len(steps) > 1:
        checkpoints = (merge_saved_adapters(weights, lora.scale / lora.rank) for weights in checkpoints)
    return next(checkpoints) if len(steps) == 1 else mean_weights(checkpoints)


def _validate_weights(
    session: TrainingSession, trainer: Trainer, weights: dict[str, Tensor], best: Validation
) -> Mapping[str, Any]:
    """Validate averaged weights, with a warning if the best checkpoint alone is better."""
    model = trainer.state.model_with_weights(weights, session.folder)
    figures = trainer.validator.compute_metrics(model, World(device=session.world.device), lambda: None)
    average, metric = Validation.model_validate({**best.model_dump(), **figures}), session.config.early_stopping.metric
    if average.minimized_value(metric) > best.minimized_value(metric):
        session.reporter.warn(
            f"averaging the kept checkpoints made validation worse ({average.describe()}) than step "
            f"{best.step:,} alone ({best.describe()}). "
            'Set training.keep.average = "none", or save checkpoints closer together (training.validation, '
            "save_every)"
        )
    return figures


def _describe_steps(session: TrainingSession, steps: Sequence[int]) -> str:
    """The checkpoints that a published model is made of, in words."""
    if len(steps) == 1:
        return f"step {steps[0]:,}"
    mean, lora = f"the mean of steps {', '.join(f'{step:,}' for step in steps)}", session.config.lora
    if lora is not None and lora.publish == "adapter":
        return f"{mean} (the mean of A and the mean of B of its adapters, which is not the mean of the models)"
    return mean
