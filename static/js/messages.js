// The texts of scripts in the page's language, from the server.

const element = document.getElementById("messages");
const sentences = element ? JSON.parse(element.textContent) : {};

export const language = document.documentElement.lang || "en";

/** The text of this key with its {names} filled in. */
export function say(key, values = {}) {
  const sentence = sentences[key] ?? key;
  return sentence.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
