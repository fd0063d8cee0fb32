// What was translated, kept in the browser alone.

import { element, find, keep, recall } from "./dom.js";

const MAX_ENTRIES = 50;
const MAX_ENTRY_CHARS = 2000;
let restore = () => {};

export function startHistory(onRestore) {
  restore = onRestore;
  const box = find("history-on");
  box.checked = recall("history.on", true);
  box.addEventListener("change", () => keep("history.on", box.checked));
  find("history-clear").addEventListener("click", () => {
    keep("history", []);
    show();
  });
  show();
}

// Keep a translation; one of a text that only grew since the last takes its place.
export function remember(entry) {
  if (!find("history-on").checked || !entry.text.trim() || entry.text.length > MAX_ENTRY_CHARS) return;
  const isSame = (other) => other.source === entry.source && other.target === entry.target;
  const [last, ...others] = recall("history", []);
  const isGrown = last && isSame(last) && (entry.text.startsWith(last.text) || last.text.startsWith(entry.text));
  const older = (isGrown || !last ? others : [last, ...others]).filter((other) => !isSame(other) || other.text !== entry.text);
  keep("history", [entry, ...older].slice(0, MAX_ENTRIES));
  show();
}

function show() {
  const entries = recall("history", []);
  find("history-count").textContent = entries.length ? String(entries.length) : "";
  find("history-clear").hidden = !entries.length;
  find("history").replaceChildren(...entries.map(item));
}

function item(entry, number) {
  const again = element(
    "button",
    { type: "button", class: "plain again", onclick: () => restore(entry) },
    element("span", { dir: "auto" }, entry.text),
    element("span", { dir: "auto", class: "note" }, entry.translation),
  );
  const remove = () => {
    keep("history", recall("history", []).filter((_, other) => other !== number));
    show();
    find("history-box").querySelector("summary").focus();
  };
  const button = element("button", { type: "button", class: "plain", "aria-label": "Delete from the history", onclick: remove }, "✕");
  return element("li", {}, again, button);
}
