// Requests to the server, and its refusals as sentences.

import { find } from "./dom.js";

export class Refusal extends Error {
  // status: of HTTP, 0 without a connection. retry: the seconds after which it is worth another attempt; null: never.
  constructor(sentence, status, retry) {
    super(sentence);
    this.status = status;
    this.retry = retry;
  }
}

const LOST = "The server does not answer: it was stopped, or the connection is lost.";

function sentenceOf(body, status) {
  const error = body?.error;
  const sentence = typeof error === "string" ? error : error?.message;
  if (!sentence) return `The server refused this (status ${status}).`;
  return sentence[0].toUpperCase() + sentence.slice(1) + (/[.!?]$/.test(sentence) ? "" : ".");
}

async function ask(path, options) {
  const headers = { ...options.headers };
  const key = find("key").value.trim();
  if (key) headers.Authorization = `Bearer ${key}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    throw error.name === "AbortError" ? error : new Refusal(LOST, 0, 2);
  }
  if (response.ok) return response;
  let body = null;
  try {
    body = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  const after = Number(response.headers.get("Retry-After"));
  const passes = [429, 502, 503].includes(response.status);
  throw new Refusal(sentenceOf(body, response.status), response.status, passes ? Math.min(after || 2, 60) : null);
}

async function read(response) {
  try {
    return await response.json();
  } catch (error) {
    throw error.name === "AbortError" ? error : new Refusal(LOST, 0, 2);
  }
}

export const get = async (path) => read(await ask(path, {}));

const asJson = (body, signal) => ({
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
  signal,
});

export const post = async (path, body, signal) => read(await ask(path, asJson(body, signal)));

export const postForm = async (path, form) => read(await ask(path, { method: "POST", body: form }));

// The parts of a text as a language model writes them (server-sent events).
export async function* streamCompletion(body, signal) {
  const response = await ask("v1/completions", asJson({ ...body, stream: true }, signal));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let unread = "";
  for (;;) {
    let part;
    try {
      part = await reader.read();
    } catch (error) {
      throw error.name === "AbortError" ? error : new Refusal(LOST, 0, null);
    }
    unread += part.value ?? "";
    const events = unread.split("\n\n");
    unread = events.pop();
    for (const event of events) {
      const data = event.replace(/^data: ?/, "");
      if (data === "[DONE]") return;
      const found = JSON.parse(data);
      if (found.error) throw new Refusal(sentenceOf(found, 500), 500, null);
      yield found.choices[0].text;
    }
    if (part.done) throw new Refusal("The text broke off: the server ended the connection.", 0, null);
  }
}
