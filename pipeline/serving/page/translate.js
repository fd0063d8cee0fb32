// The form that translates while one types: a newer text cancels the older, long ones come part by part.

import { Refusal, post } from "./api.js";
import { hideAttention, sentenceAt, showAttention } from "./attention.js";
import { splitChunks } from "./chunks.js";
import { copyText, count, element, find, saveFile } from "./dom.js";
import { glossaryTerms, startGlossary } from "./glossary.js";
import { remember, startHistory } from "./history.js";
import { chosenLanguages, isReversible, setLanguages, startLanguages, swapLanguages } from "./languages.js";
import { clearOutput, onWord, showParts, shownText } from "./output.js";
import { startFiles, takeFileName } from "./text_files.js";

const PAUSE = 300; // milliseconds after a key before the text is sent
const PAUSE_BEFORE_HISTORY = 2500;
const PAUSE_BEFORE_STATUS = 700; // an answer that is there sooner needs no word that it comes
const MAX_SPOKEN_CHARS = 200;
const MAX_ATTEMPTS = 6;
const MAX_ALTERNATIVES = 3;
const MAX_KEPT_PARTS = 2000;

const source = find("source");
const box = find("translation");
const answers = new Map(); // what the server said of a part, by all that it depends on
let settings = {};
let running = new AbortController();
let timer = 0;
let historyTimer = 0;
let statusTimer = 0;
let wake = () => {}; // ends the wait before another attempt
let chunks = [];
let parts = [];
let segments = []; // the places of the sentences of each part
let shownRequest = ""; // of the translation that is shown

export function startTranslation(known, languages) {
  settings = known;
  const models = settings.models.filter((each) => each.task === "translation" && !each.images);
  find("model-field").hidden = models.length < 2;
  find("model").append(element("option", { value: "" }, "any"), ...models.map(({ name }) => element("option", {}, name)));
  find("model").addEventListener("change", () => schedule(0));
  startLanguages(settings, languages, () => schedule(0));
  startGlossary(() => schedule(PAUSE));
  startHistory((entry) => {
    setLanguages(entry.source, entry.target);
    setText(entry.text);
    source.focus();
  });
  startFiles(settings.charLimit, setText);
  source.addEventListener("input", () => schedule(PAUSE));
  find("alternatives-box").addEventListener("toggle", () => schedule(0));
  find("clear").addEventListener("click", () => {
    setText("");
    source.focus();
  });
  find("swap").addEventListener("click", swap);
  find("copy").addEventListener("click", (event) => copyText(shownText(), event.currentTarget));
  find("save").addEventListener("click", () => saveFile(takeFileName(chosenLanguages().target), shownText()));
  find("cancel").addEventListener("click", () => stop("Cancelled: what was translated so far is shown."));
  find("retry").addEventListener("click", () => schedule(0));
  find("key").addEventListener("change", () => schedule(0));
  find("attention-close").addEventListener("click", () => {
    hideAttention();
    box.focus();
  });
  addEventListener("online", () => wake());
  onWord(attend);
  showCount();
}

function setText(text) {
  source.value = text;
  schedule(0);
}

function swap() {
  if (!isReversible()) return;
  const text = shownText();
  swapLanguages();
  setText(text || source.value);
}

function schedule(pause) {
  clearTimeout(timer);
  clearTimeout(historyTimer);
  showCount();
  timer = setTimeout(translate, pause);
}

function showCount() {
  const limit = settings.charLimit ? ` of ${settings.charLimit.toLocaleString("en")}` : "";
  find("count").textContent = `${source.value.length.toLocaleString("en")}${limit} characters`;
  find("swap").disabled = !isReversible();
}

// Stop what runs. The sentence says why; the translation so far stays.
function stop(sentence, { failed = false } = {}) {
  running.abort();
  wake();
  showBusy(false);
  find("retry").hidden = !failed;
  find("status").textContent = sentence;
}

function showBusy(isBusy) {
  box.setAttribute("aria-busy", String(isBusy));
  clearTimeout(statusTimer);
  find("cancel").hidden = true;
  find("progress").hidden = !isBusy || chunks.length < 2;
  if (!isBusy) return;
  statusTimer = setTimeout(() => {
    find("cancel").hidden = false;
    find("status").textContent ||= "Translating…";
  }, PAUSE_BEFORE_STATUS);
}

async function translate() {
  stop("");
  const text = source.value;
  if (!text.trim()) {
    clearOutput();
    hideAttention();
    showAlternatives([]);
    return;
  }
  if (settings.charLimit && text.length > settings.charLimit) {
    const limit = settings.charLimit.toLocaleString("en");
    stop(`The text has ${count(text.length, "character")}, and this server takes ${limit}: translate it in parts.`);
    return;
  }
  const mine = (running = new AbortController());
  const request = makeRequest(text);
  const { alternatives, ...asked } = { ...request, text };
  if (JSON.stringify(asked) !== shownRequest) hideAttention();
  shownRequest = JSON.stringify(asked);
  chunks = splitChunks(text, request.source);
  parts = [];
  segments = [];
  showBusy(true);
  try {
    for (const [number, chunk] of chunks.entries()) {
      find("progress").value = number / chunks.length;
      const answer = await answerOf({ ...request, q: chunk }, mine.signal);
      if (mine.signal.aborted) return;
      parts.push(answer.translatedText);
      segments.push(answer.segments ?? []);
      showParts(parts, request.target, false);
      if (chunks.length === 1) showAlternatives(answer.alternatives ?? [], answer.detectedLanguage);
      else find("status").textContent = `Translating: ${number + 1} of ${chunks.length} parts`;
    }
  } catch (error) {
    if (error.name === "AbortError" || mine.signal.aborted) return;
    stop(error.message, { failed: true });
    return;
  }
  showParts(parts, request.target, true);
  showBusy(false);
  find("status").textContent = "";
  const { source: from, target } = chosenLanguages();
  const translation = parts.join("");
  find("said").textContent = translation.length <= MAX_SPOKEN_CHARS ? translation : "The translation is there.";
  const entry = { source: from, target, text, translation };
  historyTimer = setTimeout(() => remember(entry), PAUSE_BEFORE_HISTORY);
}

function makeRequest(text) {
  const request = { ...chosenLanguages(), format: "text", segments: true };
  const terms = glossaryTerms();
  if (Object.keys(terms).length) request.glossary = terms;
  if (find("model").value) request.model = find("model").value;
  const alternatives = Math.min(MAX_ALTERNATIVES, settings.alternativesLimit ?? 0);
  const isLine = !text.trim().includes("\n");
  if (find("alternatives-box").open && alternatives && isLine) request.alternatives = alternatives;
  return request;
}

async function answerOf(request, signal) {
  if (!request.q.trim()) return { translatedText: request.q };
  const key = JSON.stringify(request);
  if (!answers.has(key)) {
    const answer = await askPatiently(request, signal);
    if (answers.size >= MAX_KEPT_PARTS) answers.delete(answers.keys().next().value);
    answers.set(key, answer);
  }
  return answers.get(key);
}

// Ask again where that may help: the server is busy, or the connection is lost.
async function askPatiently(request, signal) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await post("translate", request, signal);
    } catch (error) {
      if (!(error instanceof Refusal) || error.retry === null || attempt === MAX_ATTEMPTS) throw error;
      const seconds = Math.min(error.retry * 2 ** (attempt - 1), 30);
      find("status").textContent = `${error.message} Trying again in ${Math.ceil(seconds)} s.`;
      await new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, 1000 * seconds);
      });
      if (signal.aborted) throw new DOMException("", "AbortError");
      find("status").textContent = "Translating…";
    }
  }
}

function showAlternatives(texts, detected) {
  const others = texts.filter((text) => text !== shownText());
  find("alternatives").lang = chosenLanguages().target;
  find("alternatives").replaceChildren(...others.map((text) => element("li", {}, text)));
  const isLine = source.value.trim() && !source.value.trim().includes("\n");
  find("alternatives-note").textContent = others.length || isLine ? "" : "They are shown of a text of one line.";
  if (detected) find("count").textContent += ` · ${detected.language} by its words`;
}

function attend(word, number, start) {
  const languages = chosenLanguages();
  const sentence = sentenceAt(chunks[number], parts[number], start, segments[number]);
  const request = { source: languages.source, target: languages.target };
  if (find("model").value) request.model = find("model").value;
  showAttention(word, sentence, request);
}
