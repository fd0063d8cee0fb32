"""The files of a folder of transformers, which somebody else may have sent, with those of the weights."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tfm.data.errors import DataError
from tfm.data.foreign_tokenizers.received_folder import PretrainedFolder
from tfm.pipeline.artifacts.manifest import Input
from tfm.tokenizer.tokenizer import MAX_TOKENIZER_FILE_BYTES

WEIGHTS_INDEX_FILE, WEIGHTS_FILE = "model.safetensors.index.json", "model.safetensors"
CONFIG_FILE, GENERATION_CONFIG_FILE = "config.json", "generation_config.json"
READABLE_FILE_NAMES = (
    *(CONFIG_FILE, GENERATION_CONFIG_FILE, "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("added_tokens.json", "vocab.json", "target_vocab.json", "vocab.txt", "merges.txt"),
    *("source.spm", "target.spm", "sentencepiece.bpe.model"),
)
"""The files that are read beside the weights and their index."""


class Snapshot(PretrainedFolder):
    """A folder as `save_pretrained` writes it; its files in `READABLE_FILE_NAMES` are read, and the weights."""

    def read(self, name: str) -> bytes:
        """The content of one of `READABLE_FILE_NAMES`. Raises DataError as `locate_file`, or if it is too large."""
        assert name in (*READABLE_FILE_NAMES, WEIGHTS_INDEX_FILE), name
        return super().read(name)

    def read_document(self, name: str) -> dict[str, Any]:
        """The JSON object in one of `READABLE_FILE_NAMES`; empty if there is no such file."""
        assert name in (*READABLE_FILE_NAMES, WEIGHTS_INDEX_FILE), name
        return super().read_document(name)

    def weight_files(self) -> list[Path]:
        """The files of the weights, links resolved, each once. Raises DataError if one is missing or elsewhere."""
        return list(dict.fromkeys(path for _, path in self._find_weight_files()))

    def inputs(self) -> dict[str, Input]:
        """Every file that an import may read, as its inputs."""
        small_files = {
            name: self.locate_file(name) for name in (*READABLE_FILE_NAMES, WEIGHTS_INDEX_FILE) if self.has_file(name)
        }
        for name, path in small_files.items():
            if (size := path.stat().st_size) > MAX_TOKENIZER_FILE_BYTES:
                limits = f"{size:,} bytes; {MAX_TOKENIZER_FILE_BYTES:,} at most"
                problem = f"is larger than any file that tfm reads here ({limits})"
                raise DataError(problem, file=self.folder / name)
        paths = small_files | dict(self._find_weight_files())
        inputs = {name: Input.from_file(path) for name, path in paths.items()}
        return {name: Input(each.fingerprint, str(self.folder / name)) for name, each in inputs.items()}

    def _find_weight_files(self) -> Iterator[tuple[str, Path]]:
        """The files of the weights by name."""
        if self.has_file(WEIGHTS_FILE):  # before an index in the same folder, as transformers does
            yield WEIGHTS_FILE, self.locate_file(WEIGHTS_FILE)
        elif self.has_file(WEIGHTS_INDEX_FILE):
            weight_map = self.read_document(WEIGHTS_INDEX_FILE).get("weight_map")
            if not isinstance(weight_map, dict) or not weight_map:
                raise DataError("has no weight_map of names and files", file=self.folder / WEIGHTS_INDEX_FILE)
            names = [*dict.fromkeys(name if isinstance(name, str) else repr(name) for name in weight_map.values())]
            yield from ((name, self.locate_file(name, referring_file=WEIGHTS_INDEX_FILE)) for name in sorted(names))
        else:
            problem = f"has no {WEIGHTS_FILE}: weights are read from safetensors alone; save it again with transformers"
            raise DataError(problem, file=self.folder)
