"""Bergamot's engine, Marian in WebAssembly, with a model exported by `tfm export --to huggingface`:
`python -m bench.peers.decoding.decode_bergamot < JSON`.

From text to text by one thread of node; prints the same as bench/decoding/answering.py, with the pieces of its texts.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sentencepiece

from bench.decoding.answering import answer_sources
from bench.peers.decoding.marian_binary import write_marian_binary
from tfm.tokenizer.code_points import load_pair

PROGRAM = Path(__file__).with_name("bergamot.mjs")
PRECISIONS = {"float32": "float32", "int8": "int8shiftAll"}
"""By name of CTranslate2's."""


def main(request: dict[str, Any]) -> None:
    _, target = load_pair(Path(request["marian"]))
    numbers = {target.piece(number): number for number in range(target.vocab_size)}
    vocabulary = sentencepiece.SentencePieceProcessor(model_file=request["vocabulary"])
    pieces = [vocabulary.id_to_piece(number) for number in range(vocabulary.get_piece_size())]
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_marian_binary(Path(request["marian"]), [numbers[piece] for piece in pieces], folder / "model.bin")
        # apart from the package.json of the package, by which node would take the program for a module
        shutil.copytree(Path(request["package"]) / "worker", folder / "worker")
        words = [folder / "worker" / "translator-worker.js", folder / "model.bin", request["vocabulary"]]
        with subprocess.Popen(
            [
                "node",
                Path(__file__).with_name("bergamot.mjs"),
                *words,
                PRECISIONS[request["type"]],
                str(request["beam"]),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        ) as engine:
            assert engine.stdin is not None
            assert engine.stdout is not None
            talk, answers = engine.stdin, engine.stdout

            def search(texts: list[str]) -> list[list[int]]:
                talk.write(json.dumps(texts) + "\n")
                talk.flush()
                return target.encode_batch(json.loads(answers.readline()))

            answer_sources(search, request["lines"], one_at_a_time=request["one_at_a_time"])
            talk.close()


if __name__ == "__main__":
    main(json.load(sys.stdin))
