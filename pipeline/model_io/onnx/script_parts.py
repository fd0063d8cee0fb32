"""Parts that the scripts of `scripts.py` share: reading texts, tokenizers and graphs, one step of a decoder."""

SCRIPT_HEAD = '''

Needs: pip install onnxruntime tokenizers numpy
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

FOLDER = Path(__file__).resolve().parent
CONFIG = json.loads((FOLDER / "config.json").read_text("utf-8"))
PAD, BEGIN, END, LONGEST = CONFIG["pad"], CONFIG["begin"], CONFIG["end"], CONFIG["max_length"]
BATCH = 64


def tokenizer(side):
    """The tokenizer of source or target. A text that spells a control token is text."""
    shared = FOLDER / "tokenizer.json"
    found = Tokenizer.from_file(str(shared if shared.exists() else FOLDER / f"{side}.json"))
    found.encode_special_tokens = True
    found.no_padding()
    found.no_truncation()
    return found


def encoded_ids(tokens, text):
    """The ids of a text; a piece that is none of the model's is the unknown one."""
    ids = tokens.encode(text, add_special_tokens=False).ids
    return [number if number < CONFIG["pieces"] else CONFIG["unknown"] for number in ids]


def load(name):
    return onnxruntime.InferenceSession(str(FOLDER / f"{name}.onnx"), providers=["CPUExecutionProvider"])


def run(session, inputs):
    """The outputs of a graph by their names."""
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


def padded(rows, left=False):
    """Ids (B, longest), and 1 where they are no padding; padding stands on the right, or on the left."""
    width = max(map(len, rows))
    ids, mask = np.full((len(rows), width), PAD), np.zeros((len(rows), width), np.int64)
    for number, row in enumerate(rows):
        place = slice(width - len(row), None) if left else slice(len(row))
        ids[number, place], mask[number, place] = row, 1
    return ids, mask


def read_lines():
    """The lines of stdin, which end at line feeds alone."""
    if sys.stdin.isatty():
        print("one text per line; Ctrl-D ends", file=sys.stderr)
    lines = (line.removesuffix(b"\\n").removesuffix(b"\\r") for line in sys.stdin.buffer)
    for number, line in enumerate(lines):
        yield line.decode("utf-8").removeprefix("\\ufeff" if number == 0 else "")


def print_lines(lines):
    for line in lines:
        sys.stdout.buffer.write((line.replace("\\r", " ").replace("\\n", " ") + "\\n").encode())
'''
CACHE_SCRIPT = '''

def nothing_yet(session, batch):
    """Keys and values of nothing, for the first step."""
    inputs = [each for each in session.get_inputs() if each.name.startswith("past.")]
    return {each.name: np.zeros((batch, each.shape[1], 0, each.shape[3]), np.float32) for each in inputs}


def to_past(found):
    """What one step gives as what the next is given."""
    return {name.replace("present.", "past."): each for name, each in found.items() if name.startswith("present.")}
'''
ENCODER_DECODER_SCRIPT = '''

SOURCE, TARGET = tokenizer("source"), tokenizer("target")
ENCODER, DECODER = load("encoder"), load("decoder")


def begin(sources):
    """Read sources. The first tokens (B, 1), and a function from tokens (B, T) to scores (B, V) of what follows."""
    ids, mask = padded(sources)
    memory = run(ENCODER, {"input_ids": ids, "attention_mask": mask})
    past = nothing_yet(DECODER, len(ids))

    def step(tokens):
        nonlocal past
        found = run(DECODER, {"input_ids": tokens, "attention_mask": mask, **memory, **past})
        past = to_past(found)
        return found["logits"][:, -1]

    return np.full((len(ids), 1), BEGIN), step
'''
DECODER_ONLY_SCRIPT = '''

SOURCE = TARGET = tokenizer("target")
MODEL = load("model")


def begin(texts):
    """The first tokens (B, T), which are the texts, and a function from tokens to scores (B, V) of what follows."""
    first, mask = padded(texts, left=True)
    past = nothing_yet(MODEL, len(first))

    def step(tokens):
        nonlocal past, mask
        found = run(MODEL, {"input_ids": tokens, "attention_mask": mask, **past})
        past, mask = to_past(found), np.pad(mask, ((0, 0), (0, 1)), constant_values=1)
        return found["logits"][:, -1]

    return first, step
'''
