"""Which columns of a table are read, by what is in them, wherever they stand."""

import json
from itertools import permutations
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfm.data.corpora.paths.column_choice import choose_column_indices
from tfm.data.corpora.paths.single_files import suggest_corpus_table

NUM_ROWS = 8
KINDS = {
    "one value": lambda n: "ted",
    "recording": lambda n: f"clips/{n}.mp3",
    "picture": lambda n: f"{n}.jpg#{n}",
    "file": lambda n: f"doc_{n}.html",
    "address": lambda n: f"https://a.org/{n}",
    "date": lambda n: f"2019-10-1{n}",
    "split": lambda n: "dev" if n % 4 == 3 else "train",
}
TEXTS = [lambda n: f"The dog saw {n} cats .", lambda n: f"Der Hund sah {n} Katzen ."]


@pytest.mark.parametrize("num_texts", [1, 2])
@pytest.mark.parametrize("kinds", [(kind,) for kind in KINDS] + [*permutations(KINDS, 2)])
def test_what_is_no_text_is_neither_side_beside_texts(kinds: tuple[str, ...], num_texts: int) -> None:
    """Files and splits were a side in tables of two columns, and none in those of three."""
    writers = [*TEXTS[:num_texts], *(KINDS[kind] for kind in kinds)]
    for order in permutations(range(len(writers))):
        rows = [[writers[index](number) for index in order] for number in range(NUM_ROWS)]
        places = sorted(order.index(index) for index in range(num_texts))
        assert choose_column_indices(rows, len(writers)) == tuple(places), rows[0]


LONG = ["A document of some words.", "Another one, with more of them.", "A third one that is long enough."]
DOCUMENTS: dict[str, list[dict[str, object]]] = {
    "with meta": [{"text": text, "meta": {"set": f"x{number}"}} for number, text in enumerate(LONG)],
    "with URL": [{"text": text, "timestamp": "2019", "url": f"https://a.org/{'long/' * 9}"} for text in LONG],
    "with class": [{"text": text, "label": number % 2} for number, text in enumerate(LONG)],
    "code": [{"content": f"{text}\n", "path": f"{number}.py", "license": "mit"} for number, text in enumerate(LONG)],
    "stories": [{"story": text, "source": "GPT", "instruction": {"prompt": "Write."}} for text in LONG],
    "poems": [{"Title": f"A {number}", "Poem": text, "Tags": "Love"} for number, text in enumerate(LONG)],
}


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_the_texts_of_documents_are_advised_for_texts_alone(name: str, ending: str, tmp_path: Path) -> None:
    """The last column was: the license of code, the class of a review or the address of a page."""
    file = tmp_path / f"documents.{ending}"
    rows = DOCUMENTS[name]
    if ending == "jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    elif ending == "csv":
        pd.DataFrame(rows).map(lambda value: json.dumps(value) if isinstance(value, dict) else value).to_csv(
            file, index=False
        )
    else:
        pq.write_table(pa.Table.from_pylist(rows), file)
    column = next(key for key, value in rows[0].items() if str(value).strip() == LONG[0])
    assert f'source = "none", target = "{column}"' in suggest_corpus_table(file, (), "target")
