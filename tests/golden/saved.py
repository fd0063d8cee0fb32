"""Names that are saved: of tensors, recipe keys, built-in corpora, files and the JSON of commands.

python -m tests.golden.saved      writes tests/golden/saved.json anew, so that a change of what is on disk is seen
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, get_args

from tests.cli.user import RECIPE, tfm, write_corpora
from tests.huggingface_models import KINDS
from tests.tiny_model import tiny_model
from tfm.data.corpus_keys.built_in_corpora import GeneratorName
from tfm.data.synthetic import registry

FILE = Path(__file__).with_suffix(".json")
FURTHER = {
    "recurrent": {"architecture": "recurrent", "recurrent": {"attention": "bahdanau", "bidirectional": True}},
    "relative positions": {"positions": "transformer_xl", "normalization": "rms"},
    "additive scores": {"score": "additive", "qk_norm": True},
    "adaptive softmax": {"adaptive": {"cutoffs": [20, 40], "factor": 2}, "tie": "none"},
    "word vectors": {"architecture": "skip_gram", "task": "word_vectors", "embedding_dim": 8},
}
"""Models that no other library has, by name: changes of the tiny one."""


def structure(document: object) -> object:
    """The keys of a JSON document, with the type of each value; a list is its first item."""
    if isinstance(document, dict):
        return {key: structure(value) for key, value in sorted(document.items())}
    if isinstance(document, list):
        return [structure(document[0])] if document else []
    return "number" if type(document) in (int, float) else type(document).__name__


def keys_of(schema: dict[str, object], definitions: dict[str, object], before: str = "") -> Iterable[str]:
    """The keys of a JSON schema, with dots between tables."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        schema = definitions[reference.rpartition("/")[2]]  # type: ignore[assignment]
    for key, value in sorted(schema.get("properties", {}).items()):  # type: ignore[attr-defined]
        yield f"{before}{key}"
        choices = [value, *value.get("anyOf", []), value.get("items", {}), value.get("additionalProperties", {})]
        for choice in choices:
            if isinstance(choice, dict) and "$ref" in choice:
                yield from keys_of(choice, definitions, f"{before}{key}.")


def tensors() -> dict[str, dict[str, str]]:
    """The names and shapes of the tensors of each kind of model."""
    models: dict[str, Any] = {**{name: changes for name, (_, changes) in KINDS.items()}, **FURTHER}
    return {
        name: {key: " x ".join(map(str, each.shape)) for key, each in tiny_model(**changes).model.state_dict().items()}
        for name, changes in models.items()
    }


def recipe_keys() -> list[str]:
    """The keys that a recipe may have."""
    schema = json.loads(tfm("recipe", "--schema").out)
    return sorted({*keys_of(schema, schema["$defs"])})


def corpora() -> dict[str, str]:
    """The version of each built-in corpus, which is a part of the fingerprint of what is made of it."""
    return {name: registry.corpus_version(name) for name in get_args(GeneratorName)}


def run() -> dict[str, object]:
    """What a small run in the working folder leaves there and prints.

    Its tokenizer and dataset have the same fingerprint everywhere; models depend on the CPU.
    """
    write_corpora(Path())
    Path("tiny.toml").write_text(RECIPE.format(folder="."), "utf-8")
    done = tfm("run", "tiny.toml")
    assert done.code == 0, done.err
    folder = Path("runs/tiny")
    commands = {
        "inspect": ("inspect", folder / "model", "--json"),
        "evaluate": ("evaluate", "--model", folder, "--source", "test.de", "--reference", "test.en", "--json"),
        "attend": ("attend", folder, "eins zwei", "--json"),
        "embed": ("embed", folder, "--nearest", "one", "--json"),
        "compare": ("compare", folder, folder, "--json"),
    }
    printed = {name: tfm(*words) for name, words in commands.items()}
    manifests = {file.parent.name: json.loads(file.read_bytes()) for file in sorted(folder.glob("*/manifest.json"))}
    state = max((folder / "training" / "checkpoints").rglob("state.json"))
    lines = (folder / "training" / "metrics.jsonl").read_text("utf-8").splitlines()
    return {
        "files": sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()),
        "fingerprints": {stage: manifests[stage]["fingerprint"] for stage in ("tokenizer", "dataset")},
        "manifests": {stage: structure(manifest) for stage, manifest in manifests.items()},
        "checkpoint": structure(json.loads(state.read_bytes())),
        "metrics.jsonl": {str(keys) for keys in (sorted(json.loads(line)) for line in lines)},
        "scores.json": structure(json.loads((folder / "scores" / "scores.json").read_bytes())),
        "printed": {name: structure(json.loads(result.out)) for name, result in printed.items()},
    }


PARTS: dict[str, Callable[[], object]] = {
    "tensors": tensors,
    "recipe keys": recipe_keys,
    "corpora": corpora,
    "run": run,
}


def written(found: object) -> str:
    """A part as it stands in the file."""
    return json.dumps(found, indent=1, sort_keys=True, default=sorted)


def main() -> None:
    """Write the golden file."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        found = {name: make() for name, make in PARTS.items()}
    FILE.write_text(written(found) + "\n", "utf-8")


if __name__ == "__main__":
    main()
