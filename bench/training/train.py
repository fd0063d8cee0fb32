"""`python -m bench train`: predictions a second in training, compared with peers on the same ids."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from bench.options import Device, Json, Predict, Rounds, add_predictions

if TYPE_CHECKING:
    from bench.compare import Contestant
    from bench.compare import Rounds as Found
    from bench.report import Extra
    from bench.training.workload import Workload
    from tfm.model.config import ModelConfig


def train(
    dataset: Annotated[Path, typer.Argument(metavar="DATASET", help="What `tfm preprocess` made.")],
    recipe: Annotated[
        Path | None, typer.Option("--recipe", metavar="FILE", help="Whose [model] and [training] are measured.")
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a value of these, as in model.encoder.dim=512."),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", metavar="N", min=1, help="Updates that count.")] = 40,
    warmup: Annotated[int, typer.Option("--warmup", metavar="N", min=1, help="Updates before them.")] = 10,
    rounds: Rounds = 3,
    device: Device = "cpu",
    against: Annotated[
        list[str] | None,
        typer.Option("--against", metavar="PEER", help="plain, eole=VENV, huggingface=VENV, nanogpt=FOLDER."),
    ] = None,
    against_set: Annotated[
        list[str] | None,
        typer.Option(
            "--against-set", metavar="'K=V ...'", help="Ours with other values, as in training.precision=fp32."
        ),
    ] = None,
    predict: Predict = None,
    json: Json = None,
) -> None:
    """Predictions a second of `tfm train`, beside peers.

    A prediction is a target token, a hidden token or a label. All train on the same ids, models of the same size.
    Only updates count: no start, no validation, no checkpoint. The peers get the dataset's training split as files,
    and the dataset's batch_tokens as their budget (huggingface: as many texts as fill it on average). `plain` is a
    plain PyTorch loop run by our Python, for language models that of nanoGPT; `nanogpt` is the network of the
    model.py in a folder in that loop. eole (translation, on a CPU alone) and huggingface (Marian, GPT-2, BERT, CANINE)
    are run by the virtual environments that are named. On a GPU plain and huggingface multiply in bf16.
    """
    from bench.kernels.ceilings import SQUARE_SIZE, square_gigaflops
    from bench.report import contest, write_json
    from bench.training.workload import Workload, read_configs

    words = sets or []
    work = Workload(dataset.resolve(), *read_configs(recipe, words), warmup, steps, device)
    with TemporaryDirectory() as folder:
        contestants, models = own_contestants(work, recipe, words, against_set or [])
        contestants += peer_contestants(work, against or [], Path(folder))
        ceilings = square_gigaflops(device) if work.has_flops else {}
        summaries = contest(
            f"training on {dataset}: {describe_workload(work)}",
            add_predictions(contestants, predict),
            rounds=rounds,
            unit="target tokens/s" if work.model.task == "translation" else "predictions/s",
            extra=lambda figures: extra_columns(work, models, ceilings, figures),
        )
    if ceilings:
        size = f"{SQUARE_SIZE[device]:,}"
        rates = ", ".join(f"{kind} {rate:,.0f} GFLOP/s" for kind, rate in ceilings.items())
        print(f"GEMM, {size} x {size} x {size}: {rates}")
    options = {"model": work.model.model_dump(), "training": work.config.model_dump(), "steps": steps, "warmup": warmup}
    write_json(json, "train", {"dataset": dataset, **options}, {"contestants": summaries, "ceilings": ceilings})


def own_contestants(
    work: "Workload", recipe: Path | None, sets: Sequence[str], further_sets: Sequence[str]
) -> "tuple[list[Contestant], dict[str, ModelConfig]]":
    """`tfm train` as asked for, then in other configurations; and the model of each."""
    from bench.compare import Contestant
    from bench.training import baselines
    from bench.training.workload import read_configs

    configurations = {"tfm": (work.model, work.config)}
    for sets_text in further_sets:
        configurations[f"tfm {sets_text}"] = read_configs(recipe, [*sets, *sets_text.split()])
    contestants = [
        Contestant(name, partial(baselines.measure_tfm, work, *configuration))
        for name, configuration in configurations.items()
    ]
    return contestants, {name: model for name, (model, _) in configurations.items()}


def peer_contestants(work: "Workload", against: Sequence[str], folder: Path) -> "list[Contestant]":
    """The peers by NAME or NAME=FOLDER, their files in `folder`. Raises typer's usage error for one there is not."""
    from bench.compare import Contestant
    from bench.training.baselines import PLACES, find_peers, model_size
    from bench.training.pieces import write_pieces
    from bench.training.text_peers import text_model_size, write_examples

    peers, contestants = find_peers(work.model), []
    for text in against:
        name, _, folder_text = text.partition("=")
        path = Path(folder_text).expanduser() if folder_text else None
        if name not in peers:
            names = ", ".join(peers) or "none"
            raise typer.BadParameter(
                f"{name}: peers of {work.model.architecture} {work.model.task}: {names}", param_hint="--against"
            )
        if name == "eole" and work.device != "cpu":
            raise typer.BadParameter("eole: it is measured on a CPU alone", param_hint="--against")
        if name in PLACES and (path is None or not (path / PLACES[name]).exists()):
            advice = f"write {name}=FOLDER, which has {PLACES[name]}"
            raise typer.BadParameter(f"{text}: {advice}", param_hint="--against")
        contestants.append(Contestant(name, partial(peers[name], work, folder, path)))
    if not contestants:
        return contestants
    if work.model.task == "translation":
        model_size(work)  # refused before anything runs
        write_pieces(work.data.train, work.vocab, folder)
    else:
        text_model_size(work)
        write_examples(work, folder)
    return contestants


def extra_columns(
    work: "Workload", models: "dict[str, ModelConfig]", ceilings: dict[str, float], rounds: "Found"
) -> "Extra":
    """FLOP a token, the share of what the machine multiplies at most, tokens an update, and padding."""
    from bench.compare import median_figure

    rates = {name: median_figure(figures, "rate") for name, figures in rounds.items()}
    result: dict[str, dict[str, object]] = {}
    if ceilings:
        flops = {name: work.flops_a_token(models.get(name, work.model)) for name in rounds}
        result["MFLOP/token"] = {name: f"{each / 1e6:.1f}" for name, each in flops.items()}
        for kind, ceiling in ceilings.items():
            shares = {name: rates[name] * flops[name] / (ceiling * 1e9) for name in rounds}
            result[f"of {kind} GEMM"] = {name: f"{100 * share:.0f} %" for name, share in shares.items()}
    unit = "tokens" if work.model.task == "translation" else "predictions"
    result[f"{unit}/update"] = {name: f"{median_figure(each, 'tokens'):,.0f}" for name, each in rounds.items()}
    paddings = {name: median_figure(each, "padding") for name, each in rounds.items() if "padding" in each[0]}
    if paddings:
        result["padding"] = {name: f"{100 * share:.1f} %" for name, share in paddings.items()}
    return result


def describe_workload(work: "Workload") -> str:
    """The size of what is trained."""
    encoder, decoder, kind = work.model.encoder, work.model.decoder, work.model.architecture
    stacks = {"decoder_only": (decoder,), "encoder_only": (encoder,)}.get(kind, (encoder, decoder))
    layers = " + ".join(str(each.layers) for each in stacks)
    layers = f"{layers} layers, D {stacks[-1].dim}, F {stacks[-1].feed_forward_dim}"
    return f"{layers}, V {work.vocab:,}, {work.data.batch_tokens:,} tokens a batch, {work.steps} updates"
