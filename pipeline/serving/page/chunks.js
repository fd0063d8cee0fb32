// A text in parts that are sent one after the other: the first is there soon, and what did not change is not sent again.

export const MAX_CHUNK_CHARS = 1000;

// Parts that joined are the text. A part ends at a line break, else at a sentence, else at a space.
export function splitChunks(text, language) {
  const chunks = [];
  let open = "";
  for (const line of text.match(/[^\n]*\n|[^\n]+$/g) ?? []) {
    if (open && open.length + line.length > MAX_CHUNK_CHARS) {
      chunks.push(open);
      open = "";
    }
    const parts = splitLong(line, language);
    chunks.push(...parts.slice(0, -1));
    open = parts.length > 1 ? parts.at(-1) : open + parts[0];
  }
  if (open) chunks.push(open);
  return chunks;
}

function splitLong(line, language) {
  if (line.length <= MAX_CHUNK_CHARS) return [line];
  const parts = [];
  let open = "";
  for (const sentence of sentencesOf(line, language)) {
    for (const piece of cutAtSpaces(sentence)) {
      if (open && open.length + piece.length > MAX_CHUNK_CHARS) {
        parts.push(open);
        open = "";
      }
      open += piece;
    }
  }
  parts.push(open);
  return parts;
}

function cutAtSpaces(text) {
  const pieces = [];
  while (text.length > MAX_CHUNK_CHARS) {
    let end = text.lastIndexOf(" ", MAX_CHUNK_CHARS) + 1;
    if (end <= 0) end = /[\uD800-\uDBFF]/.test(text[MAX_CHUNK_CHARS - 1]) ? MAX_CHUNK_CHARS - 1 : MAX_CHUNK_CHARS;
    pieces.push(text.slice(0, end));
    text = text.slice(end);
  }
  return [...pieces, text];
}

function segmenter(language, granularity) {
  if (!Intl.Segmenter) return null;
  try {
    return new Intl.Segmenter(language, { granularity });
  } catch {
    return new Intl.Segmenter(undefined, { granularity });
  }
}

export function sentencesOf(text, language) {
  const found = segmenter(language, "sentence");
  if (found) return Array.from(found.segment(text), (each) => each.segment);
  return text.match(/[^.!?。！？]+[.!?。！？]*\s*|[.!?。！？]+\s*/g) ?? [];
}

// The words of a text, and what stands between them: { text, start, isWord }.
export function wordsOf(text, language) {
  const found = segmenter(language, "word");
  if (found) {
    return Array.from(found.segment(text), (each) => ({ text: each.segment, start: each.index, isWord: each.isWordLike }));
  }
  return Array.from(text.matchAll(/\s+|\S+/g), (each) => ({ text: each[0], start: each.index, isWord: /\S/.test(each[0]) }));
}
