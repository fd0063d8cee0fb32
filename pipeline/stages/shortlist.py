"""The shortlist stage: a dataset and the links of its training pairs to the pieces that may come in a translation."""

from collections.abc import Sequence
from pathlib import Path

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.dataset.store import load_dataset
from tfm.data.errors import DataError
from tfm.pipeline.alignment.linked_pieces import learn_shortlist, measure_coverage
from tfm.pipeline.alignment.pharaoh import counted_from_one_warning, links_input
from tfm.pipeline.alignment.piece_links import read_piece_links
from tfm.pipeline.artifacts.artifact import Input, Plan, is_fresh, publish, read_artifact
from tfm.pipeline.artifacts.canonical_json import JSON
from tfm.pipeline.model_io.shortlist_folder import STAGE, vocabularies_digest, write_shortlist
from tfm.pipeline.runtime.progress import Reporter


def make_shortlist(
    dataset: Path,
    links: Path,
    out: Path,
    *,
    num_linked: int,
    num_frequent: int,
    command: Sequence[str],
    reporter: Reporter,
) -> None:
    """Count the linked pieces of the training pairs, and publish a shortlist.

    Prints how much of the validation split's translations it lets through.

    Args:
        dataset: the folder of the dataset.
        links: a file of links between words, a line for each training pair, as `tfm align MODEL DATASET` prints them.
        out: the folder of the artifact.
        num_linked: pieces of the target that are kept of each piece of the source.
        num_frequent: pieces that may come in every sentence, the most frequent ones.
        command: the command line, for the manifest.
        reporter: receives messages.

    Raises:
        DataError: the dataset is not of pairs of texts, or the links are not of its training pairs.
    """
    dataset_input, file = Input.from_artifact(dataset, "preprocess"), links_input(str(links))["links"]
    tokenizers = read_artifact(
        dataset, lambda each: load_tokenizer_pair(load_dataset(each.folder).tokenizer_folder), must_match=dataset_input
    )
    if tokenizers[1].label_kind is not None:
        raise DataError("has labels, which need no shortlist: give a dataset of translations", file=dataset)
    settings: dict[str, JSON] = {
        "linked": num_linked,
        "frequent": num_frequent,
        "vocabularies": vocabularies_digest(*tokenizers),
    }
    plan = Plan(STAGE, out, settings, {"dataset": dataset_input, "links": file}, seed=None)
    if is_fresh(plan, reporter):
        return
    with publish(plan, command=command) as draft:
        data = read_artifact(dataset, lambda _: load_dataset(dataset), must_match=dataset_input)
        if data.train.images is not None:
            raise DataError("its sources are images, which have no pieces: give a dataset of texts", file=dataset)
        sizes = tokenizers[0].vocab_size, tokenizers[1].vocab_size
        with reporter.bar("counting links", len(data.train), "pairs") as bar:
            piece_links = read_piece_links(links, data.train, tokenizers, bar.advance)
        warning = counted_from_one_warning(piece_links.num_linked_rows, from_one=piece_links.from_one)
        if warning is not None:
            reporter.warn(f"{links}: {warning}")
        learned_shortlist = learn_shortlist(piece_links, data.train, sizes, num_linked, num_frequent)
        write_shortlist(learned_shortlist, draft.folder)
        coverage = measure_coverage(learned_shortlist, data.valid)
        draft.figures["validation"] = {
            "pieces": coverage.pieces,
            "sentences": coverage.sentences,
            "mean_size": coverage.mean_size,
        }
    reporter.line(
        f"shortlist: {coverage.pieces:.2%} of the pieces of the validation split's target may come, and "
        f"{coverage.sentences:.2%} of its sentences whole; {coverage.mean_size:.0f} of {sizes[1]:,} pieces a sentence"
    )
    reporter.line(f"shortlist: {out}")
