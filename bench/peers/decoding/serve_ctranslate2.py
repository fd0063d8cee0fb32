"""CTranslate2 behind a plain route of starlette.

Usage: python -m bench.peers.decoding.serve_ctranslate2 ENGINE WORKERS BEAM

The engine is what `tfm export --to ctranslate2` made. Texts are translated as they come, each in a thread that waits
for one of CTranslate2's workers.
"""

import asyncio
import sys
from pathlib import Path

import ctranslate2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.decoding.limits import max_pieces
from tfm.tokenizer.code_points import load_pair

MAX_TOKENS = 256
"""The most tokens of a model; a text has the limit that it has in `tfm serve`."""


def main(folder: str, workers: int, beam: int) -> None:
    """Serve until the process is ended."""
    source, target = load_pair(Path(folder))
    ids = {target.piece(number): number for number in range(target.vocab_size)}
    decoding = DecodingConfig(beam=beam)
    engine = ctranslate2.Translator(folder, compute_type="float32", inter_threads=workers, intra_threads=1)

    def search(text: str) -> str:
        pieces = [source.piece(number) for number in source.encode_batch([text])[0]]
        longest = max_pieces(len(pieces) + 1, decoding, MAX_TOKENS)
        (result,) = engine.translate_batch([pieces], beam_size=beam, max_decoding_length=longest)
        return target.decode_batch([[ids[piece] for piece in result.hypotheses[0]]])[0]

    async def translate(request: Request) -> Response:
        text = (await request.json())["q"]
        return JSONResponse({"translatedText": await asyncio.to_thread(search, text)})

    async def languages(request: Request) -> Response:
        return JSONResponse([{"code": "und", "targets": ["und"]}])

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    routes = [
        Route("/translate", translate, methods=["POST"]),
        Route("/languages", languages),
        Route("/health", health),
    ]
    config = uvicorn.Config(Starlette(routes=routes), port=0, log_level="warning", access_log=False)
    listener = config.bind_socket()
    print(f"listening at http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    asyncio.run(uvicorn.Server(config).serve([listener]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
