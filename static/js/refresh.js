// Parts of a page that poll their own URL: an element with an id, data-refresh="URL" and data-refresh-seconds;
// data-refresh-now loads it at once, data-refresh-live also after each change of the page. The response is the current element; without data-refresh it is the last one.
// Hidden tabs do not poll.

import { applyFragments } from "./morph.js";

const due = new WeakMap();

async function ask(element) {
  const answer = await fetch(element.dataset.refresh, { headers: { "HX-Request": "true" } });
  if (!answer.ok) throw new Error(String(answer.status));
  const touched = applyFragments(await answer.text());
  document.dispatchEvent(new CustomEvent("hekla:refreshed", { detail: { elements: touched } }));
}

function look() {
  if (document.hidden) return;
  for (const element of document.querySelectorAll("[data-refresh]")) {
    const every = 1000 * (Number(element.dataset.refreshSeconds) || 15);
    const first = "refreshNow" in element.dataset ? 0 : every;
    if (!due.has(element)) due.set(element, performance.now() + first);
    if (performance.now() < due.get(element)) continue;
    due.set(element, performance.now() + every);
    ask(element).catch(() => {}); // it tries again at the next interval
  }
}

function lookAfterChange() {
  for (const element of document.querySelectorAll("[data-refresh-live]")) due.set(element, performance.now());
  look();
}

export function startRefresh() {
  look();
  setInterval(look, 1000);
  document.addEventListener("visibilitychange", look);
  document.addEventListener("hekla:live", lookAfterChange);
  document.addEventListener("htmx:load", look);
}
