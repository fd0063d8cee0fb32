"""A campaign: what each judge is shown, and which system wrote it. `campaign.json` holds it, and stays with who asks.

Only this file maps labels to systems; judges get pages, tables or a campaign for Pearmut without the key.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tfm.data.errors import validation_problem
from tfm.data.json_documents import parse_json
from tfm.data.safe_files import read_bounded_file
from tfm.pipeline.artifacts.canonical_json import sha256_of_json
from tfm.pipeline.artifacts.files import write_bytes_atomically
from tfm.pipeline.errors import DataError, escape_unprintable

MAX_CAMPAIGN_BYTES = 32 * 2**20
MAX_JSON_VALUES = 4_000_000
MAX_JSON_OBJECTS = 250_000
"""In a campaign; pydantic's reader takes 2 KB for one."""
JSON_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
MAX_SYSTEMS = 200
MAX_JUDGES = 1_000
CAMPAIGN_FILE = "campaign.json"
CampaignKind: TypeAlias = Literal["likert", "esa", "pairwise", "best"]
ItemId = Annotated[str, Field(max_length=100, pattern=r"^[^\p{C}\p{Zl}\p{Zp}]+$")]
"""One line of characters that are shown."""
BoundedName = Annotated[str, Field(max_length=4096)]
"""A system may be named by its path."""

SCALE_RANGES: Mapping[CampaignKind, Mapping[str, tuple[int, int]]] = {
    "likert": {"adequacy": (1, 5), "fluency": (1, 5)},
    "esa": {"score": (0, 100)},
    "pairwise": {},
    "best": {},
}
"""The scales of a kind with their ends, the one that an attention check looks at first; preferences have none."""


class _CampaignModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ShownText(_CampaignModel):
    """One text under its label. system: who wrote it; None if it belongs to no system (an attention check)."""

    label: ItemId
    system: BoundedName | None
    text: str


class AttentionCheck(_CampaignModel):
    """An attention check. damaged: the labels of the texts that were spoiled, which nobody who reads prefers."""

    damaged: tuple[ItemId, ...] = Field(min_length=1)


class CampaignItem(_CampaignModel):
    """The texts for one source, which a judge answers at once. line: from 1, in the test set named `test`.

    references: all that the test set has, whether they are shown or not. repeat_of: the item that this one shows again,
    its texts in another order.
    """

    id: ItemId
    test: BoundedName
    line: int = Field(ge=1, le=10**9)
    source: str
    references: tuple[str, ...] = ()
    shown: tuple[ShownText, ...] = Field(min_length=1)
    check: AttentionCheck | None = None
    repeat_of: ItemId | None = None

    @cached_property
    def texts_by_label(self) -> Mapping[str, ShownText]:
        """Each text by its label."""
        return {each.label: each for each in self.shown}

    @property
    def is_counted(self) -> bool:
        """Whether the item says something of the systems: it is no attention check and was not asked before."""
        return self.check is None and self.repeat_of is None


class Judge(_CampaignModel):
    """The items of one judge, in the order shown; ties: items not shown, since all their texts are the same."""

    name: ItemId
    items: tuple[ItemId, ...]
    ties: tuple[ItemId, ...] = ()

    @cached_property
    def item_ids(self) -> frozenset[str]:
        """The items asked, without order."""
        return frozenset(self.items)


class Campaign(_CampaignModel):
    """All items and who is asked which of them; a pure function of the seed and the systems' texts.

    show_reference: whether judges see the first reference beside the source. num_lines: how many lines the test set
    has, by which a file of references is known to be of it; None in campaigns of earlier versions.
    """

    format: Literal[1] = 1
    kind: CampaignKind
    seed: int
    show_reference: bool = False
    num_lines: int | None = Field(None, ge=1, le=10**9)
    systems: tuple[BoundedName, ...] = Field(min_length=1, max_length=MAX_SYSTEMS)
    items: tuple[CampaignItem, ...]
    judges: tuple[Judge, ...] = Field(min_length=1, max_length=MAX_JUDGES)

    @cached_property
    def items_by_id(self) -> Mapping[str, CampaignItem]:
        """Each item by its id."""
        return {item.id: item for item in self.items}

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of what judges are asked, which names the campaign in every file of answers."""
        return sha256_of_json(self.model_dump(mode="json", exclude={"num_lines"}))

    @cached_property
    def judges_by_name(self) -> Mapping[str, Judge]:
        """Each judge by name."""
        return {judge.name: judge for judge in self.judges}

    def find_judge(self, name: object) -> Judge | None:
        """Find the judge with this name; None if there is none, or if it is not a text."""
        return self.judges_by_name.get(name) if isinstance(name, str) else None

    def check_fingerprint(self, answers_fingerprint: object) -> None:
        """Raise ValueError if a file of answers names another campaign."""
        if answers_fingerprint != self.fingerprint:
            name = escape_unprintable(f"{answers_fingerprint!s:.16}")
            raise ValueError(f"is of another campaign: it names {name}…, not {self.fingerprint:.16}…")

    @model_validator(mode="after")
    def _check_consistency(self) -> "Campaign":
        _check_unique("item", [item.id for item in self.items])
        _check_unique("judge", [judge.name for judge in self.judges])
        _check_unique("system", self.systems)
        for item in self.items:
            self._check_item(item)
        for judge in self.judges:
            self._check_judge(judge)
        return self

    def _check_item(self, item: CampaignItem) -> None:
        _check_unique(f"item {item.id}: label", [each.label for each in item.shown])
        if self.kind == "pairwise" and len(item.shown) != 2:
            raise ValueError(f"item {item.id}: a pair has two texts, not {len(item.shown)}")
        for shown_text in item.shown:
            if shown_text.system is None and item.check is None:
                raise ValueError(
                    f"item {item.id}: label {shown_text.label} has no system, and the item is no attention check"
                )
            if shown_text.system is not None and shown_text.system not in self.systems:
                raise ValueError(f"item {item.id}: no such system: {shown_text.system:.60}")
        for label in item.check.damaged if item.check else ():
            if label not in item.texts_by_label:
                raise ValueError(f"item {item.id}: no such label: {label}")

    def _check_judge(self, judge: Judge) -> None:
        _check_unique(f"judge {judge.name}: item", judge.items + judge.ties)
        earlier_items: set[str] = set()
        for name in judge.items + judge.ties:
            item = self.items_by_id.get(name)
            if item is None:
                raise ValueError(f"judge {judge.name}: no such item: {name}")
            if item.repeat_of is not None and item.repeat_of not in earlier_items:
                raise ValueError(f"judge {judge.name}: {name} repeats {item.repeat_of}, which was not shown before")
            earlier_items.add(name)


def write_campaign(campaign: Campaign, file: Path) -> None:
    """Write campaign.json. Raises DataError if it would be larger than `read_campaign` reads."""
    data = (campaign.model_dump_json(indent=1) + "\n").encode()
    try:
        if len(data) > MAX_CAMPAIGN_BYTES:
            raise ValueError(f"has {len(data):,} bytes, and tfm reads {MAX_CAMPAIGN_BYTES:,}")
        _check_size(data)
    except ValueError as error:
        raise DataError(f"would be too large: {error}; give fewer segments or judges", file=file) from None
    write_bytes_atomically(file, data)


def read_campaign(file: Path) -> Campaign:
    """The campaign of a file, or of a folder that holds a campaign.json. Raises DataError if it is none."""
    is_file = not file.is_dir()
    file = file if is_file else file / CAMPAIGN_FILE
    if not file.exists():
        raise DataError("no such file; tfm judge make writes it", file=file)
    try:
        data = read_bounded_file(file, max_bytes=MAX_CAMPAIGN_BYTES, follow_symlinks=is_file)
        _check_size(data)
        parse_json(data)  # refuses what is no JSON object, or nested without end, in our words
        return Campaign.model_validate_json(data)
    except ValidationError as error:
        raise DataError(f"is no campaign of tfm: {escape_unprintable(validation_problem(error))}", file=file) from None
    except ValueError as error:
        raise DataError(str(error), file=file) from None


def check_json_value_count(data: bytes) -> None:
    """Raise ValueError if a file has more values than fit in memory: in JSON two bytes can cost a hundred."""
    if sum(map(data.count, (b",", b";", b"\t", b"\n", b"[", b"{"))) > MAX_JSON_VALUES:
        raise ValueError(f"has more than {MAX_JSON_VALUES:,} values, which tfm does not read here")


def _check_size(data: bytes) -> None:
    """Raise ValueError if a campaign has more values or objects than are read."""
    check_json_value_count(data)
    num_braces = data.count(b"{")  # texts may have some
    if num_braces > MAX_JSON_OBJECTS and JSON_STRING.sub(b"", data).count(b"{") > MAX_JSON_OBJECTS:
        raise ValueError(f"has more than {MAX_JSON_OBJECTS:,} objects, which tfm does not read here")


def _check_unique(description: str, names: tuple[str, ...] | list[str]) -> None:
    earlier_names: set[str] = set()
    for name in names:
        if name in earlier_names:
            raise ValueError(f"{description} {name:.60} occurs twice")
        earlier_names.add(name)
