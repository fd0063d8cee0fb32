"""The models that a server has: by name, and by the languages between which they translate."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from tfm.data.artifact_tokenizers import load_tokenizer_pair
from tfm.data.image_config import IMAGES_FILE
from tfm.data.json_documents import read_json
from tfm.model.config import ModelConfig
from tfm.pipeline.artifacts.manifest import Input, Manifest, read_artifact, read_manifest
from tfm.pipeline.decoding.shortlist import Shortlist
from tfm.pipeline.errors import DataError, RecipeError
from tfm.pipeline.model_io.model_folder import resolve_model_folder
from tfm.pipeline.model_io.shortlist_folder import STAGE as SHORTLIST_STAGE
from tfm.pipeline.model_io.shortlist_folder import read_shortlist
from tfm.pipeline.serving.dispatch.messages import ModelVersion, ShortlistVersion
from tfm.pipeline.serving.model_entries import parse_direction_entries, parse_shortlist_entries
from tfm.pipeline.serving.problems import bad_request
from tfm.pipeline.tasks.abilities import TASK_SPECS, TaskSpec
from tfm.tokenizer.languages import ambiguity_problem, match_request_languages, request_code, to_iso_639_3
from tfm.tokenizer.tokenizer import Tokenizer

UNKNOWN_LANGUAGE = "und"
"""The code of ISO 639 for a language that is not determined."""


@dataclass(frozen=True)
class ServedModel:
    """A version of a model, with what requests are checked against.

    Args:
        version: of the model.
        tokenizer: of its sources; of a language model, of its texts.
        max_length: the most pieces that it reads, end token included.
        pairs: the languages that it translates between, by its own codes.
        has_source_language: whether it is told the language of the source.
        are_pairs_given: whether the operator has named the languages.
        shortlist: of the version, by which its sources are judged; None: all pieces may come.
    """

    version: ModelVersion
    tokenizer: Tokenizer
    max_length: int
    pairs: tuple[tuple[str, str], ...] = ()
    has_source_language: bool = False
    are_pairs_given: bool = False
    shortlist: Shortlist | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The name by which it is asked for."""
        return self.version.name

    @property
    def abilities(self) -> TaskSpec:
        """The abilities of its task."""
        return TASK_SPECS[self.version.task]

    def match_pairs(self, source: str | None, target: str | None) -> list[tuple[str, str]]:
        """The pairs of its languages that codes of a request mean; None: any."""
        sides = zip(*self.pairs, strict=True) if self.pairs else ((), ())
        sources, targets = (
            own_codes if code is None else match_request_languages(code, dict.fromkeys(own_codes))
            for code, own_codes in zip((source, target), sides, strict=True)
        )
        return [pair for pair in self.pairs if pair[0] in sources and pair[1] in targets]

    def fits(self, sentence: str) -> bool:
        """Whether the model reads a sentence whole."""
        room = self.max_length - 3  # the end token, and those of two languages
        return len(sentence.encode()) <= room or len(self.tokenizer.encode(sentence)) <= room


class ModelCatalog:
    """The models of a server, each by a name of its own.

    Args:
        models: the versions that are published now.
    """

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self.models = {each.name: each for each in models}

    def replace(self, model: ServedModel) -> "ModelCatalog":
        """Return the catalog in which a model has taken the place of the one of its name."""
        return ModelCatalog([*{**self.models, model.name: model}.values()])

    @cached_property
    def translators(self) -> list[ServedModel]:
        """The models that translate texts."""
        models = self.models.values()
        return [each for each in models if each.abilities.translates and not each.version.reads_images]

    @cached_property
    def targets_by_source(self) -> dict[str, list[str]]:
        """The languages that texts may be in, and for each those that it is translated into, by codes of requests."""
        target_codes: dict[str, dict[str, None]] = {}
        for model in self.translators:
            sources, targets = map(dict.fromkeys, zip(*model.pairs, strict=True)) if model.pairs else ({}, {})
            for source, target in model.pairs:
                target_codes.setdefault(request_code(source, sources), {})[request_code(target, targets)] = None
        return {source: [*targets] for source, targets in sorted(target_codes.items())}

    def find_translator(self, source: str | None, target: str | None) -> tuple[ServedModel, str, str] | None:
        """The first model that translates between two languages, with its own codes of them; None: there is none.

        A language that is None may be any, but for that of a source which a model is told. Raises Problem if a code
        means several languages of each such model.
        """
        problems = []
        for model in self.translators:
            if pairs := model.match_pairs(source, target):
                problem = ambiguity_problem(pairs, source, target, is_source_told=model.has_source_language)
                if problem is None:
                    return model, *pairs[0]
                problems.append(problem)
        if problems:
            raise bad_request(problems[0])
        return None


def read_catalog(
    folders: Sequence[Path], languages: Sequence[str] = (), shortlists: Sequence[str] = ()
) -> ModelCatalog:
    """Read the models in some folders.

    Args:
        folders: of runs or of models.
        languages: NAME=SOURCE:TARGET for models whose languages are not known.
        shortlists: NAME=FOLDER for models whose translations are made of the pieces of a shortlist.

    Raises:
        RecipeError: two models have one name, or a language or shortlist is given to a model that is not there.
        DataError: a folder has no model, or one that cannot be served, or a shortlist is not of its model.
    """
    names = list(map(served_name, folders))
    directions = parse_direction_entries(languages, names)
    shortlist_folders = parse_shortlist_entries(shortlists, names)
    models: list[ServedModel] = []
    for folder in folders:
        model = read_served_model(folder, shortlist_folders.get(served_name(folder)))
        if model.name in {each.name for each in models}:
            raise RecipeError(f"{folder}: another model is called {model.name} too: rename one of the two folders")
        models.append(model)
    catalog = ModelCatalog(models)
    for name, pair in directions.items():
        _check_is_there(catalog, "--languages", name)
        _check_is_translated(catalog.models[name], pair)
        catalog = catalog.replace(replace(catalog.models[name], pairs=(pair,), are_pairs_given=True))
    for name in shortlist_folders:
        _check_is_there(catalog, "--shortlist", name)
    return catalog


def _check_is_there(catalog: ModelCatalog, option: str, name: str) -> None:
    if name not in catalog.models:
        raise RecipeError(f"{option} {name}: there is no model of this name; there is {', '.join(catalog.models)}")


def _check_is_translated(model: ServedModel, pair: tuple[str, str]) -> None:
    """Raise RecipeError if a model has no languages, or knows its own, and does not translate between these."""
    option, version = f"--languages {model.name}={':'.join(pair)}", model.version
    if version.reads_images or not model.abilities.translates:
        raise RecipeError(f"{option}: the model does not translate texts, so it has no languages: remove it")
    for side, name, knows in ((0, "read", model.has_source_language), (1, "write", version.has_languages)):
        model_languages = dict.fromkeys(each[side] for each in model.pairs)
        if knows and pair[side] not in model_languages:
            raise RecipeError(
                f"{option}: the model does not {name} {pair[side]}; it {name}s {', '.join(model_languages)}"
            )


def served_name(folder: Path) -> str:
    """The name of a model: that of its run, if it is the model of a run."""
    path = folder.resolve()
    return path.parent.name if path.name == "model" else path.name


def read_served_model(folder: Path, shortlist: Path | None = None) -> ServedModel:
    """Read the version of a model that is published now.

    Args:
        folder: of the run or the model.
        shortlist: the folder of the shortlist that its translations are made of; None: all pieces may come.

    Raises:
        DataError: it is none that can be served, or the shortlist is none of its vocabularies.
        RecipeError: a shortlist is given to a model that does not translate texts.
    """
    model_folder = resolve_model_folder(folder)

    def read(manifest: Manifest) -> ServedModel:
        config = read_json(manifest.folder / "config.json", displayed_path=manifest.path / "config.json")
        task = config.get("task", ModelConfig.model_fields["task"].default)
        problem = _task_problem(task)
        if problem is not None:
            raise DataError(problem, file=folder)
        source, target = load_tokenizer_pair(manifest.folder)
        reads_target = TASK_SPECS[task].reads == "target"
        languages = [*source.languages]
        reads_images = (manifest.folder / IMAGES_FILE).is_file()
        if shortlist is not None and (reads_images or not TASK_SPECS[task].translates):
            raise RecipeError(
                f"--shortlist {shortlist}: {folder} does not translate texts, so it takes none: remove it"
            )
        shortlist_version, pieces = (
            (None, None) if shortlist is None else _read_shortlist_version(shortlist, source, target)
        )
        version = ModelVersion(
            served_name(folder),
            model_folder.resolve(),
            manifest.fingerprint,
            task,
            reads_images=reads_images,
            has_languages=bool(languages),
            shortlist=shortlist_version,
        )
        pairs = (
            _language_pairs(languages, source.has_source_language, model_folder) if TASK_SPECS[task].translates else ()
        )
        max_length = config.get("max_length", 256)
        return ServedModel(
            version,
            target if reads_target else source,
            max_length,
            pairs,
            source.has_source_language,
            shortlist=pieces,
        )

    return read_artifact(model_folder, read, "train")


def _read_shortlist_version(folder: Path, source: Tokenizer, target: Tokenizer) -> tuple[ShortlistVersion, Shortlist]:
    """Read the published version of a shortlist, and its pieces. Raises DataError if it belongs to other
    vocabularies.
    """
    shortlist_input = Input.from_artifact(folder, SHORTLIST_STAGE)
    shortlist = read_shortlist(folder, source, target, must_match=shortlist_input)
    return ShortlistVersion(folder.absolute(), shortlist_input.fingerprint), shortlist


def _task_problem(task: object) -> str | None:
    if not isinstance(task, str) or task not in TASK_SPECS:
        return "config.json names no task of a model"
    abilities = TASK_SPECS[task]
    if not (abilities.gives_hypotheses or abilities.continues_text):
        return f"was trained for {task}, which no route of the server has: {abilities.instead}"
    return None


def _language_pairs(model_codes: Sequence[str], has_source_language: bool, folder: Path) -> tuple[tuple[str, str], ...]:
    """The languages that a model translates between, as far as it or its run tells."""
    source, target = _read_run_languages(folder)
    if has_source_language:
        return tuple((one, other) for one in model_codes for other in model_codes if one != other)
    if model_codes:
        return tuple((source, each) for each in model_codes)
    return ((source, target),)


def _read_run_languages(folder: Path) -> tuple[str, str]:
    """The languages of a run's corpus, by what its dataset was made of."""
    unknown = UNKNOWN_LANGUAGE, UNKNOWN_LANGUAGE
    dataset = folder.parent / "dataset"
    try:
        data_config = read_manifest(dataset, dataset).config.get("data")
    except (DataError, OSError):
        return unknown
    if not isinstance(data_config, dict):
        return unknown
    source, target = (data_config.get(side) for side in ("source", "target"))
    return tuple(each if _is_language_code(each) else UNKNOWN_LANGUAGE for each in (source, target))  # type: ignore[return-value]


def _is_language_code(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and to_iso_639_3(value) is not None


def has_new_version(model: ServedModel) -> bool:
    """Whether a new version of a model or of its shortlist is published; False if that cannot be read."""
    version = model.version
    fingerprints = [(version.folder, version.fingerprint)]
    if version.shortlist is not None:
        fingerprints.append((version.shortlist.folder, version.shortlist.fingerprint))
    return any(_read_fingerprint(folder) not in (None, fingerprint) for folder, fingerprint in fingerprints)


def _read_fingerprint(folder: Path) -> str | None:
    """The fingerprint of what is published in a folder now, unverified; None if it cannot be read."""
    try:
        return read_manifest(folder, folder).fingerprint
    except (DataError, OSError):
        return None
