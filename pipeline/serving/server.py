"""The life of a server: it listens, reloads newly published models, drains, and removes its files."""

import asyncio
import errno
import gc
import ipaddress
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import uvicorn

from tfm.pipeline.errors import RecipeError, TfmError
from tfm.pipeline.serving.access import AccessControl, ApiKey, read_keys
from tfm.pipeline.serving.app import make_app
from tfm.pipeline.serving.backend import Backend
from tfm.pipeline.serving.catalog import ModelCatalog, read_catalog
from tfm.pipeline.serving.connection import HttpConnection
from tfm.pipeline.serving.detection import find_detector
from tfm.pipeline.serving.dispatch.dispatcher import Dispatcher
from tfm.pipeline.serving.dispatch.worker_process import StartWorker
from tfm.pipeline.serving.limits import Limits
from tfm.pipeline.serving.logs import Log

MODEL_POLL_SECONDS = 2.0
"""How often the folders of the models are looked at."""
SECONDS_OF_KEEP_ALIVE = 30
MAX_CONNECTIONS = 1_000
BACKLOG = 512


@dataclass(frozen=True)
class ServerOptions:
    """The settings of a server.

    Args:
        models: folders of runs or models.
        languages: NAME=SOURCE:TARGET, for models whose languages are not known.
        shortlists: NAME=FOLDER, for models whose translations are made of the pieces of a shortlist.
        host: address to listen at.
        port: port to listen at; 0: one that is free.
        workers: number of decoding processes.
        keys: file of the keys; None: everyone may ask.
        origins: of other sites whose pages may ask.
        beam: the beam of a request that names none.
        replace_unknown: whether unknown words are replaced by words of the source, where a model writes words.
        grace: the most seconds in which requests are finished after SIGTERM.
        log_json: whether the log has JSON lines.
        log_texts: whether it has texts.
        limits: of requests.
    """

    models: tuple[Path, ...]
    languages: tuple[str, ...] = ()
    shortlists: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    keys: Path | None = None
    origins: tuple[str, ...] = ()
    beam: int = 5
    replace_unknown: bool = False
    grace: float = 10.0
    log_json: bool = False
    log_texts: bool = False
    limits: Limits = field(default_factory=Limits)


def serve(options: ServerOptions, start_worker: StartWorker) -> None:
    """Serve models until SIGTERM or Ctrl-C.

    Args:
        options: the settings.
        start_worker: starts a decoding process.

    Raises:
        TfmError: a model, the keys or the address cannot be used.
    """
    catalog = read_catalog(options.models, options.languages, options.shortlists)
    keys = None if options.keys is None else read_keys(options.keys)
    log = Log(options.log_json, options.log_texts)
    with listen(options.host, options.port) as listener:
        asyncio.run(_run_server(options, partial(_make_backend, options, start_worker, catalog, keys, log), listener))


def _make_backend(
    options: ServerOptions, start_worker: StartWorker, catalog: ModelCatalog, keys: list[ApiKey] | None, log: Log
) -> Backend:
    limits = options.limits
    dispatcher = Dispatcher(start_worker, options.workers, limits.sentences, log.warn)
    detector = find_detector([*catalog.targets_by_source])
    access = AccessControl(keys, limits.requests_per_minute)
    return Backend(catalog, dispatcher, limits, access, log, detector, options.beam, options.replace_unknown)


@contextmanager
def listen(host: str, port: int) -> Iterator[socket.socket]:
    """Listen at an address while the body runs. Raises RecipeError if that cannot be."""
    try:
        addresses = socket.getaddrinfo(_without_brackets(host), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = addresses[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError, OverflowError) as error:
        raise RecipeError(f"--host {host}: no such address ({error})") from None
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as error:
            option = "--host" if error.errno == errno.EADDRNOTAVAIL else "--port"
            reason = f"cannot be listened at ({error.strerror}): name another with {option}"
            raise RecipeError(f"{host} port {port} {reason}") from None
        yield listener


def _without_brackets(host: str) -> str:
    """An address of IPv6 that is written as it stands in a URL, as the library has it."""
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


async def _run_server(options: ServerOptions, make_backend: Callable[[], Backend], listener: socket.socket) -> None:
    """Serve until a signal ends it."""
    backend = make_backend()
    forward_library_logs(backend.log)
    config = uvicorn.Config(
        make_app(backend, options.origins),
        http=HttpConnection,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=SECONDS_OF_KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(options.grace)),
        limit_concurrency=MAX_CONNECTIONS,
    )
    gc.freeze()  # what lives on is not looked through again and again
    server = GracefulServer(config)
    renewal = ModelRenewal(backend, options)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, renewal.request_renewal)
    watcher = asyncio.create_task(renewal.watch_for_changes())
    _log_models_and_address(options, backend, listener)
    try:
        await server.serve([listener])
    finally:
        watcher.cancel()
        with suppress(asyncio.CancelledError):
            await watcher


def _log_models_and_address(options: ServerOptions, backend: Backend, listener: socket.socket) -> None:
    """Log the models and the address, with what an operator should know of them."""
    host, port = listener.getsockname()[:2]
    displayed_host = f"[{host}]" if ":" in host else host
    for model in backend.catalog.models.values():
        pairs = [f"{source} to {target}" for source, target in model.pairs][:4]
        languages = f" ({', '.join(pairs)}{', ...' if len(model.pairs) > 4 else ''})" if pairs else ""
        shortlist = "" if model.version.shortlist is None else f", with the shortlist {model.version.shortlist.folder}"
        backend.log.info(f"{model.name}: {model.version.task}{languages}{shortlist}")
    backend.log.info(f"listening at http://{displayed_host}:{port}")
    if not ipaddress.ip_address(host).is_loopback and not backend.access.needs_key:
        backend.log.warn("everyone who reaches this address may ask: give --keys FILE, or --host 127.0.0.1")


class ModelRenewal:
    """Loads newly published models: at a signal, and every few seconds.

    Args:
        backend: of the server.
        options: of the server, by which keys are read again.
        seconds: between two looks at the folders.
    """

    def __init__(self, backend: Backend, options: ServerOptions, seconds: float = MODEL_POLL_SECONDS) -> None:
        self._backend, self._options, self._seconds = backend, options, seconds
        self._renewal_requested = asyncio.Event()

    def request_renewal(self) -> None:
        """Look now, and read the keys again."""
        self._renewal_requested.set()

    async def watch_for_changes(self) -> None:
        """Look again and again."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._seconds):
                    await self._renewal_requested.wait()
            if self._renewal_requested.is_set():
                self._renewal_requested.clear()
                self._read_keys()
            await self._backend.reload_republished_models()

    def _read_keys(self) -> None:
        file, backend = self._options.keys, self._backend
        if file is None:
            return
        try:
            backend.access.replace_keys(keys := read_keys(file))
            backend.log.info(f"{file}: read again, {len(keys)} keys")
        except (TfmError, OSError) as error:
            backend.log.warn(f"the keys stay as they were: {error}")


class GracefulServer(uvicorn.Server):
    """A server whose end by a signal is no failure: it answers what it has taken, and returns."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let SIGTERM and Ctrl-C end the server while the body runs; a second Ctrl-C ends it at once."""
        numbers = (signal.SIGTERM, signal.SIGINT)
        previous_handlers = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in previous_handlers.items():
                signal.signal(number, handler)


class _LogHandler(logging.Handler):
    """Passes on what libraries log, without tracebacks, which may hold texts."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = "" if not record.exc_info or record.exc_info[0] is None else f" ({record.exc_info[0].__name__})"
        self._log.warn(f"{record.name}: {record.getMessage():.200}{error}")


def forward_library_logs(log: Log) -> None:
    """Let the libraries of the server write into its log."""
    for name in ("uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [_LogHandler(log)], False
    logging.getLogger("python_multipart").disabled = True  # the sender of a broken form gets an error
    logging.getLogger("python_multipart.multipart").disabled = True
