// The two languages: what the server translates from, and what into from there.

import { element, find, keep, recall } from "./dom.js";
import { openGlossary } from "./glossary.js";

const UNKNOWN = "und";
const from = find("source-language");
const to = find("target-language");
let languages = [];
let changed = () => {};

export function startLanguages(settings, known, onChange) {
  languages = known;
  changed = onChange;
  const options = known.map(({ code, name }) => element("option", { value: code }, name));
  if (settings.detection && known.length > 1) options.unshift(element("option", { value: "auto" }, "Detect language"));
  from.replaceChildren(...options);
  const [source, target] = recall("languages", [settings.language?.source?.code, settings.language?.target?.code]);
  choose(source, target);
  // Of a model whose languages nobody knows there is nothing to choose.
  find("pair").hidden = known.every(({ code, targets }) => code === UNKNOWN && targets.every((target) => target === UNKNOWN));
  from.addEventListener("change", () => {
    choose(from.value, to.value);
    changed();
  });
  to.addEventListener("change", () => {
    choose(from.value, to.value);
    changed();
  });
}

function targetsOf(source) {
  const known = languages.find(({ code }) => code === source);
  return known ? known.targets : [...new Set(languages.flatMap(({ targets }) => targets))];
}

const nameOf = (code) => languages.find((each) => each.code === code)?.name ?? nameInEnglish(code);

function nameInEnglish(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code.replaceAll("_", "-"));
  } catch {
    return code;
  }
}

function choose(source, target) {
  if ([...from.options].some((option) => option.value === source)) from.value = source;
  const targets = targetsOf(from.value);
  to.replaceChildren(...targets.map((code) => element("option", { value: code }, nameOf(code))));
  to.value = targets.includes(target) ? target : (targets[0] ?? "");
  keep("languages", [from.value, to.value]);
  find("source").lang = ["auto", UNKNOWN].includes(from.value) ? "" : from.value;
  openGlossary(from.value, to.value);
}

export const chosenLanguages = () => ({ source: from.value, target: to.value });

export const setLanguages = choose;

export const isReversible = () =>
  from.value !== to.value && languages.some(({ code, targets }) => code === to.value && targets.includes(from.value));

export function swapLanguages() {
  choose(to.value, from.value);
}
