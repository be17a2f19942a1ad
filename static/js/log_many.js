// The merged logs of several pods, line by line. Each line begins with the name of its pod, in a colour per pod. Lines are
// ordered by the times with which they begin. A line without one has the time at which it arrived, if that is known, and
// shows it; else it stays behind the line before it in its pod. What arrives later is ordered within what arrived together:
// nothing moves once it is visible.

import { timeOf } from "./log_levels.js";
import { followLog } from "./log_stream.js";
import { wallTime } from "./time.js";

const COLOURS = [36, 35, 32, 34, 33, 31]; // ANSI colours, which the log view maps to the theme
const RANK = ["refused", "lost", "live", "complete"]; // the first of these that any pod is in is reported
const FIRST_MS = 1500; // how long the first lines wait for pods that have not answered
const TOGETHER_MS = 200;

/** For each of `count` lines the time at which it arrived; NaN: unknown. times: as in log_stream.js. */
function arrivals(count, times) {
  const found = new Array(count).fill(NaN);
  times.forEach(([line, at], place) => found.fill(at || NaN, line, times[place + 1]?.[0]));
  return found;
}

/** pods: [{pod, name}]. Handlers and return value as for followLog. */
export function followLogs(pods, { onText, onSkipped, onState }) {
  const states = pods.map(() => "live");
  const width = Math.max(...pods.map(({ name }) => name.length));
  const silent = new Set(pods.keys()); // pods that have not answered yet
  let waiting = []; // {time, text}
  let timer = setTimeout(flush, FIRST_MS);

  function flush() {
    clearTimeout(timer);
    timer = null;
    silent.clear();
    if (!waiting.length) return;
    waiting.sort((one, other) => one.time - other.time || 0); // stable
    onText(waiting.map(({ text }) => text).join(""));
    waiting = [];
  }

  function answered(place) {
    if (silent.delete(place) && !silent.size) flush();
    else if (!silent.size) timer ??= setTimeout(flush, TOGETHER_MS);
  }

  const streams = pods.map(({ pod, name }, place) => {
    let unfinished = "";
    let unfinishedAt = NaN;
    let latest = -1;
    let clock = ""; // or its room, once a time of this pod is known
    const put = (line, arrived) => {
      const own = timeOf(line);
      const time = Number.isNaN(own) ? arrived : own;
      if (time >= latest) latest = time;
      if (clock || !Number.isNaN(arrived)) clock = time === own || Number.isNaN(time) ? " ".repeat(9) : ` ${wallTime(time).slice(-8)}`;
      waiting.push({ time: latest, text: `\x1b[0;${COLOURS[place % COLOURS.length]}m${name.padEnd(width)}${clock} |\x1b[0m ${line}\n` });
    };
    return followLog(pod, {
      onSkipped,
      onText(text, times) {
        const lines = (unfinished + text).split("\n");
        const arrived = arrivals(lines.length, times);
        if (unfinished) arrived[0] = unfinishedAt;
        unfinished = lines.pop();
        unfinishedAt = arrived[lines.length];
        lines.forEach((line, number) => put(line, arrived[number]));
        answered(place);
      },
      onState(state) {
        if (state === "complete" && unfinished) put(unfinished, unfinishedAt);
        if (state === "complete") unfinished = "";
        if (state !== "live") answered(place);
        states[place] = state;
        onState(RANK.find((one) => states.includes(one)));
      },
    });
  });
  return {
    close() {
      clearTimeout(timer);
      streams.forEach((stream) => stream.close());
    },
  };
}
