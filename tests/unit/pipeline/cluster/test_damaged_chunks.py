"""Kept results of chunks: damaged on disk they are computed again; made to harm they end in an error of ours."""

import json
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests import hostile
from tests.damage import DAMAGES
from tfm.pipeline.artifacts.artifact import Input, Plan
from tfm.pipeline.cluster import encoding, translation
from tfm.pipeline.cluster.chunk_store import open_chunk_store
from tfm.pipeline.cluster.local_session import LocalSession
from tfm.pipeline.cluster.session import ComputeChunk
from tfm.pipeline.config import DecodingConfig
from tfm.pipeline.errors import DataError, TfmError
from tfm.pipeline.runtime.progress import NullReporter

IDS = pa.list_(pa.int32())
SCHEMA = pa.schema({"source": IDS, "target": IDS})
GOOD = {"text": "a b", "score": -1.0, "log_prob": -2.0, "num_tokens": 2}
PROBLEMS = dict.fromkeys(translation.asdict(translation.SourceProblems()), 0)


def square(number: int) -> bytes:
    return str(number * number).encode()


def results_of(plan: Plan) -> tuple[list[bytes], list[int]]:
    """The results of ten chunks, and which were computed."""
    computed: list[int] = []

    def compute(number: int) -> bytes:
        computed.append(number)
        return square(number)

    with open_chunk_store(plan) as store:
        session = LocalSession(0, store)
        given = ((number, ComputeChunk(str(number), (number,))) for number in range(10))
        return [result for _, result in session.map_in_order(compute, given)], computed


@pytest.mark.promise("damaged")
@pytest.mark.parametrize("kind", [*DAMAGES, "others", "pickle", "torch zip", "torch", "longer"])
def test_a_damaged_chunk_is_computed_again_and_never_another_result(tmp_path: Path, kind: str) -> None:
    plan = Plan("preprocess", tmp_path / "dataset", {}, {}, seed=None)
    with suppress(KeyboardInterrupt), open_chunk_store(plan) as store:
        assert store is not None
        for number in range(10):
            store.write(str(number), square(number))
        shutil.copytree(store.folder, tmp_path / "saved")
        raise KeyboardInterrupt
    folder, marker = store.folder, tmp_path / "it ran"
    for number, name in enumerate(sorted(each.name for each in (tmp_path / "saved").iterdir())):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "saved", folder)
        if kind in DAMAGES:
            DAMAGES[kind](folder / name)
        elif kind == "others":  # that of another chunk is whole, but not in its place
            (folder / name).write_bytes(b"x" * 32 + b"1")
        elif kind == "longer":
            (folder / name).write_bytes((folder / name).read_bytes() + b"0")
        else:
            (folder / name).write_bytes(hostile.pickles(marker)[kind])
        try:
            found, computed = results_of(plan)
        except (TfmError, OSError) as error:
            found, computed = [square(each) for each in range(10)], [number]
            assert str(folder) in str(error)  # noqa: PT017
        assert found == [square(each) for each in range(10)]
        assert len(computed) == 1
    assert not marker.exists()


def stream(schema: pa.Schema, *columns: pa.Array) -> bytes:
    return hostile.arrow(schema, *columns)


VOCAB_SIZES = 7, 6


def decode_chunk(content: bytes, *, counts_words: bool = False) -> Any:
    return encoding.read_columns(content, [1], VOCAB_SIZES, counts_words=counts_words)


@pytest.mark.promise("hostile")
def test_chunks_of_ids_made_to_harm(tmp_path: Path) -> None:
    good = stream(SCHEMA, hostile.GOOD, hostile.GOOD)
    assert len(decode_chunk(good)) == 1
    draw, marker = random.Random(3), tmp_path / "it ran"
    cases = [*hostile.pickles(marker).values(), b"", good[:-9], b"\xff" * 999, hostile.with_offsets(-5, 77)]
    cases += [stream(SCHEMA, hostile.ids(None, 1), hostile.GOOD), stream(SCHEMA, pa.array([None], IDS), hostile.GOOD)]
    cases += [stream(pa.schema({"x": IDS, "target": IDS}), hostile.GOOD, hostile.GOOD)]
    for content in cases:
        with pytest.raises(ValueError):
            decode_chunk(content)
    for _ in range(2000):
        flipped = bytearray(good)
        for _ in range(draw.randint(1, 3)):
            flipped[draw.randrange(len(flipped))] ^= 1 << draw.randrange(8)
        with suppress(ValueError):
            found = decode_chunk(bytes(flipped[: draw.choice((None, draw.randrange(len(good))))]))
            assert are_pieces(found)
    assert not marker.exists()


def are_pieces(found: Any) -> bool:
    """Whether all ids are those of pieces."""
    pairs = (pair for sides in found for pair in zip(sides, VOCAB_SIZES, strict=True))
    return all(0 <= each < size for (ids, *_), size in pairs for each in ids)


@pytest.mark.promise("hostile")
def test_ids_beyond_the_vocabulary_are_refused() -> None:
    assert are_pieces(decode_chunk(stream(SCHEMA, hostile.ids(0, 6), hostile.ids(5))))
    assert are_pieces(decode_chunk(stream(SCHEMA, hostile.ids(), hostile.ids())))
    for bad in (-1, 7, 40, 2**31 - 1, -(2**31)):
        with pytest.raises(ValueError, match="a source has token ids that the tokenizer does not have"):
            decode_chunk(stream(SCHEMA, hostile.ids(4, bad), hostile.GOOD))
    with pytest.raises(ValueError, match="a target has token ids that the tokenizer does not have"):
        decode_chunk(stream(SCHEMA, hostile.ids(4, 6), hostile.ids(6)))


@pytest.mark.promise("hostile")
def test_words_that_are_not_those_of_the_pieces_are_refused() -> None:
    schema = pa.schema({"source": IDS, "target": IDS, "words": IDS})
    decode_chunk(stream(schema, hostile.GOOD, hostile.GOOD, hostile.ids(1, 1)), counts_words=True)
    for words in ((1,), (3,), (1, 1, 1), (2, 0), (3, -1), (2**31 - 1, 2**31 - 1), ()):
        with pytest.raises(ValueError, match="words without pieces, or pieces without words"):
            decode_chunk(stream(schema, hostile.GOOD, hostile.GOOD, hostile.ids(*words)), counts_words=True)


@pytest.mark.promise("hostile")
def test_a_kept_chunk_of_other_ids_ends_in_an_error_that_names_its_folder(tmp_path: Path) -> None:
    plan = Plan("preprocess", tmp_path / "dataset", {}, {}, seed=None)
    with suppress(KeyboardInterrupt), open_chunk_store(plan) as store:
        assert store is not None
        encoder = encoding.ClusterEncoder(LocalSession(0, store), Input("f", str(tmp_path)), VOCAB_SIZES)
        ((_, chunk),) = encoder._make_chunks([("a b", "c d")], (), None, multi_reference=False)
        store.write(chunk.key, stream(SCHEMA, hostile.GOOD, hostile.GOOD))
        (made,) = encoder.encode([("a b", "c d")], (), None, counts_words=False, multi_reference=False)
        assert made.source.ids.tolist() == [4, 5]
        store.write(chunk.key, stream(SCHEMA, hostile.GOOD, hostile.ids(4, 99)))
        with pytest.raises(DataError, match="a target has token ids that the tokenizer does not have") as caught:
            list(encoder.encode([("a b", "c d")], (), None, counts_words=False, multi_reference=False))
        assert str(caught.value).startswith(f"{store.folder}: a kept chunk is damaged (")
        raise KeyboardInterrupt


@pytest.mark.promise("hostile")
def test_a_kept_chunk_of_no_translations_ends_in_an_error_that_names_its_folder(tmp_path: Path) -> None:
    plan = Plan("translate", tmp_path / "out", {}, {}, seed=None)
    with suppress(KeyboardInterrupt), open_chunk_store(plan) as store:
        assert store is not None
        translator = translation.ClusterTranslator(LocalSession(0, store), [], DecodingConfig(), "cpu", 1)
        ((_, chunk),) = translator._make_chunks(["a b"], (None, None), [None, None])
        store.write(chunk.key, kept())
        (found,) = translator.translate(["a b"], (None, None), reporter=NullReporter())
        assert found[0].text == "a b"
        store.write(chunk.key, kept(translations=[[]]))
        with pytest.raises(DataError, match=r"a kept chunk is damaged \(it has another number of lines\)") as caught:
            list(translator.translate(["a b"], (None, None), reporter=NullReporter()))
        assert str(caught.value).startswith(f"{store.folder}: ")
        raise KeyboardInterrupt


def kept(**changes: object) -> bytes:
    document = {"translations": [[GOOD]], "problems": PROBLEMS, "limit": 9, **changes}
    return json.dumps(document).encode()


@pytest.mark.promise("hostile")
def test_chunks_of_translations_made_to_harm(tmp_path: Path) -> None:
    assert translation.parse_chunk_result(kept(), 1)[2] == 9
    marker = tmp_path / "it ran"
    records: list[object] = [None, 3, "x", [], {}, {**GOOD, "more": 1}, {"text": "a"}]
    records += [{**GOOD, "text": text} for text in (None, 3, ["a"], "a\nb", "a\rb", "\ud800")]
    records += [{**GOOD, name: value} for name in ("score", "log_prob") for value in (None, "1", [], True)]
    records += [{**GOOD, "num_tokens": value} for value in (None, 1.5, "1", True)]
    cases = [*hostile.pickles(marker).values(), b"", b"[]", b"3", hostile.DEEP, hostile.DEEP_OBJECT, b"\xff"]
    cases += [kept(translations=[[record]]) for record in records]
    cases += [kept(translations=each) for each in (None, 3, [], [[]], [[GOOD], [GOOD]], {"a": 1})]
    cases += [kept(problems=each) for each in (None, {}, 3, dict.fromkeys(PROBLEMS, "x"))]
    cases += [kept(limit=each) for each in (None, "x", [])]
    cases += [kept(limit=0).replace(b'"limit": 0', b'"limit": 1e999')]
    for content in cases:
        with pytest.raises(ValueError):
            translation.parse_chunk_result(content, 1)
    assert not marker.exists()
