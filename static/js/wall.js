// The wall screen: its views take turns, and are fetched again without a reload. Keys: P or space pauses, the arrows turn,
// F fills the screen. A lost connection is shown with the time of the figures.

import { applyFragments } from "./morph.js";
import { language } from "./messages.js";
import { timeZone } from "./time.js";

const REFRESH_MS = 10_000;
const PATIENCE_MS = 30_000; // a busy server gets no second request meanwhile
const clock = new Intl.DateTimeFormat(language, { timeStyle: "medium", timeZone });

function views() {
  return [...document.querySelectorAll("[data-wall-view]")];
}

function show(at) {
  for (const [number, view] of views().entries()) view.hidden = number !== at;
  const dots = document.querySelector("[data-wall-dots]");
  for (const [number, dot] of [...dots.children].entries()) {
    if (number === at) dot.setAttribute("aria-current", "true");
    else dot.removeAttribute("aria-current");
  }
}

function notice(name, isVisible) {
  document.querySelector(`[data-wall-${name}]`).hidden = !isVisible;
}

async function refresh(address) {
  try {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const answer = await fetch(address, { headers: { "HX-Request": "true" }, signal });
    const text = answer.ok && !answer.redirected ? await answer.text() : "";
    if (text.includes("data-wall-at")) {
      applyFragments(text);
      notice("lost", false);
      notice("signed-out", false);
      return;
    }
    if (answer.redirected || answer.status === 401 || answer.status === 404) return notice("signed-out", true);
  } catch {
    // Said below, like an answer with an error.
  }
  const at = document.querySelector("[data-wall-at]").dataset.wallAt;
  document.querySelector("[data-wall-since]").textContent = clock.format(new Date(at));
  notice("lost", true);
}

function fillScreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen?.();
}

export function startWall() {
  const { wall, wallSeconds } = document.body.dataset;
  if (!wall) return;
  let at = 0;
  let isPaused = false;
  let turnsAt = 0;
  const every = 1000 * Number(wallSeconds);

  function turn(to) {
    const count = views().length;
    at = (to + count) % count;
    turnsAt = performance.now() + every;
    show(at);
  }

  function pause() {
    isPaused = !isPaused;
    turnsAt = performance.now() + every;
    document.querySelector("[data-wall-pause]").setAttribute("aria-pressed", String(isPaused));
    notice("paused", isPaused);
  }

  const keys = { p: pause, " ": pause, f: fillScreen, ArrowRight: () => turn(at + 1), ArrowLeft: () => turn(at - 1) };
  document.addEventListener("keydown", (event) => {
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && event.target.closest("a, button")) return;
    event.preventDefault();
    act();
  });
  document.querySelector("[data-wall-pause]").addEventListener("click", pause);
  document.querySelector("[data-wall-full]").addEventListener("click", fillScreen);
  const dots = document.querySelector("[data-wall-dots]");
  for (const [number, view] of views().entries()) {
    const dot = document.createElement("button");
    dot.type = "button";
    dot.textContent = view.dataset.wallView;
    dot.addEventListener("click", () => turn(number));
    dots.append(dot);
  }
  turn(0);
  setInterval(() => {
    if (!isPaused && performance.now() >= turnsAt) turn(at + 1);
  }, 500);

  async function refreshAgain() {
    if (!document.hidden) await refresh(wall);
    show(at);
    setTimeout(refreshAgain, REFRESH_MS);
  }
  setTimeout(refreshAgain, REFRESH_MS);
}
