// Bergamot's engine behind a pipe: a line of JSON with texts for a line with their translations.
// node bergamot.mjs WORKER MODEL VOCABULARY PRECISION BEAM
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";

const [, , workerFile, model, vocabulary, precision, beam] = process.argv;
const worker = new Worker(workerFile);
const pending = new Map();
let number = 0;
worker.on("error", (error) => {
  throw error;
});
worker.on("message", ({ id, result, error }) => {
  if (error) throw new Error(error.message);
  pending.get(id)(result);
  pending.delete(id);
});

function call(name, ...args) {
  return new Promise((resolve) => {
    pending.set(++number, resolve);
    worker.postMessage({ id: number, name, args });
  });
}

function read(file) {
  const { buffer, byteOffset, byteLength } = readFileSync(file);
  return buffer.slice(byteOffset, byteOffset + byteLength);
}

const direction = { from: "en", to: "de" }; // a name for the only model
await call("initialize", { cacheSize: 0 });
await call("loadTranslationModel", direction, {
  model: read(model),
  vocabs: [read(vocabulary)],
  shortlist: new ArrayBuffer(0),
  config: { "gemm-precision": precision, "beam-size": beam },
});
for await (const line of createInterface({ input: process.stdin })) {
  const texts = JSON.parse(line).map((text) => ({ text, html: false, qualityScores: false }));
  const results = await call("translate", { models: [direction], texts });
  process.stdout.write(JSON.stringify(results.map(({ target }) => target.text)) + "\n");
}
process.exit(0);
