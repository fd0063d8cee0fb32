"""The forms in which programs keep tokenizers, and how each is read."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tfm.data.errors import DataError
from tfm.data.foreign_tokenizers.received_folder import decode_text
from tfm.data.json_documents import parse_json
from tfm.data.safe_files import read_bounded_file
from tfm.tokenizer.code_points import MODEL_TYPE
from tfm.tokenizer.config import TokenizerConfig
from tfm.tokenizer.foreign.byte_level import (
    END_OF_TEXT,
    ROBERTA_CONTROL_TOKENS,
    build_byte_level_json,
    byte_level_alphabet,
)
from tfm.tokenizer.foreign.codes import (
    END,
    build_bpe_codes_json,
    pieces_missing_from_vocabulary,
    read_codes,
    read_vocabulary,
)
from tfm.tokenizer.foreign.original_ids import ORIGINAL_IDS_FILE
from tfm.tokenizer.foreign.sentencepiece import build_tokenizer_json_with_model_ids, parse_sentencepiece_model
from tfm.tokenizer.foreign.tiktoken import (
    PATTERN_BY_SIZE,
    PATTERNS,
    build_tekken_json,
    build_tiktoken_json,
    choose_pattern,
    pattern_components,
    read_ranks,
)
from tfm.tokenizer.foreign.wordpiece import build_wordpiece_json, has_upper_case
from tfm.tokenizer.tokenizer import MAX_TOKENIZER_FILE_BYTES

TOKENIZER_SETTINGS_FILES = ("special_tokens_map.json", "tokenizer_config.json")
CTRL_Z = "\x1a"
"""The end of a file of DOS."""
VOCAB_FILE, MERGES_FILE = "vocab.json", "merges.txt"
WORDPIECE_CLASSES = ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MobileBertTokenizer")
BYTE_LEVEL_CLASSES = ("GPT2Tokenizer", "RobertaTokenizer", "BartTokenizer", "LongformerTokenizer", "LEDTokenizer")
QWEN = "Qwen2Tokenizer"
"""The class of Qwen's vocabularies: texts are in NFC, cut by another pattern, and control tokens are added."""
ADDED_TOKENS_FILE = "added_tokens.json"
BYTE_ORDER_MARK = "\ufeff"
MAX_PIECES = 2**20
"""The largest vocabularies that are published have somewhat less."""
JsonDocument = dict[str, Any]
PieceScoresAndMerges = tuple[Mapping[str, float], Sequence[Sequence[str]]]


@dataclass(frozen=True)
class TokenizerSource:
    """A tokenizer's file. data: its content. form: a key of `TOKENIZER_FORMATS`. tokenizer_config: what files beside it
    say of control tokens and of what is done to texts. companions: by name those that are read."""

    file: Path
    data: bytes
    form: str
    tokenizer_config: Mapping[str, Any]
    companions: Mapping[str, Path]

    @property
    def is_code_point_tokenizer(self) -> bool:
        """Whether it is a tokenizer of ours without a vocabulary."""
        if self.form != "tokenizer.json":
            return False
        model = self.document.get("model")
        return isinstance(model, Mapping) and model.get("type") == MODEL_TYPE

    @cached_property
    def document(self) -> JsonDocument:
        """The JSON object in it."""
        return parse_json(self.data)

    @property
    def lines(self) -> list[str]:
        """The lines of its text. Raises DataError if it is not UTF-8."""
        return decode_lines(self.data, self.file)


@dataclass(frozen=True)
class TokenizerFormat:
    """A form in which tokenizers are received.

    Args:
        name: the name of the form in messages.
        read_tokenizer: makes tokenizer.json and, of pieces without an id, their scores and all merges.
        key: the recipe's key that is for this form alone.
        companions: files that are read with it, if they are there.
        has_ids: whether its pieces have ids of their own.
    """

    name: str
    read_tokenizer: Callable[[TokenizerSource, TokenizerConfig], tuple[JsonDocument, PieceScoresAndMerges | None]]
    key: str | None = None
    companions: Sequence[str] = TOKENIZER_SETTINGS_FILES
    has_ids: Callable[[TokenizerConfig], bool] = lambda config: True


def is_vocabulary(document: Mapping[str, Any]) -> bool:
    return bool(document) and all(type(each) is int for each in document.values())


def decode_lines(data: bytes, file: Path) -> list[str]:
    if data.count(b"\n") > MAX_PIECES:
        raise DataError(f"has more than {MAX_PIECES:,} lines, which no tokenizer that tfm reads has", file=file)
    lines = decode_text(data, file).split("\n")
    if lines[0].strip("\r") != BYTE_ORDER_MARK:  # alone it is a piece
        lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] in ("", CTRL_Z) else lines)]


def _read_tokenizer_json(source: TokenizerSource, config: TokenizerConfig) -> tuple[JsonDocument, None]:
    document = source.document
    vocab = document["model"].get("vocab")
    if isinstance(vocab, Collection) and len(vocab) > MAX_PIECES:
        raise ValueError(f"it has {len(vocab):,} pieces, and {MAX_PIECES:,} at most are read")
    return document, None


def _read_wordpiece(source: TokenizerSource, config: TokenizerConfig) -> tuple[JsonDocument, None]:
    lines = source.lines
    tokenizer_config = {
        "do_lower_case": not has_upper_case(lines),
        **_read_checked_settings(source, WORDPIECE_CLASSES, len(lines)),
    }
    unknown = tokenizer_config["unk_token"] = config.unk_token or tokenizer_config.get("unk_token") or "[UNK]"
    if "<unk>" in lines and unknown not in lines and not any(line.startswith("##") for line in lines):
        raise ValueError(
            "it is a list of words or pieces, a line each, as JoeyNMT's and OpenNMT's vocabularies, and does not say "
            "how texts are cut: give the codes or the .model, or learn one of words (`tfm tokenize --kind word`)"
        )
    if unknown not in lines:
        raise ValueError(
            f"it is a list of pieces, a line each, as BERT's vocab.txt, and lacks {unknown}: name the piece for "
            "what is unknown (tokenizer.unk_token)"
        )
    return build_wordpiece_json(lines, tokenizer_config), None


def _read_byte_level(source: TokenizerSource, config: TokenizerConfig) -> tuple[JsonDocument, None]:
    other_file = MERGES_FILE if source.form == VOCAB_FILE else VOCAB_FILE
    if other_file not in source.companions:
        models = sorted(each.name for each in source.file.parent.glob("*.spm"))
        if models:
            raise ValueError(f"it numbers the pieces of SentencePiece models, as Marian's: give {' or '.join(models)}")
        if source.form == VOCAB_FILE and not {*byte_level_alphabet()} <= source.document.keys():
            raise ValueError(
                "it numbers words or pieces, as Sockeye's and Nematus's vocabularies, and does not say how texts are "
                "cut: give the codes or the .model that cut them"
            )
        raise ValueError(f"it is one of the two files {VOCAB_FILE} and {MERGES_FILE}: put {other_file} beside it")
    data = read_bounded_file(
        source.companions[other_file],
        displayed_path=source.file.parent / other_file,
        max_bytes=MAX_TOKENIZER_FILE_BYTES,
    )
    vocab = source.document if source.form == VOCAB_FILE else parse_json(data)
    lines = source.lines if source.form == MERGES_FILE else decode_lines(data, source.file.parent / other_file)
    if not is_vocabulary(vocab):
        raise ValueError(f"{VOCAB_FILE} has not a number for each piece")
    name = PATTERN_BY_SIZE.get(len(vocab), "gpt2")
    classes = (QWEN, *BYTE_LEVEL_CLASSES) if name == "qwen" else (*BYTE_LEVEL_CLASSES, QWEN)
    tokenizer_config = _read_checked_settings(source, classes, len(vocab))
    is_qwen = tokenizer_config.get("tokenizer_class", classes[0]).removesuffix("Fast") == QWEN
    if "tokenizer_class" not in tokenizer_config and name != "gpt2" and not is_qwen:
        raise ValueError(
            f"it has {len(vocab):,} pieces, as {name} has, which cuts texts by another pattern than GPT-2: load it "
            "with transformers, save it, and give the tokenizer.json that this writes"
        )
    if characters := {*"".join(line for line in lines if not line.startswith("#version"))} - {
        *byte_level_alphabet(),
        " ",
    }:
        raise ValueError(f"{MERGES_FILE} has {min(characters)!r}, which is not a letter that GPT-2 has for a byte")
    if any(END in line for line in lines):
        raise ValueError(
            f"{MERGES_FILE} ends words with {END}, as those of CLIP and of the first GPT do: load it with "
            "transformers, save it, and give the tokenizer.json that this writes"
        )
    control = {
        **ROBERTA_CONTROL_TOKENS,
        "eos_token": END_OF_TEXT,
        **{key: each for key, each in tokenizer_config.items() if each is not None},
    }
    document = build_byte_level_json(vocab, lines, tokenizer_config, control)
    if is_qwen:
        document |= {"normalizer": {"type": "NFC"}, **pattern_components(PATTERNS["qwen"])}
        document["added_tokens"] += _added_tokens(source, vocab)
    return document, None


def _added_tokens(source: TokenizerSource, vocab: Mapping[str, int]) -> list[dict[str, Any]]:
    """The tokens that the settings beside a vocabulary add to it, in the order of their ids. Raises ValueError if an
    entry is not a token and its id.
    """
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokens: dict[str, dict[str, Any]] = {}
    if ADDED_TOKENS_FILE in source.companions:
        numbers = parse_json(
            read_bounded_file(source.companions[ADDED_TOKENS_FILE], max_bytes=MAX_TOKENIZER_FILE_BYTES)
        )
        tokens = {content: {"id": number, "content": content, **plain} for content, number in numbers.items()}
    decoder = source.tokenizer_config.get("added_tokens_decoder") or {}
    if not isinstance(decoder, dict):
        raise ValueError("added_tokens_decoder beside it is not an object")
    for number, entry in decoder.items():
        if not isinstance(entry, dict) or not isinstance(entry.get("content"), str) or not str(number).isdecimal():
            raise ValueError(f"added_tokens_decoder beside it has {number!r:.40} without a token")
        flags = {key: entry[key] for key in plain if isinstance(entry.get(key), bool)}
        tokens[entry["content"]] = {"id": int(number), "content": entry["content"], **plain, **flags}
    if not all(type(each["id"]) is int and each["id"] >= 0 for each in tokens.values()):
        raise ValueError(f"{ADDED_TOKENS_FILE} beside it has not a number for each token")
    used_ids = {*vocab.values()}
    if duplicates := [name for name, each in tokens.items() if vocab.get(name, -1) != each["id"] in used_ids]:
        raise ValueError(f"the token {duplicates[0]!r:.40} that is added to it has the id of another piece")
    return sorted((each for name, each in tokens.items() if name not in vocab), key=lambda each: int(each["id"]))


def _read_checked_settings(source: TokenizerSource, classes: Sequence[str], size: int) -> dict[str, Any]:
    """The settings beside a vocabulary, names of tokens spelled out. Raises ValueError if it is for another class of
    tokenizers, or adds tokens."""
    tokenizer_config = {
        key: item.get("content") if isinstance(item, dict) else item for key, item in source.tokenizer_config.items()
    }
    name = str(tokenizer_config.get("tokenizer_class") or classes[0]).removesuffix("Fast")
    numbers = source.tokenizer_config.get("added_tokens_decoder") or {}
    is_larger = not all(str(number).isdecimal() and int(number) < size for number in numbers)
    has_added_tokens = name != QWEN and (ADDED_TOKENS_FILE in source.companions or is_larger)
    if name not in classes or has_added_tokens:
        reason = "has added tokens" if has_added_tokens else f"is of the class {name:.80}"
        raise ValueError(
            f"the vocabulary {reason}: load it with transformers, save it, and give the tokenizer.json that this writes"
        )
    for key in ("do_lower_case", "strip_accents", "tokenize_chinese_chars", "add_prefix_space", "do_basic_tokenize"):
        if not isinstance(tokenizer_config.get(key), bool | None):
            raise ValueError(f"{key} = {tokenizer_config[key]!r:.60} beside it is not true or false")
    return tokenizer_config


def _read_bpe_codes(
    source: TokenizerSource, config: TokenizerConfig
) -> tuple[JsonDocument, PieceScoresAndMerges | None]:
    codes = read_codes(source.lines)
    names = None if config.codes_vocabulary is None else _read_codes_vocabulary(Path(config.codes_vocabulary))
    document = build_bpe_codes_json(codes, names)
    unnumbered, joins = pieces_missing_from_vocabulary(codes, document)
    return document, (unnumbered, joins) if unnumbered else None


def _read_codes_vocabulary(file: Path) -> list[str]:
    try:
        return read_vocabulary(
            decode_lines(read_bounded_file(file, max_bytes=MAX_TOKENIZER_FILE_BYTES, follow_symlinks=True), file)
        )
    except FileNotFoundError:
        raise DataError("no such file (tokenizer.codes_vocabulary)", file=file) from None
    except ValueError as error:
        raise DataError(f"is no vocabulary of subword-nmt: {error}", file=file) from None


def _read_tiktoken_ranks(source: TokenizerSource, config: TokenizerConfig) -> tuple[JsonDocument, None]:
    ranks = read_ranks(source.lines)
    return build_tiktoken_json(ranks, choose_pattern(len(ranks), config.pattern)), None


TOKENIZER_FORMATS: Mapping[str, TokenizerFormat] = {
    "tokenizer.json": TokenizerFormat(
        "a tokenizer.json", _read_tokenizer_json, companions=(*TOKENIZER_SETTINGS_FILES, ORIGINAL_IDS_FILE)
    ),
    "sentencepiece": TokenizerFormat(
        "a SentencePiece model",
        lambda source, _: (build_tokenizer_json_with_model_ids(parse_sentencepiece_model(source.data)), None),
    ),
    "vocab.txt": TokenizerFormat(
        "BERT's vocab.txt", _read_wordpiece, companions=(*TOKENIZER_SETTINGS_FILES, ADDED_TOKENS_FILE)
    ),
    VOCAB_FILE: TokenizerFormat(
        "GPT-2's vocab.json with merges.txt",
        _read_byte_level,
        companions=(*TOKENIZER_SETTINGS_FILES, ADDED_TOKENS_FILE, MERGES_FILE),
    ),
    MERGES_FILE: TokenizerFormat(
        "GPT-2's merges.txt with vocab.json",
        _read_byte_level,
        companions=(*TOKENIZER_SETTINGS_FILES, ADDED_TOKENS_FILE, VOCAB_FILE),
    ),
    "codes": TokenizerFormat(
        "codes of subword-nmt or fastBPE",
        _read_bpe_codes,
        "codes_vocabulary",
        (),
        lambda config: config.codes_vocabulary is not None,
    ),
    "tiktoken": TokenizerFormat("a rank file of tiktoken", _read_tiktoken_ranks, "pattern", ()),
    "tekken": TokenizerFormat(
        "Mistral's tekken.json", lambda source, _: (build_tekken_json(source.document), None), companions=()
    ),
}
