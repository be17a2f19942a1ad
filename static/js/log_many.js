// Several pods' logs as one, line by line in the order in which they come. Each line begins with the name of its pod, in
// a colour of its own.

import { followLog } from "./log_stream.js";

const COLOURS = [36, 35, 32, 34, 33, 31]; // of a terminal: the log view shows them by the theme
const RANK = ["refused", "lost", "live", "complete"]; // the first of these that any of them is in is told

/** pods: [{pod, name}]. Handlers and answer as for followLog. */
export function followLogs(pods, { onText, onSkipped, onState }) {
  const states = pods.map(() => "live");
  const width = Math.max(...pods.map(({ name }) => name.length));

  const streams = pods.map(({ pod, name }, place) => {
    const head = `\x1b[0;${COLOURS[place % COLOURS.length]}m${name.padEnd(width)} |\x1b[0m `;
    let unfinished = "";
    const put = (lines) => lines.length && onText(lines.map((line) => `${head}${line}\n`).join(""));
    return followLog(pod, {
      onSkipped,
      onText(text) {
        const lines = (unfinished + text).split("\n");
        unfinished = lines.pop();
        put(lines);
      },
      onState(state) {
        if (state === "complete" && unfinished) put([unfinished]);
        if (state === "complete") unfinished = "";
        states[place] = state;
        onState(RANK.find((one) => states.includes(one)));
      },
    });
  });
  return { close: () => streams.forEach((stream) => stream.close()) };
}
