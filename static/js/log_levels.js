// The level and the time that a line of a log says of itself.

const POD = /^([\w.-]+) +(?:\d\d:\d\d:\d\d )?\| /; // the name of the pod and a time, in merged logs
const LEVEL = /\b(FATAL|CRITICAL|ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE)\b|^([EWI])\d{4} /i;
const ERROR = /^(Traceback \(most recent call last\)|(?:\w+\.)*\w*(?:Error|Exception)\b)|\bpanic:|\bFATAL\b/;
const NAMES = { fatal: "error", critical: "error", error: "error", e: "error", warn: "warning", warning: "warning", w: "warning" };
const HEAD = 120; // characters in which a level can stand
const TIME = /^\W{0,2}(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?/;

/** Levels of successive lines: an indented line has that of the line before it in the same pod. */
export class Levels {
  constructor() {
    this.before = new Map();
  }

  /** "error", "warning", or "" for everything else. */
  of(line) {
    const [head, pod] = POD.exec(line) ?? ["", ""];
    const text = line.slice(head.length, head.length + HEAD);
    const word = LEVEL.exec(text);
    const own = ERROR.test(text) ? "error" : NAMES[(word?.[1] ?? word?.[2] ?? "").toLowerCase()];
    const level = own ?? (/^\s+\S/.test(text) ? this.before.get(pod) : "") ?? "";
    this.before.set(pod, level);
    return level;
  }
}

/** The time with which the line begins, in milliseconds; NaN if with none. Without a zone it counts as UTC. */
export function timeOf(line) {
  const found = TIME.exec(line);
  if (!found) return NaN;
  const [, day, time, fraction = "0", zone = "Z"] = found;
  return Date.parse(`${day}T${time}.${fraction.slice(0, 3)}${zone}`);
}
