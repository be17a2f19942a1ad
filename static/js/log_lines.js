// The lines of a log as elements, in chunks that cost nothing while off-screen, with a maximum that browsers can handle.

import { lastWriting, parseLine, plainStyle } from "./log_ansi.js";
import { Levels } from "./log_levels.js";

const CHUNK = 256;
const MOST_LINES = 100_000;
const MOST_CHARACTERS = 20_000; // per line; the file has the rest

export class LogLines {
  /** box: the parent element of the chunks. */
  constructor(box) {
    this.box = box;
    this.first = 1; // number of the first line that still has an element
    this.rows = []; // {text, element}
    this.unfinished = ""; // the text after the last line break
    this.openRow = null;
    this.style = plainStyle();
    this.levels = new Levels();
  }

  get count() {
    return this.rows.length;
  }

  get dropped() {
    return this.first - 1;
  }

  /** The row of that line number, if it still exists. */
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

  /** Removes the row of the unfinished line: the next text starts with it again. */
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
    const level = this.levels.of(row.text);
    if (level) row.element.dataset.level = level;
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

  /** Drops all rows, and skips this many lines that were never shown. */
  skip(lines) {
    this.closeRow();
    this.first += this.rows.length + lines;
    this.rows = [];
    this.box.replaceChildren();
  }
}
