"""Scripts that use an exported model without tfm and torch, for its folder and its README.md.

Each is put together from parts, so that common code is written once, and needs onnxruntime, tokenizers and numpy.
"""

from tfm.model.config import ModelConfig
from tfm.pipeline.model_io.onnx.script_parts import (
    CACHE_SCRIPT,
    DECODER_ONLY_SCRIPT,
    ENCODER_DECODER_SCRIPT,
    SCRIPT_HEAD,
)
from tfm.pipeline.tasks.abilities import TASK_SPECS

TRANSLATE_SCRIPT = '''

def translated(sources):
    """The ids of the translations of sources, which end with END: always the likeliest piece."""
    limits = np.array([min(2 * len(source) + 20, LONGEST - 1) for source in sources])
    tokens, step = begin(@sources@)
    written, going = [[] for _ in sources], np.ones(len(sources), bool)
    while going.any():
        scores = step(tokens)
        scores[:, [PAD, BEGIN]] = -np.inf
        best = scores.argmax(-1)
        best[np.array([len(each) for each in written]) >= limits] = END
        going &= best != END
        for row in np.flatnonzero(going):
            written[row].append(int(best[row]))
        tokens = best[:, None]
    return written


def translate(lines, to=None):
    """The translation of each line. to: the language, of a model that has several."""
    lead = [CONFIG["languages"][to]] if to else []
    encoded = [encoded_ids(SOURCE, line) for line in lines]
    filled = [number for number, ids in enumerate(encoded) if ids]
    found = [""] * len(lines)
    for first in range(0, len(filled), BATCH):
        some = filled[first : first + BATCH]
        written = translated([(lead + encoded[number])[: LONGEST - 1] + [END] for number in some])
        for number, text in zip(some, TARGET.decode_batch(written)):
            found[number] = text
    return found


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    languages = list(CONFIG["languages"])
    arguments.add_argument("--to", choices=languages, required=bool(languages))
    print_lines(translate([*read_lines()], arguments.parse_args().to))
'''
GENERATE_SCRIPT = '''

def shown(pieces):
    """As much of a text as the model reads at once: of a longer one the last half, which leaves room."""
    context = CONFIG["context"]
    return pieces if len(pieces) <= context else pieces[:1] + pieces[-(context // 2) :]


def generate(prompt, most):
    """The prompt and at most so many pieces more, always the likeliest."""
    through_ends, context = CONFIG["through_ends"], CONFIG["context"]
    lines = prompt.split("\\n") if through_ends else [prompt]
    encoded = [encoded_ids(SOURCE, line) for line in lines]
    pieces = [BEGIN]
    for number, ids in enumerate(encoded):
        pieces += [END] * (number > 0) + ids
    room = most if through_ends else min(most, context - len(pieces))
    (tokens, step), read = begin([shown(pieces)]), 0
    for _ in range(room):
        if read + tokens.shape[1] > context:
            (tokens, step), read = begin([shown(pieces)]), 0
        scores, read = step(tokens)[0], read + tokens.shape[1]
        scores[[PAD, BEGIN]] = -np.inf
        piece = int(scores.argmax())
        if piece == END and not through_ends:
            break
        pieces.append(piece)
        tokens = np.array([[piece]])
    written = [[]]
    for piece in pieces[1:]:
        written.append([]) if piece == END else written[-1].append(piece)
    return "\\n".join(TARGET.decode_batch(written))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--prompt", help="text to continue; default: each line of stdin")
    arguments.add_argument("--max-tokens", type=int, default=256)
    asked = arguments.parse_args()
    for number, prompt in enumerate(read_lines() if asked.prompt is None else [asked.prompt]):
        between = "---\\n" if number and CONFIG["through_ends"] else ""
        sys.stdout.buffer.write((between + generate(prompt, asked.max_tokens) + "\\n").encode())
        sys.stdout.buffer.flush()
'''
LABELS_SCRIPT = '''

SOURCE = tokenizer("source")
MODEL = load("model")
LABELS, CONTROL = CONFIG["labels"], CONFIG["control"]


def likeliest(rows):
    """For each row of ids, END last, the names of the likeliest labels: of the text, or of each of its pieces."""
    ids, mask = padded(rows)
    found = run(MODEL, {"input_ids": ids, "attention_mask": mask})["logits"][..., CONTROL:].argmax(-1) + CONTROL
    return [[LABELS[each] for each in np.atleast_1d(row)] for row in found]
'''
CLASSIFY_TEXTS_SCRIPT = '''

def label(lines):
    """The label of each line; none of a line without pieces."""
    encoded = [encoded_ids(SOURCE, line) for line in lines]
    filled = [number for number, ids in enumerate(encoded) if ids]
    found = [""] * len(lines)
    for first in range(0, len(filled), BATCH):
        some = filled[first : first + BATCH]
        names = likeliest([encoded[number][: LONGEST - 1] + [END] for number in some])
        for number, (name,) in zip(some, names):
            found[number] = name
    return found


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.parse_args()
    print_lines(label([*read_lines()]))
'''
TAG_WORDS_SCRIPT = '''

def of_later_words():
    """The same tokenizer for a word that is not the first of its line: it keeps the space before the word."""
    document = json.loads(SOURCE.to_str())
    steps = (document["normalizer"] or {}).get("normalizers", [])
    if steps and steps[-1]["type"] == "Strip":
        steps[-1]["strip_left"] = False
    found = Tokenizer.from_str(json.dumps(document))
    found.encode_special_tokens = True
    return found


LATER = of_later_words()
SPACES = str.maketrans(dict.fromkeys(CONFIG["spaces"], " "))


def encode(line):
    """The ids of each word of a line; a word of which nothing is left is one unknown piece."""
    words = [word.replace("\\u2423", " ") for word in line.translate(SPACES).split(" ") if word]
    spelled = [(LATER, f" {word}") if place else (SOURCE, word) for place, word in enumerate(words)]
    encoded = [encoded_ids(tokens, word) for tokens, word in spelled]
    return [ids or [CONFIG["unknown"]] for ids in encoded]


def tag(lines):
    """The tags of each line, one a word, between spaces. A word beyond what the model reads has none."""
    encoded = [encode(line) for line in lines]
    filled = [number for number, words in enumerate(encoded) if words]
    found = [""] * len(lines)
    for first in range(0, len(filled), BATCH):
        some = filled[first : first + BATCH]
        texts = [sum(encoded[number], [])[: LONGEST - 1] + [END] for number in some]
        for number, names in zip(some, likeliest(texts)):
            begins = np.cumsum([0] + [len(word) for word in encoded[number][:-1]])
            found[number] = " ".join(names[place] for place in begins if place < LONGEST - 1)
    return found


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.parse_args()
    print_lines(tag([*read_lines()]))
'''
PROMPTED_SOURCES_EXPRESSION, SOURCES_EXPRESSION = "[source + [BEGIN] for source in sources]", "sources"
"""The beginning of a translation: of a decoder-only model the target stands behind the source."""


def choose_script_name_and_text(config: ModelConfig) -> tuple[str, str] | None:
    """The name of the script for a model, and its text; None if a model only reads, as masked language models do."""
    abilities = TASK_SPECS[config.task]
    if abilities.translates and config.architecture == "transformer":
        parts = CACHE_SCRIPT + ENCODER_DECODER_SCRIPT + TRANSLATE_SCRIPT.replace("@sources@", SOURCES_EXPRESSION)
        return "translate.py", _assemble_script("Translate the lines of stdin: always the likeliest piece.", parts)
    if abilities.translates:
        parts = CACHE_SCRIPT + DECODER_ONLY_SCRIPT + TRANSLATE_SCRIPT.replace("@sources@", PROMPTED_SOURCES_EXPRESSION)
        return "translate.py", _assemble_script("Translate the lines of stdin: always the likeliest piece.", parts)
    if abilities.continues_text:
        return "generate.py", _assemble_script(
            "Go on with a prompt: always the likeliest piece.", CACHE_SCRIPT + DECODER_ONLY_SCRIPT + GENERATE_SCRIPT
        )
    if abilities.labels == "label":
        return "label.py", _assemble_script("Give each line of stdin its label.", LABELS_SCRIPT + CLASSIFY_TEXTS_SCRIPT)
    if abilities.labels == "tags":
        return "label.py", _assemble_script(
            "Give each word of each line of stdin its tag.", LABELS_SCRIPT + TAG_WORDS_SCRIPT
        )
    return None


def _assemble_script(doc: str, parts: str) -> str:
    return f'"""{doc}{SCRIPT_HEAD}{parts}'
