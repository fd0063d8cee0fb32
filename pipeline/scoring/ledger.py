"""The ledger of test sets: which model was scored on which test texts, when, and how it had been chosen.

A test set that is looked at often is no test set any more: the best of many models owes part of its score to luck
(Dwork et al. 2015). `ledger.jsonl` lies beside the runs, a line of JSON for each look; any number of processes append.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tfm.data.safe_files import read_log
from tfm.pipeline.artifacts.canonical_json import MANIFEST_FILE, sha256_of_json
from tfm.pipeline.artifacts.no_symlinks import open_file_below
from tfm.pipeline.errors import DataError, WriteError
from tfm.pipeline.runtime.progress import Reporter

if TYPE_CHECKING:
    from tfm.data.dataset.split import Split
    from tfm.pipeline.artifacts.manifest import Manifest

LEDGER_FILE = "ledger.jsonl"
FINAL_EVALUATION = "final"  # how a model was chosen begins so where validation chose it and the tests are scored once
JOINT_DIGEST_SEPARATOR = "+"  # between the digests of a fingerprint
RUN_SEPARATOR = ", "  # seeds of one recipe, which look together
MAX_FIELD_LENGTH = 200  # characters of a name: a line stays below 4 KiB, which every file system appends in one piece
_RUN_SUBFOLDERS = ("training", "dataset", "scores", "translations")


@dataclass(frozen=True)
class LedgerEntry:
    """The record that a test set was scored once.

    Args:
        texts: `fingerprint` of its references.
        test: its name.
        model: the fingerprint of the model.
        run: the folder of the model's run.
        chosen: how the model was chosen: "recipe", "files", or "final: " and by which figure.
        when: UTC, ISO 8601.
        seen: sha256 of the scores that were shown, where known: who sees the same again learns nothing new.
    """

    texts: str
    test: str
    model: str
    run: str
    chosen: str
    when: str = ""
    seen: str = ""


@dataclass(frozen=True)
class EvaluatedModel:
    """A model of a run that is scored.

    Args:
        root: the folder of the runs.
        model: its fingerprint.
        run: the folder of its run.
        chosen: how the model was chosen, as in `LedgerEntry`.
    """

    root: Path
    model: str
    run: str
    chosen: str

    def ledger_entry(self, test: str, texts_digest: str, seen: str = "") -> LedgerEntry:
        return LedgerEntry(texts_digest, test, self.model, self.run, self.chosen, seen=seen)


def texts_fingerprint(texts: Iterable[str], sources: Iterable[str] | None = None) -> str:
    """Two sha256, in hex, of the (first) references of a test set, whatever white space surrounds their words: of the
    lines as they are, and of the lines sorted, since in another order they are the same test set.

    Sources have no part in it where the references tell test sets apart: they are not always known, and it is the
    answers that are used up. Labels do not: those of any two balanced test sets are the same lines in another order.
    So where no more than half of the lines are different, sources that are known stand before them. Entries of former
    times have the first digest alone; `are_same_texts` knows both.

    Args:
        texts: the references.
        sources: one for each; None if they are not known.
    """
    lines = [_normalize_text(text) for text in texts]
    if sources is not None and 2 * len(set(lines)) <= len(lines):
        lines = [b"%b\t%b" % pair for pair in zip(map(_normalize_text, sources), lines, strict=True)]
    lines = [line + b"\n" for line in lines]
    return JOINT_DIGEST_SEPARATOR.join(hashlib.sha256(b"".join(each)).hexdigest() for each in (lines, sorted(lines)))


def _normalize_text(text: str) -> bytes:
    return " ".join(text.split()).encode("utf-8", "surrogatepass")


def are_same_texts(digest: str | None, other_digest: str | None) -> bool:
    """Whether two fingerprints are of the same lines, in whatever order where both have that part."""
    return digest == other_digest or bool(
        {*(digest or "").split(JOINT_DIGEST_SEPARATOR)} & {*(other_digest or "").split(JOINT_DIGEST_SEPARATOR)} - {""}
    )


def split_fingerprint(split: "Split") -> str:
    """Fingerprint of a split: of its targets, which are the references; of texts of one side, of that side."""
    sources, targets = split.texts()
    if not any(targets):
        return texts_fingerprint(sources)
    if split.images is None:
        return texts_fingerprint(targets, sources)
    contents = split.images.store.contents  # sources are names of images
    return texts_fingerprint(targets, None if contents is None else [contents] * len(targets))


def read_evaluated_model(model: Path, fingerprint: str, selection_method: str) -> EvaluatedModel | None:
    """The model in a folder as one that looks at a test set; None if it is of no run.

    The ledger of a run lies beside the run's folder. A model that was copied out of its run has none.

    Args:
        model: the folder of the model.
        fingerprint: its fingerprint.
        selection_method: how the model was chosen, as in `LedgerEntry`.
    """
    folder = Path(os.path.abspath(model))  # a link's target may lie anywhere
    if folder.name != "model" or not any((folder.parent / each).is_dir() for each in _RUN_SUBFOLDERS):
        return None
    return EvaluatedModel(folder.parent.parent, fingerprint, folder.parent.name, selection_method)


def evaluated_model_from_manifests(models: "Sequence[Manifest]", selection_method: str) -> EvaluatedModel | None:
    """The model, or several as an ensemble, as one that looks at a test set."""
    if len(models) == 1:
        return read_evaluated_model(models[0].path, models[0].fingerprint, selection_method)
    fingerprint = sha256_of_json([each.fingerprint for each in models])
    return read_evaluated_model(models[0].path, fingerprint, f"{selection_method}, as an ensemble")


def evaluated_model_of_files(models: "Sequence[Manifest]", hypotheses: Path | None) -> EvaluatedModel | None:
    """The model whose looks at a test set by its files count: a model, or an ensemble; else that of the hypotheses.

    The model of hypotheses is the one beside them, in the same run, if their manifest names its fingerprint. The path
    in that manifest has no part in it: whoever sent the hypotheses would choose the place of the ledger.
    """
    if models:
        return evaluated_model_from_manifests(models, "files")
    if hypotheses is None:
        return None
    folder = Path(os.path.abspath(hypotheses)).parent
    model = folder.parent / "model"
    try:
        if not all((each / MANIFEST_FILE).exists() for each in (folder, model)):
            return None
        from tfm.pipeline.artifacts.manifest import read_manifest  # here, as most files are of no artifact

        manifest, model_manifest = read_manifest(folder, folder), read_manifest(model, model)
    except (DataError, OSError):
        return None  # not a file of an artifact, or of no run
    model_input = manifest.inputs.get("model")
    is_its_model = (
        model_input is not None
        and model_manifest.stage == "train"
        and model_input.fingerprint == model_manifest.fingerprint
    )
    return read_evaluated_model(model, model_manifest.fingerprint, "files") if is_its_model else None


def append_entries(root: Path, entries: Sequence[LedgerEntry], reporter: Reporter) -> None:
    """Append looks to the ledger of `root`; on return they are on disk.

    Each is one write of one line, under a lock. If the ledger cannot be written, there is only a warning: a score is
    worth more than its entry.

    Args:
        root: the folder of the ledger.
        entries: the looks.
        reporter: shows the warning.
    """
    timestamp = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        with open_file_below(root, root / LEDGER_FILE, "a+b", buffering=0) as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            for look in entries:
                _append_line(stream.fileno(), _serialize_entry({**asdict(look), "when": timestamp}))
            os.fsync(stream.fileno())
    except (OSError, WriteError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        reporter.warn(f"{root / LEDGER_FILE}: this look at the test set could not be entered: {reason}")


def read_ledger(root: Path) -> list[LedgerEntry]:
    """All looks in the ledger of `root`, in the order of their entries; none if there is no ledger that can be read.

    A line that a crash has left unfinished is passed over: its scores were never shown.
    """
    try:
        return [look for line in read_log(root / LEDGER_FILE) if (look := _parse_entry(line)) is not None]
    except (OSError, DataError):
        return []


def select_entries(entries: Iterable[LedgerEntry], texts: str) -> list[LedgerEntry]:
    """The looks at just these test texts."""
    return [look for look in entries if are_same_texts(look.texts, texts)]


def has_entry(entries: Iterable[LedgerEntry], model: str, run: str) -> bool:
    """Whether a model of a run has looked, alone or together with other seeds, which an entry knows by their names.

    Args:
        entries: of the ledger.
        model: the fingerprint of the model.
        run: the name of its run.
    """
    return any(
        look.model == model or (RUN_SEPARATOR in look.run and run in look.run.split(RUN_SEPARATOR)) for look in entries
    )


def num_test_uses(entries: Sequence[LedgerEntry]) -> int:
    """The number of times that something new was seen: scores made again, such as after a crash, count once."""
    return len({(look.model, look.seen or str(number)) for number, look in enumerate(entries)})


def describe_test_uses(entries: Sequence[LedgerEntry]) -> str:
    """Describe the uses of a test set, as in "14 times, by 9 models of this folder"; empty if there are none."""
    times, models = num_test_uses(entries), len({look.model for look in entries})
    if not times:
        return ""
    return f"{'once' if times == 1 else f'{times} times'}, by {models} model{'s' if models > 1 else ''} of this folder"


def _append_line(descriptor: int, line: bytes) -> None:
    """Write one line; the rest of a last line that a crash has left gets its end first."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        line = b"\n" + line
    if (num_written := os.write(descriptor, line)) != len(line):
        raise OSError(f"only {num_written} of {len(line)} bytes could be written")


def _serialize_entry(entry: dict[str, str]) -> bytes:
    truncated_entry = {
        name: value if len(value) <= MAX_FIELD_LENGTH else value[: MAX_FIELD_LENGTH - 1] + "…"
        for name, value in entry.items()
    }
    return json.dumps(truncated_entry, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _parse_entry(line: str) -> LedgerEntry | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    names = [each.name for each in fields(LedgerEntry)]
    if not isinstance(entry, dict) or not all(isinstance(entry.get(name), str) for name in names):
        return None
    return LedgerEntry(**{name: entry[name] for name in names})
