// The translation as words that can be pointed at, by mouse and by keyboard.

import { wordsOf } from "./chunks.js";
import { element, find } from "./dom.js";

const box = find("translation");
let shown = []; // the text of each part that is shown
let current = null;

// Show the translations of the parts so far; parts behind them are of the text before, and fade.
export function showParts(texts, language, isDone) {
  box.lang = language === "und" ? "" : language;
  for (const [number, text] of texts.entries()) {
    const old = box.children[number];
    if (old && shown[number] === text && !old.classList.contains("old")) continue;
    const made = element("span", { class: "chunk" });
    made.dataset.number = number;
    for (const word of wordsOf(text, language)) {
      made.append(word.isWord ? wordElement(word) : word.text);
    }
    if (old) old.replaceWith(made);
    else box.append(made);
    shown[number] = text;
  }
  shown.length = isDone ? texts.length : shown.length;
  for (const child of [...box.children].slice(texts.length)) {
    if (isDone) child.remove();
    else child.classList.add("old");
  }
  if (current && !current.isConnected) current = null;
}

function wordElement(word) {
  const made = element("span", { class: "word" }, word.text);
  made.dataset.start = word.start;
  return made;
}

export function clearOutput() {
  shown = [];
  current = null;
  box.replaceChildren();
}

export const shownText = () => shown.join("");

// `choose` is called with a word, the number of its part and its place there.
export function onWord(choose) {
  const tell = (word) => {
    for (const other of box.querySelectorAll(".word.shown")) other.classList.remove("shown");
    word.classList.add("shown");
    choose(word.textContent, Number(word.closest(".chunk").dataset.number), Number(word.dataset.start));
  };
  box.addEventListener("click", (event) => {
    const word = event.target.closest(".word");
    if (word && getSelection().isCollapsed) {
      move(word);
      tell(word);
    }
  });
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const words = [...box.querySelectorAll(".word")];
    const isMirrored = getComputedStyle(box).direction === "rtl";
    const steps = { ArrowRight: isMirrored ? -1 : 1, ArrowLeft: isMirrored ? 1 : -1, ArrowDown: 1, ArrowUp: -1 };
    const at = words.indexOf(current);
    if (event.key in steps && words.length) {
      move(words[Math.min(Math.max(at + steps[event.key], 0), words.length - 1)]);
      find("said").textContent = current.textContent;
    } else if ((event.key === "Home" || event.key === "End") && words.length) {
      move(event.key === "Home" ? words[0] : words.at(-1));
      find("said").textContent = current.textContent;
    } else if ((event.key === "Enter" || event.key === " ") && current) tell(current);
    else return;
    event.preventDefault();
  });
  box.addEventListener("blur", () => move(null));
}

function move(word) {
  current?.classList.remove("current");
  current = word;
  current?.classList.add("current");
  current?.scrollIntoView({ block: "nearest" });
}
