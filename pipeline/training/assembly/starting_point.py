"""The starting point of a training: its first weights, or those of a checkpoint."""

from dataclasses import replace
from pathlib import Path

from torch import nn

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.errors import format_share
from tfm.model.build import Model, build, num_parameters
from tfm.model.layers.lora import add_lora
from tfm.model.layers.recompute import recompute_layer
from tfm.model.transformer.layers import find_layers
from tfm.pipeline.alignment.guided_loss import GuidedAlignmentLoss
from tfm.pipeline.alignment.pharaoh import counted_from_one_warning
from tfm.pipeline.alignment.piece_links import read_piece_links
from tfm.pipeline.errors import RecipeError
from tfm.pipeline.model_io.loaded_model import image_shape
from tfm.pipeline.runtime.devices import PRECISIONS
from tfm.pipeline.runtime.fully_sharded import shard_parameters
from tfm.pipeline.tasks.registry import make_task
from tfm.pipeline.tasks.task import TaskContext
from tfm.pipeline.training.assembly.parts import StartingPoint, TrainingSession
from tfm.pipeline.training.assembly.word2vec import (
    initialize_as_word2vec,
    other_updates_problem,
    uses_online_updates,
)
from tfm.pipeline.training.batch_size_search import search_largest_batch_tokens
from tfm.pipeline.training.checkpoints.checkpoint import Checkpoint
from tfm.pipeline.training.checkpoints.resume import plan_document, restore_progress
from tfm.pipeline.training.checkpoints.train_state import (
    ExecutionSettings,
    Progress,
    TrainState,
    read_progress,
)
from tfm.pipeline.training.checkpoints.weight_averaging import Ema
from tfm.pipeline.training.checks import (
    check_adaptive_softmax,
    check_batch_norm,
    check_character_tokenizers,
    check_disk_space,
    check_guided_alignment,
    check_languages,
    check_lora,
    check_one_vocabulary,
    check_sharding,
    num_source_image_tokens,
)
from tfm.pipeline.training.initialization import initialize_for_task, load_pretrained
from tfm.pipeline.training.optimizers import make_optimizer
from tfm.tokenizer.foreign.sentencepiece_files import have_same_ids
from tfm.tokenizer.tokenizer import Tokenizer


def make_task_context(session: TrainingSession, settings: ExecutionSettings) -> TaskContext:
    """Return the facts from which the task is made. Raises RecipeError if the model does not read such data."""
    image = image_shape(session.data.preparation)
    tokens = num_source_image_tokens(image, session.model.vision, session.config)
    pair = load_tokenizer_pair(session.data.tokenizer_folder)
    check_guided_alignment(session.config, session.model)
    guide = make_alignment_guide(session, pair)
    return TaskContext(session.config, session.model, *pair, settings.batch_tokens, tokens, guide)


def make_alignment_guide(
    session: TrainingSession, tokenizers: tuple[Tokenizer, Tokenizer]
) -> GuidedAlignmentLoss | None:
    """Return the supervision of the head that is trained to align; None if the recipe asks for none.

    Args:
        session: the settings and data of the training.
        tokenizers: of source and target.

    Raises:
        DataError: the links are not those of the training pairs.
    """
    config = session.config.guided_alignment
    if config is None:
        return None
    links = read_piece_links(Path(config.links), session.data.train, tokenizers)
    warning = counted_from_one_warning(links.num_linked_rows, from_one=links.from_one)
    if warning is not None:
        session.reporter.warn(f"{config.links}: {warning}")
    layer = config.choose_layer(session.model.decoder.layers)
    share = format_share(links.num_linked_rows, len(links), "training pair", "has links", "have links")
    session.reporter.line(f"training: {share}; head {config.head} of layer {layer} learns to align")
    return GuidedAlignmentLoss(links, config, layer)


def check_trainable(session: TrainingSession, context: TaskContext) -> None:
    """Raise DataError or RecipeError where this model cannot learn this task from this data so."""
    make_task(context).check_data(session.data, session.model)
    check_lora(session.config.lora, session.model)
    check_batch_norm(session.model.batch_norm_key, session.config, session.world.size)
    check_adaptive_softmax(session.model.has_adaptive_tails, session.config)
    check_sharding(session.config, session.model, session.world.size)
    check_one_vocabulary(session.model, shared=have_same_ids(context.source, context.target))
    flat, directions = session.config.layout == "flat", session.data.directions
    check_character_tokenizers(session.model, context.source, context.target, flat=flat)
    check_languages(session.model, context.source, [directions.get(each) for each in ("train", "valid")], flat=flat)


def initial_state(session: TrainingSession, settings: ExecutionSettings, context: TaskContext) -> TrainState:
    """Return the state before the first update.

    Args:
        session: the settings and data of the training.
        settings: the decisions of the first start.
        context: the facts from which the task is made.

    Raises:
        WriteError: the disk has no room for its checkpoints.
    """
    model, config = initial_model(session, settings, context.source, context.target), session.config
    if uses_online_updates(session.model, config, settings):
        initialize_as_word2vec(model)
    check_disk_space(session.folder, num_parameters(model), config.keep, ema=config.ema is not None)
    ema = None if config.ema is None else Ema(model, config.ema)
    progress = Progress(settings=settings, plan=plan_document(session.plan))
    return TrainState(model, make_optimizer(model, config.optimizer), ema, progress)


def initial_model(session: TrainingSession, settings: ExecutionSettings, source: Tokenizer, target: Tokenizer) -> Model:
    """Return the network with its first weights, a pure function of the seed, on the device.

    Args:
        session: the settings and data of the training.
        settings: the decisions of the first start.
        source: the tokenizer of the source.
        target: the tokenizer of the target.

    Raises:
        RecipeError: the settings do not fit these vocabularies, or the network does not have the products to adapt.
    """
    try:
        model = build(
            session.model,
            source_vocab=source.vocab_size,
            target_vocab=target.vocab_size,
            image=image_shape(session.data.preparation),
            seed=session.seed,
            compute_dtype=PRECISIONS[settings.precision],
        )
        if (lora := session.config.lora) is not None:
            add_lora(model, lora.rank, lora.scale, lora.products, session.seed)
        if session.config.recompute:
            for layer in find_layers(model):
                recompute_layer(layer, model.dropout_rng)
    except ValueError as error:  # of what only the vocabularies show, or the network
        raise RecipeError(str(error)) from error
    return model.to(session.world.device)


def fresh_start(session: TrainingSession, state: TrainState, context: TaskContext) -> StartingPoint:
    """Return the start of a new training from a random state: with the weights of a trained model and the largest
    batches that fit, where the recipe asks for them.

    Args:
        session: the settings and data of the training.
        state: the state with its first weights, changed in place.
        context: the facts from which the task is made.
    """
    config, progress = session.config, state.progress
    if config.init_from is not None:
        load_pretrained(
            state, session.model, Path(config.init_from), (context.source, context.target), session.reporter
        )
    initialize_for_task(state, make_task(context), context, session.data, session.reporter)
    if config.batch_tokens == "auto":
        batch_tokens = find_largest_batch_tokens(session, state.model, context)
        progress.settings = progress.settings.model_copy(update={"batch_tokens": batch_tokens})
    return StartingPoint(state, previous_plan=progress.plan, is_new=True)


def resumed_start(
    session: TrainingSession, state: TrainState, settings: ExecutionSettings, checkpoint: Checkpoint
) -> StartingPoint:
    """Return the start of a training that goes on from a checkpoint.

    Args:
        session: the settings and data of the training.
        state: overwritten by the checkpoint's state.
        settings: the decisions of the first start.
        checkpoint: the checkpoint.

    Raises:
        RecipeError: the updates of word vectors would be of another kind.
    """
    world = session.world
    saved_settings = read_progress(checkpoint).settings
    if reason := other_updates_problem(session.model, session.config, saved_settings, settings, world.size):
        raise RecipeError(reason)
    previous_plan = world.run_on_every_rank(  # each may read a part of its own
        lambda: restore_progress(state, checkpoint, session.plan, settings, world.size)
    )
    return StartingPoint(state, previous_plan=previous_plan, is_new=False)


def shard_state(
    session: TrainingSession, state: TrainState, settings: ExecutionSettings, context: TaskContext
) -> TrainState:
    """Return a state whose weights are sharded over the processes, where the recipe asks for that.

    Args:
        session: the settings and data of the training.
        state: the state before the first update; its network is changed in place.
        settings: the decisions of the first start.
        context: the facts from which the task is made.
    """
    config = session.config
    if config.shard == "none":
        return state
    state.optimizer.param_groups.clear()  # with it, whole weights would stay in memory, and with their average
    state.ema = None
    shard_parameters(state.model, find_layers(state.model), config.shard, session.world)
    ema = None if config.ema is None else Ema(state.model, config.ema)
    optimizer = make_optimizer(state.model, config.optimizer)

    def build_unsharded_model() -> nn.Module:
        return initial_model(session, settings, context.source, context.target)

    return TrainState(state.model, optimizer, ema, state.progress, session.world, build_unsharded_model)


def find_largest_batch_tokens(session: TrainingSession, model: nn.Module, context: TaskContext) -> int:
    """Return the number of tokens a batch that fit in memory.

    Args:
        session: the settings and data of the training.
        model: the network.
        context: the facts from which the task is made.
    """
    return search_largest_batch_tokens(
        model,
        lambda budget: make_task(replace(context, batch_tokens=budget)),
        session.data.train,
        session.config,
        seed=session.seed,
        world=session.world,
        minimum=context.batch_tokens,
        reporter=session.reporter,
    )
