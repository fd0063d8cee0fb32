// Text files: opened by a button or dropped on the text, and saved.

import { count, find } from "./dom.js";

let name = "";

export function startFiles(charLimit, open) {
  const source = find("source");
  const limit = charLimit || Infinity;
  const read = async (file) => {
    const problem = await openFile(file, limit, open);
    find("notice").textContent = problem;
    find("notice").hidden = !problem;
  };
  find("file").addEventListener("change", (event) => {
    if (event.target.files.length) read(event.target.files[0]);
    event.target.value = "";
  });
  for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
    source.addEventListener(kind, (event) => {
      if (![...event.dataTransfer.types].includes("Files")) return;
      event.preventDefault();
      source.classList.toggle("dropping", kind === "dragenter" || kind === "dragover");
      if (kind === "drop") read(event.dataTransfer.files[0]);
    });
  }
}

// Open a file; returns the reason where that cannot be, else nothing.
async function openFile(file, limit, open) {
  if (file.size > 4 * limit) return `${file.name} has ${count(file.size, "byte")}, and this server takes ${count(limit, "character")}: split it.`;
  const bytes = new Uint8Array(await file.arrayBuffer());
  const mark = `${bytes[0]} ${bytes[1]}`;
  const encoding = { "255 254": "utf-16le", "254 255": "utf-16be" }[mark] ?? "utf-8";
  let text;
  try {
    text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return `${file.name} is no text in UTF-8: save it as UTF-8, and open it again.`;
  }
  if (text.includes("\0")) return `${file.name} is no text: open a .txt file.`;
  text = text.replaceAll("\r\n", "\n");
  if (text.length > limit) return `${file.name} has ${count(text.length, "character")}, and this server takes ${limit.toLocaleString("en")}: split it.`;
  name = file.name;
  open(text);
  return "";
}

export function takeFileName(language) {
  return `${name.replace(/\.[^.]*$/, "") || "translation"}.${language || "translated"}.txt`;
}
