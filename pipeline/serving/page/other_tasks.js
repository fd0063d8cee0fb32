// Forms of models that do not translate: language models, classifiers, taggers, and models of images.

import { post, postForm, streamCompletion } from "./api.js";
import { listItem } from "./attention.js";
import { element, find } from "./dom.js";

const MAX_LABELS = 5;

function modelField(models) {
  const select = element("select", {}, ...models.map(({ name }) => element("option", {}, name)));
  return { select, label: element("label", { hidden: models.length < 2 }, "Model", select) };
}

function numberField(text, attributes) {
  const input = element("input", { type: "number", ...attributes });
  return { input, label: element("label", {}, text, input) };
}

function textField(text, placeholder) {
  const area = element("textarea", { rows: 5, dir: "auto", placeholder, "aria-label": text });
  return area;
}

// Run what a button starts; its refusal is said where the answer would be.
async function answer(button, output, work) {
  button.disabled = true;
  output.setAttribute("aria-busy", "true");
  try {
    await work();
  } catch (error) {
    if (error.name !== "AbortError") output.append(element("p", { class: "notice", role: "alert" }, error.message));
  }
  output.setAttribute("aria-busy", "false");
  button.disabled = false;
}

export function startWriting(models, settings) {
  const prompt = textField("Beginning of the text", "The beginning of a text, which the model goes on with");
  const model = modelField(models);
  const tokens = numberField("Pieces at most", { min: 1, max: settings.tokensLimit ?? 2000, value: 200 });
  const temperature = numberField("Temperature", { min: 0, max: 2, step: 0.1, value: 0.8 });
  const seed = numberField("Seed", { min: 1, max: 4294967295, value: 1 });
  const start = element("button", { type: "button" }, "Write");
  const end = element("button", { type: "button", class: "plain", hidden: true }, "Stop");
  const output = element("div", { class: "card written", dir: "auto", "aria-live": "polite", role: "region", "aria-label": "Written text" });
  let running = new AbortController();
  end.addEventListener("click", () => running.abort());
  start.addEventListener("click", () => {
    running = new AbortController();
    end.hidden = false;
    output.replaceChildren(element("span", { class: "prompt" }, prompt.value));
    const written = document.createTextNode("");
    output.append(written);
    const body = {
      model: model.select.value,
      prompt: prompt.value,
      max_tokens: Number(tokens.input.value),
      temperature: Number(temperature.input.value),
      seed: Number(seed.input.value),
    };
    answer(start, output, async () => {
      for await (const part of streamCompletion(body, running.signal)) written.data += part;
    }).then(() => (end.hidden = true));
  });
  const fields = element("div", { class: "fields" }, model.label, tokens.label, temperature.label, seed.label, start, end);
  find("write").append(prompt, fields, output);
}

export function startLabelling(models) {
  const text = textField("Text to label", "A text, or several, one a line");
  const model = modelField(models);
  const start = element("button", { type: "button" }, "Label");
  const output = element("div", { "aria-live": "polite", role: "region", "aria-label": "Labels" });
  const run = () =>
    answer(start, output, async () => {
      const { name, task } = models.find((each) => each.name === model.select.value);
      const lines = text.value.split("\n").filter((line) => line.trim());
      output.replaceChildren();
      if (!lines.length) return;
      if (task === "tagging") {
        const found = await post("v1/tag", { model: name, text: lines });
        output.append(...found.results.map(({ tags }) => card("", tagList(tags))));
      } else {
        const found = await post("v1/classify", { model: name, text: lines, top: MAX_LABELS });
        output.append(...found.results.map((each) => card(each.text, labelList(each.labels))));
      }
    });
  start.addEventListener("click", run);
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
  });
  find("label").append(text, element("div", { class: "fields" }, model.label, start), output);
}

const card = (title, content) =>
  element("div", { class: "card" }, ...(title ? [element("h2", { dir: "auto" }, title)] : []), content);

const labelList = (labels) =>
  element("ol", { class: "shares" }, ...labels.map(({ label, probability }) => listItem({ text: label, share: probability })));

const tagList = (tags) =>
  element(
    "ol",
    { class: "tagged" },
    ...tags.map(({ word, tag }) => element("li", {}, element("bdi", {}, word), element("span", { class: "tag" }, tag ?? "–"))),
  );

export function startDescribing(models) {
  const file = element("input", { type: "file", accept: "image/*", "aria-label": "Image" });
  const model = modelField(models);
  const start = element("button", { type: "button" }, "Describe");
  const output = element("div", { "aria-live": "polite", role: "region", "aria-label": "Descriptions" });
  start.addEventListener("click", () =>
    answer(start, output, async () => {
      output.replaceChildren();
      if (!file.files.length) throw new Error("Choose an image first.");
      const { name, task } = models.find((each) => each.name === model.select.value);
      const form = new FormData();
      form.append("model", name);
      form.append("image", file.files[0]);
      const url = URL.createObjectURL(file.files[0]);
      const picture = element("img", { class: "picture", src: url, alt: file.files[0].name });
      if (task === "classification") {
        form.append("top", String(MAX_LABELS));
        const found = await postForm("v1/classify", form);
        output.append(picture, card("", labelList(found.results[0].labels)));
      } else {
        const found = await postForm("v1/caption", form);
        output.append(picture, card("", element("ol", { class: "alternatives" }, ...found.captions.map(({ text }) => element("li", { dir: "auto" }, text)))));
      }
    }),
  );
  find("describe").append(element("div", { class: "fields" }, file, model.label, start), output);
}
