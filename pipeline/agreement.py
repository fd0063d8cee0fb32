"""What does not belong together is refused before any work."""

from pipeline.errors import DataError
from pipeline.manifest import Manifest

SHOWN = 12  # digits of a sha256


def check_tokenizer(model: Manifest, dataset: Manifest) -> None:
    """Raise DataError where a model was trained with another tokenizer than a dataset's; both were verified."""
    for name, entry in dataset.files.items():
        folder, _, file = name.rpartition("/")
        if folder == "tokenizer":
            own = model.files.get(file)
            ours, theirs = own.sha256[:SHOWN] if own else "missing", entry.sha256[:SHOWN]
            if ours != theirs:
                raise DataError(
                    f"was trained with another tokenizer than that of {dataset.path} ({file}: {ours}, not {theirs}); "
                    "run `tfm preprocess` with the model's tokenizer, or `tfm train` on this dataset",
                    file=model.path,
                )


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
