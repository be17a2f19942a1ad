// Readable times: <time datetime data-relative> becomes "3 min ago" in the page's language, with the exact time on hover;
// data-exact shows the exact time; data-from a duration that counts on, until data-to if present; data-until a countdown.

import { language } from "./messages.js";

const STEPS = [["second", 60], ["minute", 60], ["hour", 24], ["day", 30], ["month", 12], ["year", Infinity]];
/** The zone that the person chose; undefined: that of the browser, which a cookie tells the server. */
export const timeZone = supported(document.body.dataset.timeZone);
const relative = new Intl.RelativeTimeFormat(language, { style: "short", numeric: "auto" });
const exact = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "long", timeZone });
const brief = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium", timeZone });
const noTime = new Intl.NumberFormat(language, { style: "unit", unit: "second", unitDisplay: "narrow" }).format(0);
/** The zone; undefined if there is none, or this browser does not know it: the server may have newer ones. */
function supported(zone) {
  try {
    return zone ? new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone : undefined;
  } catch {
    return undefined;
  }
}

/** Adds a space between digits and Chinese, as in the console's texts; the browser's texts have none. */
function spaced(text) {
  return text.replace(/(?<=\d)(?=\p{Script=Han})|(?<=\p{Script=Han})(?=\d)/gu, " ");
}

const duration = Intl.DurationFormat ? new Intl.DurationFormat(language, { style: "narrow" }) : null;

/** "3 min ago" for an instant in milliseconds. */
export function ago(instant, now = Date.now()) {
  let amount = (instant - now) / 1000;
  for (const [unit, size] of STEPS) {
    if (Math.abs(amount) < size) return spaced(relative.format(Math.round(amount), unit));
    amount /= size;
  }
  return exact.format(instant);
}

/** "1h 4m" for milliseconds: at most the two largest units. */
export function long(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (!seconds) return spaced(noTime);
  const parts = { days: Math.floor(seconds / 86400), hours: Math.floor(seconds / 3600) % 24, minutes: Math.floor(seconds / 60) % 60, seconds: seconds % 60 };
  const names = Object.keys(parts);
  const first = Math.max(0, names.findIndex((name) => parts[name] > 0));
  const shown = names.slice(first, first + 2).filter((name) => parts[name] > 0);
  return spaced(duration.format(Object.fromEntries(shown.map((name) => [name, parts[name]]))));
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function tellInstant(element) {
  const instant = Date.parse(element.dateTime);
  if (Number.isNaN(instant)) return;
  element.title = exact.format(instant);
  write(element, "exact" in element.dataset ? brief.format(instant) : ago(instant));
}

function tellDuration(element) {
  const { from, to, until } = element.dataset;
  const [begin, end] = until ? [Date.now(), Date.parse(until)] : [Date.parse(from), to ? Date.parse(to) : Date.now()];
  if (until) element.title = exact.format(end);
  if (duration) write(element, long(end - begin));
}

function tellAll() {
  document.querySelectorAll("time[data-relative], time[data-exact]").forEach(tellInstant);
  document.querySelectorAll("time[data-from], time[data-until]").forEach(tellDuration);
}

function noteZone() {
  const cookie = `hekla_time_zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
  if (!document.cookie.split("; ").includes(cookie)) document.cookie = `${cookie}; Path=/; Max-Age=31536000; SameSite=Lax`;
}

const wall = new Intl.DateTimeFormat("sv", { dateStyle: "short", timeStyle: "medium", timeZone });

/** An instant as "2026-11-21 12:00:00" in the person's zone. */
export function wallTime(instant) {
  return wall.format(new Date(instant));
}

export function startTime() {
  noteZone();
  tellAll();
  for (const event of ["hekla:live", "hekla:refreshed", "htmx:load", "visibilitychange"]) document.addEventListener(event, tellAll);
  let seconds = 0;
  setInterval(() => {
    if (document.hidden) return;
    seconds += 1;
    if (seconds % 10 === 0) tellAll();
    else document.querySelectorAll("time[data-from]:not([data-to]), time[data-until]").forEach(tellDuration);
  }, 1000);
}
