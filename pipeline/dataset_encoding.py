"""The encoding of a split: pairs read, encoded, filtered, counted and written.

Only training data and a fold of them are filtered; only the other splits keep their texts.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile

from tfm.data.config import DataConfig
from tfm.data.corpora.image_sources import read_images
from tfm.data.corpora.language_codes import language_codes, select_source_tokenizer
from tfm.data.corpora.portions import Corpus, Portion, flatten_portions
from tfm.data.corpora.sources import read_rows, with_lists_of
from tfm.data.dataset.duplicate_keys import DuplicateKeyFile
from tfm.data.dataset.empty_texts import EmptyTextCounter
from tfm.data.dataset.examples import ExampleChunk, PairFilter, encode_rows
from tfm.data.dataset.image_examples import encode_images
from tfm.data.dataset.pair_checks import check_each_word_has_tag, check_token_budget
from tfm.data.dataset.split_files import write_split_files
from tfm.data.dataset.unwritable import UnwritableCharacterCounts
from tfm.data.errors import DataError
from tfm.data.images.store import ImageWriter
from tfm.pipeline.cluster.encoding import ClusterEncoder
from tfm.pipeline.reports.dataset_report import CorpusCount, SplitCount
from tfm.pipeline.runtime.progress import Bar
from tfm.tokenizer.tokenizer import Tokenizer


def encode_split(
    name: str,
    corpora: Sequence[Corpus],
    data: DataConfig,
    tokenizers: tuple[Tokenizer, Tokenizer],
    folder: Path,
    bar: Bar,
    files: ExitStack,
    empty_text_counter: EmptyTextCounter | None,
    cluster: ClusterEncoder | None,
) -> SplitCount:
    """Encode and write one split; return its counts.

    Args:
        name: train, valid, or the name of a test set.
        corpora: the corpora of the split.
        data: the [data] part of a recipe.
        tokenizers: of the source, and of the target.
        folder: of the split, to be made.
        bar: shows the pairs that were read.
        files: closes temporary files of the counts.
        empty_text_counter: counts pairs without text; None: nobody asks.
        cluster: encodes the texts; None for this process alone.

    Raises:
        DataError: no pair is left, or one that was not dropped exceeds `data.batch_tokens`.
    """
    training = name == "train"
    is_fold = name == "valid" and data.fold is not None
    sieve = PairFilter(data.limits) if training or is_fold else None
    pairs_seen, sources_seen, targets_seen = (
        DuplicateKeyFile(files.enter_context(TemporaryFile(dir=folder.parent)))  # noqa: SIM115
        for _ in range(3)
    )
    # names that are unknown have a warning of their own
    unwritable = None if training or tokenizers[1].label_kind is not None else UnwritableCharacterCounts(tokenizers[1])
    dropped_counts = sieve.dropped if sieve else {}
    count = SplitCount(pairs_seen, sources_seen, targets_seen, dropped=dropped_counts, unwritable=unwritable)
    is_test = name not in ("train", "valid")
    with write_split_files(
        folder, training=training, words=tokenizers[1].label_kind == "tags", images=data.images
    ) as writer:
        for corpus in flatten_portions(corpora) if data.target_languages else corpora:
            count.corpora.append(CorpusCount(corpus))
            num_rejected_before = writer.num_rejected_captions
            for chunk in _encode_chunks(
                corpus,
                data,
                tokenizers,
                writer.images,
                is_test=is_test,
                drop_refused_images=sieve is not None,
                cluster=cluster,
            ):
                count.corpora[-1].read += len(chunk)
                bar.advance(len(chunk))
                if data.limits.cut_sources:
                    count.cut += int((chunk.source.lengths > data.limits.max_length).sum())
                    chunk = replace(chunk, source=chunk.source.truncate(data.limits.max_length))
                if sieve:
                    chunk = sieve(chunk, has_source=corpus.has_source and not corpus.has_images)
                    if corpus.has_source or not data.running_text:  # else it is read in windows, whatever its lines
                        check_token_budget(chunk, corpus, data.batch_tokens)
                check_each_word_has_tag(chunk, corpus)
                count.add(chunk)
                if empty_text_counter is not None:
                    empty_text_counter.add(chunk, corpus)
                writer.write(chunk, weight=corpus.weight if training else None)
            count.corpora[-1].read += writer.num_rejected_captions - num_rejected_before
        count.images = writer.image_report()
        if writer.num_rejected_captions:
            count.dropped["image refused"] = writer.num_rejected_captions
        if not count.rows:
            reasons = ", ".join(f"{reason}: {pairs:,}" for reason, pairs in count.dropped.items() if pairs)
            raise DataError(f"no pair is left in the {name} split; dropped: {reasons or 'none'}; see data.limits")
    return count


def _encode_chunks(
    corpus: Corpus,
    data: DataConfig,
    tokenizers: tuple[Tokenizer, Tokenizer],
    image_writer: ImageWriter | None,
    *,
    is_test: bool,
    drop_refused_images: bool,
    cluster: ClusterEncoder | None,
) -> Iterator[ExampleChunk]:
    """The examples of a corpus, encoded. drop_refused_images: leave out images that are refused."""
    if image_writer is not None:
        images = read_images(corpus, read_rows, online=data.online, on_skipped=image_writer.report.add_skipped)
        yield from encode_images(
            image_writer.decode_images(images, drop_invalid=drop_refused_images), tokenizers[1], multi_reference=is_test
        )
        return
    corpus = with_lists_of(corpus, tokenizers[1].label_kind)
    is_multi_reference = not isinstance(corpus, Portion) and corpus.has_references
    rows, codes = read_rows(corpus, online=data.online), language_codes(corpus, tokenizers[0])
    if cluster is not None:
        words = tokenizers[1].label_kind == "tags"
        yield from cluster.encode(rows, codes, corpus.tag, counts_words=words, multi_reference=is_multi_reference)
        return
    source = select_source_tokenizer(tokenizers[0], codes, corpus.tag)
    yield from encode_rows(rows, source, tokenizers[1], multi_reference=is_multi_reference)
