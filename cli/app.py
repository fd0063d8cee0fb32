"""The `tfm` command: which commands there are, and the one place where errors become text and an exit code."""

import functools
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, NoReturn

import typer

from cli.evaluate import evaluate
from cli.inspect import inspect
from cli.options import argv
from cli.preprocess import preprocess
from cli.recipe import recipe
from cli.run import run
from cli.tokenize import tokenize
from cli.train import train
from cli.translate import translate
from pipeline.errors import Stopped, TfmError

IO_ERROR = 74


@dataclass
class ErrorHandler:
    """Turns what a command raises into one or two lines on stderr and an exit code."""

    debug: bool = False

    def __call__(self, command: Callable[..., None]) -> Callable[..., None]:
        """The command, with its errors handled here."""

        @functools.wraps(command)
        def handled(*args: object, **kwargs: object) -> None:
            try:
                command(*args, **kwargs)
                sys.stdout.flush()
            except TfmError as error:
                self._leave(str(error), error.exit_code)
            except BrokenPipeError:
                # Whoever read our output has seen enough. Python would flush once more at exit and complain.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                self._leave("", IO_ERROR)
            except OSError as error:
                place = f"{error.filename}: " if error.filename is not None else ""
                self._leave(f"{place}{error.strerror or error}", IO_ERROR)
            except KeyboardInterrupt:
                again = shlex.join(argv())
                self._leave(f"Stopped. What was finished is kept; go on with:\n  {again}", Stopped.exit_code)

        return handled

    def _leave(self, text: str, exit_code: int) -> NoReturn:
        if self.debug:
            traceback.print_exc()
        if text:
            print(text, file=sys.stderr)
        raise typer.Exit(exit_code)


app = typer.Typer(
    name="tfm",
    help="From raw text to a trained Transformer and a score one can trust, in five stages.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # rich takes longer to load than all the rest of `tfm --help`
    pretty_exceptions_enable=False,
)
handle_errors = ErrorHandler()

for stage in (tokenize, preprocess, train, translate, evaluate, run, inspect, recipe):
    app.command(name=stage.__name__)(handle_errors(stage))


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"tfm {version('tfm')}")
        except PackageNotFoundError:
            print("tfm, not installed: running from its source")
        raise typer.Exit


@app.callback()
def settings(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """From raw text to a trained Transformer and a score one can trust, in five stages."""
    handle_errors.debug = debug


def main() -> None:
    """What the console script runs."""
    # A polite kill is a Ctrl-C: the same way out, the same exit code.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app(prog_name="tfm")


if __name__ == "__main__":
    main()
