"""The `tfm` command: its subcommands, and the one place where errors become text and an exit code."""

import atexit
import functools
import gc
import importlib
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar, NoReturn, TextIO, cast

import typer
from typer.core import TyperGroup

from tfm.cli.options import IO_ERROR_EXIT_CODE, command_line
from tfm.cli.streams import TerminalStream, print_data, print_message, redirect_to_devnull
from tfm.cli.torchrun_output import INTERRUPTED_EXIT_CODE, choose_error_stream, is_idle_rank, rank_zero_stderr
from tfm.pipeline.errors import MASK, DataError, StoppedError, TfmError, escape_unprintable, redact_command_line
from tfm.pipeline.runtime.out_of_memory import is_out_of_memory
from tfm.pipeline.runtime.stop_signal import stop_signals

OUT_OF_MEMORY_MESSAGE = (
    "memory ran out: end other programs or raise the limit (ulimit -v), or lower data.batch_tokens or "
    "decoding.batch_sentences"
)
RESUMABLE_COMMANDS = ("clean", "train", "run", "search", "synthesize")
"""Commands that go on where they were stopped."""
ARGUMENTS = "tfm.arguments"
"""The name in a context's notes of what was typed."""
UsageError: type[Any] = typer.BadParameter.__mro__[1]  # of click, or of typer's own copy of it


@dataclass
class ErrorHandler:
    """Handler that turns an exception of a command into one or two lines on stderr and an exit code."""

    debug: bool = False

    def __call__(self, command: Callable[..., None]) -> Callable[..., None]:
        """The command, with its errors handled here."""

        @functools.wraps(command)
        def run_handled(*args: object, **kwargs: object) -> None:
            try:
                _enable_garbage_collection()
                if not is_idle_rank(command.__name__):
                    command(*args, **kwargs)
                sys.stdout.flush()
            except StoppedError as error:
                self._exit_with_error(f"{error}{_resume_hint()}", error.exit_code, error)
            except TfmError as error:
                self._exit_with_error(str(error), error.exit_code, error)
            except BrokenPipeError as error:
                self._exit_with_error("", IO_ERROR_EXIT_CODE, error)  # the reader of our output closed it
            except (MemoryError, RuntimeError, ImportError) as error:
                if not is_out_of_memory(error):
                    raise
                self._exit_with_error(OUT_OF_MEMORY_MESSAGE, DataError.exit_code, error)
            except OSError as error:
                if is_out_of_memory(error):
                    self._exit_with_error(OUT_OF_MEMORY_MESSAGE, DataError.exit_code, error)
                # Errors of files name them; the standard streams have no name.
                file_name = error.filename2 or error.filename or "stdin or stdout"
                self._exit_with_error(f"{file_name}: {error.strerror or error}", IO_ERROR_EXIT_CODE, error)
            except KeyboardInterrupt as error:
                if command.__name__ in RESUMABLE_COMMANDS:
                    note = "stopped; finished work is kept, and the same command resumes"
                    self._exit_with_error(f"{note}{_resume_hint()}", StoppedError.exit_code, error)
                self._exit_with_error(
                    f"stopped; the same command begins again{_resume_hint()}", INTERRUPTED_EXIT_CODE, error
                )
            except BaseException as error:
                if type(error).__name__ != "PanicException":  # of `tokenizers`, which names no class for it
                    raise
                self._exit_with_error(f"its tokenizer fails on this text ({error!s:.200}): is it whole?", 65, error)

        return run_handled

    def _exit_with_error(self, text: str, exit_code: int, error: BaseException) -> NoReturn:
        with suppress(OSError):
            if self.debug:
                print_message(traceback.format_exc().rstrip("\n"))
            if text:
                print_message(text, choose_error_stream(error))
        _flush_stream(sys.stdout)
        _flush_stream(sys.stderr)
        raise typer.Exit(exit_code)


def _enable_garbage_collection() -> None:
    """End what `main` began: no collection looks at the objects of the start again."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _resume_hint() -> str:
    """The command to repeat; under torchrun it is torchrun's own command, which is unknown here."""
    if "WORLD_SIZE" in os.environ:
        return ""
    masked = redact_command_line(command_line())
    note = "" if masked == command_line() else f" (with a credential, not printed, in place of {MASK})"
    return f"{note}:\n  {shlex.join(masked)}"


def _flush_stream(stream: TextIO) -> None:
    """Flush the output; if that fails, the stream is redirected to /dev/null."""
    try:
        stream.flush()
    except OSError:
        redirect_to_devnull(stream)


class CommandTable(Mapping[str, Any]):
    """Commands by name, each loaded when it is looked up: typing one loads no other.

    Args:
        functions: the function of each command, as module:function within `tfm.cli.commands`.
        groups: groups of further commands, which stand behind these.
    """

    def __init__(self, functions: Mapping[str, str], groups: Mapping[str, Any]) -> None:
        self._functions, self._groups = functions, groups

    def __iter__(self) -> Iterator[str]:
        return iter((*self._functions, *self._groups))

    def __len__(self) -> int:
        return len(self._functions) + len(self._groups)

    def __getitem__(self, name: str) -> Any:
        return self._groups[name] if name in self._groups else load_command(name, self._functions[name])


@functools.cache
def load_command(name: str, place: str) -> Any:
    """Return a command as typer makes it.

    Args:
        name: of the command.
        place: its function, as module:function within `tfm.cli.commands`.
    """
    module, _, function = place.partition(":")
    parent = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    parent.command(name=name)(handle_errors(getattr(importlib.import_module(f"tfm.cli.commands.{module}"), function)))
    return typer.main.get_command(parent)


class CommandGroup(TyperGroup):
    """A group with a table of commands in place of a dict, whose commands would all be loaded."""

    functions: ClassVar[Mapping[str, str]]

    def __init__(self, *, commands: Any, **attributes: Any) -> None:
        super().__init__(commands=cast("Any", CommandTable(self.functions, commands)), **attributes)


class JudgeCommands(CommandGroup):
    """The commands of `tfm judge`."""

    functions: ClassVar = {"make": "judge.make:make", "score": "judge.score:score"}


class Commands(CommandGroup):
    """The commands. Arguments are decoded before the first of them is parsed: texts, names and manifests are UTF-8."""

    functions: ClassVar = {
        "clean": "clean:clean",
        "tokenize": "tokenize:tokenize",
        "preprocess": "preprocess:preprocess",
        "train": "train:train",
        "translate": "translate:translate",
        "evaluate": "evaluate:evaluate",
        "run": "recipes.run:run",
        "search": "recipes.search:search",
        "generate": "generate:generate",
        "serve": "serve:serve",
        "attend": "attend:attend",
        "align": "align:align",
        "shortlist": "shortlist:shortlist",
        "embed": "embed:embed",
        "synthesize": "synthesis.synthesize:synthesize",
        "rerank": "synthesis.rerank:rerank",
        "compare": "compare:compare",
        "import": "exchange.import_model:import_model",
        "export": "exchange.export:export",
        "push": "exchange.hub:push",
        "pull": "exchange.hub:pull",
        "inspect": "inspect:inspect",
        "recipe": "recipes.recipe:recipe",
        "plan": "recipes.plan:plan",
    }

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        for number, argument in enumerate(args, 1):
            try:
                argument.encode()
            except UnicodeEncodeError:
                problem = f"argument {number} is not UTF-8: {ascii(argument)[:200]}"
                raise typer.BadParameter(f"{problem}; rename the file, or set the terminal to UTF-8") from None
        ctx.meta[ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except UsageError as error:
            message = error.message.removeprefix("Value error, ")  # pydantic's, by which typer reads values
            error.message = message + _recipe_advice(error.ctx, ctx.meta[ARGUMENTS])
            raise


app = typer.Typer(
    name="tfm",
    cls=Commands,
    help="From raw text to a trained Transformer and scores you can trust, in five stages.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # rich takes longer to load than all the rest of `tfm --help`
    pretty_exceptions_enable=False,
)
handle_errors = ErrorHandler()

judge_app = typer.Typer(cls=JudgeCommands, no_args_is_help=True, rich_markup_mode=None)
app.add_typer(judge_app, name="judge", help="Ask people which model is better, by ratings or preferences.")


def _recipe_advice(ctx: typer.Context | None, arguments: Sequence[str]) -> str:
    """The rest of a message about arguments of a command that takes a recipe by a flag, where one is not given so."""
    flags = () if ctx is None else [flag for parameter in ctx.command.params for flag in parameter.opts]
    if "--recipe" not in flags or any(each.partition("=")[0] == "--recipe" for each in arguments):
        return ""
    recipes = (
        each
        for before, each in pairwise(arguments)
        if each.endswith(".toml") and not before.startswith("--") and not each.startswith("-")
    )
    recipe = next(recipes, None)
    return "" if recipe is None else f"; a recipe is given by --recipe {shlex.quote(escape_unprintable(recipe))}"


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from tfm.pipeline import distribution

        number = distribution.version()
        print_data("tfm, not installed: running from its source" if number is None else f"tfm {number}")
        raise typer.Exit


@app.callback()
def global_options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """From raw text to a trained Transformer and scores you can trust, in five stages."""
    handle_errors.debug = debug


def _open_closed_standard_streams() -> None:
    """If the caller closed stdin, stdout or stderr: open /dev/null, or the next opened file would take its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            null_descriptor = os.open(os.devnull, os.O_RDWR)
            if null_descriptor != number:
                os.dup2(null_descriptor, number)
                os.close(null_descriptor)
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115


def main() -> None:
    """Run the `tfm` command: the entry point of the console script."""
    _open_closed_standard_streams()
    # SIGTERM and a closed terminal are treated as Ctrl-C: the same clean-up, the same exit code.
    for number in stop_signals():
        signal.signal(number, signal.default_int_handler)
    # Python looks through all objects at its end, a third of a second after torch was loaded; these it leaves out.
    atexit.register(gc.freeze)
    gc.disable()  # until a command begins: what is loaded up to there stays
    sys.stderr = cast("TextIO", TerminalStream(sys.stderr))
    with rank_zero_stderr():
        app(prog_name="tfm")


if __name__ == "__main__":
    main()
