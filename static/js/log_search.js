// Search in a log: finds lines, highlights matches (without changing the lines' markup), and steps through them.

const MOST_MARKED = 2000;

function rangesIn(element, wanted) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const ranges = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.data.toLowerCase();
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + wanted.length);
      ranges.push(range);
    }
  }
  return ranges;
}

function mark(name, ranges) {
  if (!window.CSS?.highlights) return;
  if (ranges.length) CSS.highlights.set(name, new Highlight(...ranges));
  else CSS.highlights.delete(name);
}

export class LogSearch {
  /** lines: the LogLines to search. */
  constructor(lines) {
    this.lines = lines;
    this.wanted = "";
    this.found = []; // line numbers
    this.at = -1;
  }

  get here() {
    return this.found[this.at];
  }

  search(text) {
    this.wanted = text.toLowerCase();
    this.found = [];
    this.at = -1;
    if (this.wanted) {
      this.lines.rows.forEach((row, index) => {
        if (row.text.toLowerCase().includes(this.wanted)) this.found.push(this.lines.first + index);
      });
    }
    this.at = this.found.length ? this.found.length - 1 : -1; // start at the newest match
    this.show();
  }

  step(by) {
    if (!this.found.length) return;
    this.at = (this.at + by + this.found.length) % this.found.length;
    this.show();
  }

  show() {
    const rows = this.found.slice(-MOST_MARKED).map((number) => this.lines.row(number)).filter(Boolean);
    mark("log-match", rows.flatMap((row) => rangesIn(row.element.lastElementChild, this.wanted)));
    const here = this.lines.row(this.here);
    mark("log-here", here ? rangesIn(here.element.lastElementChild, this.wanted) : []);
    here?.element.scrollIntoView({ block: "center" });
  }
}
