// The start of the page: what the server has decides which forms there are.

import { get } from "./api.js";
import { element, find, keep, recall } from "./dom.js";
import { startDescribing, startLabelling, startWriting } from "./other_tasks.js";
import { startTranslation } from "./translate.js";

const FORMS = {
  translate: ["Translate", (model) => model.task === "translation" && !model.images],
  write: ["Write", (model) => model.task === "language_model"],
  label: ["Label", (model) => ["classification", "tagging"].includes(model.task) && !model.images],
  describe: ["Images", (model) => model.images],
};

function startTheme() {
  const choice = find("theme");
  choice.value = recall("theme", "auto");
  const show = () => {
    document.documentElement.dataset.theme = choice.value;
    keep("theme", choice.value);
  };
  choice.addEventListener("change", show);
  show();
}

function show(name) {
  for (const tab of find("tasks").children) {
    const isChosen = tab.dataset.name === name;
    tab.setAttribute("aria-selected", String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
  }
  for (const other of Object.keys(FORMS)) find(other).hidden = other !== name;
}

function startTabs(names) {
  const tabs = find("tasks");
  tabs.replaceChildren(
    ...names.map((name) => {
      const tab = element("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": name }, FORMS[name][0]);
      tab.dataset.name = name;
      tab.addEventListener("click", () => show(name));
      return tab;
    }),
  );
  tabs.hidden = names.length < 2;
  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = [...tabs.children].indexOf(document.activeElement);
    const next = tabs.children[(at + step + names.length) % names.length];
    next.focus();
    show(next.dataset.name);
  });
  if (names.length > 1) {
    for (const name of names) {
      find(name).setAttribute("role", "tabpanel");
      find(name).removeAttribute("aria-label");
      find(name).setAttribute("aria-labelledby", `tab-${name}`);
    }
  }
}

async function start() {
  startTheme();
  const [settings, languages] = await Promise.all([get("frontend/settings"), get("languages")]);
  settings.models ??= [{ name: "", task: "translation", images: false }];
  find("key-field").hidden = !settings.keyRequired;
  find("key-field").addEventListener("submit", (event) => event.preventDefault());
  const models = Object.fromEntries(
    Object.entries(FORMS).map(([name, [, fits]]) => [name, settings.models.filter(fits)]),
  );
  const names = Object.keys(FORMS).filter((name) => models[name].length);
  if (models.translate.length) startTranslation(settings, languages);
  if (models.write.length) startWriting(models.write, settings);
  if (models.label.length) startLabelling(models.label);
  if (models.describe.length) startDescribing(models.describe);
  startTabs(names);
  if (names.length) show(names[0]);
  else tell("No model of this server has a form here: programs ask for it by the routes below.");
}

function tell(sentence) {
  find("notice").textContent = sentence;
  find("notice").hidden = false;
}

start().catch((error) => tell(`${error.message} Load the page again.`));
