"""A tokenizer.json from elsewhere, renumbered: our control tokens have the ids 0 to 3, others keep their order.

There one token may have several roles (in GPT-2 one begins and ends texts), here each has its own: a role without a
token of its own becomes a piece that no text has and that is never to be predicted.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import tokenizers

from tfm.tokenizer.special import BOS, BOS_ID, EOS, EOS_ID, PAD, SPECIAL_TOKENS, UNK, UNK_ID

MODELS_WITHOUT_MERGES = ("Unigram", "WordPiece", "WordLevel")
"""Models that look for whole pieces in a text, where they would find a control token."""
FILLER_PREFIX = "\ue000"
"""Stands before pieces that the model of a side does not have, so that no text has them; decoding removes it."""
MAX_UNUSED_IDS = 2**17
"""How many rows a model may have beyond the pieces of its tokenizer; published ones have some hundreds."""
ROLE_PRECEDENCE = (EOS, BOS, UNK, PAD)
"""The order in which roles get a token that has several."""


@dataclass(frozen=True)
class RenumberedTokenizer:
    """document: tokenizer.json. rows: by our id the id there. unmapped_ids: our ids that stand for none of theirs;
    their row is that of the token whose role they have."""

    document: dict[str, Any]
    rows: list[int]
    unmapped_ids: list[int]


def renumber(document: dict[str, Any], roles: Mapping[str, int], size: int) -> RenumberedTokenizer:
    """The tokenizer with our control tokens, for a model that has rows for `size` pieces.

    roles: the ids there of what begins and ends a text, of padding and of what is unknown, by our token. Raises
    ValueError where the tokenizer has more pieces than the model, or is of a kind that has no numbers.
    """
    pieces = document_pieces(document)
    if max(pieces, default=0) >= size or size > len(pieces) + MAX_UNUSED_IDS:
        raise ValueError(f"its tokenizer has {max(pieces, default=-1) + 1} pieces and its embedding {size}")
    if bad_roles := [role for role, number in roles.items() if not 0 <= number < size and role != BOS]:
        raise ValueError(f"its {bad_roles[0]} has the id {roles[bad_roles[0]]}, and its pieces are 0 to {size - 1}")
    names = {number: pieces.get(number, unused_token_name(number)) for number in range(size)}
    if [names.get(number) for number in range(4)] == [*SPECIAL_TOKENS] and _has_default_role_ids(roles, size):
        return RenumberedTokenizer({**document, "post_processor": None}, list(range(size)), [])
    role_ids: dict[str, int] = {}
    for role in ROLE_PRECEDENCE:
        if roles.get(role) is not None and roles[role] not in role_ids.values():
            role_ids[role] = roles[role]
    eos_id = roles.get(EOS, 0)
    rows = [role_ids.get(role, roles.get(role, eos_id)) for role in SPECIAL_TOKENS]
    rest = [number for number in range(size) if number not in role_ids.values()]
    new_names = [*SPECIAL_TOKENS, *(_make_unique_name(names[number], number) for number in rest)]
    unmapped_ids = [number for number, role in enumerate(SPECIAL_TOKENS) if role not in role_ids]
    rows += rest
    return RenumberedTokenizer(_renumber_document(document, new_names, rows, unmapped_ids), rows, unmapped_ids)


def check_number_of_pieces(document: Mapping[str, Any], size: int) -> None:
    """Raise ValueError if a tokenizer has more pieces than the model, before any of them is looked at."""
    vocab = document["model"].get("vocab")
    if isinstance(vocab, Collection) and len(vocab) > size:
        raise ValueError(f"its tokenizer has {len(vocab)} pieces and its embedding {size}")


def unused_token_name(token_id: int) -> str:
    """The name of a row that no piece of the tokenizer has."""
    return f"<unused:{token_id}>"


def document_pieces(document: Mapping[str, Any]) -> dict[int, str]:
    """Every piece by its id. Raises ValueError if the tokenizer is of no kind that is known."""
    vocab = document["model"].get("vocab")
    if isinstance(vocab, Mapping):
        pieces = {_check_id(number): piece for piece, number in vocab.items()}
    elif isinstance(vocab, list):
        pieces = {number: piece for number, (piece, _) in enumerate(vocab)}
    else:
        raise ValueError(f"its tokenizer is of a kind that is not known ({document['model'].get('type')})")
    return pieces | {
        _check_id(token["id"]): _check_token_is_text(token["content"]) for token in document.get("added_tokens") or []
    }


def _check_id(token_id: object) -> int:
    if type(token_id) is not int or token_id < 0:
        raise ValueError(f"its tokenizer has a piece whose id is {token_id!r:.40}")
    return token_id


def _check_token_is_text(content: object) -> str:
    if not isinstance(content, str):
        raise ValueError(f"its tokenizer has an added token that is no text, {content!r:.40}")
    return content


def _has_default_role_ids(roles: Mapping[str, int], size: int) -> bool:
    """Whether ids have the roles that we give them; what begins a text may have no row, as in a Marian of ours."""
    bos_id = roles.get(BOS, BOS_ID)
    return roles.get(EOS) == EOS_ID and roles.get(UNK, UNK_ID) == UNK_ID and (bos_id == BOS_ID or bos_id >= size)


def _make_unique_name(name: str, token_id: int) -> str:
    """Return a name for a piece that is not one of our control tokens, even if the piece has the name of one."""
    return f"{name}:{token_id}" if name in SPECIAL_TOKENS else name


def _renumber_document(
    document: dict[str, Any], new_names: list[str], rows: list[int], unmapped_ids: list[int]
) -> dict[str, Any]:
    """tokenizer.json with pieces called so, in this order."""
    model, added_tokens = dict(document["model"]), {each["id"]: each for each in document.get("added_tokens", [])}
    vocab = model["vocab"]
    in_model = {*vocab.values()} if isinstance(vocab, Mapping) else {*range(len(vocab))}
    last = max([len(SPECIAL_TOKENS) - 1, *(new for new, old in enumerate(rows) if old in in_model)])
    model_ids = range(last + 1)  # added tokens have the ids after these
    if isinstance(model["vocab"], list):
        scores = [score for _, score in model["vocab"]]
        low = min(scores)
        known_scores = {
            new: scores[rows[new]] for new in model_ids if rows[new] in in_model and new not in unmapped_ids
        }
        model["vocab"] = [[new_names[new], known_scores.get(new, low)] for new in model_ids]
        model["unk_id"] = SPECIAL_TOKENS.index(UNK)
    else:
        model["vocab"] = {new_names[new]: new for new in model_ids}
    if "unk_token" in model:
        model["unk_token"] = UNK
    if "merges" in model:
        pieces = document_pieces(document)
        role_pieces = {pieces.get(rows[new]) for new in range(len(SPECIAL_TOKENS)) if new not in unmapped_ids}
        special = {each["content"] for each in added_tokens.values() if each["special"]}
        model["merges"] = _merges_without(model, special | role_pieces)
    tokens = [
        _make_token(new, new_names[new], added_tokens.get(rows[new]) if new not in unmapped_ids else None)
        for new in range(len(rows))
        if new < len(SPECIAL_TOKENS) or rows[new] in added_tokens or new > last
    ]
    pre_tokenizer = document.get("pre_tokenizer")
    if _finds_whole_pieces(model):
        control = [each["content"] for each in tokens if each["special"] and each["id"] <= last]
        pre_tokenizer = split_spelled_control_tokens(
            pre_tokenizer, {*SPECIAL_TOKENS, *(name for name in control if not name.startswith(FILLER_PREFIX))}
        )
    changed = {"model": model, "added_tokens": tokens, "pre_tokenizer": pre_tokenizer, "post_processor": None}
    return {**document, **changed, "truncation": None, "padding": None}


def _make_token(token_id: int, name: str, old_token: Mapping[str, Any] | None) -> dict[str, Any]:
    is_special = old_token is None or token_id < len(SPECIAL_TOKENS) or old_token["special"]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {**plain, **(old_token or {}), "id": token_id, "content": name, "special": is_special}


def finds_control_tokens(backend: tokenizers.Tokenizer) -> bool:
    """Whether a tokenizer with our control tokens finds one in a text that spells it, though it takes such for text."""
    texts = [text.format(token) for token in SPECIAL_TOKENS for text in ("{}", "a {} b", "a{}b")]
    ids = {number for text in texts for number in backend.encode(text, add_special_tokens=False).ids}
    return bool(ids & ({*range(len(SPECIAL_TOKENS))} - {UNK_ID}))


def cut_spelled_control_tokens(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return tokenizer.json with our control tokens, which no text can spell."""
    model = document["model"]
    if not _finds_whole_pieces(model):
        return {**document, "model": {**model, "merges": _merges_without(model, {*SPECIAL_TOKENS})}}
    return {**document, "pre_tokenizer": split_spelled_control_tokens(document.get("pre_tokenizer"), SPECIAL_TOKENS)}


def _finds_whole_pieces(model: Mapping[str, Any]) -> bool:
    return model["type"] in MODELS_WITHOUT_MERGES or bool(model.get("ignore_merges"))


def _merges_without(model: Mapping[str, Any], control: Collection[str | None]) -> list[list[str]]:
    """The merges of a model but those that make a control token, as they do if texts with such were learned from, or
    that go on from one."""
    prefix = model.get("continuing_subword_prefix") or ""
    if not isinstance(model["merges"], list):
        raise ValueError("its merges are no list")
    merges = [each.split(" ") if isinstance(each, str) else each for each in model["merges"]]
    faulty = [number for number, each in enumerate(merges) if len(each) != 2 or not all(each)]
    if faulty:
        problem = f"its merge {faulty[0] + 1} ({model['merges'][faulty[0]]!r:.40}) is no pair of pieces"
        raise ValueError(f"{problem}: save it again, with the version of tokenizers or transformers that it is from")
    names = {*control}
    return [each for each in merges if names.isdisjoint((*each, each[0] + each[-1].removeprefix(prefix)))]


def split_spelled_control_tokens(step: dict[str, Any] | None, control: Collection[str]) -> dict[str, Any]:
    """The pre-tokenizer that also splits behind the first character of a text that spells a control token."""
    pattern = "|".join(f"{re.escape(each[0])}(?={re.escape(each[1:])})" for each in sorted(control))
    split_step = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split_step] if step is None else [step, split_step]}
