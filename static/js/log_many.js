// The merged logs of several pods, line by line in order of arrival. Each line begins with the name of its pod, in a
// colour per pod.

import { followLog } from "./log_stream.js";

const COLOURS = [36, 35, 32, 34, 33, 31]; // ANSI colours, which the log view maps to the theme
const RANK = ["refused", "lost", "live", "complete"]; // the first of these that any pod is in is reported

/** pods: [{pod, name}]. Handlers and return value as for followLog. */
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
