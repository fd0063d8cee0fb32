"""`tfm push` and `tfm pull`: models on a hub."""

from pathlib import Path
from typing import Annotated

import typer

from tfm.cli.commands.exchange.card_options import CardLanguages, CardLicense

Revision = Annotated[
    str | None, typer.Option("--revision", metavar="REV", help="A branch; pull: also a tag or commit (default: main).")
]


def push(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run, or a trained model.")],
    to: Annotated[str, typer.Option("--to", metavar="OWNER/NAME", help="The repository; made if there is none.")],
    revision: Revision = None,
    private: Annotated[bool, typer.Option("--private", help="Make the repository private, if it is made.")] = False,
    language: CardLanguages = None,
    license: CardLicense = None,
) -> None:
    """Send a trained model, with its manifest and a card, to a repository of the Hugging Face Hub.

    The token is that of `hf auth login` or HF_TOKEN; HF_ENDPOINT names another hub. Prints the address of the commit.
    """
    from tfm.cli.streams import print_data
    from tfm.pipeline.hub.push import push as push_model

    result = push_model(run, to, revision=revision, private=private, languages=tuple(language or ()), license=license)
    print_data(result.url)


def pull(
    name: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="A repository that `tfm push` filled.")],
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="Output folder: a run; the model is RUN/model.")],
    revision: Revision = None,
) -> None:
    """Fetch a model from a repository of the Hugging Face Hub, and verify it by its manifest."""
    from tfm.cli.console import make_reporter
    from tfm.pipeline.hub.pull import pull as pull_model

    reporter = make_reporter()
    manifest = pull_model(name, out, revision=revision, reporter=reporter)
    reporter.line(f"model: {manifest.fingerprint}, fetched from {name} as {out / 'model'}")
