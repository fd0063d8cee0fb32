"""A trained model sent to a hub: the artifact as it is, and a card."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfm.pipeline.artifacts.manifest import MANIFEST_FILE, Manifest, read_artifact
from tfm.pipeline.hub.repository import MODEL_FOLDER, check_repository_and_revision, convert_hub_errors
from tfm.pipeline.model_io.huggingface.card import ModelCard, artifact_card_text
from tfm.pipeline.model_io.model_folder import resolve_model_folder
from tfm.pipeline.reports.find_scores import find_model_scores

CARD_FILE = "README.md"


@dataclass(frozen=True)
class PushedCommit:
    """A commit of a hub: the address of its page, and its hash."""

    url: str
    oid: str


def push(
    run: Path, name: str, *, revision: str | None, private: bool, languages: tuple[str, ...], license: str | None
) -> PushedCommit:
    """Send a model to a repository, which is created if needed; a model that it already has is replaced.

    Args:
        run: the folder of the run or of the model.
        name: of the repository, OWNER/NAME.
        revision: the branch, made if there is none; None: the main branch.
        private: whether a repository that is made here is private.
        languages: codes of the model's languages, for the card.
        license: an identifier for the card.

    Raises:
        DataError: the model is damaged, or the hub does not take it.
        RecipeError: the name is none of a repository.
    """
    from huggingface_hub import HfApi

    check_repository_and_revision(name, revision)
    folder = resolve_model_folder(run)
    card = ModelCard(languages, license, name.rpartition("/")[2], find_model_scores(folder))
    api = HfApi()

    def upload(manifest: Manifest) -> Any:
        operations = _upload_operations(manifest, artifact_card_text(card, manifest, name))
        with convert_hub_errors(name, revision):
            repository = api.create_repo(name, private=private or None, exist_ok=True).repo_id
            if revision is not None:
                api.create_branch(repository, branch=revision, exist_ok=True)
            deletions = _stale_file_deletions(api.list_repo_files(repository, revision=revision), operations)
            return api.create_commit(
                repository,
                [*operations.values(), *deletions],
                commit_message=f"Model {manifest.fingerprint[:16]}",
                revision=revision,
            )

    commit = read_artifact(folder, upload, "train")
    return PushedCommit(str(commit.commit_url), str(commit.oid))


def _upload_operations(manifest: Manifest, card: str) -> dict[str, Any]:
    """The files to send, by path: those that the manifest names, itself, and the card."""
    from huggingface_hub import CommitOperationAdd

    names = [*manifest.files, MANIFEST_FILE]
    contents: Mapping[str, Path | bytes] = {f"{MODEL_FOLDER}/{each}": manifest.folder / each for each in names}
    return {
        path: CommitOperationAdd(path, str(content) if isinstance(content, Path) else content)
        for path, content in {**contents, CARD_FILE: card.encode()}.items()
    }


def _stale_file_deletions(repository_files: list[str], uploads: Mapping[str, Any]) -> list[Any]:
    """The removal of files of an earlier model that this one does not have."""
    from huggingface_hub import CommitOperationDelete

    return [
        CommitOperationDelete(path)
        for path in repository_files
        if path.startswith(f"{MODEL_FOLDER}/") and path not in uploads
    ]
