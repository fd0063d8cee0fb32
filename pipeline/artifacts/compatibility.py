"""Refuses artifacts that do not belong together, before any work."""

from collections.abc import Collection, Mapping

from tfm.data.json_documents import read_json
from tfm.pipeline.artifacts.manifest import Manifest
from tfm.pipeline.errors import DataError
from tfm.pipeline.tasks.abilities import DEFAULT_TASK

SHOWN = 12  # digits of a sha256


def task_of(model: Manifest) -> str:
    """The task that a model, which was verified, was trained for."""
    content = read_json(model.folder / "config.json", shown=model.path / "config.json")
    return str(content.get("task", DEFAULT_TASK))


def check_tokenizer(model: Manifest, dataset: Manifest, *, but: Collection[str] = ()) -> None:
    """Raise DataError where a model was trained with another tokenizer than a dataset's, or with images that were read
    in another way; both were verified. but: files that may differ."""
    for name, entry in dataset.files.items():
        folder, _, file = name.rpartition("/")
        if folder == "tokenizer" and file not in but:
            own = model.files.get(file)
            ours, theirs = own.sha256[:SHOWN] if own else "missing", entry.sha256[:SHOWN]
            if ours != theirs:
                raise DataError(
                    f"was trained with another tokenizer than that of {dataset.path} ({file}: {ours}, not {theirs}); "
                    f"make the dataset with the model's (`tfm preprocess --tokenizer {_tokenizer_of(model)}`), or run "
                    "`tfm train` on this dataset",
                    file=model.path,
                )


def _tokenizer_of(model: Manifest) -> str:
    """Where the tokenizer lay that a model was trained with, as its lineage tells."""
    dataset = model.inputs.get("dataset")
    below = dataset.lineage.get("inputs") if dataset is not None else None
    tokenizer = below.get("tokenizer") if isinstance(below, Mapping) else None
    path = tokenizer.get("path") if isinstance(tokenizer, Mapping) else None
    return str(path or "DIR")


def check_source_tokenizer(model: Manifest, dataset: Manifest) -> None:
    """Raise DataError where a model reads sources by another tokenizer than a dataset's; both were verified."""
    ours = _source(model, "")
    theirs = _source(dataset, "tokenizer/")
    if ours != theirs:
        raise DataError(
            f"uses another tokenizer than {dataset.path} ({ours}, not {theirs}): make the dataset's with "
            f'tokenizer.shared = false and tokenizer.source_from = "{model.path}"',
            file=model.path,
        )


def _source(manifest: Manifest, folder: str) -> str:
    """The beginning of the sha256 of the source's tokenizer."""
    files = (manifest.files.get(folder + name) for name in ("source.json", "tokenizer.json"))
    return next((each.sha256[:SHOWN] for each in files if each is not None), "missing")


def check_made_from(made: Manifest, **parts: Manifest) -> None:
    """Raise DataError where an artifact has an input of the same name as a part, but another one."""
    for name, part in parts.items():
        own = made.inputs.get(name)
        if own is not None and own.fingerprint != part.fingerprint:
            raise DataError(
                f"were made from another {name} ({own.fingerprint[:SHOWN]}) than {part.path} "
                f"({part.fingerprint[:SHOWN]}): run `tfm {made.stage}` again",
                file=made.path,
            )
