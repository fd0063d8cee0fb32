"""Output tokens a second of decoding, beside CTranslate2 with the same weights.

Usage: python bench/decode.py MODEL SOURCE [--against ctranslate2] [--beam 5] [--batch 64] [--rounds 3] [--limit 1000]

Each round starts both anew, in turn (A B A B ...), as processes of their own: two libraries of threads in one process
disturb each other. A process loads the model, translates the first 64 lines to warm up, and is timed on all lines,
from token ids to token ids. CTranslate2 (the extra `export`) reads what `tfm export` makes of the model, in fp32,
with as many single-thread workers as there are processors (`--layout 2x1`) or one worker of so many threads.
Both are given the same limit of length and stop as their beams do. Prints medians and the ratio with its spread.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

OURS = """
import json, sys, time
from pathlib import Path
from pipeline.config import DecodingConfig
from pipeline.decoding.decode import decode
from pipeline.models import load_model
options = json.loads(sys.argv[1])
loaded = load_model(Path(options["model"]), "cpu")
sources = loaded.source_tokenizer.encode_batch(options["lines"])
config = DecodingConfig(beam=options["beam"], batch_sentences=options["batch"], max_length=options["longest"])
decode(loaded.model, sources[:64], config)
began = time.perf_counter()
found = decode(loaded.model, sources, config)
seconds = time.perf_counter() - began
print(json.dumps([seconds, sum(len(each[0].ids) + 1 for each in found if each[0].ids)]))
"""
CTRANSLATE2 = """
import json, sys, time
from pathlib import Path
import ctranslate2
from tokenizer.tokenizer import load_pair
options = json.loads(sys.argv[1])
source, _ = load_pair(Path(options["engine"]))
texts = [[source.piece(number) for number in ids] for ids in source.encode_batch(options["lines"])]
workers, threads = options["layout"]
engine = ctranslate2.Translator(options["engine"], device="cpu", compute_type=options["type"],
                                inter_threads=workers, intra_threads=threads)
how = {"beam_size": options["beam"], "max_batch_size": options["batch"], "max_decoding_length": options["longest"]}
engine.translate_batch(texts[:64], **how)
began = time.perf_counter()
found = engine.translate_batch(texts, **how)
seconds = time.perf_counter() - began
print(json.dumps([seconds, sum(len(each.hypotheses[0]) + 1 for each in found if each.hypotheses[0])]))
"""


def run(program: str, options: dict[str, object]) -> float:
    """Tokens a second of one process."""
    command = [sys.executable, "-c", program, json.dumps(options)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], check=True, capture_output=True, text=True)
    seconds, tokens = json.loads(done.stdout.splitlines()[-1])
    return float(tokens / seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path, help="text, one sentence a line, also .gz")
    parser.add_argument("--against", choices=("ctranslate2",), default=None)
    parser.add_argument("--type", default="float32", help="CTranslate2's compute_type")
    parser.add_argument("--layout", default=f"{os.cpu_count()}x1", help="CTranslate2's workers x threads of each")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64, help="sentences")
    parser.add_argument("--longest", type=int, default=200, help="pieces at most")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=1000, help="lines")
    args = parser.parse_args()
    from data.lines import open_lines

    lines = [line for line in open_lines(args.source) if line.strip()][: args.limit]
    options = {"model": str(args.model.resolve()), "lines": lines, "beam": args.beam, "batch": args.batch}
    options |= {"longest": args.longest, "type": args.type, "layout": [int(each) for each in args.layout.split("x")]}
    with tempfile.TemporaryDirectory() as temporary:
        programs = {"tfm": OURS}
        if args.against:
            engine = Path(temporary) / "engine"
            tfm = [sys.executable, "-m", "cli.app", "export", str(args.model), "--to", args.against]
            subprocess.run([*tfm, "--out", str(engine)], check=True, capture_output=True)
            options["engine"] = str(engine)
            programs[args.against] = CTRANSLATE2
        rates: dict[str, list[float]] = {name: [] for name in programs}
        for _ in range(args.rounds):
            for name, program in programs.items():
                rates[name].append(run(program, options))
    for name, found in rates.items():
        rounds = ", ".join(f"{each:,.0f}" for each in found)
        print(f"{name:12} {statistics.median(found):9,.0f} tokens/s   (rounds: {rounds})")
    if args.against:
        ours, theirs = rates["tfm"], rates[args.against]
        ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
        ratio = statistics.median(ours) / statistics.median(theirs)
        print(f"ratio of medians {ratio:.2f}   (rounds: {min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
