"""`tfm align`: which word of a source each word of its translation belongs to."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tfm.cli.options import Device, SourceLanguage, TargetLanguage, reject_flags
from tfm.cli.streams import print_data, print_json, print_message
from tfm.pipeline.model_io.model_folder import resolve_model_folder

if TYPE_CHECKING:
    from tfm.pipeline.alignment.extraction import AlignmentHead, SentencePair, WordAligner
    from tfm.pipeline.alignment.pharaoh import GoldLinks

CHUNK_PAIRS = 512
MAX_HEADS_SHOWN = 10
"""The most heads in the table, the best ones; --json has all."""
Layer = Annotated[
    int | None,
    typer.Option(
        "--layer",
        metavar="N",
        help="Layer of MODEL's cross-attention, from 1; default: that of the head trained to align, or the last.",
    ),
]
Head = Annotated[
    int | None, typer.Option("--head", metavar="N", help="Head that aligns, from 1; default: the mean of the layer's.")
]
ShiftedAttention = Annotated[
    bool,
    typer.Option(
        "--shifted", help="Take the attention of MODEL's row that has read a word, not of the one that predicts it."
    ),
]


def align(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A trained model: its model/, or the folder of its run.")
    ],
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="File of sources, one per line; or a dataset/, whose training pairs are aligned; or `grammar`: the "
            "test sentences of the built-in corpus, whose gold alignments are known.",
        ),
    ],
    target: Annotated[
        Path | None, typer.Argument(metavar="[TARGET]", help="File of their translations, line by line.")
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(
            "--gold",
            metavar="FILE",
            help="Gold alignments (1-2 sure, 1p2 possible): print the error rates of all heads instead of alignments.",
        ),
    ] = None,
    layer: Layer = None,
    head: Head = None,
    shifted: ShiftedAttention = False,
    reverse: Annotated[
        Path | None,
        typer.Option("--reverse", metavar="MODEL", help="A model of the other direction: print the links of both."),
    ] = None,
    symmetrize: Annotated[
        Literal["grow-diag", "intersection", "union"] | None,
        typer.Option("--symmetrize", help="How --reverse makes the links of both directions one (grow-diag)."),
    ] = None,
    heads: Annotated[
        Literal["best"] | None,
        typer.Option("--heads", help="With --reverse: the heads of both models whose links agree most."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the error rates as JSON.")] = False,
    to: TargetLanguage = None,
    source_language: SourceLanguage = None,
    device: Device = None,
) -> None:
    """Align the words of sentences and their translations, by the cross-attention of a model.

    Prints a line for each pair: 0-0 1-2, places of words of source and target, from 0.

    With --gold, or of `grammar`: the alignment error rate of each head, or of the one that is chosen.
    """
    pairs, gold_links = _read_pairs(source, target, gold, as_json=as_json)
    if gold is not None and gold_links is not None:
        _warn_of_other_origin(gold, gold_links)
    if gold_links is not None:
        reason = "is for alignments, and error rates are printed: their table has the best head first"
        reject_flags({"--reverse": reverse, "--symmetrize": symmetrize, "--heads": heads}, reason)
    if reverse is None:
        reject_flags({"--symmetrize": symmetrize}, "is for models of both directions: give --reverse MODEL")
        reject_flags({"--heads": heads}, "without gold alignments two models have to agree: give --reverse MODEL")
    if heads is not None:
        reject_flags({"--layer": layer, "--head": head, "--shifted": shifted or None}, "--heads best chooses the head")
    from tfm.cli.console import make_reporter
    from tfm.pipeline.alignment.direction import (
        NUM_DIRECTION_PAIRS,
        is_of_other_direction,
        select_languages_both_ways,
    )
    from tfm.pipeline.alignment.extraction import WordAligner
    from tfm.pipeline.inference.source_problems import SourceProblems
    from tfm.pipeline.model_io.loaded_model import load_model

    loaded = load_model(resolve_model_folder(model), device or "auto")
    if reverse is None:
        loaded = loaded.for_languages(to, source_language)
    else:
        other = load_model(resolve_model_folder(reverse), device or "auto")
        loaded, other = select_languages_both_ways(loaded, other, to, source_language)
    files = (source, target or source)
    aligner, problems = WordAligner(loaded, files), SourceProblems()
    first_pairs = list(islice(pairs, NUM_DIRECTION_PAIRS))
    if is_of_other_direction(loaded, first_pairs):
        make_reporter().warn(
            f"{model}: finds SOURCE likelier, given TARGET, than the other way round: are the two files exchanged?"
        )
    pairs = problems.count_while_iterating(loaded.source_tokenizer, chain(first_pairs, pairs), lambda pair: pair.source)
    alignment_head = aligner.choose_head(layer, head, shifted=shifted)
    if gold_links is not None:
        is_given = layer is not None or head is not None or shifted
        _print_error_rates(
            aligner, list(pairs), gold_links, [alignment_head] if is_given else aligner.heads(), as_json=as_json
        )
    elif reverse is None:
        _print_links(aligner, pairs, alignment_head)
    else:
        reverse_aligner = WordAligner(other, files[::-1])
        if is_of_other_direction(other, [(target_text, source_text) for source_text, target_text in first_pairs]):
            make_reporter().warn(
                f"--reverse {reverse}: finds TARGET likelier, given SOURCE, than the other way round: does it "
                "translate from target to source?"
            )
        _print_symmetrized_links(
            (aligner, reverse_aligner), pairs, None if heads else alignment_head, symmetrize or "grow-diag"
        )
    problems.warn(make_reporter(), 0)


def _read_pairs(
    source: Path, target: Path | None, gold: Path | None, *, as_json: bool
) -> "tuple[Iterator[SentencePair], Sequence[GoldLinks] | None]":
    """The pairs that are asked for, and their gold alignments where they are known."""
    from tfm.cli.console import make_reporter
    from tfm.pipeline.scoring.alignment.gold import (
        is_built_in,
        is_dataset,
        read_built_in,
        read_dataset_pairs,
        read_pair_files,
    )

    if is_built_in(source):
        reject_flags({"TARGET": target, "--gold": gold}, f"{source} has translations and gold alignments of its own")
        pairs, gold_links = read_built_in(str(source))
        return iter(pairs), gold_links
    if gold is None:
        reject_flags({"--json": as_json or None}, "is for error rates, which need --gold FILE")
    if is_dataset(source):
        reject_flags({"TARGET": target, "--gold": gold}, f"{source} is a dataset, whose training pairs are aligned")
        return read_dataset_pairs(source), None
    if target is None:
        reason = f"give the file of the translations of {source}, line by line"
        raise typer.BadParameter(reason, param_hint="TARGET")
    file_pairs, links = read_pair_files(source, target, gold, make_reporter())
    return iter(file_pairs), links


def _warn_of_other_origin(gold: Path, links: "Sequence[GoldLinks]") -> None:
    """Warn of links that are counted from 1, as it seems."""
    from tfm.cli.console import make_reporter
    from tfm.pipeline.alignment.pharaoh import counted_from_one_warning, is_counted_from_one

    num_linked = sum(bool(each.possible) for each in links)
    warning = counted_from_one_warning(num_linked, from_one=is_counted_from_one(links))
    if warning is not None:
        make_reporter().warn(f"{gold}: {warning}")


def _print_links(aligner: "WordAligner", pairs: "Iterator[SentencePair]", head: "AlignmentHead") -> None:
    from tfm.pipeline.alignment.extraction import align_chunks
    from tfm.pipeline.alignment.pharaoh import format_links

    for links in align_chunks(aligner, pairs, head, CHUNK_PAIRS):
        print_data(format_links(links))


def _print_symmetrized_links(
    aligners: "tuple[WordAligner, WordAligner]",
    pairs: "Iterator[SentencePair]",
    head: "AlignmentHead | None",
    symmetrize: str,
) -> None:
    """Print the links of models of both directions.

    Args:
        aligners: the models.
        pairs: the texts.
        head: of the first model; None: the heads that agree most, of which a line on stderr tells.
        symmetrize: the name of the symmetrization.
    """
    from tfm.cli.console import make_reporter
    from tfm.pipeline.alignment.head_agreement import MAX_HEAD_SELECTION_PAIRS, rank_head_agreements
    from tfm.pipeline.alignment.pharaoh import format_links
    from tfm.pipeline.alignment.symmetrization import SYMMETRIZATIONS, align_both_ways
    from tfm.pipeline.errors import format_count

    first, second = aligners
    if head is None:
        sample = list(islice(pairs, MAX_HEAD_SELECTION_PAIRS))
        best = rank_head_agreements(first, second, sample, (first.heads(), second.heads()))[0]
        print_message(f"align: {best.describe()} in {len(sample):,} pairs")
        heads, pairs = [best.head, best.back], chain(sample, pairs)
    else:
        heads = [head, second.choose_head()]
    for links in align_both_ways(aligners, heads, pairs, SYMMETRIZATIONS[symmetrize], CHUNK_PAIRS):
        print_data(format_links(links))
    if lines := first.truncated_lines | second.truncated_lines:
        make_reporter().warn(
            f"{format_count(len(lines), 'pair')} of more pieces than a model reads, the first in line {min(lines)}: "
            "the words behind have no links"
        )


def _print_error_rates(
    aligner: "WordAligner",
    pairs: "Sequence[SentencePair]",
    gold: "Sequence[GoldLinks]",
    heads: "Sequence[AlignmentHead]",
    *,
    as_json: bool,
) -> None:
    from tfm.cli.console import make_reporter
    from tfm.pipeline.scoring.alignment.head_scores import HEAD_TABLE_COLUMNS, score_heads

    head_scores = score_heads(aligner, pairs, gold, heads)
    if as_json:
        print_json({"pairs": len(pairs), "heads": [each.as_json() for each in head_scores]})
        return
    title = f"Alignment error rate of heads, {len(pairs):,} pairs, {head_scores[0].scores['aer'].signature}"
    make_reporter(tables_on_stdout=True).table(
        title, HEAD_TABLE_COLUMNS, [each.table_row() for each in head_scores[:MAX_HEADS_SHOWN]]
    )
