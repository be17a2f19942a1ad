// The lines of a log as elements: in chunks, which cost nothing while out of sight, and never more than a browser bears.

import { lastWriting, parseLine, plainStyle } from "./log_ansi.js";

const CHUNK = 256;
const MOST_LINES = 100_000;
const MOST_CHARACTERS = 20_000; // of one line; the file has the rest

export class LogLines {
  /** box: the element that takes the chunks. */
  constructor(box) {
    this.box = box;
    this.first = 1; // number of the first line that is still here
    this.rows = []; // {text, element}
    this.unfinished = ""; // what came after the last line break
    this.openRow = null;
    this.style = plainStyle();
  }

  get count() {
    return this.rows.length;
  }

  get dropped() {
    return this.first - 1;
  }

  /** The row of that line number, if it is here. */
  row(number) {
    return this.rows[number - this.first];
  }

  /** The lines as plain text. */
  get text() {
    return this.rows.map((row) => row.text).join("\n");
  }

  append(text) {
    const pieces = (this.unfinished + text).split("\n");
    this.unfinished = pieces.pop();
    if (pieces.length > MOST_LINES) this.skip(pieces.splice(0, pieces.length - MOST_LINES).length);
    if (pieces.length || this.unfinished) this.closeRow();
    for (const piece of pieces) this.push(piece, this.style);
    if (this.unfinished) this.showUnfinished();
    this.trim();
  }

  /** Takes the line that was not finished away: what comes next begins with it again. */
  closeRow() {
    if (!this.openRow) return;
    this.openRow.element.remove();
    this.rows.pop();
    this.openRow = null;
  }

  showUnfinished() {
    const style = { colour: this.style.colour, weights: new Set(this.style.weights) };
    this.openRow = this.push(this.unfinished, style);
  }

  push(raw, style) {
    const number = this.first + this.rows.length;
    const parts = parseLine(lastWriting(raw).slice(0, MOST_CHARACTERS), style);
    const row = { text: parts.map((part) => part.text).join(""), element: this.draw(number, parts) };
    this.chunk().append(row.element);
    this.rows.push(row);
    return row;
  }

  chunk() {
    const last = this.box.lastElementChild;
    if (last && last.childElementCount < CHUNK) return last;
    const chunk = document.createElement("div");
    chunk.className = "log-chunk";
    this.box.append(chunk);
    return chunk;
  }

  draw(number, parts) {
    const line = document.createElement("div");
    const link = document.createElement("a");
    const content = document.createElement("span");
    line.className = "log-line";
    link.href = `#L${number}`;
    link.dataset.n = number;
    link.tabIndex = -1;
    link.ariaLabel = String(number);
    for (const { text, classes } of parts) {
      if (!classes) content.append(text);
      else {
        const span = document.createElement("span");
        span.className = classes;
        span.textContent = text;
        content.append(span);
      }
    }
    line.append(link, content);
    return line;
  }

  trim() {
    while (this.rows.length > MOST_LINES) {
      const chunk = this.box.firstElementChild;
      const gone = chunk.childElementCount;
      chunk.remove();
      this.rows.splice(0, gone);
      this.first += gone;
    }
  }

  /** Forgets all lines here and these many that never came to be shown. */
  skip(lines) {
    this.closeRow();
    this.first += this.rows.length + lines;
    this.rows = [];
    this.box.replaceChildren();
  }
}
