// The strip that shows whether the page is live.

import { language, say } from "./messages.js";
import { timeZone } from "./time.js";

const PATIENCE_MS = 1000; // shorter interruptions are not shown
const clock = new Intl.DateTimeFormat(language, { timeStyle: "medium", timeZone });
let since = null;
let timer = null;

function tell(state, sentence) {
  const strip = document.getElementById("connection");
  if (!strip) return;
  const words = strip.querySelector("[data-connection-words]");
  strip.dataset.state = state;
  if (words.textContent !== sentence) words.textContent = sentence;
}

function recovered() {
  clearTimeout(timer);
  since = null;
}

export function connecting() {
  tell("connecting", say("connecting"));
}

export function live() {
  recovered();
  tell("live", say("live"));
}

export function behind(events) {
  recovered();
  tell("behind", say("catching_up", { n: events }));
}

export function tooMany() {
  recovered();
  tell("offline", say("too_many_pages"));
}

export function offline() {
  if (since) return;
  since = new Date();
  timer = setTimeout(() => tell("offline", say("offline", { time: clock.format(since) })), PATIENCE_MS);
}
