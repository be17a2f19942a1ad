// Makes terminal output safe: colours and weights become CSS classes; all other escape sequences and control characters
// are dropped. Nothing is interpreted as markup.

const SEQUENCE = new RegExp(
  [
    "\\x1b\\[([0-9;:]*)m", // colours: the only supported sequence
    "\\x1b\\[[0-?]*[ -/]*[@-~]", // other control sequences
    "\\x1b[\\]PX^_][^\\x07\\x1b]*(?:\\x07|\\x1b\\\\|$)", // titles, links and other strings
    "\\x1b[ -/]*[0-~]?",
    "[\\x00-\\x08\\x0b-\\x1a\\x1c-\\x1f\\x7f-\\x9f]",
  ].join("|"),
  "g",
);

const WEIGHTS = { 1: "bold", 2: "dim", 3: "italic", 4: "underline" };

export function plainStyle() {
  return { colour: null, weights: new Set() };
}

function change(style, code, rest) {
  if (code === 0) Object.assign(style, plainStyle());
  else if (WEIGHTS[code]) style.weights.add(WEIGHTS[code]);
  else if (code === 22) ["bold", "dim"].forEach((weight) => style.weights.delete(weight));
  else if (code === 23) style.weights.delete("italic");
  else if (code === 24) style.weights.delete("underline");
  else if (code >= 30 && code <= 37) style.colour = code - 30;
  else if (code >= 90 && code <= 97) style.colour = code - 90;
  else if (code === 39) style.colour = null;
  else if (code === 38 || code === 48) extended(style, code, rest);
}

function extended(style, code, rest) {
  const kind = rest.shift();
  if (kind === 5) {
    const colour = rest.shift();
    if (code === 38) style.colour = colour < 16 ? colour % 8 : null;
  } else if (kind === 2) {
    rest.splice(0, 3);
    if (code === 38) style.colour = null;
  }
}

function classesOf(style) {
  const names = [...style.weights].map((weight) => `ansi-${weight}`);
  if (style.colour !== null) names.push(`ansi-${style.colour}`);
  return names.join(" ");
}

/** The text that a terminal would show of a line with carriage returns: what follows the last one. */
export function lastWriting(line) {
  const trimmed = line.endsWith("\r") ? line.slice(0, -1) : line;
  return trimmed.slice(trimmed.lastIndexOf("\r") + 1);
}

/** Splits a line into [{text, classes}]. The style continues on the next line: it is changed in place. */
export function parseLine(line, style) {
  const parts = [];
  let from = 0;
  const take = (text) => text && parts.push({ text, classes: classesOf(style) });
  for (const match of line.matchAll(SEQUENCE)) {
    take(line.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[1] === undefined) continue;
    const codes = match[1].split(/[;:]/).map(Number);
    while (codes.length) change(style, codes.shift(), codes);
  }
  take(line.slice(from));
  return parts;
}
