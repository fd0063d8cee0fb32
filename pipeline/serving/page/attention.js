// What a word of a translation attends to, by the weights that the server gives for its sentence.

import { post } from "./api.js";
import { wordsOf } from "./chunks.js";
import { element, find } from "./dom.js";

const MAX_ATTENDED_CHARS = 1000;
const MAX_WORDS_LISTED = 5;

// The sentence of a translation in which a character stands, with its source, by the places that the server told.
export function sentenceAt(source, translation, place, segments) {
  const [from, to] = [unitPlaces(source), unitPlaces(translation)];
  for (const { source: own, target } of segments) {
    const [start, end] = target.map(to);
    if (start <= place && place < end) {
      return { source: source.slice(...own.map(from)), translation: translation.slice(start, end), place: place - start };
    }
  }
  return { source, translation, place };
}

// Characters are counted by code points, and by units of UTF-16 in strings here.
function unitPlaces(text) {
  if (!/[\uD800-\uDBFF]/.test(text)) return (place) => place;
  const units = [0];
  for (const character of text) units.push(units.at(-1) + character.length);
  return (place) => units[place];
}

// The place of each token in its text. One that the text does not spell, such as an unknown piece, has a share of what
// is between those around it.
export function placesOf(tokens, text) {
  const plain = text.toLowerCase().length === text.length ? text.toLowerCase() : text;
  const places = [];
  let reached = 0;
  let unplaced = 0;
  const share = (end) => {
    for (let number = 0; number < unplaced; number++) {
      const edges = [number, number + 1].map((edge) => reached + ((end - reached) * edge) / unplaced);
      places.push(edges);
    }
    unplaced = 0;
  };
  for (const token of tokens) {
    const spelled = token.replaceAll("\u2423", " ").trim().toLowerCase();
    const at = spelled ? plain.indexOf(spelled, reached) : -1;
    if (at < 0 || (!unplaced && text.slice(reached, at).trim())) {
      unplaced++;
      continue;
    }
    share(at);
    reached = at + spelled.length;
    places.push([at, reached]);
  }
  share(text.length);
  return places;
}

// How much each word of a source weighs for the characters `start` to `end` of its translation: [{ text, share }].
export function sharesOf(read, sentence, start, end, language) {
  const kind = read.tokens.cross ? "cross" : "decoder";
  const heads = read.attentions.filter((each) => each.kind === kind).flatMap((layer) => layer.weights);
  const { queries, keys } = read.tokens[kind];
  const isCross = kind === "cross";
  const first = isCross ? 0 : queries.lastIndexOf("<s>") + 1;
  const targets = placesOf(isCross ? queries.slice(0, -1) : queries.slice(first), sentence.translation);
  const sources = placesOf(keys.slice(0, isCross ? -1 : first - 2), sentence.source);
  const rows = targets.flatMap(([from, to], row) => (from < end && to > start ? [row] : []));
  const mass = sources.map((_, column) => {
    let sum = 0;
    // The row that predicts a piece: a decoder alone does that where it reads the piece before.
    for (const row of rows) for (const head of heads) sum += head[first + row - (isCross ? 0 : 1)][column];
    return sum;
  });
  const words = wordsOf(sentence.source, language).filter((word) => word.text.trim());
  const found = words.map(({ text, start: from, isWord }) => {
    let sum = 0;
    for (const [column, [begin, until]] of sources.entries()) {
      const shared = Math.min(until, from + text.length) - Math.max(begin, from);
      if (shared > 0) sum += (mass[column] * shared) / (until - begin);
    }
    return { text, from, isWord, share: sum };
  });
  const whole = found.reduce((sum, each) => sum + each.share, 0);
  return whole ? found.map((each) => ({ ...each, share: each.share / whole })) : [];
}

let asked = null;

export async function showAttention(word, sentence, request) {
  asked?.abort();
  asked = new AbortController();
  const title = find("attention-title");
  const list = find("attention-words");
  const text = find("attention-text");
  find("attention").hidden = false;
  title.textContent = `What “${word}” attends to`;
  list.replaceChildren();
  text.replaceChildren("…");
  if (Math.max(sentence.source.length, sentence.translation.length) > MAX_ATTENDED_CHARS) {
    text.textContent = `The sentence has more than ${MAX_ATTENDED_CHARS} characters, and attention is shown of shorter ones.`;
    return;
  }
  try {
    const read = await post("v1/attend", { ...request, text: sentence.source, translation: sentence.translation }, asked.signal);
    const shares = sharesOf(read, sentence, sentence.place, sentence.place + word.length, request.source);
    if (!shares.length) throw new Error("This model has no attention from a translation to its text.");
    const most = Math.max(...shares.map((each) => each.share));
    let reached = 0;
    text.replaceChildren(
      ...shares.flatMap((each) => {
        const mark = element("span", {}, each.text);
        mark.style.setProperty("--share", String(each.share / most));
        const gap = each.from > reached ? [" "] : [];
        reached = each.from + each.text.length;
        return [...gap, mark];
      }),
    );
    const listed = shares.filter((each) => each.isWord).sort((one, other) => other.share - one.share);
    list.replaceChildren(...listed.slice(0, MAX_WORDS_LISTED).map(listItem));
    find("said").textContent = `“${word}” attends most to “${listed[0]?.text ?? ""}”.`;
  } catch (error) {
    if (error.name === "AbortError") return;
    text.textContent = error.message;
  }
}

export function listItem({ text, share }) {
  const percent = `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
  return element(
    "li",
    {},
    element("bdi", {}, text),
    element("meter", { min: 0, max: 1, value: share, "aria-label": `${text}: ${percent}` }),
    element("span", { class: "number" }, percent),
  );
}

export function hideAttention() {
  asked?.abort();
  find("attention").hidden = true;
  for (const word of document.querySelectorAll(".word.shown")) word.classList.remove("shown");
}
