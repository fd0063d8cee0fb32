"""`tfm serve`: trained models behind HTTP."""

import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfm.cli.options import ReplaceUnknown, reject_flags
from tfm.cli.typed_options import with_options

if TYPE_CHECKING:
    from tfm.pipeline.serving.dispatch.worker_process import StartWorker

SERVE_PACKAGES = ("starlette", "uvicorn", "httptools", "python_multipart", "prometheus_client", "sentencex")
"""The packages of the extra `serve`."""

ORIGIN = re.compile(
    r"\*|null|(?!https?://[^/]*:(?:80|443)$)[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[^\s/:?#@A-Z]+)(?::\d+)?"
)
"""An origin as browsers send it: without path, capitals, or the port of its scheme."""


@dataclass(frozen=True)
class ServeOptions:
    """Arguments and options of `tfm serve`."""

    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL...", help="Trained models, or the folders of their runs.")
    ]
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen at.")] = "127.0.0.1"
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0: any that is free.")] = (
        8000
    )
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", min=1, max=256, help="Decoding processes, of one thread each.")
    ] = 1
    beam: Annotated[
        int, typer.Option("--beam", metavar="W", min=1, help="Beam width where a request names none; 1: greedy.")
    ] = 5
    replace_unknown: ReplaceUnknown = False
    languages: Annotated[
        list[str] | None,
        typer.Option(
            "--languages", metavar="NAME=S:T", help="Languages of a model, if its run does not name them; repeatable."
        ),
    ] = None
    shortlist: Annotated[
        list[str] | None,
        typer.Option(
            "--shortlist", metavar="NAME=DIR", help="Shortlist of a model, as `tfm shortlist` makes it; repeatable."
        ),
    ] = None
    keys: Annotated[
        Path | None,
        typer.Option("--keys", metavar="FILE", help="Who may ask: a line each, KEY [LABEL [REQUESTS_A_MINUTE]]."),
    ] = None
    rate: Annotated[
        int | None,
        typer.Option("--rate", metavar="N", min=1, help="Requests a minute of a key; without keys of an address."),
    ] = None
    cors: Annotated[
        list[str] | None,
        typer.Option("--cors", metavar="ORIGIN", help="Another site whose pages may ask; repeatable."),
    ] = None
    max_chars: Annotated[
        int, typer.Option("--max-chars", metavar="N", min=1, help="Characters of the texts of a request at most.")
    ] = 50_000
    max_body: Annotated[
        int, typer.Option("--max-body", metavar="BYTES", min=1, help="Bytes of the body of a request at most.")
    ] = 1 << 20
    max_beam: Annotated[int, typer.Option("--max-beam", metavar="W", min=1, help="Widest beam of a request.")] = 10
    max_waiting: Annotated[
        int, typer.Option("--max-waiting", metavar="N", min=1, help="Sentences that wait at most, of all requests.")
    ] = 2_000
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="S", min=0.1, help="Seconds that a request may take.")
    ] = 60.0
    grace: Annotated[
        float, typer.Option("--grace", metavar="S", min=1, help="Seconds to finish requests in after SIGTERM.")
    ] = 10.0
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Keep answers for sentences that come again.")] = (
        True
    )
    numpy: Annotated[
        bool,
        typer.Option("--numpy", help="Small models without torch: a start in less time and memory, slower answers."),
    ] = False
    log_json: Annotated[bool, typer.Option("--log-json", help="A JSON object a line in the log.")] = False
    log_texts: Annotated[bool, typer.Option("--log-texts", help="The texts of requests in the log.")] = False


@with_options
def serve(options: ServeOptions) -> None:
    """Answer requests over HTTP with trained models, and show a page to type at.

    Routes are those of LibreTranslate and, for language models, of OpenAI; docs/serving/README.md has examples.
    """
    from tfm.pipeline.errors import RecipeError

    if missing := [name for name in SERVE_PACKAGES if find_spec(name) is None]:
        raise RecipeError(f"tfm serve: {missing[0]} is not installed: pip install 'tfm-toolkit[serve]'")
    from tfm.pipeline.serving.dispatch.process_starter import ProcessStarter

    if options.numpy:
        reject_flags({"--replace-unknown": options.replace_unknown}, "needs torch: leave --numpy out")
    for origin in options.cors or ():
        if not ORIGIN.fullmatch(origin):
            problem = (
                "no browser sends this as the origin of a page: write SCHEME://HOST[:PORT], as in https://example.org"
            )
            raise RecipeError(f"--cors {origin}: {problem}, or * for all")
    reject_flags({"--beam": options.beam if options.beam > options.max_beam else None}, "is wider than --max-beam")
    with ProcessStarter(numpy=options.numpy, num_spares=options.workers) as start:  # before what takes time to import
        _serve(options, start)


def _serve(options: ServeOptions, start_worker: "StartWorker") -> None:
    """Serve by processes that `start_worker` starts."""
    from tfm.pipeline.serving.limits import Limits
    from tfm.pipeline.serving.server import ServerOptions
    from tfm.pipeline.serving.server import serve as serve_models

    plain = Limits()
    limits = Limits(
        body_bytes=options.max_body,
        chars=options.max_chars,
        sentences=options.max_waiting,
        beam=options.max_beam,
        alternatives=min(plain.alternatives, options.max_beam - 1),
        seconds=options.timeout,
        requests_per_minute=options.rate,
        cached_answers=plain.cached_answers if options.cache else 0,
    )
    serve_models(
        ServerOptions(
            models=tuple(options.models),
            languages=tuple(options.languages or ()),
            shortlists=tuple(options.shortlist or ()),
            host=options.host,
            port=options.port,
            workers=options.workers,
            keys=options.keys,
            origins=tuple(options.cors or ()),
            beam=options.beam,
            replace_unknown=options.replace_unknown,
            grace=options.grace,
            log_json=options.log_json,
            log_texts=options.log_texts,
            limits=limits,
        ),
        start_worker,
    )
