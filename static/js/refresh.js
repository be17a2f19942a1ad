// Parts of a page that come from an address of their own and ask for themselves again: an element with an id,
// data-refresh="address" and data-refresh-seconds; data-refresh-now asks at once. The answer is that element as it is
// now; without data-refresh it is the last. While nobody looks nothing is asked for.

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
    ask(element).catch(() => {}); // asked again when it is due
  }
}

export function startRefresh() {
  look();
  setInterval(look, 1000);
  document.addEventListener("visibilitychange", look);
  document.addEventListener("hekla:live", look);
}
