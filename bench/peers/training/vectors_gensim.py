"""gensim on a file of words: `python vectors_gensim.py < JSON` (needs: gensim). Prints JSON."""

import json
import sys
import time
from pathlib import Path
from typing import Any


def main(request: dict[str, Any]) -> None:
    from gensim.models import Word2Vec

    texts = [line.split() for line in Path(request["text"]).read_text(encoding="utf-8").splitlines()]
    words = request["model"]["word_vectors"]
    model = Word2Vec(
        vector_size=request["model"]["embedding_dim"],
        sg=int(request["model"]["architecture"] == "skip_gram"),
        window=words["window"],
        shrink_windows=words["shrink"],
        negative=words["negatives"],
        sample=words["subsample"] or 0,
        alpha=request["peak"],
        min_count=1,
        workers=request["workers"],
        seed=1,
    )
    model.build_vocab(texts)
    start, start_cpu = time.perf_counter(), time.process_time()
    model.train(texts, total_examples=model.corpus_count, epochs=request["epochs"])
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    total = request["epochs"] * sum(map(len, texts))
    print(json.dumps({"rate": total / seconds, "cpu_rate": total / cpu}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
