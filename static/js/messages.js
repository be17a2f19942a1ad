// The sentences of the page's language, put there by the server.

const element = document.getElementById("messages");
const sentences = element ? JSON.parse(element.textContent) : {};

export const language = document.documentElement.lang || "en";

/** The sentence of that key with its {names} filled in. */
export function say(key, values = {}) {
  const sentence = sentences[key] ?? key;
  return sentence.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
