"""`python -m bench serve`: sentences a second of a server that many clients ask, beside `tfm translate`."""

import asyncio
import json as json_module
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import typer

from bench.options import Json, Rounds

WARM_UP_LINES = 32


def serve(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What `tfm train` made.")],
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Text, one sentence a line, also .gz.")],
    clients: Annotated[int, typer.Option("--clients", metavar="N", min=1, help="Clients that ask at a time.")] = 16,
    beam: Annotated[int, typer.Option("--beam", metavar="W", min=1, help="Beam width.")] = 5,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=1, help="Decoding processes.")] = 2,
    batch: Annotated[
        int, typer.Option("--batch", metavar="N", min=1, help="Sentences a batch of `tfm translate` beside it.")
    ] = 8,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Lines at most.")] = 400,
    beside: Annotated[bool, typer.Option("--translate/--no-translate", help="Also `tfm translate`.")] = True,
    against: Annotated[
        Literal["ctranslate2"] | None,
        typer.Option("--against", metavar="PEER", help="ctranslate2 (extra: export) behind a plain route, in turn."),
    ] = None,
    rounds: Rounds = 3,
    json: Json = None,
) -> None:
    """Sentences a second of `tfm serve`, and latency.

    Clients ask a sentence at a time. Each keeps one connection, and asks the next line when it has the answer to
    the one before. The server keeps no answers. In turn with it `tfm translate` decodes the same lines; its start
    is not counted. A peer has the same weights in fp32, as many workers of one thread, and the same clients. The
    clients run on the same processors: their CPU time is said, and deducted from the seconds by its share of a
    processor.
    """
    from bench.processes import TFM, run_tfm
    from tfm.data.lines import open_lines

    lines = [line for line in open_lines(source) if line.strip()][:limit]
    served, peers, translated = list[Load](), list[Load](), list[float]()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        size = ["--workers", str(workers), "--beam", str(beam)]
        command = [*TFM, "serve", str(model), "--port", "0", "--no-cache", *size]
        port, ready = stack.enter_context(running_server(command, folder / "log"))
        asyncio.run(ask_all(port, lines[:WARM_UP_LINES], clients))
        if against is not None:
            run_tfm("export", model, "--to", "ctranslate2", "--out", folder / "engine")
            command = [sys.executable, "-m", "bench.peers.decoding.serve_ctranslate2", str(folder / "engine")]
            peer_address, _ = stack.enter_context(running_server([*command, str(workers), str(beam)], folder / "peer"))
            asyncio.run(ask_all(peer_address, lines[:WARM_UP_LINES], clients))
        for number in range(rounds):
            served.append(measure_load(port, lines, clients))
            if against is not None:
                peers.append(measure_load(peer_address, lines, clients))
            if beside:
                translated.append(translate_rate(TFM, model, lines, beam, batch, folder / f"out{number}"))
    figures: dict[str, Any] = {"seconds_to_ready": ready, **median_load(served)}
    if peers:
        figures |= {f"{against}_{name}": value for name, value in median_load(peers).items()}
        figures[f"share_of_{against}"] = figures["without_clients"] / figures[f"{against}_without_clients"]
        pairs = zip(served[0].texts, peers[0].texts, strict=True)
        figures["same_texts"] = sum(one == other for one, other in pairs) / len(lines)
    if beside:
        figures["tfm_translate"] = statistics.median(translated)
        figures["share"] = figures["without_clients"] / figures["tfm_translate"]
        figures["rounds"] = [(each.without_clients, other) for each, other in zip(served, translated, strict=True)]
    for name, value in figures.items():
        text = f"{value:.4g}" if isinstance(value, float) else ", ".join(f"{x:.0f} / {y:.0f}" for x, y in value)
        print(f"{name.replace('_', ' ')}: {text}")
    if json is not None:
        settings = {"model": str(model), "lines": len(lines), "clients": clients, "beam": beam, "workers": workers}
        json.write_text(json_module.dumps({**settings, **figures}, indent=1) + "\n", encoding="utf-8")


class Load(NamedTuple):
    """A load that a server was under: sentences a second, with and without the clients' CPU time, latencies, and the
    translations.
    """

    sentences_per_second: float
    without_clients: float
    median_ms: float
    p99_ms: float
    texts: list[str]


def median_load(loads: Sequence[Load]) -> dict[str, float]:
    """The median of each figure."""
    names = [name for name in Load._fields if name != "texts"]
    return {name: statistics.median(getattr(each, name) for each in loads) for name in names}


def measure_load(port: int, lines: Sequence[str], clients: int) -> Load:
    """Let clients ask all lines."""
    cpu, start = time.process_time(), time.monotonic()
    answers = asyncio.run(ask_all(port, lines, clients))
    seconds, cpu = time.monotonic() - start, time.process_time() - cpu
    server_seconds = seconds - cpu / (os.cpu_count() or 1)
    latencies = sorted(seconds for seconds, _ in answers)
    median, last = statistics.median(latencies), latencies[int(0.99 * len(latencies))]
    texts = [text for _, text in answers]
    return Load(len(lines) / seconds, len(lines) / server_seconds, 1000 * median, 1000 * last, texts)


@contextmanager
def running_server(command: Sequence[str], log: Path) -> Iterator[tuple[int, float]]:
    """The port of a server, and the seconds from its start until it was ready, while the body runs.

    Args:
        command: that starts it.
        log: the file for what it prints, its address among that.
    """
    with open(log, "w+", encoding="utf-8") as stream:
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=stream, stderr=stream)
        try:
            while not (match := re.search(r"listening at \S+:(\d+)", log.read_text("utf-8"))):
                if process.poll() is not None:
                    sys.exit(log.read_text("utf-8"))
                time.sleep(0.01)
            port = int(match[1])
            while not is_ready(port):
                time.sleep(0.01)
            yield port, time.monotonic() - start
        finally:
            process.terminate()
            process.wait()


def is_ready(port: int) -> bool:
    """Whether the models of a server are loaded."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as response:
            return bool(response.status == 200)
    except URLError:
        return False


async def ask_all(port: int, lines: Sequence[str], clients: int) -> list[tuple[float, str]]:
    """The seconds that each line took, and its translation, when so many clients ask all of them together."""
    numbered_lines, answers = iter(enumerate(lines)), [(0.0, "")] * len(lines)

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number, line in numbered_lines:
            body = json_module.dumps({"q": line, "source": "auto", "target": target}).encode()
            start = time.monotonic()
            writer.write(HEAD % len(body) + body)
            response = await read_response(reader)
            answers[number] = time.monotonic() - start, str(json_module.loads(response)["translatedText"])
        writer.close()

    target = await asyncio.to_thread(first_target, port)
    await asyncio.gather(*(client() for _ in range(clients)))
    return answers


HEAD = b"POST /translate HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


def first_target(port: int) -> str:
    """The language into which a server translates."""
    with urlopen(f"http://127.0.0.1:{port}/languages", timeout=10) as response:
        return str(json_module.load(response)[0]["targets"][0])


async def read_response(reader: asyncio.StreamReader) -> bytes:
    """Return the body of a response. Raises RuntimeError for one that is no translation."""
    head = await reader.readuntil(b"\r\n\r\n")
    size = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    body = await reader.readexactly(int(size[1]) if size is not None else 0)
    if not head.startswith(b"HTTP/1.1 200 "):
        raise RuntimeError(body.decode())
    return body


def translate_rate(
    command: Sequence[str], model: Path, lines: Sequence[str], beam: int, batch: int, out: Path
) -> float:
    """Sentences a second of `tfm translate`, by its own log.

    Args:
        command: that starts tfm.
        model: that `tfm train` made.
        lines: the sentences.
        beam: width of the beam.
        batch: sentences a batch.
        out: the folder to write into.
    """
    text = out.with_suffix(".txt")
    text.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    settings = ["--beam", str(beam), "--set", f"decoding.batch_sentences={batch}"]
    words = [*command, "translate", str(model), str(text), *settings, "--out", str(out)]
    subprocess.run(words, check=True, capture_output=True)
    (figures,) = json_module.loads((out / "manifest.json").read_text("utf-8"))["figures"].values()
    return float(figures["sentences"] / figures["seconds"])
