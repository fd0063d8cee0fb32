// The glossary of a pair of languages: rows of terms, kept in the browser.

import { count, element, find, keep, recall } from "./dom.js";

let key = "";
let changed = () => {};

export function startGlossary(onChange) {
  changed = onChange;
  find("glossary-add").addEventListener("click", () => {
    addRow("", "");
    find("glossary").lastElementChild.querySelector("input").focus();
  });
}

export function openGlossary(source, target) {
  key = `glossary.${source}.${target}`;
  find("glossary").replaceChildren();
  for (const [term, translation] of recall(key, [])) addRow(term, translation);
  showCount();
}

// The terms of both sides that are filled in, as the server reads them.
export function glossaryTerms() {
  return Object.fromEntries(rows().filter(([term, translation]) => term && translation));
}

function rows() {
  return [...find("glossary").rows].map((row) => [...row.querySelectorAll("input")].map((input) => input.value.trim()));
}

function addRow(term, translation) {
  const input = (value, label) =>
    element("td", {}, element("input", { type: "text", maxlength: 200, dir: "auto", value, "aria-label": label, oninput: store }));
  const remove = () => {
    row.remove();
    store();
    find("glossary-add").focus();
  };
  const button = element("button", { type: "button", class: "plain", "aria-label": "Remove the term", onclick: remove }, "✕");
  const row = element("tr", {}, input(term, "Term in the text"), input(translation, "Term in the translation"), element("td", {}, button));
  find("glossary").append(row);
}

function store() {
  keep(key, rows());
  showCount();
  changed();
}

function showCount() {
  const number = Object.keys(glossaryTerms()).length;
  find("glossary-count").textContent = number ? count(number, "term") : "";
}
