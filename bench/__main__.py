"""`python -m bench`: which benches there are."""

import functools
import sys
from collections.abc import Callable

import typer

from bench.claims.command import claim
from bench.cleaning.experiment import noisy
from bench.cleaning.speed import clean
from bench.cluster import cluster
from bench.corpora.dataset import dataset
from bench.corpora.growth import growth
from bench.corpora.preprocess import preprocess
from bench.corpora.tokenize import tokenize
from bench.decoding.decode import decode
from bench.decoding.generate import generate
from bench.decoding.labels import labels
from bench.decoding.serving import serve
from bench.kernels.ceilings import ceilings
from bench.kernels.complexity import complexity
from bench.kernels.softmax import softmax
from bench.memory.command import memory
from bench.noise import noise
from bench.processes import ProcessError
from bench.scores import scores
from bench.search import search
from bench.startup import startup
from bench.training.images import images
from bench.training.learning import learning
from bench.training.plan import plan
from bench.training.sharding import sharding
from bench.training.train import train
from bench.training.vectors import vectors
from bench.trials import trials
from tfm.pipeline.errors import TfmError

app = typer.Typer(
    name="bench",
    help="What is fast: measured in turn, each round a process of its own, beside peers where they are given.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def print_errors(bench: Callable[..., None]) -> Callable[..., None]:
    """The bench, its errors as text on stderr."""

    @functools.wraps(bench)
    def handled(*args: object, **kwargs: object) -> None:
        try:
            bench(*args, **kwargs)
        except (ProcessError, TfmError) as error:
            print(error, file=sys.stderr)
            raise typer.Exit(getattr(error, "exit_code", 1)) from None

    return handled


BENCHES: tuple[Callable[..., None], ...] = (
    *(train, learning, images, vectors, decode, generate, labels, tokenize, preprocess, startup, ceilings),
    *(complexity, plan),
    *(growth, memory, dataset, sharding, cluster, serve, softmax, scores, search, trials, noise, claim, clean, noisy),
)
for command in BENCHES:
    app.command(name=command.__name__)(print_errors(command))


if __name__ == "__main__":
    app(prog_name="python -m bench")
