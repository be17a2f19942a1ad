// The merged logs of several pods, line by line. Each line begins with the name of its pod, in a colour per pod. Lines are
// ordered by the times with which they begin; a line without one stays behind the line before it in its pod. What arrives
// later is ordered within what arrived together: nothing moves once it is visible.

import { timeOf } from "./log_levels.js";
import { followLog } from "./log_stream.js";

const COLOURS = [36, 35, 32, 34, 33, 31]; // ANSI colours, which the log view maps to the theme
const RANK = ["refused", "lost", "live", "complete"]; // the first of these that any pod is in is reported
const FIRST_MS = 1500; // how long the first lines wait for pods that have not answered
const TOGETHER_MS = 200;

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
    const head = `\x1b[0;${COLOURS[place % COLOURS.length]}m${name.padEnd(width)} |\x1b[0m `;
    let unfinished = "";
    let latest = -1;
    const put = (lines) => {
      for (const line of lines) {
        const time = timeOf(line);
        if (time >= latest) latest = time;
        waiting.push({ time: latest, text: `${head}${line}\n` });
      }
    };
    return followLog(pod, {
      onSkipped,
      onText(text) {
        const lines = (unfinished + text).split("\n");
        unfinished = lines.pop();
        put(lines);
        answered(place);
      },
      onState(state) {
        if (state === "complete" && unfinished) put([unfinished]);
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
