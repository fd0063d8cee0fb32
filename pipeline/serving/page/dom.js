// Elements of the page, and the little that all its parts share.

export const find = (id) => document.getElementById(id);

// A new element. A child that is a text stays text, whatever is in it.
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;

// What the browser keeps; without its permission, for as long as the page is open.
const memory = new Map();

export function recall(key, otherwise) {
  try {
    const found = localStorage.getItem(`tfm.${key}`);
    return found === null ? otherwise : JSON.parse(found);
  } catch {
    return memory.has(key) ? memory.get(key) : otherwise;
  }
}

export function keep(key, value) {
  memory.set(key, value);
  try {
    localStorage.setItem(`tfm.${key}`, JSON.stringify(value));
  } catch {
    // full, or forbidden: the page works without
  }
}

export async function copyText(text, button) {
  const before = button.textContent;
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch {
    const area = element("textarea", { class: "unseen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
    button.focus();
  }
  button.textContent = done ? "Copied" : "Not copied";
  setTimeout(() => (button.textContent = before), 1500);
}

export function saveFile(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  const link = element("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
