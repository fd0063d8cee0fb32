"""tokenizers by itself: `python tokenize_tokenizers.py < JSON` (needs: tokenizers). Prints JSON.

It learns a BPE or unigram vocabulary of words and punctuation, and splits by the tokenizer.json that is in the folder.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

LINES_PER_BATCH = 1000


def main(request: dict[str, Any]) -> None:
    folder, size = Path(request["folder"]), request["vocab_size"]
    start_time = time.perf_counter()
    model, trainer = (
        (models.BPE(), trainers.BpeTrainer(vocab_size=size, show_progress=False))
        if request["kind"] == "bpe"
        else (models.Unigram(), trainers.UnigramTrainer(vocab_size=size, unk_token="<unk>", special_tokens=["<unk>"]))
    )
    learner = Tokenizer(model)
    learner.normalizer, learner.pre_tokenizer = normalizers.NFC(), pre_tokenizers.Metaspace()
    learner.train([str(folder / name) for name in request["texts"]], trainer)
    learning = time.perf_counter() - start_time

    lines = [line for name in request["texts"] for line in (folder / name).read_text("utf-8").split("\n")[:-1]]
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    start_time, pieces = time.perf_counter(), 0
    for start in range(0, len(lines), LINES_PER_BATCH):
        encodings = tokenizer.encode_batch_fast(lines[start : start + LINES_PER_BATCH], add_special_tokens=False)
        pieces += sum(len(each.ids) for each in encodings)
    print(json.dumps({"rate": len(lines) / (time.perf_counter() - start_time), "pieces": pieces, "learning": learning}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
