// Notes the height of parts that load after their page (data-keep-height). Next time js/early.js gives them this height
// until they are loaded, so that what is below them does not jump.

const STEP = 100; // px of the window's width that share a height

export function startHeights() {
  document.addEventListener("htmx:afterSettle", ({ target }) => {
    if (!target.matches?.("[data-keep-height]")) return;
    try {
      localStorage.setItem(`hekla.height.${target.id}.${Math.round(innerWidth / STEP)}`, target.offsetHeight);
    } catch {
      // Storage may be blocked.
    }
  });
}
