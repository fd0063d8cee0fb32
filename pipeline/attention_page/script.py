"""The script of the page that page.py fills in. Text is set as text, never as HTML."""

ATTENTION_PAGE_SCRIPT = """
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = name => document.getElementById(name);
const chosen = {kind: data.start.kind, layer: data.start.layer, head: data.start.head, row: 0};

function made(tag, text, attributes) {
  const node = document.createElement(tag);
  node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

const kind = () => data.kinds[chosen.kind];
const heads = () => kind().layers[chosen.layer];
const name = head => head < 0 ? "mean of heads" : `head ${head + 1}`;

// Thousandths, row after row, of the chosen head; head -1 is the mean of all.
function weights() {
  if (chosen.head >= 0) return heads()[chosen.head];
  return heads()[0].map((_, i) => heads().reduce((sum, head) => sum + head[i], 0) / heads().length);
}

function paint(canvas, shares) {
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink-of-weights").split(",").map(Number);
  const image = new ImageData(kind().keys.length, kind().queries.length);
  shares.forEach((share, i) => image.data.set([...ink, share * 255 / 1000], 4 * i));
  [canvas.width, canvas.height] = [image.width, image.height];
  canvas.getContext("2d").putImageData(image, 0, 0);
}

// One tab stop for all buttons of a group; arrow keys go from one to the next.
function group(container, select) {
  container.addEventListener("keydown", event => {
    const step = {ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1}[event.key];
    const buttons = [...container.querySelectorAll("button")];
    const next = buttons[buttons.indexOf(event.target) + step];
    if (!step) return;
    event.preventDefault();
    if (next) { next.focus(); select(next); }
  });
  container.addEventListener("click", event => {
    const button = event.target.closest("button");
    if (button) select(button);
  });
}

function mark(container, attribute, isChosen) {
  container.querySelectorAll("button").forEach((button, i) => {
    button.setAttribute(attribute, isChosen(button, i));
    button.tabIndex = isChosen(button, i) ? 0 : -1;
  });
}

// The image, and over it the dark that attention leaves: none where there is the most.
function drawImage() {
  const {width, height, rows, columns, side, pixels} = data.image;
  const bytes = atob(pixels), drawn = new ImageData(width, height);
  for (let i = 0; i < width * height; i++)
    drawn.data.set([0, 1, 2].map(c => bytes.charCodeAt(3 * i + c)).concat(255), 4 * i);
  [at("image").width, at("image").height] = [width, height];
  at("image").getContext("2d").putImageData(drawn, 0, 0);
  at("seen").style.setProperty("--covers-x", columns * side / width);
  at("seen").style.setProperty("--covers-y", rows * side / height);
}

function light(shares) {
  const {rows, columns, side, width, height} = data.image, most = Math.max(...shares, 1);
  const dark = new ImageData(columns, rows);
  shares.forEach((share, i) => dark.data.set([0, 0, 0, 220 * (1 - share / most)], 4 * i));
  [at("light").width, at("light").height] = [columns, rows];
  at("light").getContext("2d").putImageData(dark, 0, 0);
  const asks = at("asks"), [row, column] = [Math.floor(chosen.row / columns), chosen.row % columns];
  asks.hidden = !kind().onImage.includes("queries");
  asks.style.left = 100 * column * side / width + "%";
  asks.style.top = 100 * row * side / height + "%";
  asks.style.width = 100 * side / width + "%";
  asks.style.height = 100 * side / height + "%";
}

function showRow(row) {
  chosen.row = row;
  const keys = kind().keys;
  const shares = weights().slice(row * keys.length, (row + 1) * keys.length);
  mark(at("queries"), "aria-pressed", (_, i) => i === row);
  [...at("keys").children].forEach((key, i) => {
    key.style.setProperty("--share", shares[i] / 1000);
    key.lastChild.textContent = shares[i] >= 5 ? Math.round(shares[i] / 10) : "";
  });
  at("row").style.setProperty("--row", row);
  if (kind().onImage.includes("keys")) light(shares);
  const most = keys.map((key, i) => [shares[i], key]).filter(each => each[0] >= 5).sort((a, b) => b[0] - a[0]);
  const named = most.slice(0, 5).map(([share, key]) => `${key} ${Math.round(share / 10)} %`).join(", ");
  const note = kind().notes[row] ? ` (${kind().notes[row]})` : "";
  at("said").textContent = `${kind().queries[row]}${note} attends to ${named}`;
}

function showHead() {
  at("layer").value = chosen.layer;
  at("head").value = chosen.head;
  at("which").textContent = `${kind().name}, layer ${chosen.layer + 1}, ${name(chosen.head)}`;
  paint(at("weights"), weights());
  const picked = chosen.layer + "," + chosen.head;
  mark(at("heads"), "aria-pressed", button => button.dataset.picks === picked);
  const buttons = at("heads").querySelectorAll("button");
  if (chosen.head < 0) buttons[0].tabIndex = 0;
  showRow(chosen.row);
}

function showKind() {
  const {keys, queries, layers} = kind();
  document.body.style.setProperty("--rows", queries.length);
  document.body.style.setProperty("--columns", keys.length);
  mark(at("kinds"), "aria-selected", (_, i) => i === chosen.kind);
  at("matrix").classList.toggle("on-image", kind().onImage.includes("keys"));
  if (data.image) at("seen").hidden = !kind().onImage.includes("keys");
  at("keys").replaceChildren(...keys.map(key => {
    const column = made("span", "", {});
    column.append(made("bdi", key, {title: key}), made("b", "", {}));
    return column;
  }));
  at("queries").replaceChildren(...queries.map((query, i) => made("button", query, {dir: "auto", "data-row": i})));
  at("layer").replaceChildren(...layers.map((_, i) => made("option", i + 1, {value: i})));
  const numbers = layers[0].map((_, i) => i);
  at("head").replaceChildren(...[-1, ...numbers].map(i => made("option", i < 0 ? "mean" : i + 1, {value: i})));
  at("heads").replaceChildren(...layers.map((_, layer) => {
    const line = made("div", "", {});
    line.append(made("span", `layer ${layer + 1}`, {}), ...numbers.map(head => {
      const label = `layer ${layer + 1}, head ${head + 1}`;
      const button = made("button", "", {"aria-label": label, title: label, "data-picks": layer + "," + head});
      button.append(made("canvas", "", {}));
      paint(button.firstChild, layers[layer][head]);
      return button;
    }));
    return line;
  }));
  showHead();
}

function choose(change) {
  Object.assign(chosen, change);
  "kind" in change ? showKind() : showHead();
}

const tabs = {role: "tab", "aria-controls": "panel"};
at("kinds").replaceChildren(...data.kinds.map(each => made("button", each.name, tabs)));
const place = node => [...node.parentNode.children].indexOf(node);
group(at("kinds"), tab => choose({kind: place(tab), layer: 0, head: -1, row: 0}));
group(at("heads"), button => {
  const [layer, head] = button.dataset.picks.split(",").map(Number);
  choose({layer, head});
});
group(at("queries"), button => showRow(Number(button.dataset.row)));
at("layer").addEventListener("change", event => choose({layer: Number(event.target.value)}));
at("head").addEventListener("change", event => choose({head: Number(event.target.value)}));
for (const entered of ["pointerover", "focusin"]) at("queries").addEventListener(entered, event => {
  if (event.target.dataset.row) showRow(Number(event.target.dataset.row));
});
at("cells").addEventListener("pointermove", event => {
  const box = at("weights").getBoundingClientRect();
  const row = Math.floor((event.clientY - box.top) / box.height * kind().queries.length);
  if (row >= 0 && row < kind().queries.length && row !== chosen.row) showRow(row);
});
if (data.image) {
  drawImage();
  at("seen").addEventListener("pointermove", event => {
    const {width, height, columns, side} = data.image, box = at("image").getBoundingClientRect();
    const place = (from, size, pixels) => Math.floor(from / size * pixels / side);
    const row = place(event.clientY - box.top, box.height, height) * columns
      + place(event.clientX - box.left, box.width, width);
    if (kind().onImage.includes("queries") && row >= 0 && row < kind().queries.length) showRow(row);
  });
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showKind);
showKind();
"""
